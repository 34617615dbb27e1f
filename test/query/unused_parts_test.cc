// Chunks of the delta in which no row was written are not read, and rows that are written are seen.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "engine/database/database_access.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "tables/rows/row_chunk.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

constexpr std::int64_t kUnusedRows = 20'000;

/// A table whose rows a merge moved to main, and a second merge left with a chunk for coming rows.
struct UnusedTable {
  UnusedTable() {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).column("v", Type::kInt64).primary_key({"id"});
    table = must(database->create_table(schema));
    Transaction writer = must(database->begin());
    for (std::int64_t id = 0; id < kUnusedRows; ++id)
      must(writer.insert(table, {Value::int64(id), Value::int64(1)}));
    must(writer.commit());
    // All rows die in the chunks where they are: these become empty ones.
    for (int i = 0; i < 3; ++i) {
      merge();
      writer = must(database->begin());
      for (std::int64_t id = 0; id < kUnusedRows; ++id)
        must(writer.update({table, 0}, {Value::int64(id)}, {{ColumnId{1}, Value::int64(1)}}));
      must(writer.commit());
    }
    for (int i = 0; i < 2; ++i) merge();
  }

  void merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(database->merge(table, options));
  }
  /// Parts of kPartRows rows in the delta in which a row was written, and others.
  std::size_t parts(bool used) {
    const engine::RowStore& rows = engine::DatabaseAccess::core(*database).table(table)->rows();
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows.chunk_count(); ++i) {
      if (rows.group(i) != nullptr) continue;
      const engine::RowStore::ChunkView chunk = rows.chunk(i, rows.rows_end());
      for (std::uint32_t first = 0; first < chunk.row_count; first += engine::RowChunk::kPartRows)
        count += chunk.is_unused(first, 1) != used ? 1 : 0;
    }
    return count;
  }
  std::int64_t sum_of(const Transaction& transaction) {
    return must(Query::table("t").group_by({}, {sum("v")}).run(transaction))
        .get_unchecked(0, 0)
        .as_int64();
  }
  std::int64_t sum_now() { return sum_of(must(database->begin())); }

  TemporaryDatabase database;
  TableId table;
};

}  // namespace

TEST_CASE("the parts of a chunk that some rows are in") {
  using engine::RowChunk;
  CHECK(RowChunk::parts(0, 1) == 1);
  CHECK(RowChunk::parts(1023, 1) == 1);
  CHECK(RowChunk::parts(1024, 1) == 2);
  CHECK(RowChunk::parts(1023, 2) == 3);
  CHECK(RowChunk::parts(2048, 3 * 1024) == 0b11100);
  CHECK(RowChunk::parts(0, 65'536) == ~std::uint64_t{0});
  CHECK(RowChunk::parts(65'535, 1) == std::uint64_t{1} << 63);
  CHECK(RowChunk::parts(200'000, 5) == std::uint64_t{1} << 63);
  CHECK(RowChunk::parts(10, 200'000) == ~std::uint64_t{0});
}

TEST_CASE("a chunk that a merge left for coming rows is not read until rows are written") {
  UnusedTable merged;
  REQUIRE(merged.parts(false) > 0);
  CHECK(merged.parts(true) == 0);
  std::int64_t expected = kUnusedRows;
  CHECK(merged.sum_now() == expected);

  // One row in each transaction: seen by its own query, and by the next one.
  for (std::int64_t i = 0; i < 5000; i += 1 + i / 4) {
    Transaction writer = must(merged.database->begin());
    if (i % 2 == 0) {
      must(writer.insert(merged.table, {Value::int64(kUnusedRows + i), Value::int64(7)}));
      expected += 7;
    } else {
      must(writer.update({merged.table, 0}, {Value::int64(i + 10)},
                         {{ColumnId{1}, Value::int64(100 + i)}}));
      expected += 99 + i;
    }
    CHECK(merged.sum_of(writer) == expected);
    must(writer.commit());
    CHECK(merged.sum_now() == expected);
  }
  CHECK(merged.parts(true) > 0);

  std::vector<Value> rows;
  for (std::int64_t i = 0; i < 3000; ++i) {
    rows.push_back(Value::int64(2 * kUnusedRows + i));
    rows.push_back(Value::int64(1));
  }
  Transaction writer = must(merged.database->begin());
  must(writer.insert_rows(merged.table, rows));
  CHECK(merged.sum_of(writer) == expected + 3000);
  writer.abort();
  CHECK(merged.sum_now() == expected);

  // The same by columns.
  std::vector<std::int64_t> ids(3000);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = 3 * kUnusedRows + static_cast<std::int64_t>(i);
  const std::vector<std::int64_t> ones(ids.size(), 1);
  const auto array = [](const std::vector<std::int64_t>& values) {
    return ValueArray{.form = ArrayForm::kInt64, .size = values.size(), .values = values.data()};
  };
  const BatchColumn columns[] = {{ColumnId{0}, array(ids)}, {ColumnId{1}, array(ones)}};
  writer = must(merged.database->begin());
  must(writer.insert_columns(merged.table, {ids.size(), columns}));
  must(writer.commit());
  expected += 3000;
  CHECK(merged.sum_now() == expected);
  merged.database.reopen();
  CHECK(merged.sum_now() == expected);
  CHECK(merged.parts(false) == 0);  // nothing is known of rows from before
  merged.merge();
  CHECK(merged.sum_now() == expected);
}
