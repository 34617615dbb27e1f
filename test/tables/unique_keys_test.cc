// Unique keys of several columns: what collides, what does not, and the text of the refusal.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

enum class KeyForm : std::uint8_t { kHashed, kOrdered, kPrefix };

TableSchema seats_schema(KeyForm form) {
  TableSchema schema("seats");
  schema.column("id", Type::kInt64).column("room", Type::kInt32).column("seat", Type::kString);
  schema.primary_key({"id"}).unique_key("place", {"room", "seat"});
  if (form == KeyForm::kOrdered) schema.ordered();
  if (form == KeyForm::kPrefix) schema.hash_prefix(1);
  return schema;
}

const std::array<Value, 2> kPlaceColumns = {Value::int32(7), Value::string("window")};

Result<RowId> add(engine::DatabaseCore& core, TableId table, std::int64_t id, const Value& room,
                  const Value& seat) {
  Transaction t = must(core.begin(AccessMode::kReadWrite));
  Result<RowId> row = t.insert(table, {Value::int64(id), room, seat});
  if (row.ok()) must(t.commit());
  return row;
}

// Twice each: NULL in the first column, in the second, in both.
void add_rows_with_null(engine::DatabaseCore& core, TableId table, std::int64_t first) {
  for (std::int64_t i = first; i < first + 2; ++i) {
    CHECK(add(core, table, 10 * i, kPlaceColumns[0], Value::null()).ok());
    CHECK(add(core, table, 10 * i + 1, Value::null(), kPlaceColumns[1]).ok());
    CHECK(add(core, table, 10 * i + 2, Value::null(), Value::null()).ok());
  }
}

void check_refusal(const Status& refused) {
  INFO(refused.to_string());
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message() == "table seats, key place: room = 7, seat = 'window' exists");
}

}  // namespace

TEST_CASE("a row is found by its key, whatever form of the value it was inserted with",
          "[engine]") {
  MemoryDatabase database;
  TableSchema schema("forms");
  schema.column("id", Type::kInt64).column("small", Type::kInt32).column("real", Type::kDouble);
  schema.column("flag", Type::kBool).column("text", Type::kString);
  schema.primary_key({"id"}).unique_key("all", {"small", "real", "flag", "text"});
  const bool is_dictionary = GENERATE(false, true);
  for (ColumnSchema& column : schema.columns)
    column.encoding = is_dictionary ? Encoding::kDictionary : Encoding::kDirect;
  const TableId table = must(database->create_table(schema));
  const std::int64_t wide = (std::int64_t{1} << 40) - 5;  // an int32 keeps the lower half: -5
  const double other_nan = -std::numeric_limits<double>::quiet_NaN();
  const std::vector<Value> given = {Value::int32(9), Value::from_raw(Type::kInt32, wide),
                                    Value::real(-0.0), Value::from_raw(Type::kBool, 7),
                                    Value::string("a text of more than fifteen bytes")};
  {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    must(t.insert(table, given));
    std::vector<Value> second = given;
    second[0] = Value::int64(10);
    second[2] = Value::real(other_nan);
    must(t.insert_rows(table, second));
    must(t.commit());
  }
  for (int round = 0; round < 2; ++round) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const std::vector<Value> first = {Value::int32(-5), Value::real(0.0), Value::boolean(true),
                                      given[4]};
    CHECK(must(must(t.get({table, 1}, first)).get<std::int64_t>(ColumnId(0))) == 9);
    std::vector<Value> second = first;
    second[1] = Value::real(std::numeric_limits<double>::quiet_NaN());
    CHECK(must(must(t.get({table, 1}, second)).get<std::int64_t>(ColumnId(0))) == 10);
    CHECK(t.insert(table, {Value::int64(11), first[0], first[1], first[2], first[3]}).code() ==
          StatusCode::kAlreadyExists);
    t.abort();
    must(database->verify({}));
    database.reopen();
  }
}

