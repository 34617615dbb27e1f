#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "bench/tpcc/tpcc_reader.h"
#include "test/bench/tiny_tpcc.h"

namespace flugs::test {

namespace {

using bench::TpccCondition;
using enum bench::TpccCondition;
using TpccColumn = bench::TpccColumns;

/// A change of one row that no transaction of TPC-C makes, and the conditions that it breaks.
struct Damage {
  std::string what;
  std::vector<TpccCondition> breaks;
  std::function<void(Transaction&)> make;
};

class Damages {
 public:
  explicit Damages(TinyTpcc& tpcc) : tables_(tpcc.tables) {
    const Value one = Value::int32(1);
    const std::vector<Value> order = {one, one, one};  // delivered when it was loaded
    const std::vector<Value> line = {one, one, one, one};
    adds_one("w_ytd", tables_.warehouse, tables_.warehouse_key, {one}, TpccColumn::kWarehouseYtd,
             {k1, k8});
    adds_one("d_ytd", tables_.district, tables_.district_key, {one, one}, TpccColumn::kDistrictYtd,
             {k1, k9});
    adds_one("d_next_o_id", tables_.district, tables_.district_key, {one, one},
             TpccColumn::kNextOrder, {k2});
    adds_one("o_ol_cnt", tables_.orders, tables_.orders_key, order, TpccColumn::kLineCount,
             {k4, k6});
    sets("o_carrier_id", tables_.orders_key, order, {TpccColumn::kCarrier, Value::null()},
         {k5, k7, kE7});
    sets("o_all_local", tables_.orders_key, order, {TpccColumn::kAllLocal, Value::int32(0)}, {kE8});
    sets("ol_delivery_d", tables_.order_line_key, line, {TpccColumn::kDelivery, Value::null()},
         {k7});
    sets("ol_number", tables_.order_line_key, line, {ColumnId(3), Value::int32(25)}, {k6});
    adds_one("ol_amount", tables_.order_line, tables_.order_line_key, line, TpccColumn::kAmount,
             {k10, k12});
    add_customers();
    adds_one("s_ytd", tables_.stock, tables_.stock_key, {one, one}, TpccColumn::kStockYtd,
             {kE1, kE2});
    adds_one("s_order_cnt", tables_.stock, tables_.stock_key, {one, one}, TpccColumn::kOrderCount,
             {kE1});
    adds_one("s_quantity", tables_.stock, tables_.stock_key, {one, one}, TpccColumn::kStockQuantity,
             {kE2});
    removes("an item", tables_.item_key, {item_of_new_line(tpcc)}, {kRows, kE9});
    removes("an order", tables_.orders_key, order, {k4, kE6});
    removes("a line", tables_.order_line_key, line, {k4, k6});
    add_new_orders();
  }

  const std::vector<Damage>& all() const noexcept { return all_; }

 private:
  void adds_one(const char* what, TableId table, KeyId key, const std::vector<Value>& values,
                ColumnId column, const std::vector<TpccCondition>& breaks) {
    all_.push_back(
        {what, breaks, [=](Transaction& t) {
           const Row row = must(t.get(key, std::span<const Value>(values)));
           const Value old = row.get_unchecked(column);
           must(t.update(table, row.id(), {{column, Value::from_raw(old.kind(), old.raw() + 1)}}));
         }});
  }
  void sets(const char* what, KeyId key, const std::vector<Value>& values, ColumnValue change,
            const std::vector<TpccCondition>& breaks) {
    all_.push_back({what, breaks, [=](Transaction& t) {
                      must(t.update(key, std::span<const Value>(values),
                                    std::span<const ColumnValue>(&change, 1)));
                    }});
  }
  void removes(const char* what, KeyId key, const std::vector<Value>& values,
               const std::vector<TpccCondition>& breaks) {
    all_.push_back({what, breaks,
                    [=](Transaction& t) { must(t.remove(key, std::span<const Value>(values))); }});
  }

  /// An item that an order entered since the load has.
  static Value item_of_new_line(TinyTpcc& tpcc) {
    const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
    std::int64_t item = 0;
    must(snapshot.scan(tpcc.tables.order_line, {TpccColumn::kOrder, TpccColumn::kLineItem},
                       [&](const ScanBatch& batch) {
                         for (std::size_t i = 0; i < batch.row_count() && item == 0; ++i)
                           if (batch.column_unchecked<std::int64_t>(0)[i] >
                               tpcc.options.customers_per_district)
                             item = batch.column_unchecked<std::int64_t>(1)[i];
                         return item == 0;
                       }));
    REQUIRE(item != 0);
    return Value::int32(static_cast<std::int32_t>(item));
  }

  void add_customers() {
    const std::vector<Value> customer(3, Value::int32(1));
    const auto adds = [&](const char* what, ColumnId column,
                          const std::vector<TpccCondition>& breaks) {
      adds_one(what, tables_.customer, tables_.customer_key, customer, column, breaks);
    };
    adds("c_balance", TpccColumn::kBalance, {k10, k12});
    adds("c_ytd_payment", TpccColumn::kYtdPayment, {k12, kE4});
    adds("c_payment_cnt", TpccColumn::kPaymentCount, {kE3});
    adds("c_delivery_cnt", TpccColumn::kDeliveryCount, {kE5});
    all_.push_back({"a payment", {k8, k9, k10, kE3, kE4}, [this](Transaction& t) {
                      RowId first;
                      must(t.scan(tables_.history, {ColumnId(0)}, [&first](const ScanBatch& batch) {
                        first = batch.row_ids().front();
                        return false;
                      }));
                      must(t.remove(tables_.history, first));
                    }});
  }

