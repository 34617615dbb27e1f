// Transaction::insert_columns does what insert does row by row.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flugs/expression.h"
#include "test/support/model_value.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"
#include "verify/crash/rig/column_rows.h"

namespace flugs::test {
namespace {

using crash::ColumnRows;
using query::col;
using Rows = std::vector<std::vector<Value>>;

/// Columns of all types; some are NOT NULL, some not of a dictionary.
TableSchema every_type(const std::string& name, bool has_constraints) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).not_null();
  schema.column("small", Type::kInt32);
  schema.column("flag", Type::kBool).direct();
  schema.column("real", Type::kDouble).direct();
  schema.column("money", Type::kDecimal).scale(2).not_null();
  schema.column("day", Type::kDate).direct();
  schema.column("moment", Type::kTimestamp);
  schema.column("text", Type::kString);
  schema.column("note", Type::kString).direct();
  schema.column("blob", Type::kBytes).direct();
  schema.primary_key({"id"});
  schema.unique_key("named", {"text", "small"});
  schema.key("by_day", {"day"});
  if (has_constraints) schema.check("small_enough", col("small") < 900'000);
  return schema;
}

/// All rows of the table, in the order of their first column.
std::vector<ModelRow> contents(const Transaction& t, TableId table, const TableSchema& schema) {
  std::vector<ModelRow> rows;
  std::vector<ColumnId> columns;
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    columns.emplace_back(static_cast<std::uint16_t>(i));
  must(t.scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
    for (std::size_t r = 0; r < batch.row_count(); ++r) {
      ModelRow& row = rows.emplace_back();
      for (std::size_t i = 0; i < columns.size(); ++i)
        row.push_back(ModelValue::of(schema.columns[i].type, batch.get_unchecked(i, r)));
    }
    return true;
  }));
  std::sort(rows.begin(), rows.end(), [](const ModelRow& a, const ModelRow& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (const int order = compare(a[i], b[i]); order != 0) return order < 0;
    return false;
  });
  return rows;
}

std::string row_named(std::size_t row) { return "row " + std::to_string(row) + " of the batch: "; }

/// A table that gets rows by column, and its twin that gets the same rows one by one.
struct Twins {
  explicit Twins(bool has_constraints = false)
      : schema(every_type("columns", has_constraints)),
        columns(must(database->create_table(schema))),
        rows(must(database->create_table(every_type("rows", has_constraints)))) {}

  void check_equal() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    CHECK(contents(t, columns, schema) == contents(t, rows, schema));
  }

  MemoryDatabase database{std::size_t{64} << 20};
  TableSchema schema;
  TableId columns;
  TableId rows;
};

std::vector<ModelRow> drawn_rows(const TableSchema& schema, std::size_t count, std::int64_t& next,
                                 Random& random) {
  std::vector<ModelRow> rows;
  const unsigned faults = random.chance(40) ? 1 : 0;
  for (std::size_t r = 0; r < count; ++r) {
    ModelRow& row = rows.emplace_back();
    for (const ColumnSchema& column : schema.columns) {
      row.push_back(random_value(column, 50, random));
      if (row.back().null && !column.nullable && !(faults != 0 && random.below(count * 2) == 0))
        row.back() = ModelValue::of(column.type, Value::from_raw(column.type, 7));
    }
    if (row[1].null || random.chance(97)) row[7].null = random.chance(50);
    if (faults == 0 || random.below(count * 2) != 0)
      row[0] = ModelValue::of(Type::kInt64, Value::int64(next++));
    if (random.below(count * 4) != 0) row[1].raw %= 900'000;
  }
  return rows;
}

Rows views_of(const std::vector<ModelRow>& drawn) {
  Rows rows;
  for (const ModelRow& row : drawn) {
    std::vector<Value>& views = rows.emplace_back();
    for (const ModelValue& value : row) views.push_back(value.view());
  }
  return rows;
}

bool has_long_text(const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const std::vector<Value>& row) {
    return std::any_of(row.begin(), row.end(),
                       [](const Value& value) { return value.as_string().size() > 15; });
  });
}

}  // namespace

