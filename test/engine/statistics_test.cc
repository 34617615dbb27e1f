#include <catch2/catch.hpp>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {

TEST_CASE("statistics count the work done", "[engine]") {
  TemporaryDatabase database([](OpenOptions& o) { o.index_place = IndexPlace::kDram; });
  TableSchema schema("t");
  schema.column("id", Type::kInt32).column("text", Type::kString).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const Statistics before = database->statistics();
  CHECK(before.medium == "emulated");
  CHECK((before.flush == "clwb" || before.flush == "clflushopt" || before.flush == "clflush"));
  CHECK(before.guarantee.find("survives") != std::string::npos);
  CHECK(before.pool_reserved_bytes == database.options.max_bytes);
  CHECK(before.pool_used_bytes <= before.pool_allocated_bytes);
  CHECK(before.pool_allocated_bytes < before.pool_reserved_bytes);
  CHECK(before.transactions_open == 0);

  RowId row;
  for (int i = 0; i < 10; ++i) {
    Transaction t = must(database->begin());
    row = must(t.insert(
        table, {Value::int32(i),
                Value::string(std::string_view("some text of length " + std::to_string(i % 3)))}));
    CHECK(database->statistics().transactions_open == 1);
    must(t.commit());
  }
  {
    Transaction holder = must(database->begin());
    must(holder.remove(table, row));
    Transaction other = must(database->begin());
    CHECK(other.remove(table, row).code() == StatusCode::kConflict);
    CHECK(other.update(table, row, {}).code() == StatusCode::kConflict);
    CHECK(other.insert(table, {Value::int32(9), Value::null()}).code() == StatusCode::kConflict);
    CHECK(other.insert(table, {Value::int32(0), Value::null()}).code() ==
          StatusCode::kAlreadyExists);
  }
  const Statistics after = database->statistics();
  CHECK(after.transactions_committed - before.transactions_committed == 10);
  CHECK(after.transactions_aborted - before.transactions_aborted == 1);
  CHECK(after.conflicts - before.conflicts == 3);
  CHECK(after.transactions_open == 0);
  CHECK(after.fences >= before.fences + 20);
  CHECK(after.lines_flushed > before.lines_flushed);
  CHECK(after.bytes_written > before.bytes_written);
  CHECK(after.dram_index_bytes > 0);
}

TEST_CASE("statistics of a table describe its columns and rows", "[engine]") {
  TemporaryDatabase database([](OpenOptions& o) { o.index_place = IndexPlace::kDram; });
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("text", Type::kString).column("flag", Type::kBool);
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const TableStatistics empty = must(database->table_statistics(table));
  CHECK(empty.name == "t");
  CHECK(empty.rows_reserved == 0);
  CHECK(empty.chunks == 0);
  CHECK(empty.row_bytes == 0);
  Transaction t = must(database->begin());
  for (int i = 0; i < 1000; ++i)
    must(t.insert(
        table, {Value::int64(i),
                Value::string(std::string_view("a text that is long " + std::to_string(i % 300))),
                Value::boolean(i % 2 == 0)}));
  must(t.commit());
  const TableStatistics full = must(database->table_statistics(table));
  CHECK(full.rows_reserved >= 1000);
  CHECK(full.chunks >= 1);
  CHECK(full.chunk_bytes >= 1000 * full.row_bytes);
  CHECK(full.row_bytes == 32);
  CHECK(full.key_index_bytes > 0);
  REQUIRE(full.columns.size() == 3);
  CHECK_FALSE(full.columns[0].dictionary_encoded);
  CHECK(full.columns[0].dictionary_entries == 0);
  CHECK(full.columns[1].dictionary_encoded);
  CHECK(full.columns[1].dictionary_entries == 300);
  CHECK(full.columns[1].dictionary_bytes > 300 * 32);
  CHECK(full.columns[1].cell_bits >= 16);
  CHECK(full.columns[2].dictionary_entries == 2);
  CHECK(full.columns[2].type == Type::kBool);
}

}  // namespace flugs::test
