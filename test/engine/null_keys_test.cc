// Unique keys with NULL in them, and NULL beside the empty text.
#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "test/engine/texts_schema.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

TEST_CASE("NULL and the empty text are different values", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(texts_schema()));
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(1), Value::null()}));
  must(t.insert(table, {Value::int64(2), Value::string(std::string_view())}));
  CHECK(must(t.get({table, 0}, {Value::int64(1)})).is_null_unchecked(ColumnId(1)));
  CHECK(!must(t.get({table, 0}, {Value::int64(2)})).is_null_unchecked(ColumnId(1)));
  CHECK(t.get({table, 0}, {Value::null()}).code() == StatusCode::kNotFound);
}

// They had one hash: filling a key with this many rows took quadratic time.
TEST_CASE("rows whose unique key is NULL do not meet in the hash index", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("a", Type::kInt64).column("b", Type::kInt64);
  schema.primary_key({"id"}).unique_key("ab", {"a", "b"}).hash_prefix(1).unique_key("b", {"b"});
  const bool ordered = GENERATE(false, true);
  if (ordered) schema.ordered();
  const TableId table = must(database->create_table(schema));
  constexpr std::int64_t kRows = 100'000;
  std::vector<Value> rows;
  for (std::int64_t id = 0; id < kRows; ++id)
    rows.insert(rows.end(), {Value::int64(id), Value::null(), Value::null()});
  Transaction t = must(database->begin());
  must(t.insert_rows(table, rows));
  must(t.commit());
  const std::uint64_t bytes = must(database->table_statistics(table)).key_index_bytes;
  const auto check = [&](std::int64_t with_null) {
    const Transaction reader = must(database->begin(AccessMode::kReadOnly));
    const KeyId ab = must(database->find_key(table, "ab"));
    std::int64_t found = 0;
    must(reader.rows(ab, {Value::null()}, [&](const Row& row) {
      found += row.is_null_unchecked(ColumnId(1)) ? 1 : 0;
      return true;
    }));
    CHECK(found == with_null);
    CHECK(must(reader.get(ab, {Value::null(), Value::null()})).is_null_unchecked(ColumnId(2)));
    CHECK(must(reader.get(must(database->find_key(table, "b")), {Value::null()}))
              .is_null_unchecked(ColumnId(2)));
  };
  check(kRows);
  // To a value and back, undone and committed, by both ways to enter a version into an index.
  for (const bool commits : {false, true}) {
    t = must(database->begin());
    const RowId row = must(t.get({table, 0}, {Value::int64(7)})).id();
    const RowId one = must(t.update(table, row, {{ColumnId(1), Value::int64(1)}}));
    const RowId two = must(t.update(table, one, {{ColumnId(1), Value::null()}}));
    must(t.update(table, two, {{ColumnId(1), Value::int64(2)}, {ColumnId(2), Value::int64(3)}}));
    if (commits) must(t.commit());
  }
  t.abort();
  check(kRows - 1);
  must(database->check());
  database.reopen();
  check(kRows - 1);
  must(database->check());
  t = must(database->begin());
  CHECK(must(t.get(must(database->find_key(table, "b")), {Value::int64(3)}))
            .get_unchecked<std::int64_t>(ColumnId(0)) == 7);
  t.abort();
  TableSchema fewer("fewer");
  fewer.column("id", Type::kInt64).primary_key({"id"});
  const TableId other = must(database->create_table(fewer));
  rows.clear();
  for (std::int64_t id = 0; id < kRows; ++id) rows.push_back(Value::int64(id));
  t = must(database->begin());
  must(t.insert_rows(other, rows));
  t.abort();
  const std::uint64_t of_primary = must(database->table_statistics(other)).key_index_bytes;
  if (!ordered) CHECK(bytes < of_primary + 3 * kRows);  // an entry has 8 bytes
}

TEST_CASE("an update leaves the index entries of records with the same NULLs in their keys",
          "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("people");
  schema.column("id", Type::kInt64).column("a", Type::kInt32).column("b", Type::kInt32);
  schema.column("note", Type::kInt64).primary_key({"id"});
  schema.unique_key("a_b", {"a", "b"}).hash_prefix(1);
  const TableId table = must(database->create_table(schema));
  const KeyId key = must(database->find_key(table, "a_b"));
  const auto insert = [&](std::int64_t id) {
    Transaction t = must(database->begin());
    must(t.insert(table, {Value::int64(id), Value::int32(1), Value::null(), Value::int64(0)}));
    must(t.commit());
  };
  // Inserts reuse the rows of replaced versions before the record's next update.
  constexpr std::int64_t kRecords = test::rounds_of(2500, 800);
  std::int64_t records = 0;
  for (std::int64_t round = 1; round <= 4; ++round) {
    for (std::int64_t i = 0; i < kRecords; ++i) insert(records++);
    for (std::int64_t i = 0; i < kRecords; ++i) {
      Transaction t = must(database->begin());
      const RowId row = must(t.get({table, 0}, {Value::int64(i)})).id();
      must(t.update(table, row, {{ColumnId(3), Value::int64(round)}}));
      must(t.commit());
    }
    std::int64_t found = 0;
    Transaction reader = must(database->begin(AccessMode::kReadOnly));
    must(reader.rows(key, {Value::int32(1)}, [&](const Row&) {
      ++found;
      return true;
    }));
    REQUIRE(found == records);
  }
  must(database->check());
}

}  // namespace flugs::test
