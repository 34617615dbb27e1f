// Defaults of columns, and checks: what they accept and refuse, and that the pool keeps them.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/audit/pool_audit.h"
#include "flugs/expression.h"
#include "tables/catalog/schema_codec.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using query::col;

TableSchema people() {
  TableSchema schema("people");
  schema.column("id", Type::kInt64).column("age", Type::kInt32).with_default(Value::int64(18));
  schema.column("name", Type::kString).with_default(Value::string("nobody in particular"));
  schema.column("paid", Type::kDecimal).scale(2).with_default(Value::int32(3));
  schema.column("born", Type::kTimestamp).with_default(Value::date(1));
  schema.column("limit", Type::kInt64).not_null().with_default(Value::int32(-1));
  schema.column("guardian", Type::kString);
  schema.primary_key({"id"});
  schema.check("grown", col("age") >= 18 || col("guardian").is_not_null());
  schema.check("within", col("age") <= col("limit") || col("limit") == -1);
  return schema;
}

std::vector<Value> row_of(const Transaction& t, TableId table, RowId row, std::size_t columns) {
  std::vector<Value> values(columns);
  must(t.get(table, row)).get_all(values);
  return values;
}

void check_refused(const Status& found, const std::string& message) {
  INFO(found.to_string());
  CHECK(found.code() == StatusCode::kConstraintViolated);
  CHECK(found.message() == message);
}

// The outcome of one insert into a table with a column of each type and one check.
Status outcome_of(const Condition& condition, const std::vector<Value>& values) {
  MemoryDatabase database(std::size_t{2} << 20);
  TableSchema schema("t");
  schema.column("i", Type::kInt32).column("l", Type::kInt64).column("d", Type::kDouble);
  schema.column("m", Type::kDecimal).scale(2).column("s", Type::kString);
  schema.column("b", Type::kBool).column("y", Type::kBytes).column("t", Type::kTimestamp);
  const TableId table = must(database->create_table(schema.check("c", condition)));
  database.reopen();
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  return t.insert(table, values).status();
}

const std::vector<Value> kRow = {Value::int32(5),      Value::int64(-7),
                                 Value::real(0.5),     Value::decimal_units(1234),
                                 Value::string("abc"), Value::boolean(true),
                                 Value::bytes("xyz"),  Value::timestamp(86'400'000'000)};
const std::vector<Value> kNulls(8);

}  // namespace

TEST_CASE("an insert that gives some columns takes the defaults of the others", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(people()));
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const RowId row = must(t.insert(table, {{ColumnId(0), Value::int64(opened)}}));
    const std::vector<Value> found = row_of(t, table, row, 7);
    CHECK(found == std::vector<Value>{Value::int64(opened), Value::int32(18),
                                      Value::string("nobody in particular"),
                                      Value::decimal_units(300), Value::timestamp(86'400'000'000),
                                      Value::int64(-1), Value::null()});
    must(t.commit());
    database.reopen();
  }
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId given = must(t.insert(table, {{ColumnId(1), Value::int32(70)},
                                            {ColumnId(0), Value::int64(6)},
                                            {ColumnId(0), Value::int64(7)},
                                            {ColumnId(2), Value::null()}}));
  const std::vector<Value> found = row_of(t, table, given, 7);
  CHECK(found[0] == Value::int64(7));
  CHECK(found[1] == Value::int32(70));
  CHECK(found[2].is_null());
  CHECK(t.insert(table, {{ColumnId(7), Value::int64(7)}}).code() == StatusCode::kInvalidArgument);
  check_refused(t.insert(table, {{ColumnId(1), Value::int32(20)}}).status(),
                "table people, column id: no value is given, it has no default, and NULL is not "
                "allowed");
  // Without defaults the result is as before.
  check_refused(t.insert(table, {Value::int64(8), Value::int32(20), Value::null(), Value::null(),
                                 Value::null(), Value::null(), Value::null()})
                    .status(),
                "table people, column limit: NULL is not allowed");
}

