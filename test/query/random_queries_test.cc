#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/query/query_world.h"
#include "test/support/complaint.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::QueryWorld;
using flugs::test::Random;

namespace {

Query base() { return Query::table("t"); }
Query v() { return Query::table("v"); }

std::vector<Aggregate> every_aggregate(const Expr& of) {
  return {count(),
          count(of),
          count_distinct(of),
          approx_count_distinct(of),
          sum(of),
          min(of),
          max(of),
          avg(of),
          variance(of).as("variance"),
          stddev(of).as("stddev"),
          quantile(of, 0.07).as("quantile"),
          median(of).as("median")};
}

}  // namespace

TEST_CASE("a table on a snapshot agrees with a row-at-a-time reader") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    QueryWorld world(seed, 3000);
    CHECK(world.check(base()) == world.table("t").rows.size());
    CHECK(world.check(v()) == world.table("v").rows.size());
  }
}

TEST_CASE("conditions on rows in main run on packed codes, in the delta on ValueIDs") {
  QueryWorld world(1, 3000);
  for (const Expr& condition : {col("s").ends_with("b"), col("s").matches("[ab]$")}) {
    const Query query = base().where(col("i") < 5 && condition).group_by({}, {count()});
    world.check(query);
    const std::string how = test::must(query.run(world.reader())).explain();
    CHECK(how.find("rows on packed codes") != std::string::npos);
    CHECK(how.find("rows on codes") != std::string::npos);
  }
}

TEST_CASE("random conditions select the rows for which they are true") {
  QueryWorld world(11, 2500);
  std::size_t selected = 0;
  for (int i = 0; i < 120; ++i) {
    Query query = base().where(world.condition(3));
    if (i % 3 == 0) query = query.where(world.condition(1));
    selected += world.check(query.select({"id"}));
  }
  CHECK(selected > 1000);
}

TEST_CASE("random projections agree with row-by-row results") {
  QueryWorld world(12, 1500);
  for (int i = 0; i < 60; ++i) {
    const Query query = base()
                            .where(world.condition(1))
                            .select({"id", world.number(2).as("number"), world.text(2).as("text"),
                                     world.time(1).as("time"), world.condition(2).as("truth")});
    world.check(query);
    world.check(query.where(col("truth") || col("text") == "a"));
  }
}

TEST_CASE("groups and aggregates of every type") {
  QueryWorld world(13, 2500);
  for (const char* column : {"b", "i", "m", "n", "r", "q", "x", "y", "d", "ts", "s", "u", "w"}) {
    const Expr c = col(column);
    world.check(base().group_by({c}, {count(), min("s"), max("u"), sum("x"), avg("y")}));
    world.check(base().group_by({c, col("b").as("key")}, {count_distinct("i"), count_distinct("u"),
                                                          approx_count_distinct("u")}));
    world.check(base().group_by(
        {}, {count(c), count_distinct(c), min(c), max(c), approx_count_distinct(c)}));
    for (const double q : {0.0, 0.5, 0.999, 1.0})
      world.check(base().group_by({"b"}, {quantile(c, q), quantile(c, 0.3).where(col("i") > 5)}));
    world.check(base().where(col("i") > 100).group_by({}, {count(c), min(c), count_distinct(c)}));
    world.check(base().where(col("i") > 100).group_by({c}, {count()}));
    world.check(base().select({c}).distinct());
    // Keys that follow from a primary key.
    world.check(base().where(col("i") > 0).group_by({"u", "id", c.as("key")}, {max("s"), count()}));
    world.check(base().select({c.as("key"), "s", "id"}).distinct());
    world.check(base()
                    .join(v(), {{"i", "v_i"}})
                    .group_by({c.as("key"), "v_s", "v_id"}, {count(), count_distinct("u")}));
    world.check(base()
                    .join(v(), {{"m", "v_id"}})
                    .group_by({"v_u", c.as("key"), "id", "v_s"}, {count(), min("w")}));
    world.check(base()
                    .left_join(v(), {{"m", "v_id"}}, col("i") < 3)
                    .group_by({"v_id", "v_s", c.as("key")}, {count(), max("w")}));
  }
  for (const char* column : {"i", "m", "x", "y"}) {
    world.check(base().group_by({}, every_aggregate(col(column))));
    world.check(base().group_by({"s"}, every_aggregate(col(column))));
    world.check(base().group_by({"u", "i"}, every_aggregate(col(column) + 1)));
  }
  for (int i = 0; i < 40; ++i)
    world.check(base()
                    .where(world.condition(2))
                    .group_by({world.number(1).as("k"), world.text(2).as("l")},
                              {count(), count_distinct(world.text(1)), min(world.time(0))})
                    .having(col("count(*)") > 1));
}

