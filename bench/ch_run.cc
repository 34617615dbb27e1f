#include "bench/ch_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/clock.h"
#include "bench/random.h"

namespace flugs::bench {

namespace {

using query::col;
using query::count;
using query::Item;
using query::Query;
using query::QueryResult;
using query::RunOptions;
using query::sum;

std::uint64_t hash_of(const Value& value) noexcept {
  if (value.is_null()) return 1;
  std::uint64_t hash = mix64(static_cast<std::uint64_t>(value.raw()));
  for (const char letter : value.as_string())
    hash = mix64(hash ^ static_cast<unsigned char>(letter));
  return hash;
}

/// Of all values, in their order.
std::uint64_t checksum_of(const QueryResult& result) noexcept {
  std::uint64_t hash = 0;
  for (std::size_t row = 0; row < result.row_count(); ++row)
    for (std::size_t i = 0; i < result.columns().size(); ++i)
      hash = mix64(hash ^ hash_of(result.value(row, i)));
  return hash;
}

RunOptions run_options(const ChRunOptions& options) {
  RunOptions run;
  run.threads = options.threads;
  return run;
}

Result<ChQueryFigures> run_query(Database& database, const ChQuery& query,
                                 const ChRunOptions& options) {
  ChQueryFigures figures;
  figures.name = query.name;
  figures.question = query.question;
  for (std::uint32_t run = 0; run <= options.runs; ++run) {
    const std::uint64_t begin = monotonic_ns();
    const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
    if (!snapshot.ok()) return snapshot.status();
    const Result<QueryResult> result =
        query.make(options.period).run(*snapshot, run_options(options));
    const std::uint64_t end = monotonic_ns();
    if (!result.ok()) return result.status();
    const std::uint64_t checksum = checksum_of(*result);
    if (run > 0) {
      figures.ms.push_back(static_cast<double>(end - begin) * 1e-6);
      figures.is_repeatable = figures.is_repeatable && checksum == figures.checksum;
    }
    figures.checksum = checksum;
    figures.result = *result;
  }
  return figures;
}

/// Sums that must be equal.
struct Equation {
  const char* words;
  std::vector<Query> sides;
};

Query total(const char* table, const Item& of) {
  return Query::table(table).group_by({}, {sum(of).as("total")});
}
Query rows(const char* table) { return Query::table(table).group_by({}, {count().as("rows")}); }

std::vector<Equation> equations(const ChPeriod& period) {
  const Query carried = Query::table("orders").where(col("o_carrier_id").is_not_null());
  const Query open = Query::table("orders").where(col("o_carrier_id").is_null());
  return {
      {"paid: w_ytd = d_ytd = h_amount",
       {total("warehouse", "w_ytd"), total("district", "d_ytd"), total("history", "h_amount")}},
      {"delivered: Q1 = Q6 = c_balance + c_ytd_payment",
       {ch_q1(period).group_by({}, {sum("sum_amount").as("total")}), ch_q6(period),
        total("customer", (col("c_balance") + col("c_ytd_payment")).as("total"))}},
      {"delivered lines: Q1 = o_ol_cnt of orders with a carrier = Q12",
       {ch_q1(period).group_by({}, {sum("count_order").as("total")}),
        carried.group_by({}, {sum("o_ol_cnt").as("total")}),
        ch_q12(period).group_by(
            {}, {sum(col("high_line_count") + col("low_line_count")).as("total")})}},
      {"delivered orders: Q4 = orders with a carrier",
       {ch_q4(period).group_by({}, {sum("order_count").as("total")}),
        carried.group_by({}, {count().as("total")})}},
      {"lines: order_line = o_ol_cnt", {rows("order_line"), total("orders", "o_ol_cnt")}},
      {"orders: d_next_o_id - 1 = orders",
       {total("district", col("d_next_o_id") - 1), rows("orders")}},
      {"open orders: new_order = orders without a carrier",
       {rows("new_order"), open.group_by({}, {count().as("rows")})}},
  };
}

}  // namespace

double ChQueryFigures::median_ms() const {
  if (ms.empty()) return 0;
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

Result<std::vector<ChQueryFigures>> run_ch(Database& database, const ChRunOptions& options) {
  std::vector<ChQueryFigures> all;
  for (const ChQuery& query : ch_queries()) {
    if (options.progress) options.progress(all.size(), ch_queries().size());
    Result<ChQueryFigures> figures = run_query(database, query, options);
    if (!figures.ok())
      return Status(figures.code(),
                    std::string(query.name) + ": " + std::string(figures.status().message()));
    all.push_back(std::move(*figures));
  }
  return all;
}

double geometric_mean_ms(const std::vector<ChQueryFigures>& figures) {
  double logarithms = 0;
  double queries = 0;
  for (const ChQueryFigures& query : figures) {
    if (query.name == "Q22") continue;
    logarithms += std::log(query.median_ms());
    ++queries;
  }
  return queries == 0 ? 0 : std::exp(logarithms / queries);
}

Result<std::vector<std::string>> check_ch(Database& database, const ChRunOptions& options) {
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  if (!snapshot.ok()) return snapshot.status();
  std::vector<std::string> problems;
  for (const Equation& equation : equations(options.period)) {
    std::string numbers;
    bool is_equal = true;
    std::int64_t first = 0;
    for (const Query& side : equation.sides) {
      const Result<QueryResult> result = side.run(*snapshot, run_options(options));
      if (!result.ok()) return result.status();
      const Value value = result->value(0, 0);
      const std::int64_t number = value.is_null() ? 0 : value.raw();
      if (numbers.empty()) first = number;
      is_equal = is_equal && number == first;
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
    }
    if (!is_equal) problems.push_back(std::string(equation.words) + ": " + numbers);
  }
  return problems;
}

}  // namespace flugs::bench
