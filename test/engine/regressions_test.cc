// Errors that were found once and must not return.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema rows_schema() {
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  return schema;
}

std::uint64_t lines_of_insert(Database& database, TableId table, std::int64_t id) {
  const std::uint64_t before = database.statistics().lines_flushed;
  Transaction t = must(database.begin());
  must(t.insert(table, {Value::int64(id), Value::string("one and the same")}));
  must(t.commit());
  return database.statistics().lines_flushed - before;
}

}  // namespace

TEST_CASE("insert_rows normalises a bool with a foreign payload", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("flags");
  schema.column("id", Type::kInt64).column("flag", Type::kBool).primary_key({"id"});
  schema.key("by_flag", {"flag"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin());
  const std::vector<Value> rows = {Value::int64(1), Value::from_raw(Type::kBool, 2),
                                   Value::int64(2), Value::boolean(true)};
  must(t.insert_rows(table, rows));
  std::size_t found = 0;
  must(t.rows(must(database->find_key(table, "by_flag")), {Value::boolean(true)}, [&](const Row&) {
    ++found;
    return true;
  }));
  CHECK(found == 2);
}

TEST_CASE("values of an aborted transaction do not hold up the durable prefix", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(rows_schema()));
  {
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < 1000; ++id)
      must(t.insert(table, {Value::int64(id), Value::string(std::string_view(
                                                  "never committed " + std::to_string(id)))}));
  }
  for (std::int64_t id = 0; id < 10; ++id) lines_of_insert(*database, table, id);
  const std::uint64_t lines = lines_of_insert(*database, table, 10);

  TemporaryDatabase quiet;
  const TableId same = must(quiet->create_table(rows_schema()));
  for (std::int64_t id = 0; id < 10; ++id) lines_of_insert(*quiet, same, id);
  CHECK(lines == lines_of_insert(*quiet, same, 10));
}

TEST_CASE("NULL and the empty text are different values", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(rows_schema()));
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(1), Value::null()}));
  must(t.insert(table, {Value::int64(2), Value::string(std::string_view())}));
  CHECK(must(t.get({table, 0}, {Value::int64(1)})).is_null_unchecked(ColumnId(1)));
  CHECK(!must(t.get({table, 0}, {Value::int64(2)})).is_null_unchecked(ColumnId(1)));
  CHECK(t.get({table, 0}, {Value::null()}).code() == StatusCode::kNotFound);
}

TEST_CASE("rows that are refused again and again do not fill the pool", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema = rows_schema();
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
  TableSchema schema = rows_schema();
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

TEST_CASE("transactions that a drop waits for may look tables up and create others", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(rows_schema()));
  Transaction open = must(database->begin());
  Status dropped;
  std::thread dropper([&] { dropped = database->drop_table(table); });
  while (open.get(table, RowId(0)).status().message().find("no such table") == std::string::npos)
    std::this_thread::yield();
  CHECK(database->find_table("rows").code() == StatusCode::kNotFound);
  CHECK(database->create_table(rows_schema()).code() == StatusCode::kAlreadyExists);
  TableSchema other = rows_schema();
  other.name = "others";
  const TableId made = must(database->create_table(other));
  must(open.insert(made, {Value::int64(1), Value::string("while the drop waits")}));
  must(open.commit());
  dropper.join();
  must(dropped);
  must(database->create_table(rows_schema()));
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kFreedIsGone = false;  // it keeps returned memory for a while
#else
constexpr bool kFreedIsGone = true;
#endif

static std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  std::size_t shared = 0;
  statm >> all >> resident >> shared;
  return (resident - shared) * 4096;
}

// Their DRAM was kept until the database was closed.
TEST_CASE("indexes of dropped tables take no memory", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"}).ordered();
  schema.key("by_text", {"text"});
  constexpr std::int64_t kRows = 50'000;
  std::vector<std::string> texts;
  for (std::int64_t id = 0; id < kRows; ++id) texts.push_back(std::to_string(id));
  std::vector<Value> rows;
  for (std::int64_t id = 0; id < kRows; ++id)
    rows.insert(rows.end(), {Value::int64(id), Value::string(texts[static_cast<std::size_t>(id)])});
  std::size_t after_first = 0;
  for (int round = 0; round < 10; ++round) {
    const TableId table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    must(t.insert_rows(table, rows));
    must(t.commit());
    must(database->drop_table(table));
    CHECK(database->statistics().dram_index_bytes == 0);
    if (round == 0) after_first = resident_bytes();
  }
  if (kFreedIsGone) CHECK(resident_bytes() < after_first + (std::size_t{10} << 20));
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
