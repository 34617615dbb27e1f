// What converts to a Value, and which values stand for a column of another type: one rule for every
// call that takes a value.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "flugs/expression.h"
#include "flugs/query.h"
#include "flugs/try.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using namespace std::chrono_literals;
using query::col;
using query::Query;
using std::chrono::sys_days;

constexpr std::array<std::string_view, 8> kColumns = {"i32",  "i64",  "money", "real",
                                                      "date", "time", "text",  "raw"};

TableSchema all_types() {
  TableSchema schema("all");
  schema.column("id", Type::kInt64);
  schema.column("i32", Type::kInt32).column("i64", Type::kInt64);
  schema.column("money", Type::kDecimal).scale(2).column("real", Type::kDouble);
  schema.column("date", Type::kDate).column("time", Type::kTimestamp);
  schema.column("text", Type::kString).column("raw", Type::kBytes);
  schema.primary_key({"id"});
  for (const std::string_view name : kColumns)
    schema.key("by_" + std::string(name), {std::string(name)});
  return schema;
}

/// A value that a user gives for a column, and the value that is stored; none: it is refused.
struct Case {
  std::string_view column;
  Value given;
  std::optional<Value> stored;
};

std::vector<Case> cases() {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  return {
      {"i32", 7, Value::int32(7)},
      {"i32", std::int64_t{-7}, Value::int32(-7)},
      {"i32", kLarge, std::nullopt},
      {"i32", Value::decimal("8.00"), Value::int32(8)},
      {"i32", Value::decimal("8.01"), std::nullopt},
      {"i32", 7.0, std::nullopt},
      {"i32", "7", std::nullopt},
      {"i32", true, std::nullopt},
      {"i64", 7, Value::int64(7)},
      {"i64", kLarge, Value::int64(kLarge)},
      {"i64", Value::decimal_units(700), std::nullopt},
      {"money", 7, Value::decimal("7.00")},
      {"money", Value::decimal("7.5"), Value::decimal("7.50")},
      {"money", Value::decimal("7.500"), Value::decimal("7.50")},
      {"money", Value::decimal("7.501"), std::nullopt},
      {"money", Value::decimal_units(750), Value::decimal("7.50")},
      {"money", std::numeric_limits<std::int64_t>::max(), std::nullopt},
      {"money", 7.5, std::nullopt},
      {"real", 7, Value::real(7)},
      {"real", (std::int64_t{1} << 53) + 1, std::nullopt},
      {"real", 7.25F, Value::real(7.25)},
      {"date", 2024y / 2 / 29, Value::date(19782)},
      {"date", sys_days(2024y / 2 / 29), Value::date(19782)},
      {"date", sys_days(2024y / 2 / 29) + 0s, std::nullopt},
      {"time", sys_days(2024y / 2 / 29) + 1s, Value::timestamp(19782 * 86'400'000'000 + 1'000'000)},
      {"time", 1970y / 1 / 2, Value::timestamp(86'400'000'000)},
      {"time", std::chrono::sys_time<std::chrono::nanoseconds>(-1ns), Value::timestamp(-1)},
      {"text", "abc", Value::string("abc")},
      {"text", Value::bytes("abc"), std::nullopt},
      {"raw", "abc", Value::bytes("abc")},
  };
}

std::string shown(const Case& c) {
  return std::string(c.column) + " from " + std::string(to_string(c.given.type())) + " " +
         c.given.to_string();
}

struct World {
  TemporaryDatabase database;
  TableId table = must(database->create_table(all_types()));
  ColumnId column(std::string_view name) { return must(database->find_column(table, name)); }
  KeyId key(const std::string& name) { return must(database->find_key(table, name)); }
};

}  // namespace

TEST_CASE("a value that stands for a column's exactly is stored, found and compared as that value",
          "[api]") {
  World world;
  for (const Case& c : cases()) {
    INFO(shown(c));
    const ColumnId column = world.column(c.column);
    const KeyId primary = world.key("primary");
    const KeyId by_column = world.key("by_" + std::string(c.column));
    Transaction t = must(world.database->begin());
    const Result<RowId> inserted = t.insert(world.table, {{ColumnId(0), 1}, {column, c.given}});
    const RowId other = must(t.insert(world.table, {{ColumnId(0), 2}}));
    const Result<RowId> updated = t.update(world.table, other, {{column, c.given}});
    std::size_t found = 0;
    const Status looked_up = t.rows(by_column, {c.given}, [&](const Row&) { return ++found; });
    const std::array<Value, 1> bound = {c.given};
    std::size_t in_range = 0;
    const Status walked =
        t.rows(by_column, {bound}, {bound}, [&](const Row&) { return ++in_range; });
    std::size_t scanned = 0;
    const Status scan =
        t.scan(world.table, std::array{column}, Predicate::equal(column, c.given),
               [&](const ScanBatch& batch) { return scanned += batch.row_count(); });
    const Result<bool> same = t.compare_and_set(primary, {2}, {{column, c.given}}, {});
    if (!c.stored.has_value()) {
      CHECK(inserted.code() == StatusCode::kConstraintViolated);
      CHECK(updated.code() == StatusCode::kConstraintViolated);
      for (const StatusCode code : {looked_up.code(), walked.code(), scan.code(), same.code()})
        CHECK(code == StatusCode::kInvalidArgument);
      CHECK(inserted.status().message().find("column " + std::string(c.column)) !=
            std::string_view::npos);
      continue;
    }
    must(inserted.status());
    must(updated.status());
    CHECK(must(t.get(primary, {1})).get_unchecked(column) == *c.stored);
    CHECK(must(t.get(primary, {2})).get_unchecked(column) == *c.stored);
    CHECK(must(t.get(primary, {2})).get_unchecked(column).scale() == c.stored->scale());
    must(looked_up);
    must(walked);
    must(scan);
    CHECK(found == 2);
    CHECK(in_range == 2);
    CHECK(scanned == 2);
    CHECK(must(same));
  }
}

TEST_CASE("many rows in one call are converted like one row", "[api]") {
  World world;
  Transaction t = must(world.database->begin());
  std::vector<Value> values;
  for (int i = 0; i < 200; ++i)
    for (const Value& v : std::initializer_list<Value>{
             i, i, i, i % 3 == 0 ? Value(i) : Value::decimal(5 * i, 1), i, nullptr,
             std::chrono::year_month_day(2024y / 1 / 1), "t", "r"})
      values.push_back(v);
  must(t.insert_rows(world.table, values));
  for (const int i : {0, 3, 7, 199}) {
    const Row row = must(t.get(world.key("primary"), {i}));
    CHECK(row.get_unchecked(world.column("i32")) == Value::int32(i));
    CHECK(row.get_unchecked(world.column("i64")) == Value::int64(i));
    CHECK(row.get_unchecked(world.column("money")) ==
          Value::decimal(i % 3 == 0 ? 100 * i : 50 * i, 2));
    CHECK(row.get_unchecked(world.column("time")) == Value(sys_days(2024y / 1 / 1) + 0s));
  }
  const Status refused = t.insert_rows(
      world.table, std::vector<Value>{300, 1, 1, 1, 1, nullptr, nullptr, "t", "r", 301, 1, 1,
                                      Value::decimal("0.001"), 1, nullptr, nullptr, "t", "r"});
  INFO(refused.to_string());
  CHECK(refused.message().find("expected decimal of scale 2, found decimal 0.001") !=
        std::string_view::npos);
  CHECK(t.get(world.key("primary"), {300}).code() == StatusCode::kNotFound);
}

TEST_CASE("add and defaults take what stands for the column's value", "[api]") {
  World world;
  Transaction t = must(world.database->begin());
  must(t.insert(world.table, {1, 1, 1, 1, 1.5, nullptr, nullptr, "t", "r"}));
  const KeyId primary = world.key("primary");
  CHECK(must(t.add(primary, {1}, world.column("money"), Value::decimal("0.5"))) ==
        Value::decimal("1.50"));
  CHECK(must(t.add(primary, {1}, world.column("money"), 2)).to_string() == "3.50");
  CHECK(must(t.add(primary, {1}, world.column("i32"), std::int64_t{4})) == Value::int32(5));
  CHECK(t.add(primary, {1}, world.column("money"), Value::decimal("0.001")).code() ==
        StatusCode::kInvalidArgument);
  CHECK(must(t.upsert(primary, {1, 7, 7, 7, 7, nullptr, nullptr, "u", "s"})).inserted == false);
  CHECK(must(t.get(primary, {1})).get_unchecked(world.column("money")).to_string() == "7.00");
  TableSchema schema("with_defaults");
  schema.column("n", Type::kInt64).with_default(7);
  schema.column("d", Type::kDecimal).scale(3).with_default(Value::decimal("0.5"));
  schema.column("s", Type::kString)
      .with_default("text")
      .column("b", Type::kBool)
      .with_default(true);
  const TableId table = must(world.database->create_table(schema));
  const Row row = must(t.get(table, must(t.insert(table, std::span<const ColumnValue>()))));
  CHECK(row.get_unchecked(ColumnId(0)) == Value::int64(7));
  CHECK(row.get_unchecked(ColumnId(1)).to_string() == "0.500");
  CHECK(row.get_unchecked(ColumnId(2)) == Value("text"));
  CHECK(row.get_unchecked(ColumnId(3)) == Value(true));
}

TEST_CASE("a decimal keeps its scale in queries, and one without a scale is refused", "[api]") {
  World world;
  Transaction t = must(world.database->begin());
  must(t.insert(world.table,
                {1, 1, 1, Value::decimal("4521033.49"), 1, nullptr, nullptr, "t", "r"}));
  const Query rows = Query::table("all").where(col("money") == Value::decimal("4521033.490"));
  const query::QueryResult result = must(rows.select({"money", "date"}).run(t));
  REQUIRE(result.row_count() == 1);
  CHECK(result.get_unchecked(0, 0).to_string() == "4521033.49");
  CHECK(result.get_unchecked(0, 0) == Value::decimal("4521033.49"));
  const Status refused =
      Query::table("all").where(col("money") > Value::decimal_units(5)).run(t).status();
  INFO(refused.to_string());
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(refused.message().find("has no scale") != std::string_view::npos);
}

TEST_CASE("values print as people write them", "[api]") {
  CHECK(Value::decimal("-0.05").to_string() == "-0.05");
  CHECK(Value::decimal(std::numeric_limits<std::int64_t>::min(), 18).to_string() ==
        "-9.223372036854775808");
  CHECK(Value(2024y / 2 / 29).to_string() == "2024-02-29");
  CHECK(Value(sys_days(1969y / 12 / 31) + 23h + 59min + 1us).to_string() ==
        "1969-12-31 23:59:00.000001");
  CHECK(Value(sys_days(2024y / 2 / 29) + 0s).to_string() == "2024-02-29 00:00:00");
  CHECK(Value(nullptr).to_string() == "NULL");
  CHECK(Value(static_cast<const char*>(nullptr)).is_null());
  CHECK(Value(std::optional<int>()).is_null());
  CHECK(Value(std::optional<std::string_view>("x")) == Value("x"));
}

TEST_CASE("texts are read as decimals, or refused", "[api]") {
  const auto read = [](std::string_view text) {
    Value v;
    return Value::parse_decimal(text, v) ? v.to_string() + "/" + std::to_string(v.scale())
                                         : std::string("refused");
  };
  CHECK(read("12.340") == "12.340/3");
  CHECK(read("-7") == "-7/0");
  CHECK(read("+.5") == "0.5/1");
  CHECK(read("5.") == "5/0");
  CHECK(read("-9223372036854775808") == "-9223372036854775808/0");
  CHECK(read("9223372036854775807") == "9223372036854775807/0");
  CHECK(read("0.000000000000000001") == "0.000000000000000001/18");
  for (const std::string_view wrong :
       {"", "-", ".", "1.2.3", "1e5", " 1", "1 ", "9223372036854775808", "-9223372036854775809",
        "0.0000000000000000001", "x", "--1"})
    CHECK(read(wrong) == "refused");
  CHECK(Value::decimal("1.50") == Value::decimal("1.5"));
  CHECK(!(Value::decimal("1.51") == Value::decimal("1.5")));
  CHECK(!(Value::decimal(std::numeric_limits<std::int64_t>::max(), 0) ==
          Value::decimal(std::numeric_limits<std::int64_t>::max(), 1)));
}

// ------------------------------------------------------------------- handing failures on

namespace {

Status two_steps(const Status& first, bool& reached) {
  FLUGS_TRY(first);
  reached = true;
  return Status::success();
}

Result<std::string> text_of(Result<int> number) {
  FLUGS_ASSIGN(const int n, std::move(number));
  std::string text;
  FLUGS_ASSIGN(text, Result<std::string>(std::to_string(n)));
  return text;
}

}  // namespace

TEST_CASE("failures are handed on", "[api]") {
  bool reached = false;
  CHECK(two_steps(Status(StatusCode::kBusy, "why"), reached).message() == "why");
  CHECK(!reached);
  CHECK(two_steps({}, reached));
  CHECK(reached);
  CHECK(*text_of(5) == "5");
  CHECK(text_of(Status(StatusCode::kNotFound)).code() == StatusCode::kNotFound);
  CHECK(Result<int>(Status(StatusCode::kNotFound)).value_or(7) == 7);
  CHECK(Result<int>(8).value_or(7) == 8);
  const auto twice = [](int n) -> Result<int> { return 2 * n; };
  CHECK(*Result<int>(8).and_then(twice) == 16);
  CHECK(Result<int>(Status(StatusCode::kBusy)).and_then(twice).code() == StatusCode::kBusy);
  CHECK(static_cast<bool>(Status::success()));
  CHECK(!static_cast<bool>(Status(StatusCode::kBusy)));
}

TEST_CASE("run returns what the work of the attempt that committed has returned", "[api]") {
  World world;
  int attempts = 0;
  const Result<std::string> done = world.database->run([&](Transaction& t) -> Result<std::string> {
    if (++attempts < 3) return Status(StatusCode::kConflict);
    FLUGS_TRY(t.insert(world.table, {{ColumnId(0), attempts}}));
    return "attempt " + std::to_string(attempts);
  });
  CHECK(must(done) == "attempt 3");
  const Transaction t = must(world.database->begin());
  CHECK(t.get(world.key("primary"), {3}).ok());
  const auto fails = [](Transaction&) -> Result<int> {
    return Status(StatusCode::kOverflow, "no");
  };
  CHECK(world.database->run(fails).status().message() == "no");
}

}  // namespace flugs::test
