// Expressions, conditions and queries made in a loop: too large ones are refused with the limit,
// and no function that walks them runs out of stack or time.

#include <catch2/catch.hpp>
#include <string>

#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using Catch::Matchers::Contains;
using flugs::test::must;

namespace {

constexpr int kFarTooMany = test::rounds_of(200'000, 50'000);

class OneTable {
 public:
  OneTable() {
    TableSchema schema("one");
    schema.column("i", Type::kInt64).column("s", Type::kString);
    const TableId table = must(database_->create_table(schema));
    Transaction writer = must(database_->begin());
    must(writer.insert(table, {Value::int64(1), Value::string("a")}));
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }
  test::TemporaryDatabase& database() { return database_; }
  Result<QueryResult> run(const Query& query) { return query.run(reader_); }
  void refuses(const Query& query, const std::string& text) {
    for (const Status& status : {run(query).status(), query.explain(reader_).status()}) {
      CHECK(status.code() == StatusCode::kInvalidArgument);
      CHECK_THAT(std::string(status.message()), Contains(text));
    }
  }

 private:
  test::TemporaryDatabase database_;
  Transaction reader_;
};

Query one() { return Query::table("one"); }

template <typename T, typename Step>
T repeated(T value, int times, Step&& step) {
  for (int i = 0; i < times; ++i) value = step(value);
  return value;
}

}  // namespace

TEST_CASE("an expression has at most a thousand levels") {
  OneTable table;
  const auto plus = [](const Expr& e) { return e + 1; };
  const Expr largest = repeated(col("i"), 999, plus);
  CHECK(must(table.run(one().select({largest.as("sum")}))).get_unchecked(0, 0) ==
        Value::int64(1000));
  const Expr condition = repeated(col("i"), 997, plus) == 998 || col("i") == 2;
  CHECK(must(table.run(one().where(condition))).row_count() == 1);
  table.refuses(one().select({plus(largest).as("sum")}), "more than 1000 levels");
  const std::vector<Expr> many = {
      repeated(col("i"), kFarTooMany, plus),
      repeated(col("i"), kFarTooMany,
               [](const Expr& e) { return case_when({{col("i") > 1, e}}, 1); }),
      repeated(col("i") == 1, kFarTooMany, [](const Expr& e) { return e || col("i") == 2; }),
      repeated(col("i") == 1, kFarTooMany, [](const Expr& e) { return col("i") == 2 && e; }),
      repeated(col("i") == 1, kFarTooMany, [](const Expr& e) { return !e; }),
      repeated(col("i") == 1, kFarTooMany, [](const Expr& e) { return e.is_null(); }),
      repeated(col("s"), kFarTooMany, [](const Expr& e) { return substring(e, 1, 9); }),
      repeated(col("i"), kFarTooMany, [](const Expr& e) { return e.in({1}); }),
  };
  for (const Expr& expr : many) {
    CHECK_THAT(expr.to_string(), Contains("more than 1000 levels"));
    const Expr copy = expr.as("copy");
    table.refuses(one().select({copy}), "more than 1000 levels");
    table.refuses(one().where(expr), "more than 1000 levels");
    table.refuses(one().order_by({expr}), "more than 1000 levels");
    table.refuses(one().group_by({copy}, {max(expr)}), "more than 1000 levels");
    table.refuses(one().join(one().as("o"), {{expr, "o.i"}}), "more than 1000 levels");
    table.refuses(one().join(one().as("o"), {{"i", "o.i"}}, expr), "more than 1000 levels");
    CHECK_THAT(Condition(expr).error(), Contains("more than 1000 levels"));
  }
}