TEST_CASE("joins of every kind, with one key, several, and computed ones") {
  QueryWorld world(14, 400);
  const std::vector<std::vector<JoinKey>> keys = {
      {{"i", "v_i"}},
      {{"n", "v_n"}},
      {{"s", "v_s"}},
      {{"u", "v_u"}, {"i", "v_i"}},
      {{"x", "v_x"}},
      {{col("i") + 1, "v_i"}},
      {{substring(col("s"), 1, 2), substring(col("v_u"), 1, 2)}, {"d", "v_d"}},
      {{"x", "v_i"}},
      {{"r", col("v_i") / 4}},
  };
  for (const std::vector<JoinKey>& on : keys) {
    for (const Expr& also : {Expr(), col("v_n") > col("big"), col("v_s").is_null() || col("b")}) {
      world.check(base().join(v(), on, also));
      world.check(base().left_join(v(), on, also));
      world.check(base().semi_join(v(), on, also));
      world.check(base().anti_join(v(), on, also));
      world.check(base()
                      .left_join(v().where(col("v_i") < 3), on, also)
                      .where(col("v_id").is_null() || col("v_s").starts_with("text"))
                      .group_by({"v_s", "v_u"}, {count(), count("v_x"), sum("m")}));
    }
  }
  world.check(v().join(v().as("o"), {{"v_i", "o.v_i"}}, col("v_id") < col("o.v_id")));
  world.check(base().join(v().where(col("v_i") > 1000), {{"i", "v_i"}}));
  world.check(base().left_join(v().where(col("v_i") > 1000), {{"i", "v_i"}}));
}

TEST_CASE("order, limits and first rows") {
  QueryWorld world(15, test::rounds_of(3000, 1200));
  const std::vector<std::vector<SortKey>> orders = {
      {"id"},
      {desc("id")},
      {"i", desc("id")},
      {desc("s"), "id"},
      {"u", desc("r"), "id"},
      {desc("x"), "d", "id"},
      {col("i") * 2, desc("id")},
  };
  for (const std::vector<SortKey>& by : orders) {
    const Query sorted = base().order_by(by);
    world.check(sorted, true);
    for (const std::uint64_t limit : {0u, 1u, 10u, 2000u, 100000u}) {
      world.check(sorted.limit(limit), true);
      world.check(sorted.limit(limit, 7), true);
    }
    world.check(sorted.where(col("b")).select({"id", "s"}), true);
    world.check(sorted.limit(50).select({"id", (col("m") + 1).as("m1")}), true);
  }
  CHECK(world.check(base().limit(13).select({}).group_by({}, {count()})) == 1);
}

TEST_CASE("a result is the input of other queries") {
  QueryWorld world(16, 1500);
  const Query grouped = base().group_by({"s", "i"}, {sum("x").as("x"), count().as("rows")});
  const QueryResult shared = test::must(grouped.run(world.reader()));
  const Query again = Query::of(shared);
  world.check(again);
  world.check(again.where(col("x") > constant(Value::decimal(100, 2))).order_by({"s", "i"}), true);
  world.check(base().join(again.as("g"), {{"s", "g.s"}, {"i", "g.i"}}).select({"id", "g.rows"}));
  const QueryResult greatest =
      test::must(again.group_by({}, {max("x").as("most")}).run(world.reader()));
  CHECK(world.check(again.where(col("x") == greatest.constant(0, 0))) >= 1);
}

TEST_CASE("random queries that read a group several times") {
  QueryWorld world(17, 1200);
  Random& random = world.random();
  std::size_t with_parts = 0;
  for (int round = 0; round < test::rounds_of(60, 20); ++round) {
    Query below = random.chance(50) ? base().where(world.condition(1)) : base();
    if (random.chance(30)) below = below.join(v().where(col("v_i") < 0), {{"i", "v_i"}});
    const char* key = std::array{"i", "s", "u", "d", "x", "b"}[random.below(6)];
    Query part = below.group_by({col(key).as("k"), col("m").as("l")},
                                {count().as("rows"), sum("x").as("sum"), max("s").as("text"),
                                 count_distinct("u").as("distinct")});
    if (random.chance(30)) part = part.where(col("rows") > 1);
    if (random.chance(20)) part = part.select({"k", "text", "rows", "l"}).distinct();
    if (random.chance(20)) part = part.order_by({"rows", "k", "l", "text"}).limit(20, 2);
    const auto reader = [&](const char* prefix) {
      Query of = part.as(prefix);
      const std::string name = prefix;
      const Expr k = col(name + ".k");
      if (random.chance(30)) of = of.where(col(name + ".rows") > 2);
      if (random.chance(20)) of = of.where(k == k && col(name + ".l") < 10);
      if (random.chance(30))
        of = of.group_by({k.as(name + ".k"), col(name + ".l").as(name + ".l")},
                         {max(name + ".text").as(name + ".text"), count().as(name + ".rows")});
      return of;
    };
    const std::vector<JoinKey> keys = {{"a.k", "b.k"}, {"a.l", "b.l"}};
    const std::vector<JoinKey> on =
        random.chance(30) ? std::vector<JoinKey>{{"a.text", "b.text"}} : keys;
    Query query = reader("a");
    switch (random.below(4)) {
      case 0:
        query = query.join(reader("b"), on);
        break;
      case 1:
        query = query.left_join(reader("b"), on, col("a.rows") <= col("b.rows"));
        break;
      case 2:
        query = query.semi_join(reader("b"), on);
        break;
      default:
        query = query.anti_join(reader("b"), on);
    }
    if (random.chance(30)) query = query.left_join(reader("c"), {{"a.l", "c.l"}, {"a.k", "c.k"}});
    query = query.select({"a.k", "a.l", "a.text", "a.rows"});
    world.check(query);
    const std::string plan = test::must(query.explain(world.reader()));
    if (plan.find("rows of part 1") != std::string::npos) ++with_parts;
  }
  CHECK(with_parts > 10);
}
