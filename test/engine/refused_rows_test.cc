// Rows that are refused leave nothing behind.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/engine/texts_schema.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
TEST_CASE("rows that are refused again and again do not fill the pool", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema = texts_schema();
  schema.columns[1].encoding = GENERATE(Encoding::kDirect, Encoding::kDictionary);
  const TableId table = must(database->create_table(schema));
  const std::string text(std::size_t{1} << 20, 't');
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(1), Value::string(text)}));
  must(t.commit());
  const std::uint64_t used = database->statistics().pool_used_bytes;
  for (int i = 0; i < 300; ++i) {
    const std::string other = text + std::to_string(i);
    const std::vector<Value> row = {Value::int64(1), Value::string(other)};
    t = must(database->begin());
    CHECK(t.insert(table, row).code() == StatusCode::kAlreadyExists);
    CHECK(t.insert_rows(table, row).code() == StatusCode::kAlreadyExists);
  }
  CHECK(database->statistics().pool_used_bytes == used);
}

// Texts in a key, beside one, or both.
TEST_CASE("refused rows leave no text behind, wherever the texts are", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("texts");
  schema.column("a", Type::kString).column("b", Type::kString).column("c", Type::kString);
  const unsigned dictionaries = GENERATE(range(0u, 8u));
  for (std::size_t i = 0; i < 3; ++i)
    schema.columns[i].encoding =
        (dictionaries >> i & 1) != 0 ? Encoding::kDictionary : Encoding::kDirect;
  schema.primary_key({"a"}).key("by_b", {"b"});
  const TableId table = must(database->create_table(schema));
  const std::string text(std::size_t{1} << 18, 't');
  Transaction t = must(database->begin());
  const Value taken = Value::string(text);
  must(t.insert(table, {taken, taken, taken}));
  must(t.commit());
  const std::uint64_t used = database->statistics().pool_used_bytes;
  for (int i = 0; i < 100; ++i) {
    const std::string other = text + std::to_string(i);
    const std::vector<Value> row = {taken, Value::string(other), Value::string(other)};
    t = must(database->begin());
    CHECK(t.insert(table, row).code() == StatusCode::kAlreadyExists);
    CHECK(t.insert_rows(table, row).code() == StatusCode::kAlreadyExists);
  }
  CHECK(database->statistics().pool_used_bytes == used);
}

// The row is already in its indexes when its text is stored.
TEST_CASE("a row without room for its text takes no key", "[engine]") {
  MemoryDatabase database;
  TableSchema schema = texts_schema();
  schema.columns[1].encoding = Encoding::kDirect;
  schema.key("by_id", {"id"});
  const TableId table = must(database->create_table(schema));
  const std::string text(std::size_t{64} << 20, 't');
  for (int i = 0; i < 3; ++i) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    CHECK(t.insert(table, {Value::int64(i), Value::string(text)}).code() ==
          StatusCode::kOutOfSpace);
    CHECK(t.get({table, 0}, {Value::int64(i)}).code() == StatusCode::kNotFound);
    must(t.insert(table, {Value::int64(i), Value::string("a text of more than 15 bytes")}));
    must(t.commit());
  }
  Transaction t = must(database->begin(AccessMode::kReadOnly));
  int rows = 0;
  must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
    CHECK(row.get_unchecked<std::string_view>(ColumnId(1)) == "a text of more than 15 bytes");
    return ++rows != 0;
  }));
  CHECK(rows == 3);
  must(t.commit());
  must(database->verify({}));
}

}  // namespace flugs::test
