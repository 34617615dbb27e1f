#include "bench/tpcc/tpcc_history.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_random.h"

namespace flugs::bench {

namespace {

using Columns = TpccColumns;

constexpr std::uint32_t kTransactionsPerRound = 21;

struct LineInput {
  std::uint32_t item = 0;
  std::uint32_t supply_warehouse = 0;
  std::uint32_t quantity = 0;
};

/// Executes transactions one after the other.
class TpccTerminal {
 public:
  TpccTerminal(Database& database, const TpccTables& tables, const TpccOptions& population,
               std::uint64_t seed)
      : database_(database),
        tables_(tables),
        population_(population),
        random_(mix64(seed ^ 0x7470'6363u)),
        customer_constant_(random_.between(0, 1023)),
        item_constant_(random_.between(0, 8191)) {
    done_.last_us =
        population.first_entry_us + kEntryStepUs * static_cast<std::int64_t>(population.orders());
  }

  // Not inline, so that tools/instructions can tell what each of them executes.
  [[gnu::noinline]] Status new_order(std::uint32_t w);
  [[gnu::noinline]] Status payment(std::uint32_t w);
  [[gnu::noinline]] Status delivery(std::uint32_t w);
  TpccHistory& done() noexcept { return done_; }

 private:
  Value now() {
    done_.last_us += kEntryStepUs;
    return Value::timestamp(done_.last_us);
  }
  std::uint32_t random_district() { return random_.between(1, kDistrictsPerWarehouse); }
  std::uint32_t random_customer() {
    return nurand(random_, 1023, customer_constant_, 1, population_.customers_per_district);
  }
  std::uint32_t other_warehouse(std::uint32_t w) {
    const std::uint32_t other = random_.between(1, population_.warehouses - 1);
    return other < w ? other : other + 1;
  }
  std::vector<LineInput> draw_lines(std::uint32_t w);

  Status enter(Transaction& transaction, std::uint32_t w, std::uint32_t d,
               const std::vector<LineInput>& lines);
  Status order_line(Transaction& transaction, std::span<const Value> order, std::uint32_t number,
                    const LineInput& line);
  /// Takes what the line asks for from stock; gives the text for the line.
  Result<std::string> take_stock(Transaction& transaction, std::uint32_t w, std::uint32_t d,
                                 const LineInput& line);
  Result<Row> paying_customer(const Transaction& transaction, std::uint32_t w, std::uint32_t d);
  Status pay(Transaction& transaction, std::uint32_t w);
  Status book_payment(Transaction& transaction, const Row& customer,
                      const std::array<std::uint32_t, 4>& places, std::int64_t amount);
  Status deliver(Transaction& transaction, std::uint32_t w, std::uint32_t d, Value carrier,
                 Value time);
  Status deliver_lines(Transaction& transaction, std::span<const Value> order, Value time,
                       std::int64_t& amount);

  Database& database_;
  const TpccTables& tables_;
  const TpccOptions& population_;
  Random random_;
  std::uint32_t customer_constant_;
  std::uint32_t item_constant_;
  TpccHistory done_;
};

std::vector<LineInput> TpccTerminal::draw_lines(std::uint32_t w) {
  std::vector<LineInput> lines(random_.between(5, kOrderLinesMax));
  for (LineInput& line : lines) {
    line.item = nurand(random_, 8191, item_constant_, 1, population_.items);
    const bool is_remote = population_.warehouses > 1 && random_.below(100) == 0;
    line.supply_warehouse = is_remote ? other_warehouse(w) : w;
    line.quantity = random_.between(1, 10);
  }
  if (random_.below(100) == 0) lines.back().item = population_.items + 1;
  return lines;
}

Status TpccTerminal::new_order(std::uint32_t w) {
  const std::uint32_t d = random_district();
  const std::vector<LineInput> lines = draw_lines(w);
  Result<Transaction> transaction = database_.begin();
  if (!transaction.ok()) return transaction.status();
  Status status = enter(*transaction, w, d, lines);
  if (status.code() == StatusCode::kNotFound && lines.back().item > population_.items) {
    ++done_.orders_rolled_back;
    transaction->abort();
    return {};
  }
  if (status.ok()) status = transaction->commit();
  if (status.ok()) ++done_.orders_entered;
  return status;
}

Status TpccTerminal::enter(Transaction& transaction, std::uint32_t w, std::uint32_t d,
                           const std::vector<LineInput>& lines) {
  const Result<Row> district = transaction.get(tables_.district_key, {integer(w), integer(d)});
  if (!district.ok()) return district.status();
  const std::int32_t o = district->get_unchecked<std::int32_t>(Columns::kNextOrder);
  const Result<RowId> counted = transaction.update(tables_.district, district->id(),
                                                   {{Columns::kNextOrder, Value::int32(o + 1)}});
  if (!counted.ok()) return counted.status();

  const std::array<Value, 3> order = {integer(w), integer(d), Value::int32(o)};
  const bool all_local = std::all_of(lines.begin(), lines.end(), [w](const LineInput& line) {
    return line.supply_warehouse == w;
  });
  const Result<RowId> entered = transaction.insert(
      tables_.orders,
      {order[0], order[1], order[2], integer(random_customer()), now(), Value::null(),
       integer(static_cast<std::uint32_t>(lines.size())), integer(all_local ? 1 : 0)});
  if (!entered.ok()) return entered.status();
  const Result<RowId> open = transaction.insert(tables_.new_order, std::span<const Value>(order));
  if (!open.ok()) return open.status();
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    Status status = order_line(transaction, order, i + 1, lines[i]);
    if (!status.ok()) return status;
  }
  return {};
}

Status TpccTerminal::order_line(Transaction& transaction, std::span<const Value> order,
                                std::uint32_t number, const LineInput& line) {
  const Result<Row> item = transaction.get(tables_.item_key, {integer(line.item)});
  if (!item.ok()) return item.status();
  const std::int64_t amount = line.quantity * item->get_unchecked<std::int64_t>(Columns::kPrice);
  const Result<std::string> info =
      take_stock(transaction, static_cast<std::uint32_t>(order[0].as_int32()),
                 static_cast<std::uint32_t>(order[1].as_int32()), line);
  if (!info.ok()) return info.status();
  const Result<RowId> inserted = transaction.insert(
      tables_.order_line, {order[0], order[1], order[2], integer(number), integer(line.item),
                           integer(line.supply_warehouse), Value::null(), integer(line.quantity),
                           Value::decimal_units(amount), Value::string(*info)});
  return inserted.status();
}

Result<std::string> TpccTerminal::take_stock(Transaction& transaction, std::uint32_t w,
                                             std::uint32_t d, const LineInput& line) {
  const Result<Row> stock =
      transaction.get(tables_.stock_key, {integer(line.supply_warehouse), integer(line.item)});
  if (!stock.ok()) return stock.status();
  const auto info_column =
      ColumnId(static_cast<std::uint16_t>(Columns::kFirstDistrictInfo + d - 1));
  std::string info(stock->get_unchecked<std::string_view>(info_column));
  const auto wanted = static_cast<std::int32_t>(line.quantity);
  const std::int32_t there = stock->get_unchecked<std::int32_t>(Columns::kStockQuantity);
  const std::int32_t left = there >= wanted + 10 ? there - wanted : there - wanted + 91;
  const std::int32_t orders = stock->get_unchecked<std::int32_t>(Columns::kOrderCount) + 1;
  const std::int32_t remote = stock->get_unchecked<std::int32_t>(Columns::kRemoteCount) +
                              (line.supply_warehouse != w ? 1 : 0);
  const Result<RowId> taken = transaction.update(
      tables_.stock, stock->id(),
      {{Columns::kStockQuantity, Value::int32(left)},
       {Columns::kStockYtd,
        Value::int64(stock->get_unchecked<std::int64_t>(Columns::kStockYtd) + wanted)},
       {Columns::kOrderCount, Value::int32(orders)},
       {Columns::kRemoteCount, Value::int32(remote)}});
  if (!taken.ok()) return taken.status();
  return info;
}

Status TpccTerminal::payment(std::uint32_t w) {
  Result<Transaction> transaction = database_.begin();
  if (!transaction.ok()) return transaction.status();
  Status status = pay(*transaction, w);
  if (status.ok()) status = transaction->commit();
  if (status.ok()) ++done_.payments;
  return status;
}

Status TpccTerminal::pay(Transaction& transaction, std::uint32_t w) {
  const std::uint32_t d = random_district();
  const bool is_remote = population_.warehouses > 1 && random_.below(100) >= 85;
  const std::uint32_t customer_w = is_remote ? other_warehouse(w) : w;
  const std::uint32_t customer_d = is_remote ? random_district() : d;
  const std::int64_t amount = random_.between(100, 500'000);

  const Result<Row> warehouse = transaction.get(tables_.warehouse_key, {integer(w)});
  if (!warehouse.ok()) return warehouse.status();
  const Result<Row> district = transaction.get(tables_.district_key, {integer(w), integer(d)});
  if (!district.ok()) return district.status();
  const std::string data =
      std::string(warehouse->get_unchecked<std::string_view>(Columns::kWarehouseName)) + "    " +
      std::string(district->get_unchecked<std::string_view>(Columns::kDistrictName));
  for (const auto& [table, row, column] :
       {std::tuple(tables_.warehouse, *warehouse, Columns::kWarehouseYtd),
        std::tuple(tables_.district, *district, Columns::kDistrictYtd)}) {
    const Result<RowId> booked = transaction.update(
        table, row.id(),
        {{column, Value::decimal_units(row.get_unchecked<std::int64_t>(column) + amount)}});
    if (!booked.ok()) return booked.status();
  }
  const Result<Row> customer = paying_customer(transaction, customer_w, customer_d);
  if (!customer.ok()) return customer.status();
  const std::int32_t c = customer->get_unchecked<std::int32_t>(Columns::kCustomer);
  Status status = book_payment(transaction, *customer, {customer_w, customer_d, w, d}, amount);
  if (!status.ok()) return status;
  return transaction
      .insert(tables_.history,
              {Value::int32(c), integer(customer_d), integer(customer_w), integer(d), integer(w),
               now(), Value::decimal_units(amount), Value::string(data)})
      .status();
}

/// By last name, in 60 % of the cases: the middle one of the customers with that name, ordered by
/// first name.
Result<Row> TpccTerminal::paying_customer(const Transaction& transaction, std::uint32_t w,
                                          std::uint32_t d) {
  if (random_.below(100) >= 60)
    return transaction.get(tables_.customer_key,
                           {integer(w), integer(d), integer(random_customer())});
  // A district with fewer than 1000 customers has the first names only.
  const std::uint32_t names = std::min(population_.customers_per_district, 1000u);
  const std::string name = last_name(nurand(random_, 255, kNameConstantRun, 0, names - 1));
  std::vector<Row> rows;
  Status status =
      transaction.rows(tables_.customer_by_name, {integer(w), integer(d), Value::string(name)},
                       [&rows](const Row& row) {
                         rows.push_back(row);
                         return true;
                       });
  if (!status.ok()) return status;
  if (rows.empty()) return Status(StatusCode::kNotFound, "no customer is called " + name);
  return rows[(rows.size() + 1) / 2 - 1];
}

/// `places`: warehouse and district of the customer, and those where the payment is made.
Status TpccTerminal::book_payment(Transaction& transaction, const Row& customer,
                                  const std::array<std::uint32_t, 4>& places, std::int64_t amount) {
  constexpr std::size_t kDataMax = 500;
  const auto add = [&customer](ColumnId column, std::int64_t units) {
    return Value::decimal_units(customer.get_unchecked<std::int64_t>(column) + units);
  };
  std::vector<ColumnValue> changes = {
      {Columns::kBalance, add(Columns::kBalance, -amount)},
      {Columns::kYtdPayment, add(Columns::kYtdPayment, amount)},
      {Columns::kPaymentCount,
       Value::int32(customer.get_unchecked<std::int32_t>(Columns::kPaymentCount) + 1)}};
  std::string data;
  if (customer.get_unchecked<std::string_view>(Columns::kCredit) == "BC") {
    data = std::to_string(customer.get_unchecked<std::int32_t>(Columns::kCustomer));
    for (const std::size_t i : {1u, 0u, 3u, 2u}) data += " " + std::to_string(places[i]);
    data += " " + std::to_string(amount) + " ";
    data += customer.get_unchecked<std::string_view>(Columns::kCustomerData);
    data.resize(std::min(data.size(), kDataMax));
    changes.push_back({Columns::kCustomerData, Value::string(data)});
  }
  return transaction.update(tables_.customer, customer.id(), changes).status();
}

Status TpccTerminal::delivery(std::uint32_t w) {
  Result<Transaction> transaction = database_.begin();
  if (!transaction.ok()) return transaction.status();
  const Value carrier = integer(random_.between(1, 10));
  const Value time = now();
  for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d) {
    Status status = deliver(*transaction, w, d, carrier, time);
    if (!status.ok()) return status;
  }
  return transaction->commit();
}

/// Delivers a district's oldest open order, if there is any.
Status TpccTerminal::deliver(Transaction& transaction, std::uint32_t w, std::uint32_t d,
                             Value carrier, Value time) {
  std::array<Value, 3> order = {integer(w), integer(d)};
  Row open;
  Status status = transaction.rows(tables_.new_order_key, {order[0], order[1]},
                                   [&open, &order](const Row& row) {
                                     open = row;
                                     order[2] = row.get_unchecked(Columns::kNewOrder);
                                     return false;
                                   });
  if (!status.ok() || order[2].is_null()) return status;
  status = transaction.remove(tables_.new_order, open.id());
  if (!status.ok()) return status;

  const Result<Row> row = transaction.get(tables_.orders_key, std::span<const Value>(order));
  if (!row.ok()) return row.status();
  const Value c = row->get_unchecked(Columns::kOrderCustomer);
  const Result<RowId> taken =
      transaction.update(tables_.orders, row->id(), {{Columns::kCarrier, carrier}});
  if (!taken.ok()) return taken.status();
  std::int64_t amount = 0;
  status = deliver_lines(transaction, order, time, amount);
  if (!status.ok()) return status;

  const Result<Row> customer = transaction.get(tables_.customer_key, {order[0], order[1], c});
  if (!customer.ok()) return customer.status();
  const std::int32_t deliveries =
      customer->get_unchecked<std::int32_t>(Columns::kDeliveryCount) + 1;
  const std::int64_t balance = customer->get_unchecked<std::int64_t>(Columns::kBalance) + amount;
  const Result<RowId> billed =
      transaction.update(tables_.customer, customer->id(),
                         {{Columns::kBalance, Value::decimal_units(balance)},
                          {Columns::kDeliveryCount, Value::int32(deliveries)}});
  if (billed.ok()) ++done_.orders_delivered;
  return billed.status();
}

Status TpccTerminal::deliver_lines(Transaction& transaction, std::span<const Value> order,
                                   Value time, std::int64_t& amount) {
  std::vector<RowId> lines;
  Status status =
      transaction.rows(tables_.order_line_key, order, [&lines, &amount](const Row& row) {
        lines.push_back(row.id());
        amount += row.get_unchecked<std::int64_t>(Columns::kAmount);
        return true;
      });
  for (std::size_t i = 0; i < lines.size() && status.ok(); ++i)
    status =
        transaction.update(tables_.order_line, lines[i], {{Columns::kDelivery, time}}).status();
  return status;
}

}  // namespace

Result<TpccHistory> run_tpcc_history(
    Database& database, const TpccTables& tables, const TpccOptions& population,
    const TpccHistoryOptions& options,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t begin = monotonic_ns();
  TpccTerminal terminal(database, tables, population, options.seed);
  const std::uint64_t rounds = std::uint64_t{options.rounds} * population.warehouses;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto w = static_cast<std::uint32_t>(round % population.warehouses + 1);
    Status status;
    for (int i = 0; i < 10 && status.ok(); ++i) {
      status = terminal.new_order(w);
      if (status.ok()) status = terminal.payment(w);
    }
    if (status.ok()) status = terminal.delivery(w);
    if (!status.ok()) return status;
    if (progress) progress(round * kTransactionsPerRound, rounds * kTransactionsPerRound);
  }
  terminal.done().seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return terminal.done();
}

}  // namespace flugs::bench
