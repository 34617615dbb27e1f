// Constants of every type in every place for an expression in a query. Two judges check the
// results, which share no code with flugs or with each other: a row-at-a-time evaluator, and
// SQLite.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <set>

#include "test/query/query_world.h"
#include "test/query/sql_text.h"
#include "test/query/sqlite_judge.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::QueryWorld;
using flugs::test::Relation;
using flugs::test::SqlQuery;

namespace {

using Columns = std::vector<SqlQuery::Column>;
using Limits = std::numeric_limits<std::int64_t>;
constexpr std::int64_t kMicrosecondsPerDay = 86'400'000'000;

/// Values of one kind compare.
enum class Kind : std::uint8_t { kTruth, kNumber, kTime, kText };
constexpr Kind kKinds[] = {Kind::kTruth, Kind::kNumber, Kind::kTime, Kind::kText};

Kind kind_of(DataType type) {
  if (is_number(type)) return Kind::kNumber;
  if (is_time(type)) return Kind::kTime;
  return type.type == Type::kBool ? Kind::kTruth : Kind::kText;
}

/// FLUGS_SEED, or else a seed for each day.
std::uint64_t seed_of_today() {
  if (const char* given = std::getenv("FLUGS_SEED"); given != nullptr)
    return std::strtoull(given, nullptr, 10);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::days>(now).count());
}

/// Draws queries over the tables of a world, and lets both judges check them.
class Drawer {
 public:
  explicit Drawer(QueryWorld& world) : world_(world), random_(world.random()) {
    for (const char* table : {"t", "v"}) {
      const Relation relation = world.table(table);
      for (std::size_t c = 0; c < relation.names.size(); ++c)
        tables_[table].push_back({relation.names[c], relation.types[c]});
      judge_.add_table(table, relation);
    }
  }

  /// Number of rows of the checked query; 0 if it overflowed.
  std::size_t judge_one();
  std::size_t judged() const noexcept { return judged_; }

 private:
  bool chance(unsigned percent) { return random_.chance(percent); }
  Expr constant_of(Kind kind);
  Expr number_constant();
  Expr time_constant();
  Expr text_constant();
  Expr value(Kind kind, const Columns& columns, unsigned depth);
  Expr leaf(Kind kind, const Columns& columns);
  Expr computed(Kind kind, const Columns& columns, unsigned depth);
  Expr condition(const Columns& columns, unsigned depth);
  Expr comparison(const Columns& columns, unsigned depth);
  Expr any(const Columns& columns) { return value(kKinds[random_.below(4)], columns, 2); }
  Expr summable(const Columns& columns);
  Columns columns_of(const Query& query) const { return sql_of(query).columns; }
  SqlQuery sql_of(const Query& query) const { return to_sql(*query.node(), tables_, results_); }

  Query source(const char* table);
  Query with_constants(const Query& input, const char* prefix);
  Query joined(const Query& left);
  Query grouped(const Query& input);
  Query of_result(const Query& input);
  Query drawn(bool& ordered);
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }

  QueryWorld& world_;
  test::Random& random_;
  test::SqliteJudge judge_;
  test::SqlTables tables_;
  test::SqlResults results_;
  std::vector<QueryResult> kept_;
  /// Numbers whose sums are exact in a double, too.
  std::set<std::string> summable_{"i", "m", "r", "q", "x", "v_i", "v_x"};
  std::size_t names_ = 0;
  std::size_t judged_ = 0;
};

Expr Drawer::number_constant() {
  const auto small = static_cast<std::int64_t>(random_.below(60)) - 20;
  const std::int64_t large[] = {Limits::max(), Limits::min(), Limits::max() - 1,
                                1'000'000'000'000'000'000, -1'000'000'000'000'000'001};
  switch (random_.below(8)) {
    case 0:
      return Expr(large[random_.below(5)]);
    case 1:
      return constant(
          Value::decimal(large[random_.below(5)], static_cast<std::uint8_t>(random_.below(19))));
    case 2:
      return constant(Value::decimal(small * 25, static_cast<std::uint8_t>(random_.below(5))));
    case 3:
    case 4:
      return Expr(static_cast<double>(small) * 0.25);
    case 5:
      return constant(Value::int32(static_cast<std::int32_t>(small)));
    default:
      return Expr(small);
  }
}