TEST_CASE("insert_columns and insert give the same rows, and refuse the same row", "[engine]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Twins twins(seed % 2 == 0);
    std::int64_t next = 1'000'000;
    for (int call = 0; call < 8; ++call) {
      INFO("call " << call);
      const std::size_t count = random.chance(20) ? random.below(3) : random.below(700);
      const std::vector<ModelRow> drawn = drawn_rows(twins.schema, count, next, random);
      const Rows rows = views_of(drawn);
      const ColumnRows arrays(rows, twins.schema.columns.size(), random.next());
      Transaction t = must(twins.database->begin(AccessMode::kReadWrite));
      const Savepoint before = must(t.savepoint());
      Status by_row;
      std::size_t row = 0;
      for (; row < rows.size() && by_row.ok(); ++row)
        by_row = t.insert(twins.rows, rows[row]).status();
      if (!by_row.ok()) must(t.rollback_to(before));
      std::vector<RowId> ids(count);
      const Status by_column = t.insert_columns(twins.columns, arrays.batch(), ids);
      INFO(by_row.to_string() << " / " << by_column.to_string());
      REQUIRE(by_row.ok() == by_column.ok());
      if (!by_row.ok() && !has_long_text(rows)) {
        CHECK(by_column.code() == by_row.code());
        CHECK(by_column.message().starts_with(row_named(row - 1)));
        REQUIRE((by_row.part() != nullptr && by_column.part() != nullptr));
        CHECK(by_column.part()->name == by_row.part()->name);
      }
      for (std::size_t i = 0; by_column.ok() && i < count; ++i)
        CHECK(must(t.get(twins.columns, ids[i])).get_unchecked(ColumnId(0)) == rows[i][0]);
      if (random.chance(80)) must(t.commit());
    }
    twins.check_equal();
    must(twins.database->verify());
    twins.database.reopen();
    twins.check_equal();
  }
}

TEST_CASE("a batch that is refused in the middle leaves nothing, and names row and key",
          "[engine]") {
  Twins twins;
  Rows rows;
  for (std::int64_t i = 0; i < 1000; ++i)
    rows.push_back({Value::int64(i == 777 ? 5 : i), Value::int32(1), Value::null(), Value::null(),
                    Value::decimal("1.00"), Value::null(), Value::null(), Value::null(),
                    Value::null(), Value::null()});
  Transaction t = must(twins.database->begin(AccessMode::kReadWrite));
  const Status refused = t.insert_columns(twins.columns, ColumnRows(rows, 10, 1).batch());
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message() == "row 777 of the batch: table columns, key primary: id = 5 exists");
  rows[777][0] = Value::int64(777);
  rows[500][4] = Value::null();
  const Status null = t.insert_columns(twins.columns, ColumnRows(rows, 10, 1).batch());
  CHECK(null.code() == StatusCode::kConstraintViolated);
  CHECK(null.message() == "row 500 of the batch: table columns, column money: NULL is not allowed");
  CHECK(contents(t, twins.columns, twins.schema).empty());
  rows[500][4] = Value::decimal("2.00");
  must(t.insert_columns(twins.columns, ColumnRows(rows, 10, 1).batch()));
  CHECK(contents(t, twins.columns, twins.schema).size() == 1000);
}