TEST_CASE("a check refuses inserts and updates, and the message says which and why", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(people()));
  const std::string grown =
      "table people, check grown: age >= 18 or guardian is not null does not "
      "hold for age = 17, guardian = NULL";
  RowId row;
  for (int opened = 0; opened < 3; ++opened) {
    const Value id = Value::int64(opened);
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    check_refused(t.insert(table, {{ColumnId(0), id}, {ColumnId(1), Value::int32(17)}}).status(),
                  grown);
    std::vector<Value> two = {id,
                              Value::int32(18),
                              Value::null(),
                              Value::null(),
                              Value::null(),
                              Value::int64(-1),
                              Value::null()};
    for (std::size_t i = 0; i < 7; ++i) two.push_back(two[i]);
    two[7] = Value::int64(opened + 100);
    two[8] = Value::int32(17);
    check_refused(t.insert_rows(table, two), grown);
    two[8] = Value::int32(60);
    std::vector<RowId> ids(2);
    must(t.insert_rows(table, two, ids));
    must(t.commit());
    if (opened == 1) must(database->merge(table, {}).status());
    Transaction u = must(database->begin(AccessMode::kReadWrite));
    check_refused(u.update(table, ids[0], {{ColumnId(1), Value::int32(17)}}).status(), grown);
    row =
        must(u.update(table, ids[0],
                      {{ColumnId(1), Value::int32(17)}, {ColumnId(6), Value::string("his aunt")}}));
    check_refused(u.update(table, row, {{ColumnId(6), Value::null()}}).status(), grown);
    check_refused(u.update(table, row, {{ColumnId(5), Value::int32(16)}}).status(),
                  "table people, check within: age <= limit or limit = -1 does not hold for "
                  "age = 17, limit = 16");
    must(u.update(table, row, {{ColumnId(1), Value::null()}, {ColumnId(6), Value::null()}}));
    must(u.commit());
    must(database->verify({}));
    database.reopen();
  }
}

TEST_CASE("checks of every kind are true, false and unknown as in SQL", "[engine]") {
  struct Case {
    Condition condition;
    bool holds;
    bool holds_for_nulls = true;  // NULL passes
  };
  const Case cases[] = {
      {col("i") == 5, true},
      {col("i") != 5, false},
      {4 < col("i"), true},
      {5 < col("i"), false},
      {5 <= col("i"), true},
      {col("l") > -7, false},
      {col("i") > col("l"), true},
      {col("l") >= col("i"), false},
      {col("d") < 1, true},
      {col("d") < 0.5, false},
      {col("m") == query::constant(Value::decimal(12340, 3)), true},
      {col("m") > 12, true},
      {col("m") > 13, false},
      {col("i").between(5, 6), true},
      {col("i").between(6, 7), false},
      {col("i").in({1, 5}), true},
      {col("i").in({1, 2}), false},
      {col("s").in({"x", "abc"}), true},
      {col("s").starts_with("ab"), true},
      {col("s").starts_with("b"), false},
      {col("s").ends_with("bc"), true},
      {col("s").contains("x"), false},
      {col("y").contains("y"), true},
      {col("y") == "xyz", true},
      {col("b"), true},
      {!col("b"), false},
      {col("t") >= query::date(1970, 1, 2), true},
      {col("t") < query::date(1970, 1, 2), false},
      {col("i").is_null(), false, true},
      {col("i").is_not_null(), true, false},
      {!(col("i") == 5), false},
      {!(col("i") == 6), true},
      {col("i") == 6 || col("l") == -7, true},
      {col("i") == 6 || col("l") == 7, false},
      {col("i") == 5 && col("l") == 7, false},
      {col("i") == 6 && col("s").is_not_null(), false, false},
      {col("i") == 6 || col("s").is_not_null(), true, true},
      {!(col("i") == 6 || col("s").is_null()), true, false},
  };
  for (const Case& c : cases) {
    INFO(c.condition.to_string());
    const auto expected = [](bool holds) {
      return holds ? StatusCode::kOk : StatusCode::kConstraintViolated;
    };
    CHECK(outcome_of(c.condition, kRow).code() == expected(c.holds));
    CHECK(outcome_of(c.condition, kNulls).code() == expected(c.holds_for_nulls));
  }
}