TEST_CASE("an expression has at most 65536 parts, counted as often as they are used") {
  OneTable table;
  const Expr doubled = repeated(col("i"), 200, [](const Expr& e) { return e + e; });
  table.refuses(one().select({doubled.as("sum")}), "parts, at most 65536");
  const Expr both = repeated(col("i") == 1, 60, [](const Expr& e) { return e && e; });
  table.refuses(one().where(both), "parts, at most 65536");
  CHECK_THAT(Condition(both).error(), Contains("parts, at most 65536"));
  std::vector<Expr> listed(60'000, Expr(2));
  listed.emplace_back(1);
  CHECK(must(table.run(one().where(col("i").in(listed)))).row_count() == 1);
  listed.resize(70'000, Expr(2));
  table.refuses(one().where(col("i").in(listed)), "parts, at most 65536");
}

TEST_CASE("a query has at most 500 steps") {
  OneTable table;
  const auto where = [](const Query& q) { return q.where(col("i") == 1); };
  const auto select = [](const Query& q) { return q.select({"i"}); };
  const auto limit = [](const Query& q) { return q.limit(5); };
  const auto sorted = [](const Query& q) { return q.order_by({"i"}); };
  const auto grouped = [](const Query& q) { return q.group_by({"i"}, {}); };
  const auto distinct = [](const Query& q) { return q.distinct(); };
  const auto semi = [](const Query& q) { return q.semi_join(one().as("o"), {{"i", "o.i"}}); };
  const auto right = [](const Query& q) { return one().semi_join(q, {{"i", "i"}}); };
  const auto check = [&](const auto& step, int steps) {
    CHECK(must(table.run(repeated(one(), steps, step))).row_count() == 1);
    CHECK(table.run(repeated(select(one()), steps - 1, step)).ok());
    table.refuses(repeated(one(), kFarTooMany, step), "steps, at most 500");
  };
  check(where, 499);
  check(select, 499);
  check(limit, 499);
  check(sorted, 499);
  check(grouped, 499);
  check(distinct, 499);
  check(semi, 166);
  check(right, 249);
  table.refuses(where(repeated(one(), 499, where)), "501 steps, at most 500");
  // Each doubles the number of steps and columns.
  const auto itself = [](const Query& q) { return q.as("l").join(q.as("r"), {{"l.i", "r.i"}}); };
  table.refuses(repeated(one(), 60, itself), "steps, at most 500");
  CHECK_THAT(must(repeated(one(), 499, select).explain(must(table.database()->begin()))),
             Contains("scan one"));
}

TEST_CASE("a query that was moved from is refused") {
  OneTable table;
  Query query = one();
  const Query moved = std::move(query);
  CHECK(table.run(moved).ok());
  table.refuses(query, "moved from");  // NOLINT(bugprone-use-after-move)
  table.refuses(query.where(col("i") == 1).limit(1), "moved from");  // NOLINT
  table.refuses(one().join(query, {{"i", "i"}}), "moved from");      // NOLINT
  QueryResult result = must(table.run(moved));
  const QueryResult other = std::move(result);
  CHECK(table.run(Query::of(other)).ok());
  table.refuses(Query::of(result), "result that was moved from");                       // NOLINT
  table.refuses(Query::of(result).where(col("i") == 1), "result that was moved from");  // NOLINT
}

TEST_CASE("distinct and group_by take any number of columns, NULL or not") {
  constexpr int kColumns = 130;
  test::TemporaryDatabase database;
  TableSchema schema("wide");
  std::vector<Item> names;
  for (int i = 0; i < kColumns; ++i) {
    const std::string name = "c" + std::to_string(i);
    schema.column(name, i % 3 == 0 ? Type::kBool : i % 3 == 1 ? Type::kInt32 : Type::kString);
    names.emplace_back(name);
  }
  const TableId table = must(database->create_table(schema));
  for (int round = 0; round < 2; ++round) {
    Transaction t = must(database->begin());
    // Rows of zeros. In the words of the keys NULL is 0 as well: only its bit differs.
    for (const int null : {-1, -1, 0, 63, 63, 64, 65, 127, 128, 129, 129}) {
      std::vector<Value> row;
      for (int i = 0; i < kColumns; ++i)
        row.push_back(i == null    ? Value::null()
                      : i % 3 == 0 ? Value::boolean(false)
                      : i % 3 == 1 ? Value::int32(0)
                                   : Value::string(""));
      must(t.insert(table, row));
    }
    must(t.commit());
    for (const std::uint32_t threads : {1U, 3U}) {
      const Transaction reader = must(database->begin(AccessMode::kReadOnly));
      const Query wide = Query::table("wide");
      CHECK(must(wide.distinct().run(reader, {.threads = threads})).row_count() == 8);
      const QueryResult counts = must(wide.group_by(names, {count().as("n")})
                                          .group_by({"n"}, {count().as("groups")})
                                          .order_by({"n"})
                                          .run(reader, {.threads = threads}));
      const std::int64_t times = round + 1;
      REQUIRE(counts.row_count() == 2);
      CHECK(must(counts.get<std::int64_t>(0, "n")) == times);
      CHECK(must(counts.get<std::int64_t>(0, "groups")) == 5);
      CHECK(must(counts.get<std::int64_t>(1, "n")) == 2 * times);
      CHECK(must(counts.get<std::int64_t>(1, "groups")) == 3);
    }
    must(database->merge(table, {.scope = MergeScope::kEverything}));
  }
}

TEST_CASE("a condition with more than 64 comparisons and combinations is refused, not walked") {
  OneTable table;
  const auto refuses = [&](const Condition& condition, const char* text) {
    TableSchema schema("checked");
    schema.column("i", Type::kInt64).check("c", condition);
    const auto made = table.database()->create_table(schema);
    CHECK(made.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(made.status().message()), Contains(text));
    CHECK_THAT(condition.to_string(), Contains(text));
  };
  const Condition is_one = Condition::compare("i", Condition::Kind::kEqual, Value::int64(1));
  const char* kTooMany = "comparisons and combinations, allowed are 1 to 64";
  refuses(repeated(is_one, kFarTooMany, [](const Condition& c) { return Condition::negated(c); }),
          kTooMany);
  refuses(Condition::all_of(std::vector<Condition>(kFarTooMany, is_one)), kTooMany);
  refuses(repeated(is_one, 60, [](const Condition& c) { return Condition::any_of({c, c}); }),
          kTooMany);
  std::vector<Condition::Node> nodes(kFarTooMany, {Condition::Kind::kNone, 1, {}, {}, {}});
  nodes.push_back(is_one.nodes()[0]);
  refuses(Condition::of(nodes), kTooMany);
  refuses(repeated(col("i") == 1, 64, [](const Expr& e) { return !e; }), kTooMany);
  TableSchema schema("checked");
  schema.column("i", Type::kInt64);
  schema.check("c", repeated(col("i") == 1, 62, [](const Expr& e) { return !e; }));
  CHECK(table.database()->create_table(schema).ok());
}
