#include "bench/tpcc/ch_queries.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "test/ch/small_tpcc.h"
#include "test/ch/sqlite_copy.h"

namespace flugs::test {

namespace {

using query::QueryResult;
using query::RunOptions;

Cell cell_of(const Value& value) {
  if (value.is_null()) return {};
  if (value.type() == Type::kString) return std::string(value.as_string());
  if (value.type() == Type::kDouble) return value.as_double();
  return value.raw();
}

Rows rows_of(const QueryResult& result) {
  Rows rows(result.row_count());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < result.columns().size(); ++i)
      rows[row].push_back(cell_of(result.get_unchecked(row, i)));
  return rows;
}

/// Doubles are equal except for the rounding of their last operations, everything else exactly.
bool equal(const Cell& a, const Cell& b) {
  const auto* x = std::get_if<double>(&a);
  const auto* y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return std::abs(*x - *y) <= 1e-12 * std::max(std::abs(*x), std::abs(*y));
}

/// Describes the first difference of two results; empty: none.
std::string difference(const Rows& ours, const Rows& theirs) {
  if (ours.size() != theirs.size())
    return std::to_string(ours.size()) + " rows, SQLite " + std::to_string(theirs.size());
  for (std::size_t row = 0; row < ours.size(); ++row) {
    if (ours[row].size() != theirs[row].size()) return "a different number of columns";
    for (std::size_t i = 0; i < ours[row].size(); ++i)
      if (!equal(ours[row][i], theirs[row][i]))
        return "row " + std::to_string(row) + ", column " + std::to_string(i) + ": " +
               to_string(ours[row][i]) + ", SQLite " + to_string(theirs[row][i]);
  }
  return {};
}

RunOptions threads(std::uint32_t count) {
  RunOptions options;
  options.threads = count;
  return options;
}

/// Compares every query on the transaction's snapshot, with one and two threads, with SQLite.
void check_all(const Database& database, const Transaction& transaction,
               const bench::ChPeriod& period) {
  const SqliteCopy sqlite(database, transaction,
                          {"customer", "new_order", "orders", "order_line", "item"});
  for (const bench::ChQuery& query : bench::ch_queries()) {
    const Rows expected = sqlite.rows(query.sql, period);
    for (const std::uint32_t count : {1u, 2u}) {
      INFO(query.name << " with " << count << " threads");
      const QueryResult result = must(query.make(period).run(transaction, threads(count)));
      INFO(result.explain());
      CHECK(difference(rows_of(result), expected) == "");
    }
  }
}

/// The rows of one query on a new snapshot.
Rows run(SmallTpcc& tpcc, query::Query (*make)(const bench::ChPeriod&)) {
  const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
  return rows_of(must(make(tpcc.period).run(snapshot)));
}

std::int64_t integer(const Cell& cell) { return std::get<std::int64_t>(cell); }
double real(const Cell& cell) { return std::get<double>(cell); }

std::int64_t total(const Rows& rows, std::size_t column) {
  std::int64_t sum = 0;
  for (const std::vector<Cell>& row : rows) sum += integer(row.at(column));
  return sum;
}

void with_history(SmallTpcc& tpcc) {
  tpcc.history = must(bench::run_tpcc_history(*tpcc.database, tpcc.tables, tpcc.options,
                                              {bench::enough_rounds(tpcc.options), 3}));
}

/// Customers that never order, with balances of 1000.00, 2000.00, ...
void add_idle_customers(SmallTpcc& tpcc, std::int32_t count) {
  Transaction transaction = must(tpcc.database->begin());
  const Row model = must(transaction.get(tpcc.tables.customer_key,
                                         {Value::int32(1), Value::int32(1), Value::int32(1)}));
  std::vector<Value> values(must(tpcc.database->schema(tpcc.tables.customer)).columns.size());
  for (std::int32_t i = 1; i <= count; ++i) {
    model.get_all(values);
    const std::string phone = std::to_string(i % 10) + "000000000000000";
    const std::string state = {static_cast<char>('K' + i % 3), 'x'};
    values[bench::TpccColumns::kCustomer.value()] = Value::int32(100'000 + i);
    values[bench::TpccColumns::kBalance.value()] = Value::decimal_units(100'000 * std::int64_t{i});
    values[9] = Value::string(state);
    values[11] = Value::string(phone);
    must(transaction.insert(tpcc.tables.customer, std::span<const Value>(values)));
  }
  must(transaction.commit());
}

}  // namespace

TEST_CASE("on a freshly loaded database the queries agree with SQLite and arithmetic", "[ch]") {
  SmallTpcc tpcc(0);
  check_all(*tpcc.database, must(tpcc.database->begin(AccessMode::kReadOnly)), tpcc.period);
  constexpr std::int64_t kDelivered = 3500;
  constexpr std::int64_t kOpen = 1500;
  const Rows q1 = run(tpcc, bench::ch_q1);
  REQUIRE(q1.size() == 15);
  for (std::size_t line = 0; line < q1.size(); ++line) {
    INFO("line " << line + 1);
    CHECK(integer(q1[line][0]) == static_cast<std::int64_t>(line) + 1);
    CHECK(integer(q1[line][2]) == 0);
    CHECK(real(q1[line][3]) == 5);
    const double share = line < 5 ? 1 : static_cast<double>(15 - line) / 11;
    CHECK(static_cast<double>(integer(q1[line][5])) ==
          Approx(share * kDelivered).epsilon(line < 5 ? 0 : 0.1));
  }
  CHECK(total(run(tpcc, bench::ch_q4), 1) == kDelivered);
  CHECK(integer(run(tpcc, bench::ch_q6).at(0).at(0)) == 0);
  const Rows q12 = run(tpcc, bench::ch_q12);
  CHECK(total(q12, 1) + total(q12, 2) == total(q1, 5));
  CHECK(static_cast<double>(total(q12, 1)) / static_cast<double>(total(q1, 5)) ==
        Approx(0.2).epsilon(0.1));
  CHECK(total(run(tpcc, bench::ch_q13), 1) == tpcc.options.customers_per_district);
  CHECK(real(run(tpcc, bench::ch_q14).at(0).at(0)) == 0);
  CHECK(std::holds_alternative<std::monostate>(run(tpcc, bench::ch_q17).at(0).at(0)));
  CHECK(run(tpcc, bench::ch_q18).size() == kOpen);
  CHECK(integer(run(tpcc, bench::ch_q19).at(0).at(0)) > 0);
  CHECK(run(tpcc, bench::ch_q22).empty());
}

TEST_CASE("after a history the queries find rows, the same as SQLite", "[ch]") {
  SmallTpcc tpcc(0);
  with_history(tpcc);
  add_idle_customers(tpcc, 3000);
  {
    const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
    check_all(*tpcc.database, snapshot, tpcc.period);
    for (const bench::ChQuery& query : bench::ch_queries()) {
      INFO(query.name);
      const Rows rows = rows_of(must(query.make(tpcc.period).run(snapshot)));
      REQUIRE_FALSE(rows.empty());
      const Cell& last = rows[0].back();
      CHECK_FALSE((last == Cell() || last == Cell(std::int64_t{0}) || last == Cell(0.0)));
    }
  }
  tpcc.database.reopen();
  const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
  check_all(*tpcc.database, snapshot, tpcc.period);
}

TEST_CASE("a period within the run limits the queries as it limits SQLite's", "[ch]") {
  SmallTpcc tpcc(0);
  with_history(tpcc);
  const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
  bench::ChPeriod period = tpcc.period;
  period.since_us = tpcc.options.first_entry_us + 3'000'000;  // the 3000th order
  period.until_us = tpcc.history.last_us - 1'000'000;
  check_all(*tpcc.database, snapshot, period);
  period.until_us = period.since_us;
  check_all(*tpcc.database, snapshot, period);
}

TEST_CASE("queries see their own transaction's writes and no others", "[ch]") {
  SmallTpcc tpcc(0);
  with_history(tpcc);
  const Transaction before = must(tpcc.database->begin(AccessMode::kReadOnly));
  const Rows revenue_before = rows_of(must(bench::ch_q6(tpcc.period).run(before, threads(2))));
  Transaction writer = must(tpcc.database->begin());
  std::vector<RowId> lines;
  must(writer.scan(tpcc.tables.order_line, {bench::TpccColumns::kAmount},
                   [&lines](const ScanBatch& batch) {
                     lines.insert(lines.end(), batch.row_ids().begin(), batch.row_ids().end());
                     return lines.size() < 4000;
                   }));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i % 2 == 0)
      must(writer.remove(tpcc.tables.order_line, lines[i]));
    else
      must(writer.update(tpcc.tables.order_line, lines[i],
                         {{bench::TpccColumns::kAmount, Value::decimal_units(777)}}));
  }
  check_all(*tpcc.database, writer, tpcc.period);
  CHECK((rows_of(must(bench::ch_q6(tpcc.period).run(writer))) != revenue_before));
  check_all(*tpcc.database, before, tpcc.period);
  must(writer.commit());
  CHECK((rows_of(must(bench::ch_q6(tpcc.period).run(before))) == revenue_before));
}

}  // namespace flugs::test