TEST_CASE("conditions and defaults that fit no column are refused with the reason", "[engine]") {
  const std::pair<Condition, const char*> conditions[] = {
      {col("x") == 1, "no column 'x'"},
      {col("age") == col("x"), "no column 'x'"},
      {col("age") == 0.5, "double 0.5 does not fit"},
      {col("age") == std::int64_t{3'000'000'000}, "int64 3000000000 does not fit"},
      {col("paid") == query::constant(Value::decimal(1, 3)), "decimal 0.001 does not fit"},
      {col("age") == col("name"), "cannot be compared with name of type string"},
      {col("age").starts_with("1"), "expected string or bytes"},
      {col("age") + 1 == 2, "'(age + 1) = 2' is neither a comparison"},
      {col("age") == query::constant(Value::null()), "never false"},
      {col("age").in({}), "0 constants"},
      {col("age"), "bool true does not fit"},
      {query::date(2024, 2, 30) == col("born"), "there is no date 2024-2-30"},
      {Condition(), "0 comparisons"},
      {Condition::of({{Condition::Kind::kAll, 2, {}, {}, {}}}), "2 parts are missing"},
      {Condition::of({{Condition::Kind::kAll, 0, {}, {}, {}}}), "combination of 0 parts"},
      {Condition::of({{Condition::Kind::kIsNull, 0, "age", {}, {}},
                      {Condition::Kind::kIsNull, 0, "age", {}, {}}}),
       "are in no combination"},
      {Condition::of({{static_cast<Condition::Kind>(16), 0, "age", {}, {}}}), "unknown kind 16"},
  };
  for (const auto& [condition, word] : conditions) {
    TableSchema schema = people();
    const Status found = engine::complete_schema(schema.check("new", condition)).status();
    INFO(word << ": " << found.to_string());
    CHECK(found.code() == StatusCode::kInvalidArgument);
    CHECK(found.message().find("table people, check new: ") == 0);
    CHECK(found.message().find(word) != std::string_view::npos);
  }
  const std::pair<Constant, const char*> defaults[] = {
      {Value::string("x"), "column limit of type int64: string 'x' does not fit"},
      {Value::null(), "column limit: NULL is not allowed"},
  };
  for (const auto& [constant, word] : defaults) {
    TableSchema schema = people();
    schema.columns[5].default_value = constant;
    const Status found = engine::complete_schema(schema).status();
    INFO(found.to_string());
    CHECK(found.code() == StatusCode::kInvalidArgument);
    CHECK(found.message().find(word) != std::string_view::npos);
  }
  Condition deep = col("age") == 1;
  for (int i = 0; i < 70; ++i) deep = Condition::negated(deep);
  TableSchema schema = people();
  CHECK(engine::complete_schema(schema.check("new", deep)).status().message().find("65") !=
        std::string_view::npos);
  schema = people();
  CHECK(engine::complete_schema(schema.check("grown", col("age") == 1)).status().message() ==
        "table people: check 'grown' occurs twice");
}

TEST_CASE("defaults and checks survive encoding, and damage to them is found", "[engine]") {
  TableSchema schema = people();
  schema.check("every", (col("age").in({1, 2, 3}) && !col("name").contains("x")) ||
                            col("paid") > query::constant(Value::decimal(15, 1)));
  const TableSchema complete = must(engine::complete_schema(schema));
  const std::string bytes = engine::encode_schema(complete);
  const TableSchema back = must(engine::decode_schema(bytes));
  CHECK(engine::encode_schema(back) == bytes);
  CHECK(back.checks[2].condition.to_string() == complete.checks[2].condition.to_string());
  CHECK(back.columns[2].default_value->value() == Value::string("nobody in particular"));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(engine::decode_schema(bytes.substr(0, size)).code() == StatusCode::kCorrupt);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int bit : {0, 1, 4, 7}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto result = engine::decode_schema(damaged);
      if (!result.ok()) CHECK(result.code() == StatusCode::kCorrupt);
      if (result.ok())
        CHECK(must(engine::decode_schema(engine::encode_schema(*result))).name != "");
    }
}

TEST_CASE("an audit finds rows that do not meet a check", "[engine]") {
  MemoryDatabase database(std::size_t{4} << 20);
  TableSchema schema("t");
  schema.column("id", Type::kInt64).direct().not_null().primary_key({"id"});
  schema.check("small", col("id") < 1'000'000);
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(table, {Value::int64(77'777)}));
  must(t.commit());
  engine::Table& found = *database->table(table);
  must(database->verify({}));
  // As if another program had written it.
  found.rows()
      .layout(row.value())
      .store(found.rows().address(row.value()), 0, columns::Cell{7'777'777, 0, false});
  const Status verified = database->verify({});
  INFO(verified.to_string());
  CHECK(verified.code() == StatusCode::kCorrupt);
  CHECK(verified.message().find("table t, check small: id < 1000000 does not hold for id = "
                                "7777777") != std::string_view::npos);
  PoolBuffer copy(database.span().size());
  std::copy(database.span().begin(), database.span().end(), copy.span().begin());
  const PoolCheckReport report = must(engine::check_pool_in_memory(copy.span()));
  // With the key in the pool, the key does not find the row by its new value either.
  REQUIRE(report.findings.size() == (test_index_place() == IndexPlace::kPool ? 2u : 1u));
  CHECK(report.findings[0].part == "table t, rows");
  CHECK(report.findings[0].message.find("check small") != std::string::npos);
}

}  // namespace flugs::test
