// Keys of a group by that follow from its other keys are neither hashed nor compared. Each query
// below gives other rows if the rule is used where it does not hold.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "test/query/naive.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

constexpr std::int32_t kBuyers = 2'000;
constexpr std::int32_t kBills = 30'000;

/// `buyer`: b_id (primary), b_land (NULL for some), b_name (NULL for some), b_code (unique, mostly
/// NULL), b_note (held directly). `land`: n_id (primary), n_name, n_old (not unique). `bill`: l_of,
/// l_line (both primary), l_sum. `real`: r_id, a double (primary), r_name. A third of the rows is
/// in main.
class Books {
 public:
  Books() {
    TableSchema buyer("buyer");
    buyer.column("b_id", Type::kInt32).column("b_land", Type::kInt64);
    buyer.column("b_name", Type::kString).column("b_code", Type::kInt32);
    buyer.column("b_note", Type::kString).direct();
    buyer.primary_key({"b_id"}).unique_key("code", {"b_code"});
    buyers = must(database->create_table(buyer));
    TableSchema land("land");
    land.column("n_id", Type::kInt32).column("n_name", Type::kString).column("n_old", Type::kInt32);
    const TableId lands = must(database->create_table(land.primary_key({"n_id"})));
    TableSchema bill("bill");
    bill.column("l_of", Type::kInt32).column("l_line", Type::kInt32);
    bill.column("l_sum", Type::kDecimal).scale(2);
    const TableId bills = must(database->create_table(bill.primary_key({"l_of", "l_line"})));
    Transaction writer = must(database->begin());
    for (std::int32_t i = 0; i < 30; ++i)
      must(writer.insert(
          lands, {Value::int32(i), text("land " + std::to_string(i % 20)), Value::int32(i % 7)}));
    for (std::int32_t i = 0; i < kBuyers; ++i) must(writer.insert(buyers, buyer_row(i, "")));
    for (std::int32_t i = 0; i < kBills; ++i) {
      if (i == kBills / 3) {
        must(writer.commit());
        MergeOptions everything;
        everything.scope = MergeScope::kEverything;
        for (const TableId table : {buyers, bills})
          static_cast<void>(must(database->merge(table, everything)));
        writer = must(database->begin());
      }
      must(writer.insert(bills, {Value::int32(i * 7 % (kBuyers + 50)), Value::int32(i),
                                 Value::decimal(i % 1'000, 2)}));
    }
    must(writer.commit());
  }

  std::vector<Value> buyer_row(std::int32_t i, const std::string& suffix) {
    return {Value::int32(i), i % 17 == 3 ? Value::null() : Value::int64(i % 33),
            i % 5 == 0 ? Value::null() : text("buyer " + std::to_string(i % 300) + suffix),
            i % 9 == 0 ? Value::int32(i) : Value::null(),
            text("a note on buyer " + std::to_string(i) + suffix)};
  }
  Value text(const std::string& of) {
    texts_.push_back(std::make_unique<std::string>(of));
    return Value::string(*texts_.back());
  }

  test::TemporaryDatabase database;
  TableId buyers;

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
};

Books& books() {
  static Books made;
  return made;
}

Query buyer() { return Query::table("buyer"); }
Query land() { return Query::table("land"); }
Query bill() { return Query::table("bill"); }
Query billed() {
  return buyer().join(bill(), {{"b_id", "l_of"}}).join(land(), {{"b_land", "n_id"}});
}

/// Runs the query as written, where the rule is not used, and otherwise; the rows must be the same.
/// Gives what the plan says about the keys: "b_name, n_name", or nothing.
std::string dependent(const Query& query, const Transaction& reader, std::uint64_t memory = 0) {
  RunOptions options;
  if (memory != 0) options.memory_bytes_max = memory;
  std::string keys;
  for (const std::uint32_t threads : {1u, 2u}) {
    options.threads = threads;
    options.runs_as_written = true;
    const QueryResult written = must(query.run(reader, options));
    options.runs_as_written = false;
    const QueryResult result = must(query.run(reader, options));
    INFO(result.explain());
    CHECK(result.row_count() > 0);
    CHECK(test::text_of(test::relation_of(result), false) ==
          test::text_of(test::relation_of(written), false));
    const std::string plan = result.explain();
    const std::size_t end = plan.find(" from the first row of each group");
    CHECK(written.explain().find(" from the first row") == std::string::npos);
    if (end == std::string::npos) return "";
    // Less memory than the groups need: they go to a file.
    CHECK((plan.find("in temporary files") != std::string::npos) == (memory == 6u << 20));
    const std::size_t begin = plan.rfind("- ", end) + 2;
    keys = plan.substr(begin, end - begin);
  }
  return keys;
}
std::string dependent(const Query& query) {
  return dependent(query, must(books().database->begin(AccessMode::kReadOnly)));
}

std::vector<Aggregate> figures() { return {sum("l_sum").as("sum"), count().as("n")}; }

}  // namespace

TEST_CASE("columns of a table follow from its primary key, and from that of a joined table") {
  CHECK(dependent(billed().group_by({"b_id", "b_name", "b_note", "n_name", "b_code"}, figures())) ==
        "b_name, b_note, n_name, b_code");
  // The primary key may stand behind what follows from it, and an expression follows as well.
  CHECK(dependent(billed().group_by({"n_name", (col("b_land") * 2).as("twice"), "l_of"},
                                    figures())) == "");
  CHECK(dependent(billed().group_by({"n_name", (col("b_land") * 2).as("twice"), "b_id", "l_of"},
                                    figures())) == "n_name, b_land * 2, l_of");
  // Both columns of the key.
  CHECK(dependent(billed().group_by({"l_line", "b_note", "l_of", "l_sum", "n_name"},
                                    {count().as("n")})) == "b_note, l_sum, n_name");
  // Two primary keys, of which neither follows from the other.
  CHECK(dependent(buyer()
                      .join(land(), {{"b_code", "n_old"}})
                      .group_by({"n_name", "b_name", "n_id", "b_id"}, {count().as("n")})) ==
        "n_name, b_name");
  // Below other steps.
  CHECK(dependent(billed()
                      .where(col("l_sum") > 1)
                      .select({col("b_id").as("id"), col("b_name").as("name"), "l_sum"})
                      .as("x")
                      .order_by({"x.id"})
                      .group_by({"x.id", "x.name"}, {sum("x.l_sum").as("s")})) == "x.name");
  CHECK(dependent(buyer()
                      .group_by({"b_id", "b_name"}, {count().as("n")})
                      .join(bill(), {{"b_id", "l_of"}})
                      .group_by({"b_id", "b_name"}, figures())) == "b_name");
  CHECK(dependent(buyer().select({"b_note", "b_id"}).distinct()) == "b_note");
  CHECK(dependent(
            buyer().semi_join(bill(), {{"b_id", "l_of"}}).select({"b_note", "b_id"}).distinct()) ==
        "b_note");
}

TEST_CASE("keys that follow from no primary key are compared") {
  // A part of a key; a column that is no key; a unique key that may be NULL.
  CHECK(dependent(billed().group_by({"l_of", "b_code", "l_sum"}, figures())) == "");
  CHECK(dependent(buyer().group_by({"b_name", "b_note"}, {count().as("n")})) == "");
  CHECK(dependent(buyer().group_by({"b_code", "b_note"}, {count().as("n")})) == "");
  CHECK(dependent(buyer()
                      .join(land(), {{"b_code", "n_old"}})
                      .group_by({"b_id", "n_name"}, {count().as("n")})) == "");
  // The same table twice.
  const Query pairs =
      buyer().as("a").join(buyer().as("b"), {{"a.b_land", "b.b_land"}}, col("b.b_id") < 50);
  CHECK(dependent(pairs.group_by({"a.b_id", "b.b_note"}, {count().as("n")})) == "");
  CHECK(dependent(pairs.group_by({"a.b_id", "b.b_note", "a.b_note"}, {count().as("n")})) ==
        "a.b_note");
  const Query column = land();
  CHECK(dependent(column.as("a")
                      .join(column.as("b"), {{"a.n_old", "b.n_old"}})
                      .group_by({"a.n_id", "b.n_name"}, {count().as("n")})) == "");
}

TEST_CASE("the right side of an outer join says nothing") {
  const std::vector<JoinKey> lands = {{"b_land", "n_id"}};
  // Buyers without a land, and with one that the condition leaves out.
  for (const Query& joined : {buyer().left_join(land(), lands),
                              buyer().left_join(land(), lands, col("b_id") < col("n_old") * 200)}) {
    CHECK(dependent(joined.group_by({"b_id", "n_name"}, {count().as("n")})) == "");
    CHECK(dependent(joined.group_by({"b_land", "n_id", "n_name"}, {count().as("n")})) == "");
    CHECK(dependent(joined.group_by({"n_id", "n_name", "b_name"}, {count().as("n")})) == "");
    CHECK(dependent(joined.group_by({"b_id", "n_name", "b_name"}, {count().as("n")})) == "b_name");
  }
  // b_land and n_id differ where n_id is NULL, so an equality above says nothing of the land.
  CHECK(dependent(buyer()
                      .left_join(land(), lands, col("b_id") < 900)
                      .join(bill(), {{"b_id", "l_of"}})
                      .group_by({"b_id", "n_name", "b_note"}, figures())) == "b_note");
}

TEST_CASE("a primary key of doubles says nothing") {
  test::TemporaryDatabase database;
  TableSchema real("real");
  real.column("r_id", Type::kDouble).column("r_name", Type::kString);
  const TableId table = must(database->create_table(real.primary_key({"r_id"})));
  Transaction writer = must(database->begin());
  for (const double id : {1.5, 0.0, 2.5})
    must(writer.insert(table, {Value::real(id), Value::string("positive")}));
  static_cast<void>(writer.insert(table, {Value::real(-0.0), Value::string("negative")}));
  CHECK(dependent(Query::table("real").group_by({"r_id", "r_name"}, {count().as("n")}), writer) ==
        "");
}

TEST_CASE("a transaction's own writes have one row for each primary key") {
  Books own;
  Transaction writer = must(own.database->begin());
  for (std::int32_t i = 0; i < 400; ++i) {
    const RowId row = must(writer.get(KeyId{own.buyers, 0}, {Value::int32(i)})).id();
    if (i % 3 == 0) {
      must(writer.remove(own.buyers, row));
      must(writer.insert(own.buyers, own.buyer_row(i, " again")));
    } else if (i % 3 == 1) {
      const Value name = own.text("changed");
      const ColumnValue change{ColumnId(2), name};
      must(writer.update(own.buyers, row, {&change, 1}));
    }
  }
  CHECK(dependent(billed().group_by({"b_id", "b_name", "n_name", "b_note"}, figures()), writer) ==
        "b_name, n_name, b_note");
  CHECK(dependent(buyer().group_by({"b_id", "b_name"}, {count().as("n")}), writer) == "b_name");
}

TEST_CASE("many groups with keys that follow, in parts and in a file") {
  const Query lines = buyer().join(bill(), {{"b_id", "l_of"}});
  const std::vector<Item> keys = {"l_of", "b_note", "l_line", "b_name", "l_sum"};
  const Transaction reader = must(books().database->begin(AccessMode::kReadOnly));
  for (const std::uint64_t megabytes : {6, 400}) {
    const auto check = [&](const Query& grouped, const std::string& expected) {
      const Query all = grouped.group_by({}, {count().as("rows"), min("b_note"), max("b_name"),
                                              count_distinct("b_note"), sum("n").as("sum")});
      CHECK(dependent(all, reader, megabytes << 20) == expected);
    };
    check(lines.group_by(keys, {count().as("n"), max("b_note").as("m")}), "b_note, b_name, l_sum");
    check(lines.group_by({"b_id", "b_note", "b_name"},
                         {count_distinct("l_line").as("n"), count_distinct("b_note").as("notes")}),
          "b_note, b_name");
  }
}
