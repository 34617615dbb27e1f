// A chunk without live rows becomes a group without rows, and an empty chunk at the next merge. A
// reader that saw the chunk continues with its rows and their length.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "engine/database/database_access.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/taken_space.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kFirst = 52000;  // more than half of the last chunk, so the next one is made
                                        // ahead
constexpr ColumnId kCodeColumn{1};
constexpr ColumnId kWord{2};

/// Rows with dictionary codes; the columns begin anew at the first merge.
struct Codes {
  Codes() {
    TableSchema schema("codes");
    schema.column("id", Type::kInt64).column("code", Type::kInt64).column("word", Type::kString);
    schema.columns[1].encoding = Encoding::kDictionary;
    schema.columns[2].encoding = Encoding::kDictionary;
    schema.columns[2].nullable = true;
    schema.primary_key({"id"}).key("by_code", {"code"}).ordered();
    table = must(database->create_table(schema));
  }

  void insert(std::int64_t count) {
    for (std::int64_t end = rows + count; rows < end;) {
      Transaction t = must(database->begin());
      for (int i = 0; i < 1000; ++i, ++rows)
        must(t.insert(table, {Value::int64(rows), Value::int64(rows * 7), Value::null()}));
      must(t.commit());
    }
  }
  MergeReport merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.waste_bytes = 16 << 10;
    return must(database->merge(table, options));
  }
  TableStatistics statistics() { return must(database->table_statistics(table)); }

  /// Checks with every kind of read.
  void check() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    const std::int64_t sum = rows * (rows - 1) / 2 * 7;
    const auto sums =
        must(query::Query::table("codes")
                 .group_by(
                     {}, {query::count(), query::sum("code"), query::min(query::col("code")),
                          query::max(query::col("code")), query::count_distinct(query::col("code")),
                          query::count(query::col("word"))})
                 .run(t));
    CHECK(sums.get_unchecked(0, 0).raw() == rows);
    CHECK(sums.get_unchecked(0, 1).raw() == sum);
    CHECK(sums.get_unchecked(0, 2).raw() == 0);
    CHECK(sums.get_unchecked(0, 3).raw() == (rows - 1) * 7);
    CHECK(sums.get_unchecked(0, 4).raw() == rows);
    CHECK(sums.get_unchecked(0, 5).raw() == 0);
    std::int64_t scanned = 0;
    must(t.scan(table, {kCodeColumn, kWord}, [&](const ScanBatch& batch) {
      for (const std::int64_t code : batch.column_unchecked<std::int64_t>(0)) scanned += code;
      return true;
    }));
    CHECK(scanned == sum);
    std::int64_t in_order = 0;
    must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
      return row.get_unchecked<std::int64_t>(kCodeColumn) == 7 * in_order && ++in_order != 0;
    }));
    CHECK(in_order == rows);
    for (std::int64_t id = 0; id < rows; id += 997)
      CHECK(must(t.get({table, 0}, {Value::int64(id)})).get_unchecked<std::int64_t>(kCodeColumn) ==
            7 * id);
  }

  std::int64_t rows = 0;
  TemporaryDatabase database;
  TableId table;
};

}  // namespace

TEST_CASE("a chunk without live rows becomes a group without rows before it is emptied",
          "[engine]") {
  Codes codes;
  codes.insert(kFirst);
  MergeReport report = codes.merge();
  CHECK(report.columns_rewritten == 1);
  const std::uint64_t groups = report.chunks_merged;  // including the chunk made ahead, of the
                                                      // former edition
  CHECK(report.chunks_emptied == 0);
  // A group without rows takes no space in the pool.
  CHECK(codes.statistics().groups == groups);
  CHECK(codes.statistics().group_rows == static_cast<std::uint64_t>(codes.rows));
  codes.check();
  check_pool_is_whole(codes.database);
  CHECK(codes.statistics().groups == groups);
  codes.check();

  SECTION("the group's row ids are used again after the next merge") {
    report = codes.merge();
    CHECK(report.chunks_emptied == 1);
    CHECK(report.groups_merged == 0);
    CHECK(codes.statistics().groups == groups - 1);
    codes.check();
    const std::uint64_t reserved = codes.statistics().rows_reserved;
    codes.insert(2000);
    CHECK(codes.statistics().rows_reserved == reserved);
    codes.check();
    check_pool_is_whole(codes.database);
    codes.check();
    CHECK(codes.merge().chunks_emptied == 0);
  }
  SECTION("columns come and go while the group exists") {
    ColumnSchema added;
    added.name = "note";
    added.type = Type::kString;
    added.default_value = Constant(Value::string("a text that stands in no cell"));
    must(codes.database->add_column(codes.table, added));
    must(codes.database->change_type(codes.table, kWord, Type::kBytes));
    codes.check();
    check_pool_is_whole(codes.database);
    codes.check();
    must(codes.database->drop_column(codes.table, kWord));
    check_pool_is_whole(codes.database);
    CHECK(codes.merge().chunks_emptied == 1);
    check_pool_is_whole(codes.database);
  }
  SECTION("a key can be added") {
    KeySchema key;
    key.name = "again";
    key.columns = {"code", "id"};
    key.unique = key.ordered = true;
    must(codes.database->add_key(codes.table, key));
    codes.check();
    check_pool_is_whole(codes.database);
    codes.merge();
    codes.check();
    check_pool_is_whole(codes.database);
  }
}

TEST_CASE("a group without rows reads as NULL, and stays in a pool without room for a chunk",
          "[engine]") {
  Codes codes;
  codes.insert(kFirst);
  CHECK(codes.merge().columns_rewritten == 1);
  engine::DatabaseCore& core = engine::DatabaseAccess::core(*codes.database);
  const engine::RowStore& store = core.table(codes.table)->rows();
  for (std::size_t chunk = 0; chunk < store.chunk_count(); ++chunk) {
    if (store.group(chunk)->stored_rows() != 0) continue;
    CHECK(store.group(chunk)->column(1).value(0).is_null());
    CHECK(store.group(chunk)->column(1).min().is_null());
  }
  pmem::Pool& pool = core.pool();
  const std::vector<pmem::Extent> all = take_all_space(pool);
  CHECK(codes.merge().chunks_emptied == 0);
  codes.check();
  for (const pmem::Extent& extent : all) pool.allocator().release(extent);
  CHECK(codes.merge().chunks_emptied == 1);
  codes.check();
}

}  // namespace flugs::test