Expr Drawer::time_constant() {
  const auto small = static_cast<std::int32_t>(random_.below(40)) - 12;
  switch (random_.below(5)) {
    case 0:
      return constant(Value::date(chance(50) ? std::numeric_limits<std::int32_t>::max()
                                             : std::numeric_limits<std::int32_t>::min()));
    case 1:
      return constant(Value::timestamp(chance(50) ? Limits::max() : Limits::min()));
    case 2:
      return constant(Value::timestamp(small * 37 * kMicrosecondsPerDay + (chance(50) ? 1 : 0)));
    default:
      return constant(Value::date(small * 37));
  }
}

Expr Drawer::text_constant() {
  static const std::string kTexts[] = {
      "",
      "A",
      "fifteen bytes..",
      "sixteen bytes...",
      "it's a text",
      "a text of a constant that is too long to stand in any cell or string",
      "a text of a constant that is too long to stand in any cell, and another"};
  const std::string& text = chance(40) ? world_.some_text() : kTexts[random_.below(7)];
  return chance(25) ? constant(Value::bytes(text)) : Expr(text);
}

Expr Drawer::constant_of(Kind kind) {
  if (chance(8)) return constant(Value::null());
  switch (kind) {
    case Kind::kTruth:
      return Expr(chance(50));
    case Kind::kNumber:
      return number_constant();
    case Kind::kTime:
      return time_constant();
    default:
      return text_constant();
  }
}

Expr Drawer::leaf(Kind kind, const Columns& columns) {
  std::vector<Expr> found;
  for (const SqlQuery::Column& column : columns)
    if (kind_of(column.type) == kind) found.push_back(col(column.name));
  if (found.empty() || chance(40)) return constant_of(kind);
  return found[random_.below(found.size())];
}

Expr Drawer::value(Kind kind, const Columns& columns, unsigned depth) {
  if (depth == 0 || chance(35)) return leaf(kind, columns);
  switch (random_.below(4)) {
    case 0:
      return case_when({{condition(columns, depth - 1), value(kind, columns, depth - 1)}},
                       chance(80) ? value(kind, columns, depth - 1) : Expr());
    case 1:
      return case_when({{condition(columns, depth - 1), constant_of(kind)},
                        {condition(columns, 0), constant_of(kind)}},
                       constant_of(kind));
    case 2: {  // coalesce
      const Expr first = value(kind, columns, depth - 1);
      return case_when({{first.is_not_null(), first}}, constant_of(kind));
    }
    default:
      return computed(kind, columns, depth);
  }
}

Expr Drawer::computed(Kind kind, const Columns& columns, unsigned depth) {
  const Expr a = value(kind, columns, depth - 1);
  const Expr small(static_cast<std::int64_t>(random_.below(9)));
  switch (kind) {
    case Kind::kTruth:
      return condition(columns, depth);
    case Kind::kText:
      return substring(a, 1 + static_cast<std::uint32_t>(random_.below(6)),
                       static_cast<std::uint32_t>(random_.below(30)));
    case Kind::kTime:
      return leaf(kind, columns);
    default:
      break;
  }
  switch (random_.below(5)) {
    case 0:
      return first_byte(value(Kind::kText, columns, depth - 1));
    case 1:
      return a - small;
    case 2:
      return small / a;
    case 3:
      return to_double(a);
    default:
      return a + small;
  }
}

