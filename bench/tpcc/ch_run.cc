#include "bench/tpcc/ch_run.h"

#include <cmath>
#include <utility>

#include "flugs/try.h"

namespace flugs::bench {

namespace {

using query::col;
using query::count;
using query::Item;
using query::Query;
using query::QueryResult;
using query::RunOptions;
using query::sum;

Query total(const char* table, const Item& of) {
  return Query::table(table).group_by({}, {sum(of).as("total")});
}
Query rows(const char* table) { return Query::table(table).group_by({}, {count().as("rows")}); }

}  // namespace

ChEquations::ChEquations(const ChPeriod& period) {
  const Query carried = Query::table("orders").where(col("o_carrier_id").is_not_null());
  const Query open = Query::table("orders").where(col("o_carrier_id").is_null());
  all_ = {
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

Result<std::string> ChEquations::check(std::size_t number, const Transaction& snapshot,
                                       const RunOptions& options) const {
  const Equation& equation = all_[number];
  std::string numbers;
  bool is_equal = true;
  std::int64_t first = 0;
  for (const Query& side : equation.sides) {
    const Result<QueryResult> result = side.run(snapshot, options);
    if (!result.ok()) return result.status();
    const Value value = result->get_unchecked(0, 0);
    const std::int64_t sum_of_side = value.is_null() ? 0 : value.raw();
    if (numbers.empty()) first = sum_of_side;
    is_equal = is_equal && sum_of_side == first;
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(sum_of_side);
  }
  return is_equal ? std::string() : std::string(equation.words) + ": " + numbers;
}

Result<std::vector<QueryFigures>> run_ch(Database& database, const ChRunOptions& options) {
  std::vector<QueryFigures> all;
  for (const ChQuery& query : ch_queries()) {
    if (options.progress) options.progress(all.size(), ch_queries().size());
    Result<QueryFigures> figures =
        run_query(database, query.name, query.question, query.make(options.period), options.query);
    if (!figures.ok()) return std::move(figures).status();
    all.push_back(std::move(*figures));
  }
  return all;
}

double geometric_mean_ms(const std::vector<QueryFigures>& figures) {
  double logarithms = 0;
  double queries = 0;
  for (const QueryFigures& query : figures) {
    if (query.name == "Q22") continue;
    logarithms += std::log(query.median_ms());
    ++queries;
  }
  return queries == 0 ? 0 : std::exp(logarithms / queries);
}

Result<std::vector<std::string>> check_ch(Database& database, const ChRunOptions& options) {
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  if (!snapshot.ok()) return snapshot.status();
  RunOptions run;
  run.threads = options.query.threads;
  std::vector<std::string> problems;
  const ChEquations equations(options.period);
  for (std::size_t i = 0; i < equations.size(); ++i) {
    FLUGS_ASSIGN(std::string problem, equations.check(i, *snapshot, run));
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace flugs::bench