TEST_CASE("rows with NULL in a unique key of two columns never collide", "[engine]") {
  const KeyForm form = GENERATE(KeyForm::kHashed, KeyForm::kOrdered, KeyForm::kPrefix);
  MemoryDatabase database;
  const TableId table = must(database->create_table(seats_schema(form)));
  CHECK(add(*database, table, 0, kPlaceColumns[0], kPlaceColumns[1]).ok());
  // In the delta, after a restart, and in main.
  for (std::int64_t first = 1; first < 7; first += 2) {
    add_rows_with_null(*database, table, first);
    check_refusal(add(*database, table, 999, kPlaceColumns[0], kPlaceColumns[1]).status());
    if (first == 1) database.reopen();
    if (first == 3) must(database->merge(table, {}).status());
  }
  must(database->verify({}));
  database.reopen();
  must(database->verify({}));
}

TEST_CASE("an update to NULL leaves a unique key free, one from NULL takes it", "[engine]") {
  const KeyForm form = GENERATE(KeyForm::kHashed, KeyForm::kOrdered, KeyForm::kPrefix);
  MemoryDatabase database;
  const TableId table = must(database->create_table(seats_schema(form)));
  const RowId first = must(add(*database, table, 1, kPlaceColumns[0], kPlaceColumns[1]));
  const RowId second = must(add(*database, table, 2, Value::null(), kPlaceColumns[1]));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  check_refusal(t.update(table, second, {{ColumnId(1), kPlaceColumns[0]}}).status());
  const RowId none = must(t.update(table, first, {{ColumnId(1), Value::null()}}));
  must(t.update(table, second, {{ColumnId(1), kPlaceColumns[0]}}));
  check_refusal(t.update(table, none, {{ColumnId(1), kPlaceColumns[0]}}).status());
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("rows with NULL do not collide within one call of insert_rows", "[engine]") {
  const KeyForm form = GENERATE(KeyForm::kHashed, KeyForm::kOrdered, KeyForm::kPrefix);
  MemoryDatabase database;
  const TableId table = must(database->create_table(seats_schema(form)));
  std::vector<Value> values;
  for (std::int64_t id = 0; id < 200; ++id)
    values.insert(values.end(), {Value::int64(id), kPlaceColumns[0], Value::null()});
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  must(t.insert_rows(table, values));
  values.resize(6);
  for (const std::size_t row : {0, 1}) {
    values[row * 3] = Value::int64(500 + static_cast<std::int64_t>(row));
    values[row * 3 + 2] = kPlaceColumns[1];
  }
  check_refusal(t.insert_rows(table, values));
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("a long text that is shown ends with a whole character, if it is UTF-8", "[engine]") {
  const auto shown_bytes = [](const std::string& text) {
    MemoryDatabase database;
    const TableId table = must(database->create_table(seats_schema(KeyForm::kHashed)));
    must(add(*database, table, 1, kPlaceColumns[0], Value::string(text)));
    const Status refused = add(*database, table, 2, kPlaceColumns[0], Value::string(text)).status();
    const std::string_view message = refused.message();
    const std::size_t begin = message.find("seat = '") + 8;
    return message.find("'...") - begin;
  };
  const auto text = [](std::size_t before, std::string_view character) {
    std::string made(before, 'x');
    while (made.size() < 100) made += character;
    return made;
  };
  CHECK(shown_bytes(text(38, "\xc3\xa9")) == 40);
  CHECK(shown_bytes(text(39, "\xc3\xa9")) == 39);
  CHECK(shown_bytes(text(38, "\xe2\x82\xac")) == 38);
  CHECK(shown_bytes(text(37, "\xf0\x9f\x98\x80")) == 37);
  CHECK(shown_bytes(text(36, "\xf0\x9f\x98\x80")) == 40);
  CHECK(shown_bytes(text(0, "\x80")) == 40);  // not UTF-8
}

TEST_CASE("a refusal shows the beginning of a long text", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(seats_schema(KeyForm::kHashed)));
  const std::string text(100, 'x');
  must(add(*database, table, 1, kPlaceColumns[0], Value::string(text)));
  const Status refused = add(*database, table, 2, kPlaceColumns[0], Value::string(text)).status();
  CHECK(refused.message() == "table seats, key place: room = 7, seat = '" + std::string(40, 'x') +
                                 "'... of 100 bytes exists");
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const Status wrong =
      t.insert(table, {Value::int64(3), kPlaceColumns[1], kPlaceColumns[1]}).status();
  CHECK(wrong.message() == "table seats, column room: expected int32, found string 'window'");
}

}  // namespace flugs::test