Expr Drawer::comparison(const Columns& columns, unsigned depth) {
  const Kind kind = kKinds[random_.below(4)];
  const Expr a = value(kind, columns, depth);
  const Expr b = chance(60) ? constant_of(kind) : value(kind, columns, depth);
  switch (random_.below(8)) {
    case 0:
      return a == b;
    case 1:
      return b != a;
    case 2:
      return a < b;
    case 3:
      return b <= a;
    case 4:
      return a.between(b, constant_of(kind));
    case 5:
      return a.in({constant_of(kind), constant_of(kind), constant_of(kind)});
    case 6:
      return a >= b;
    default:
      return a.is_null();
  }
}

Expr Drawer::condition(const Columns& columns, unsigned depth) {
  if (depth == 0) return chance(30) ? value(Kind::kTruth, columns, 0) : comparison(columns, 0);
  switch (random_.below(7)) {
    case 0:
      return condition(columns, depth - 1) && condition(columns, depth - 1);
    case 1:
      return condition(columns, depth - 1) || condition(columns, depth - 1);
    case 2:
      return !condition(columns, depth - 1);
    case 3: {
      const Expr text = value(Kind::kText, columns, depth - 1);
      const std::string part = world_.some_text().substr(0, random_.below(6));
      return chance(40)   ? text.starts_with(part)
             : chance(50) ? text.ends_with(part)
                          : text.contains(part);
    }
    default:
      return comparison(columns, depth - 1);
  }
}

Expr Drawer::summable(const Columns& columns) {
  const Expr small = chance(50) ? Expr(static_cast<std::int64_t>(random_.below(20)) - 9)
                                : Expr(static_cast<double>(random_.below(20)) * 0.25);
  std::vector<Expr> found{small, chance(10) ? constant(Value::null()) : small};
  for (const SqlQuery::Column& column : columns)
    if (summable_.count(column.name) != 0) found.push_back(col(column.name));
  const Expr one = found[random_.below(found.size())];
  return chance(30) ? case_when({{condition(columns, 1), one}}, small) : one;
}

Query Drawer::with_constants(const Query& input, const char* prefix) {
  const Columns columns = columns_of(input);
  std::vector<Item> items;
  for (std::size_t n = 2 + random_.below(4); n > 0; --n) {
    const std::string name = fresh(prefix);
    const bool sums = chance(25);
    items.emplace_back((sums         ? summable(columns)
                        : chance(30) ? constant_of(kKinds[random_.below(4)])
                                     : any(columns))
                           .as(name));
    if (sums) summable_.insert(name);
  }
  return input.select(std::move(items));
}

Query Drawer::source(const char* table) {
  Query query = Query::table(table);
  if (chance(50)) query = query.where(condition(columns_of(query), 2));
  if (chance(70)) query = with_constants(query, table);
  return query;
}

// A query's result becomes the input of another query.
Query Drawer::of_result(const Query& input) {
  const Result<QueryResult> result = input.run(world_.reader());
  if (!result.ok()) return input;
  kept_.push_back(*result);
  results_[result->data().get()] = sql_of(input);
  return Query::of(*result);
}

Query Drawer::joined(const Query& left) {
  Query right = source("v");
  if (chance(20)) right = of_result(right);
  if (columns_of(left)[0].name[0] == 'v') right = right.as("o");
  const Columns of_left = columns_of(left);
  const Columns of_right = columns_of(right);
  std::vector<JoinKey> on;
  for (std::size_t n = 1 + random_.below(2); n > 0; --n) {
    const Kind kind = kKinds[random_.below(4)];
    on.emplace_back(value(kind, of_left, 1), value(kind, of_right, 1));
  }
  Columns both = of_left;
  both.insert(both.end(), of_right.begin(), of_right.end());
  const Expr also = chance(30) ? condition(both, 1) : Expr();
  switch (random_.below(4)) {
    case 0:
      return left.join(right, on, also);
    case 1:
      return left.left_join(right, on, also);
    case 2:
      return left.semi_join(right, on, also);
    default:
      return left.anti_join(right, on, also);
  }
}

