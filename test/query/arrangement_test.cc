// Queries run in another form than the one written, with the same rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flugs/query.h"
#include "query/plan/join_order.h"
#include "test/query/naive.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;
using flugs::test::Random;

namespace {

constexpr std::int32_t kLines = 150'000;
constexpr std::int32_t kOrders = 30'000;
constexpr std::int32_t kCustomers = 2'000;
constexpr std::int32_t kNations = 25;

/// `line`, `ord`, `customer` and `nation`, each with a key of the next one. Half of the rows of the
/// large tables are in main.
class Shop {
 public:
  Shop() {
    make("nation", kNations, [](std::int32_t i) {
      return std::vector<Value>{Value::int32(i), Value::int32(i % 5), name_of(i % 7)};
    });
    make("customer", kCustomers, [](std::int32_t i) {
      return std::vector<Value>{Value::int32(i), Value::int32(i % kNations), name_of(i % 11)};
    });
    make("ord", kOrders, [](std::int32_t i) {
      const Value customer = i % 50 == 7 ? Value::null() : Value::int32(i * 7 % (kCustomers + 100));
      return std::vector<Value>{Value::int32(i), customer, name_of(i % 13)};
    });
    make("line", kLines, [](std::int32_t i) {
      return std::vector<Value>{Value::int32(i), Value::int32(i / 3 % (kOrders + 500)),
                                name_of(i % 17)};
    });
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  QueryResult run(const Query& query, bool as_written = false, std::uint32_t threads = 2) const {
    RunOptions options;
    options.threads = threads;
    options.runs_as_written = as_written;
    return must(query.run(reader_, options));
  }
  /// What its failure says.
  std::string run_or_fail(const Query& query, bool as_written) const {
    RunOptions options;
    options.runs_as_written = as_written;
    return query.run(reader_, options).status().to_string();
  }
  std::string explain(const Query& query) const { return must(query.explain(reader_)); }
  /// Runs the query both ways, and gives the rows; they must be the same.
  std::string rows(const Query& query) const {
    const QueryResult arranged = run(query);
    const QueryResult written = run(query, true);
    INFO(arranged.explain());
    INFO(written.explain());
    const std::string text = test::text_of(test::relation_of(arranged), false);
    REQUIRE(arranged.columns().size() == written.columns().size());
    for (std::size_t i = 0; i < arranged.columns().size(); ++i)
      CHECK(arranged.columns()[i].name == written.columns()[i].name);
    CHECK(text == test::text_of(test::relation_of(written), false));
    return text;
  }

 private:
  static Value name_of(std::int32_t i) {
    static const std::vector<std::string> names = [] {
      std::vector<std::string> made;
      for (int n = 0; n < 20; ++n) made.push_back("a name with the number " + std::to_string(n));
      return made;
    }();
    return Value::string(names[static_cast<std::size_t>(i)]);
  }
  template <typename MakeRow>
  void make(const std::string& name, std::int32_t rows, MakeRow&& row) {
    const std::string letter = name.substr(0, 1);
    TableSchema schema(name);
    schema.column(letter + "_id", Type::kInt32)
        .column(letter + "_of", Type::kInt32)
        .column(letter + "_name", Type::kString)
        .primary_key({letter + "_id"});
    const TableId table = must(database_->create_table(schema));
    for (const auto& [first, end] : {std::pair{0, rows / 2}, std::pair{rows / 2, rows}}) {
      Transaction writer = must(database_->begin());
      for (std::int32_t i = first; i < end; ++i) must(writer.insert(table, row(i)));
      must(writer.commit());
      MergeOptions everything;
      everything.scope = MergeScope::kEverything;
      if (first == 0) static_cast<void>(must(database_->merge(table, everything)));
    }
  }

  test::TemporaryDatabase database_;
  Transaction reader_;
};

const Shop& shop() {
  static const Shop made;
  return made;
}

Query line() { return Query::table("line"); }
Query ord() { return Query::table("ord"); }
Query customer() { return Query::table("customer"); }
Query nation() { return Query::table("nation"); }

std::size_t place_of(const std::string& text, const std::string& part) {
  const std::size_t place = text.find(part);
  INFO(text);
  REQUIRE(place != std::string::npos);
  return place;
}

// The order of joins, from numbers alone.
std::unique_ptr<JoinTree> only(std::size_t input) { return JoinTree::of(input); }
std::unique_ptr<JoinTree> both(std::unique_ptr<JoinTree> streamed, std::unique_ptr<JoinTree> held) {
  return JoinTree::join(std::move(streamed), std::move(held));
}
/// "(0 1)": input 0 streams, input 1 is held.
std::string order_text(const JoinTree& tree) {
  if (tree.input != JoinTree::kJoin) return std::to_string(tree.input);
  return "(" + order_text(*tree.streamed) + " " + order_text(*tree.held) + ")";
}
std::string chosen_order(const std::vector<JoinInput>& inputs, const std::vector<JoinLink>& links,
                         std::unique_ptr<JoinTree> written) {
  return order_text(*choose_join_order(inputs, links, std::move(written)));
}
/// `many` has a foreign key to the unique key of `one`.
JoinLink foreign_key(std::size_t many, std::size_t one, double values) {
  return {many, one, values, values, false, true};
}

}  // namespace

TEST_CASE("joins written from the small table on stream the large one") {
  const Query written = nation()
                            .join(customer(), {{"n_id", "c_of"}})
                            .join(ord(), {{"c_id", "o_of"}})
                            .join(line(), {{"o_id", "l_of"}})
                            .where(col("n_id") == 3);
  const std::string plan = shop().explain(written);
  // A join prints its left input, which streams, before its right one.
  CHECK(place_of(plan, "scan line") < place_of(plan, "scan ord"));
  CHECK(place_of(plan, "about") > 0);
  CHECK(!shop().rows(written).empty());
  const QueryResult run = shop().run(written);
  INFO(run.explain());
  CHECK(run.explain().find("expected") != std::string::npos);
}

TEST_CASE("conditions that leave no row out of the delta do not turn a join round") {
  test::TemporaryDatabase database;
  const auto make = [&](const char* name, std::int32_t rows, std::int32_t values) {
    TableSchema schema(name);
    schema.column(std::string(name) + "_id", Type::kInt32)
        .column(std::string(name) + "_of", Type::kInt32,
                {.not_null = true, .encoding = Encoding::kDictionary})
        .primary_key({std::string(name) + "_id"});
    const TableId table = must(database->create_table(schema));
    Transaction writer = must(database->begin());
    for (std::int32_t i = 0; i < rows; ++i)
      must(writer.insert(table, {Value::int32(i), Value::int32(1 + i % values)}));
    must(writer.commit());
  };
  make("fact", 40'000, 5'000);
  make("thing", 10'000, 10);
  const Transaction reader = must(database->begin(AccessMode::kReadOnly));
  const Query written = Query::table("fact")
                            .where(col("fact_of").between(1, 5'000))
                            .join(Query::table("thing"), {{"fact_of", "thing_id"}});
  const std::string plan = must(written.explain(reader));
  CHECK(place_of(plan, "scan fact") < place_of(plan, "scan thing"));
}

TEST_CASE("a condition goes down to its table, past whatever passes its columns on") {
  const Query renamed = ord().as("o");
  const std::string plan =
      shop().explain(renamed.select({col("o.o_id").as("id"), col("o.o_of").as("of")})
                         .group_by({"of"}, {count().as("orders")})
                         .where(col("of") == 12 && col("orders") > 1));
  INFO(plan);
  CHECK(place_of(plan, "where orders") < place_of(plan, "scan ord"));
  CHECK(plan.find("o_of = 12") != std::string::npos);
  for (const Query& query :
       {ord().left_join(customer(), {{"o_of", "c_id"}}).where(col("o_id") < 100),
        ord().left_join(customer(), {{"o_of", "c_id"}}).where(col("c_id").is_null()),
        ord().anti_join(customer(), {{"o_of", "c_id"}}).where(col("o_id") < 5000),
        ord().group_by({"o_of"}, {count().as("n")}).where(col("o_of").between(5, 9)),
        ord().select({col("o_of").as("x"), (col("o_id") + 1).as("y")}).where(col("x") == 7),
        ord().select({col("o_of").as("x")}).distinct().where(col("x") < 9),
        ord().order_by({"o_id"}).limit(50).where(col("o_id") > 20)})
    shop().rows(query);
}

TEST_CASE("a condition that may fail stays where it is") {
  // The product overflows for rows that the join leaves out.
  const Expr fails = constant(std::int64_t{1} << 62) * col("o_id") > 0;
  const Query query = ord().join(nation().where(col("n_id") == 0), {{"o_id", "n_id"}}).where(fails);
  CHECK(shop().run(query).row_count() == shop().run(query, true).row_count());
}

TEST_CASE("a query that is wrong fails as it is written") {
  const auto failure = [](const Query& query) {
    return shop().run_or_fail(query, false) + shop().run_or_fail(query, true);
  };
  for (const Query& query :
       {// Keys of the wrong side, or of no side.
        line().join(ord(), {{"l_of", "o_id"}}).join(customer(), {{"l_id", "o_of"}}),
        line().join(ord(), {{"o_id", "l_of"}}), line().join(ord(), {{"l_of", "nothing"}}),
        line().join(ord(), {}), line().join(line(), {{"l_id", "l_of"}}),
        line().join(ord(), {{"l_of", "o_id"}}).where(col("nothing") == 1),
        // Conditions on a table that comes later.
        line()
            .join(ord(), {{"l_of", "o_id"}}, col("c_of") == 1)
            .join(customer(), {{"o_of", "c_id"}}),
        line()
            .join(ord(), {{"l_of", "o_id"}})
            .where(col("c_of") == 1)
            .join(customer(), {{"o_of", "c_id"}}),
        line().join(ord(), {{"l_of", "o_id"}}).where(col("l_name") == 1),
        line().join(ord(), {{"l_of", "o_name"}})}) {
    const std::string both = failure(query);
    INFO(both);
    REQUIRE(both.size() % 2 == 0);
    CHECK(both.substr(0, both.size() / 2) == both.substr(both.size() / 2));
    CHECK(both.find("invalid argument") != std::string::npos);
  }
}

TEST_CASE("each side of an or says something about one table") {
  const Query query = line()
                          .join(ord(), {{"l_of", "o_id"}})
                          .where((col("l_id") < 90 && col("o_id") < 7) ||
                                 (col("l_id") > 149'000 && col("o_id") > 29'900));
  const std::string plan = shop().explain(query);
  INFO(plan);
  CHECK(place_of(plan, "(l_id < 90) or (l_id > 149000)") > 0);
  CHECK(!shop().rows(query).empty());
  // What all parts have in common stands before the rest, if it is the same down to the types.
  const Query common =
      line()
          .join(ord(), {{"l_of", "o_id"}})
          .where((col("l_id") < 900 && col("o_id") < 7) || (col("o_id") == 9 && col("l_id") < 900));
  CHECK(place_of(shop().explain(common), "filter l_id < 900:") > 0);
  CHECK(!shop().rows(common).empty());
  const Query all = line()
                        .join(ord(), {{"l_of", "o_id"}})
                        .where(col("l_id") < 9 || (col("l_id") < 9 && col("o_id") == 1));
  CHECK(!shop().rows(all).empty());
}

TEST_CASE("a small left side filters a large right side in left, semi and anti joins") {
  const Query few = ord().where(col("o_id") < 200 && col("o_id").is_not_null());
  const std::vector<JoinKey> on = {{"o_id", "l_of"}};
  for (const Query& query :
       {few.semi_join(line(), on), few.anti_join(line().where(col("l_id") > 300), on),
        few.left_join(line().where(col("l_id") > 300), on),
        few.semi_join(line(), on, col("o_of") != col("l_id")),
        few.semi_join(line(), on).semi_join(line().where(col("l_name") != "x"), on),
        few.semi_join(line(), on)
            .anti_join(line().where(col("l_id") < 90), on)
            .group_by({"o_name"}, {count().as("n")})}) {
    const QueryResult result = shop().run(query);
    INFO(result.explain());
    CHECK(result.explain().find("left side first") != std::string::npos);
    CHECK(!shop().rows(query).empty());
  }
}

TEST_CASE("keys of one side reach the table behind the groups of the other") {
  const Query groups =
      line().group_by({"l_of"}, {count().as("lines")}).select({col("l_of").as("of"), "lines"});
  const Query few = ord().where(col("o_id").between(50, 60));
  for (const Query& query : {groups.join(few, {{"of", "o_id"}}), few.join(groups, {{"o_id", "of"}}),
                             groups.semi_join(few, {{"of", "o_id"}})}) {
    const QueryResult result = shop().run(query);
    INFO(result.explain());
    CHECK(result.explain().find("l_of among 11 keys of a join") != std::string::npos);
    shop().rows(query);
  }
  // A limit counts rows: none may go before it.
  const Query first = line().order_by({"l_id"}).limit(10).select({col("l_of").as("of")});
  CHECK(shop().run(first.join(few, {{"of", "o_id"}})).row_count() == 0);
}

TEST_CASE("a semi join that leaves most rows out goes down to its table") {
  const Query large = line().group_by({"l_of"}, {count().as("lines")}).where(col("l_of") < 20);
  const Query query = customer()
                          .join(ord(), {{"c_id", "o_of"}})
                          .join(line(), {{"o_id", "l_of"}})
                          .semi_join(large.select({col("l_of").as("of")}), {{"o_id", "of"}});
  const std::string plan = shop().explain(query);
  CHECK(place_of(plan, "semi join") > place_of(plan, "join on"));
  CHECK(!shop().rows(query).empty());
  const auto lines_of = [&](std::int32_t name) {
    return line()
        .where(col("l_of") < name)
        .group_by({"l_of"}, {count().as("lines")})
        .select({col("l_of").as("of")});
  };
  const Query twice = ord()
                          .join(customer(), {{"o_of", "c_id"}})
                          .semi_join(lines_of(20), {{"o_id", "of"}})
                          .semi_join(lines_of(30), {{"o_id", "of"}});
  CHECK(!shop().rows(twice).empty());
}

TEST_CASE("random joins give the same rows as when they run as written") {
  Random random(20261130);
  const auto draw_table = [&](int number) {
    Query tables[] = {nation(), customer(), ord(), line()};
    const char* ids[] = {"n_id", "c_id", "o_id", "l_id"};
    const int ends[] = {kNations, kCustomers, kOrders, kLines};
    Query table = tables[number];
    if (random.chance(60)) {
      const auto end =
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(ends[number])));
      table = random.chance(50) ? table.where(col(ids[number]) < end)
                                : table.where(col(ids[number]).between(end / 2, end));
    }
    return table;
  };
  const JoinKey keys[] = {{"n_id", "c_of"}, {"c_id", "o_of"}, {"o_id", "l_of"}};
  const auto turned = [](const JoinKey& key) { return JoinKey(key.right, key.left); };
  for (int round = 0; round < 60; ++round) {
    int first = static_cast<int>(random.below(4));
    int last = first;
    Query query = draw_table(first);
    while (last - first < 3) {
      const bool is_up = last < 3 && (first == 0 || random.chance(50));
      const int next = is_up ? last + 1 : first - 1;
      const JoinKey& key = keys[is_up ? last : next];
      const JoinKey on = is_up ? key : turned(key);
      const Query right = draw_table(next);
      if (random.chance(15))
        query = query.semi_join(right, {on});
      else if (random.chance(15))
        query = query.anti_join(right, {on});
      else
        query = random.chance(80) ? query.join(right, {on}) : query.left_join(right, {on});
      if (query.node()->join == JoinKind::kSemi || query.node()->join == JoinKind::kAnti) break;
      (is_up ? last : first) = next;
      if (random.chance(30)) break;
    }
    query = query.group_by({}, {count().as("rows")});
    shop().rows(query);
  }
}

TEST_CASE("the larger of two inputs streams") {
  const std::vector<JoinInput> inputs = {{1000, 1000}, {1'000'000, 1'000'000}};
  CHECK(chosen_order(inputs, {foreign_key(1, 0, 1000)}, both(only(0), only(1))) == "(1 0)");
  CHECK(chosen_order(inputs, {foreign_key(1, 0, 1000)}, both(only(1), only(0))) == "(1 0)");
}

TEST_CASE("the order written stays where another one promises little") {
  const std::vector<JoinInput> inputs = {{1000, 1000}, {1100, 1100}};
  CHECK(chosen_order(inputs, {foreign_key(1, 0, 1000)}, both(only(0), only(1))) == "(0 1)");
}

TEST_CASE("the join that drops most rows runs before the join that holds most memory") {
  // Orders with their customers, of which few are wanted, and with their lines.
  const std::vector<JoinInput> inputs = {
      {100, 15'000}, {1'500'000, 1'500'000}, {6'000'000, 6'000'000}};
  const std::vector<JoinLink> links = {foreign_key(1, 0, 15'000), foreign_key(2, 1, 1'500'000)};
  CHECK(chosen_order(inputs, links, both(both(only(2), only(1)), only(0))) == "(2 (1 0))");
  CHECK(chosen_order(inputs, links, both(both(only(0), only(1)), only(2))) == "(2 (1 0))");
}

TEST_CASE("a row with a foreign key finds one partner, and several keys count as one") {
  const std::vector<JoinInput> inputs = {{600, 6000}, {800, 800}};
  const auto one = choose_join_order(inputs, {foreign_key(0, 1, 800)}, both(only(0), only(1)));
  CHECK(one->rows == Approx(600));
  CHECK(one->streamed->rows + one->held->rows == Approx(1400));
  // 200 values in one column and 100 in the other, but no more than 800 pairs.
  const std::vector<JoinLink> pair = {{0, 1, 200, 200}, {1, 0, 100, 100}};
  CHECK(choose_join_order(inputs, pair, both(only(0), only(1)))->rows == Approx(600));
  // A key that is unique nowhere: each row meets a part of the others.
  CHECK(choose_join_order(inputs, {{0, 1, 10, 40}}, both(only(0), only(1)))->rows ==
        Approx(600 * 800 / 40));
}

TEST_CASE("inputs without a key in common are not joined with each other") {
  // Two small inputs, both linked to the large one only.
  const std::vector<JoinInput> inputs = {{5, 5}, {5, 5}, {100'000, 100'000}};
  const std::vector<JoinLink> links = {foreign_key(2, 0, 5), foreign_key(2, 1, 5)};
  const std::string order = chosen_order(inputs, links, both(only(0), both(only(2), only(1))));
  CHECK((order == "((2 0) 1)" || order == "((2 1) 0)"));
}

TEST_CASE("joins whose rows no double could count are ordered") {
  for (const std::size_t count : {2, 10, 11, 64}) {
    std::vector<JoinInput> inputs;
    std::vector<JoinLink> links;
    std::unique_ptr<JoinTree> written = only(0);
    for (std::size_t i = 0; i < count; ++i) {
      inputs.push_back({1e18, 1e18});
      if (i == 0) continue;
      links.push_back({i, i - 1, 1, 1});
      written = both(std::move(written), only(i));
    }
    const std::string order = chosen_order(inputs, links, std::move(written));
    CHECK(std::count(order.begin(), order.end(), '(') == static_cast<std::ptrdiff_t>(count - 1));
  }
}

TEST_CASE("chains of up to 64 inputs are ordered, and longer ones stay as written") {
  for (const std::size_t count : {2, 9, 10, 11, 30, 64, 65}) {
    std::vector<JoinInput> inputs;
    std::vector<JoinLink> links;
    std::unique_ptr<JoinTree> written = only(0);
    for (std::size_t i = 0; i < count; ++i) {
      const double rows = std::pow(2, static_cast<double>(i));
      inputs.push_back({rows, rows});
      if (i == 0) continue;
      links.push_back(foreign_key(i, i - 1, rows / 2));
      written = both(std::move(written), only(i));
    }
    const std::string before = order_text(*written);
    const std::string order = chosen_order(inputs, links, std::move(written));
    // Beyond 64 inputs the order stays.
    CHECK((order == before) == (count == 65));
    CHECK(std::count(order.begin(), order.end(), '(') == static_cast<std::ptrdiff_t>(count - 1));
  }
}