TEST_CASE("columns that are not given get defaults and numbers", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("tickets");
  schema.column("number", Type::kInt32).auto_increment();
  schema.column("state", Type::kString).with_default(Value::string("a state that is not so short"));
  schema.column("count", Type::kInt64).not_null();
  schema.primary_key({"number"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const ColumnRows three({{Value::null(), Value::int64(1)},
                          {Value::int32(7000), Value::int64(2)},
                          {Value::null(), Value::int64(3)}},
                         2, 4);
  std::vector<BatchColumn> columns = {three.batch().columns[0], three.batch().columns[1]};
  columns[1].column = ColumnId(2);
  std::vector<RowId> ids(3);
  must(t.insert_columns(table, {3, columns}, ids));
  const auto number = [&](std::size_t i) {
    return must(t.get(table, ids[i])).get_unchecked(ColumnId(0)).as_int32();
  };
  CHECK(number(1) == 7000);
  CHECK(number(0) > 0);
  CHECK(number(2) == number(0) + 1);
  CHECK(must(t.get(table, ids[2])).get_unchecked(ColumnId(1)).as_string().size() == 28);
  // Without any numbers, over several blocks.
  const std::vector<std::int64_t> counts(1000, 9);
  BatchColumn count{ColumnId(2), {}, {}};
  count.values = {.form = ArrayForm::kInt64, .size = 1000, .values = counts.data()};
  must(t.insert_columns(table, {1000, {&count, 1}}));
  CHECK(contents(t, table, schema).size() == 1003);
  const Status lacking = t.insert_columns(table, {3, {columns.data(), 1}});
  CHECK(lacking.code() == StatusCode::kConstraintViolated);
  CHECK(contents(t, table, schema).size() == 1003);
  must(t.commit());
}

TEST_CASE("foreign keys are followed at the end of a batch, which fails as a whole", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("people");
  schema.column("id", Type::kInt32).column("boss", Type::kInt32);
  schema.primary_key({"id"}).foreign_key("boss", {"boss"}, "people");
  const TableId table = must(database->create_table(schema));
  Rows rows;
  for (std::int32_t i = 0; i < 600; ++i) rows.push_back({Value::int32(i), Value::int32(599 - i)});
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  must(t.insert_columns(table, ColumnRows(rows, 2, 1).batch()));
  const ColumnRows orphan(
      {{Value::int32(1000), Value::int32(1)}, {Value::int32(1001), Value::int32(5000)}}, 2, 1);
  CHECK(t.insert_columns(table, orphan.batch()).code() == StatusCode::kConstraintViolated);
  CHECK(contents(t, table, schema).size() == 600);
  must(t.commit());
}

TEST_CASE("a serializable transaction has read the keys that a batch found taken", "[engine]") {
  Twins twins;
  const auto row = [](std::int64_t id) {
    return std::vector<Value>{Value::int64(id),       Value::int32(1), Value::null(), Value::null(),
                              Value::decimal("1.00"), Value::null(),   Value::null(), Value::null(),
                              Value::null(),          Value::null()};
  };
  Transaction first = must(twins.database->begin(AccessMode::kReadWrite));
  const RowId taken = must(first.insert(twins.columns, row(5)));
  must(first.commit());
  Transaction reader =
      must(twins.database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
  CHECK(reader.insert_columns(twins.columns, ColumnRows({row(4), row(5)}, 10, 3).batch()).code() ==
        StatusCode::kAlreadyExists);
  must(reader.insert(twins.rows, row(1)));
  Transaction writer = must(twins.database->begin(AccessMode::kReadWrite));
  must(writer.remove(twins.columns, taken));
  must(writer.commit());
  CHECK(reader.commit().code() == StatusCode::kConflict);
}

TEST_CASE("arrays that cannot be read are refused before a row is written", "[engine]") {
  Twins twins;
  Transaction t = must(twins.database->begin(AccessMode::kReadWrite));
  const std::vector<std::int32_t> numbers = {1, 2, 3, 4};
  const auto refused = [&](const BatchColumn& column, std::size_t rows = 4) {
    const Status s = t.insert_columns(twins.columns, {rows, {&column, 1}});
    INFO(s.to_string());
    CHECK((s.code() == StatusCode::kInvalidArgument));
  };
  const ValueArray good = {.form = ArrayForm::kInt32, .size = 4, .values = numbers.data()};
  const auto with = [&](auto change) {
    BatchColumn column{ColumnId(0), good, {}};
    change(column);
    return column;
  };
  refused(with([](BatchColumn& c) { c.column = ColumnId(10); }));
  refused(with([](BatchColumn& c) { c.values.size = 3; }));
  refused(with([](BatchColumn& c) { c.values.values = nullptr; }));
  refused(with([](BatchColumn& c) { c.values.first = ~std::size_t{0}; }));
  refused(with([](BatchColumn& c) { c.values.type = Type::kString; }));
  refused(with([](BatchColumn& c) { c.values.type = static_cast<Type>(77); }));
  refused(with([](BatchColumn& c) { c.values.form = static_cast<ArrayForm>(77); }));
  refused(with([](BatchColumn& c) { c.values.form = ArrayForm::kText32; }));
  refused(with([](BatchColumn& c) {
    c.values.type = Type::kString;
    c.values.form = ArrayForm::kText32;
  }));
  refused(with([&](BatchColumn& c) {
    c.dictionary = good;
    c.values.form = ArrayForm::kDouble;
    c.values.type = Type::kDouble;
  }));
  std::vector<RowId> ids(3);
  const BatchColumn column = with([](BatchColumn&) {});
  CHECK(t.insert_columns(twins.columns, {4, {&column, 1}}, ids).code() ==
        StatusCode::kInvalidArgument);
  CHECK(contents(t, twins.columns, twins.schema).empty());
}

TEST_CASE("codes, offsets and views that lead outside are refused with their row", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("texts");
  schema.column("text", Type::kString);
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const auto refused = [&](const ValueArray& values, std::optional<ValueArray> dictionary = {}) {
    const BatchColumn column{ColumnId(0), values, dictionary};
    const Status s = t.insert_columns(table, {values.size, {&column, 1}});
    INFO(s.to_string());
    CHECK(s.code() == StatusCode::kInvalidArgument);
    CHECK(s.message().starts_with("row 1 of the batch: table texts, column text: "));
  };
  const std::string text = "abcdef";
  const auto offsets = [&](const std::vector<std::int32_t>& of) {
    refused({.form = ArrayForm::kText32,
             .type = Type::kString,
             .size = of.size() - 1,
             .values = text.data(),
             .offsets = of.data(),
             .text_bytes = text.size()});
  };
  offsets({0, 2, 1, 6});
  offsets({0, 2, 7});
  offsets({0, 2, -3});
  const std::vector<std::int32_t> view = {2, 0x6161, 0, 0, 20, 0, 0, 0};
  const std::vector<std::string_view> buffers = {text};
  refused({.form = ArrayForm::kViews,
           .type = Type::kString,
           .size = 2,
           .values = view.data(),
           .buffers = buffers});
  const std::vector<std::int32_t> far = {2, 0x6161, 0, 0, 20, 0, 1, 0};
  refused({.form = ArrayForm::kViews,
           .type = Type::kString,
           .size = 2,
           .values = far.data(),
           .buffers = buffers});
  const std::vector<std::int32_t> one_text = {0, 6};
  const ValueArray dictionary = {.form = ArrayForm::kText32,
                                 .type = Type::kString,
                                 .size = 1,
                                 .values = text.data(),
                                 .offsets = one_text.data(),
                                 .text_bytes = text.size()};
  for (const std::int32_t code : {1, -1, 1000}) {
    const std::vector<std::int32_t> codes = {0, code, 0};
    refused({.form = ArrayForm::kInt32, .size = 3, .values = codes.data()}, dictionary);
  }
  CHECK(contents(t, table, schema).empty());
}

TEST_CASE("a pool that becomes full in the middle of a batch keeps what was there", "[engine]") {
  MemoryDatabase database(std::size_t{4} << 20);
  TableSchema schema("big");
  schema.column("id", Type::kInt64).not_null().column("text", Type::kString).direct();
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i) texts.push_back(std::string(400, 'a') + std::to_string(i));
  const auto rows = [&](std::size_t first, std::size_t end) {
    Rows made;
    for (std::size_t i = first; i < end; ++i)
      made.push_back({Value::int64(static_cast<std::int64_t>(i)), Value::string(texts[i])});
    return made;
  };
  Transaction small = must(database->begin(AccessMode::kReadWrite));
  must(small.insert_columns(table, ColumnRows(rows(0, 1000), 2, 1).batch()));
  must(small.commit());
  Transaction large = must(database->begin(AccessMode::kReadWrite));
  CHECK(large.insert_columns(table, ColumnRows(rows(1000, 20'000), 2, 1).batch()).code() ==
        StatusCode::kOutOfSpace);
  CHECK(contents(large, table, schema).size() == 1000);
  must(large.commit());
  Transaction next = must(database->begin(AccessMode::kReadWrite));
  must(next.insert_columns(table, ColumnRows(rows(2000, 2300), 2, 1).batch()));
  must(next.commit());
  must(database->verify());
  database.reopen();
  const Transaction t = must(database->begin(AccessMode::kReadOnly));
  CHECK(contents(t, table, schema).size() == 1300);
}

}  // namespace flugs::test
