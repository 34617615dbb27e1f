#include "bench/groups/group_queries.h"

#include <fmt/format.h>

namespace flugs::bench {

std::vector<GroupQuery> group_queries(const GroupData& data) {
  using query::col;
  using query::count;
  using query::count_distinct;
  using query::desc;
  using query::max;
  using query::min;
  using query::Query;
  using query::sum;
  const auto by = [](const char* key) {
    return Query::table("g").group_by({key}, {count().as("n"), sum("v").as("s")});
  };
  const std::uint64_t middle = data.rows() / 2;
  return {
      {"int", "totals of: k, count(*), sum(v) group by k",
       by("k").group_by({}, {count().as("groups"), sum("n").as("rows"), max("n").as("most"),
                             sum("s").as("sum"), sum(col("k") * col("n")).as("weighted")}),
       "select count(*), sum(n), max(n), sum(s), sum(k * n) from "
       "(select k, count(*) n, sum(v) s from g group by k)"},
      {"text", "totals of: t, count(*), sum(v) group by t",
       by("t").group_by({}, {count().as("groups"), sum("n").as("rows"), max("n").as("most"),
                             sum("s").as("sum"), min("t").as("least"), max("t").as("greatest")}),
       "select count(*), sum(n), max(n), sum(s), min(t), max(t) from "
       "(select t, count(*) n, sum(v) s from g group by t)"},
      {"distinct", "totals of: few, count(distinct k) group by few",
       Query::table("g")
           .group_by({"few"}, {count_distinct("k").as("d")})
           .group_by({}, {count().as("groups"), sum("d").as("pairs")}),
       "select count(*), sum(d) from (select few, count(distinct k) d from g group by few)"},
      {"top", "the 10 k with the most rows",
       Query::table("g")
           .group_by({"k"}, {count().as("n")})
           .order_by({desc("n"), "k"})
           .limit(kGroupTop),
       fmt::format("select k, count(*) n from g group by k order by n desc, k limit {}",
                   kGroupTop)},
      {"sort", "10 rows from the middle of all, by v, k",
       Query::table("g").select({"v", "k"}).order_by({"v", "k"}).limit(kGroupTop, middle),
       fmt::format("select v, k from g order by v, k limit {} offset {}", kGroupTop, middle)}};
}

}  // namespace flugs::bench
