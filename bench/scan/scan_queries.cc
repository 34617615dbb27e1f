#include "bench/scan/scan_queries.h"

namespace flugs::bench {

namespace {

using query::Aggregate;
using query::col;
using query::count;
using query::count_distinct;
using query::desc;
using query::Expr;
using query::Query;
using query::sum;

Query all_rows() { return Query::table("r"); }
/// The one row that aggregates over all rows make.
Query over_all(std::vector<Aggregate> aggregates) {
  return all_rows().group_by({}, std::move(aggregates));
}
/// The same over the rows for which the condition is true.
Query over_some(const Expr& condition, std::vector<Aggregate> aggregates) {
  return all_rows().where(condition).group_by({}, std::move(aggregates));
}

std::vector<ScanQuery> aggregations(const ScanData& data) {
  return {
      {"sum", "sum(a)", over_all({sum("a")}), "select sum(a) from r"},
      {"sum4", "sums of a, b, c, d", over_all({sum("a"), sum("b"), sum("c"), sum("d")}),
       "select sum(a), sum(b), sum(c), sum(d) from r"},
      {"filter_1", "sum(b) where a < x, 1 %", over_some(col("a") < data.below(1), {sum("b")}),
       "select sum(b) from r where a < $below_1"},
      {"filter_10", "sum(b) where a < x, 10 %", over_some(col("a") < data.below(10), {sum("b")}),
       "select sum(b) from r where a < $below_10"},
      {"filter_50", "sum(b) where a < x, 50 %", over_some(col("a") < data.below(50), {sum("b")}),
       "select sum(b) from r where a < $below_50"},
      {"filter_string", "sum(b) where s = x",
       over_some(col("s") == data.text(data.wanted_text()), {sum("b")}),
       "select sum(b) from r where s = $text"},
      {"group_int", "lc, sum(a) group by lc",
       all_rows().group_by({"lc"}, {sum("a").as("sum")}).order_by({"lc"}),
       "select lc, sum(a) from r group by lc order by lc"},
      {"group_string", "s, sum(a) group by s",
       all_rows().group_by({"s"}, {sum("a").as("sum")}).order_by({"s"}),
       "select s, sum(a) from r group by s order by s"},
      {"count_distinct_int", "count(distinct a)", over_all({count_distinct("a")}),
       "select count(distinct a) from r"},
      {"count_distinct_string", "count(distinct s)", over_all({count_distinct("s")}),
       "select count(distinct s) from r"},
      {"min_max", "min(a), max(a)", over_all({query::min("a"), query::max("a")}),
       "select min(a), max(a) from r"},
      {"min_max_filtered", "min(b), max(b) where a < x, 10 %",
       over_some(col("a") < data.below(10), {query::min("b"), query::max("b")}),
       "select min(b), max(b) from r where a < $below_10"}};
}

}  // namespace

std::vector<ScanQuery> scan_queries(const ScanData& data) {
  std::vector<ScanQuery> queries = aggregations(data);
  queries.push_back({"top10", "the 10 greatest a",
                     all_rows().select({"a"}).order_by({desc("a")}).limit(10),
                     "select a from r order by a desc limit 10"});
  queries.push_back(
      {"point", "all columns where a = x, no index",
       all_rows().where(col("a") == data.wanted()).order_by({"b", "c", "d", "lc", "s"}),
       "select * from r where a = $wanted order by b, c, d, lc, s"});
  queries.push_back({"range", "count(*) where a between x and y, 0.01 %",
                     over_some(col("a").between(data.range_low(), data.range_high()), {count()}),
                     "select count(*) from r where a between $range_low and $range_high"});
  return queries;
}

Json scan_parameters(const ScanData& data) {
  return {{"below_1", data.below(1)},       {"below_10", data.below(10)},
          {"below_50", data.below(50)},     {"text", data.text(data.wanted_text())},
          {"wanted", data.wanted()},        {"range_low", data.range_low()},
          {"range_high", data.range_high()}};
}

}  // namespace flugs::bench