Query Drawer::grouped(const Query& input) {
  const Columns columns = columns_of(input);
  if (chance(15)) return input.distinct();
  std::vector<Item> keys;
  for (std::size_t n = random_.below(4); n > 0; --n) keys.emplace_back(any(columns).as(fresh("k")));
  std::vector<Aggregate> aggregates{count().as(fresh("a"))};
  for (std::size_t n = random_.below(4); n > 0; --n) {
    const Expr of = chance(25) ? constant_of(kKinds[random_.below(4)]) : any(columns);
    const std::uint64_t which = random_.below(6);
    aggregates.push_back((which == 0   ? count(of)
                          : which == 1 ? count_distinct(of)
                          : which == 2 ? min(of)
                          : which == 3 ? max(of)
                          : which == 4 ? sum(summable(columns))
                                       : avg(summable(columns)))
                             .as(fresh("a")));
  }
  const Query query = input.group_by(std::move(keys), std::move(aggregates));
  return chance(30) ? query.having(condition(columns_of(query), 1)) : query;
}

Query Drawer::drawn(bool& ordered) {
  Query query = source(chance(70) ? "t" : "v");
  if (chance(15)) query = of_result(query);
  if (chance(40)) query = joined(query);
  if (chance(30)) query = with_constants(query, "p");
  if (chance(50)) query = grouped(query);
  if (chance(25)) query = of_result(query);
  if (chance(25)) query = query.where(condition(columns_of(query), 1));
  if (chance(30)) query = with_constants(query, "z");
  if (!chance(40)) return query;
  // By all columns, so that only equal rows have no order.
  ordered = true;
  std::vector<SortKey> by;
  if (chance(50)) by.emplace_back(any(columns_of(query)), chance(50));
  for (const SqlQuery::Column& column : columns_of(query))
    by.emplace_back(Item(column.name), chance(50));
  query = query.order_by(by);
  return chance(50) ? query.limit(random_.below(40), random_.below(5)) : query;
}

std::size_t Drawer::judge_one() {
  summable_ = {"i", "m", "r", "q", "x", "v_i", "v_x"};
  bool ordered = false;
  const Query query = drawn(ordered);
  const SqlQuery sql = sql_of(query);
  INFO(sql.sql);
  world_.check(query, ordered);
  const Result<QueryResult> result = query.run(world_.reader());
  if (!result.ok()) return 0;  // checked: it overflows
  for (std::size_t c = 0; c < sql.columns.size(); ++c) {
    INFO(sql.columns[c].name);
    REQUIRE(result->columns()[c].name == sql.columns[c].name);
    REQUIRE(DataType{result->columns()[c].type, result->columns()[c].scale} == sql.columns[c].type);
  }
  REQUIRE(test::text_of(test::relation_of(*result), ordered) ==
          test::text_of(judge_.rows(sql), ordered));
  ++judged_;
  return result->row_count();
}

}  // namespace

TEST_CASE("constants of every type, everywhere, agree with a row-at-a-time reader and SQLite") {
  const std::uint64_t seed = seed_of_today();
  WARN("FLUGS_SEED=" << seed);
  constexpr std::size_t kWorlds = 4;
  constexpr std::size_t kQueries = 250;
  std::size_t rows = 0;
  std::size_t judged = 0;
  for (std::size_t w = 0; w < kWorlds; ++w) {
    QueryWorld world(seed * kWorlds + w, 160, true);
    Drawer drawer(world);
    for (std::size_t q = 0; q < kQueries; ++q) {
      INFO("FLUGS_SEED=" << seed << ", world " << w << ", query " << q);
      rows += drawer.judge_one();
    }
    judged += drawer.judged();
  }
  CHECK(judged > kWorlds * kQueries / 2);
  CHECK(rows > 1000);
}