  /// The second of three open orders, in the warehouse in which nothing is delivered.
  void add_new_orders() {
    all_.push_back({"a row of new_order", {k3, k5}, [this](Transaction& t) {
                      std::vector<RowId> open;
                      must(t.rows(tables_.new_order_key, {Value::int32(2), Value::int32(1)},
                                  [&open](const Row& row) {
                                    open.push_back(row.id());
                                    return true;
                                  }));
                      REQUIRE(open.size() == 3);
                      must(t.remove(tables_.new_order, open[1]));
                    }});
  }

  const bench::TpccTables& tables_;
  std::vector<Damage> all_;
};

std::string names(const std::vector<TpccCondition>& conditions) {
  std::string text;
  for (const TpccCondition condition : conditions)
    text += std::string(bench::kTpccConditionNames[static_cast<std::size_t>(condition)]) + " ";
  return text;
}

std::vector<TpccCondition> broken_in(const bench::TpccReport& report) {
  std::vector<TpccCondition> broken;
  for (std::size_t i = 0; i < bench::kTpccConditionNames.size(); ++i)
    if (report.state(static_cast<TpccCondition>(i)) == bench::Check::kBroken)
      broken.push_back(static_cast<TpccCondition>(i));
  return broken;
}

}  // namespace

TEST_CASE("TPC-C's conditions hold after a run of all five transactions", "[tpcc]") {
  TinyTpcc tpcc;
  const bench::TpccRunResult run = tpcc.run(3, 1000);
  for (std::size_t i = 0; i < bench::kTpccTypes; ++i) {
    INFO(bench::kTpccTypeNames[i]);
    CHECK(run.types[i].executed > 0);
    CHECK(run.types[i].latency.count() == run.types[i].executed);
  }
  CHECK(run.types[0].rolled_back < run.types[0].executed / 10);
  CHECK(run.checksum != 0);
  const bench::TpccReport report =
      must(bench::check_tpcc(*tpcc.database, tpcc.tables, tpcc.options));
  CHECK(names(broken_in(report)) == "");
  for (std::size_t i = 0; i < bench::kTpccConditionNames.size(); ++i)
    CHECK((report.state(static_cast<TpccCondition>(i)) == bench::Check::kHeld) ==
          (static_cast<TpccCondition>(i) != kAcknowledged));
}

TEST_CASE("each of TPC-C's conditions is reported when it is broken", "[tpcc]") {
  TinyTpcc tpcc;
  tpcc.run(1, 200);
  std::vector<TpccCondition> seen;
  const Damages damages(tpcc);
  for (const Damage& damage : damages.all()) {
    INFO(damage.what);
    // The transaction sees its own writes, and nothing of them stays.
    Transaction transaction = must(tpcc.database->begin());
    damage.make(transaction);
    bench::TpccFindings findings(tpcc.options);
    must(bench::read_tpcc(transaction, tpcc.tables, findings));
    const bench::TpccReport report = findings.check();
    for (const std::string& problem : report.problems()) UNSCOPED_INFO(problem);
    const std::vector<TpccCondition> broken = broken_in(report);
    CHECK(names(broken) == names(damage.breaks));
    CHECK(report.problems().empty() == broken.empty());
    seen.insert(seen.end(), broken.begin(), broken.end());
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(kE10); ++i) {
    INFO(bench::kTpccConditionNames[i]);
    CHECK(std::count(seen.begin(), seen.end(), static_cast<TpccCondition>(i)) > 0);
  }
}

TEST_CASE("inputs of TPC-C are drawn as the specification has them", "[tpcc]") {
  bench::TpccOptions population;
  population.warehouses = 4;
  bench::TpccGenerator generator(population, bench::TpccMix::kFull, bench::TpccConstants(1), 7);
  generator.set_home(2, 3);
  constexpr std::uint32_t kDraws = 40'000;
  std::array<double, bench::kTpccTypes> types{};
  double lines = 0;
  double remote_lines = 0;
  double rolled_back = 0;
  double remote_payments = 0;
  double by_name = 0;
  bench::TpccRequest request;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    generator.next(request);
    ++types[bench::index_of(request.type)];
    CHECK_FALSE(request.w != 2);
    if (request.type == bench::TpccType::kStockLevel) CHECK_FALSE(request.d != 3);
    if (request.type == bench::TpccType::kNewOrder) {
      rolled_back += request.has_unused_item ? 1 : 0;
      lines += request.line_count;
      for (const bench::TpccLine& line : request.lines())
        remote_lines += line.supply_warehouse != 2 ? 1 : 0;
    }
    if (request.type == bench::TpccType::kPayment) {
      remote_payments += request.customer_w != 2 ? 1 : 0;
      by_name += request.by_name ? 1 : 0;
    }
  }
  CHECK(types[0] / kDraws == Approx(0.45).epsilon(0.03));
  CHECK(types[1] / kDraws == Approx(0.43).epsilon(0.03));
  for (std::size_t i = 2; i < bench::kTpccTypes; ++i)
    CHECK(types[i] / kDraws == Approx(0.04).epsilon(0.1));
  CHECK(lines / types[0] == Approx(10).epsilon(0.02));
  CHECK(remote_lines / lines == Approx(0.01).epsilon(0.15));
  CHECK(rolled_back / types[0] == Approx(0.01).epsilon(0.3));
  CHECK(remote_payments / types[1] == Approx(0.15).epsilon(0.1));
  CHECK(by_name / types[1] == Approx(0.6).epsilon(0.05));
}

}  // namespace flugs::test
