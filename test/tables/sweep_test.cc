// Rows that have not been swept, which opening leaves for later.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/audit/pool_audit.h"
#include "mvcc/stamps.h"
#include "tables/catalog/catalog.h"
#include "tables/data/table_hints.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kCrowd = 20'000;

/// A table with a primary key, larger than opening sweeps at once; no thread sweeps by itself.
struct Crowd {
  MemoryDatabase database{std::size_t{48} << 20, IndexPlace::kPool};
  TableId table;

  Crowd() {
    database.options.tuning.sweeps_in_background = false;
    TableSchema schema("crowd");
    schema.column("id", Type::kInt64).column("count", Type::kInt64).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    insert(0, kCrowd);
  }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = first; id < end; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(0)}));
    must(t.commit());
  }
  RowId row_of(Transaction& t, std::int64_t id) {
    return must(t.get({table, 0}, {Value::int64(id)})).id();
  }
  /// Each in a transaction of its own, because garbage collection counts transactions.
  void remove_each(std::int64_t first, std::int64_t end, std::int64_t step) {
    for (std::int64_t id = first; id < end; id += step) {
      Transaction t = must(database->begin(AccessMode::kReadWrite));
      must(t.remove(table, row_of(t, id)));
      must(t.commit());
    }
  }
  void update_each(std::int64_t first, std::int64_t end, std::int64_t step) {
    for (std::int64_t id = first; id < end; id += step) {
      Transaction t = must(database->begin(AccessMode::kReadWrite));
      must(t.update(table, row_of(t, id), {{ColumnId(1), Value::int64(id)}}));
      must(t.commit());
    }
  }
  std::set<std::int64_t> ids() {
    std::set<std::int64_t> found;
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    must(t.scan(table, {ColumnId(0)}, [&](const ScanBatch& batch) {
      for (const std::int64_t id : batch.column_unchecked<std::int64_t>(0))
        REQUIRE(found.insert(id).second);
      return true;
    }));
    return found;
  }
  std::uint64_t unswept() { return database->statistics().rows_unswept; }
  engine::Table& rows() { return *database->table(table); }
};

}  // namespace

TEST_CASE("opening leaves all rows but the last ones for later", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.reopen();
  CHECK(crowd.unswept() >= kCrowd / 2);
  CHECK(crowd.unswept() % engine::UnsweptRows::kBlockRows == 0);
  CHECK(crowd.rows().free_rows().count() < kCrowd / 4);
  CHECK(crowd.ids().size() == kCrowd * 3 / 4);
  must(crowd.database->verify({}));
  must(crowd.database->finish_opening());
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.rows().free_rows().count() >= kCrowd / 4);
  must(crowd.database->verify({}));
}

TEST_CASE("opening leaves more rows unswept when there are many tables", "[engine][recovery]") {
  constexpr int kOthers = 63;
  constexpr std::int64_t kRows = 3000;  // of each; less than opening sweeps of a single table
  MemoryDatabase database{std::size_t{64} << 20, IndexPlace::kPool};
  database.options.tuning.sweeps_in_background = false;
  const auto add_table = [&](int number) {
    TableSchema schema(fmt::format("t{}", number));
    schema.column("id", Type::kInt64).direct().primary_key({"id"});
    const TableId table = must(database->create_table(schema));
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 0; id < kRows; ++id) must(t.insert(table, {Value::int64(id)}));
    must(t.commit());
  };
  add_table(0);
  database.reopen();
  CHECK(database->statistics().rows_unswept == 0);
  for (int number = 1; number <= kOthers; ++number) add_table(number);
  database.reopen();
  // The last 2048 rows of each are swept, 2^17 in all, and what is left of a block.
  constexpr std::uint64_t kLeft = (kRows - 2048) / engine::UnsweptRows::kBlockRows;
  CHECK(database->statistics().rows_unswept ==
        (kOthers + 1) * kLeft * engine::UnsweptRows::kBlockRows);
  must(database->verify({}));
  must(database->finish_opening());
  CHECK(database->statistics().rows_unswept == 0);
}

TEST_CASE("opening with kIndexesBuilt sweeps every row", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.options.ready = Ready::kIndexesBuilt;
  crowd.database.reopen();
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.database->report().rows_recycled >= kCrowd / 4);
  CHECK(crowd.rows().free_rows().count() == crowd.database->report().rows_recycled);
}

TEST_CASE("a row that dies before its sweep is freed once", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.reopen();
  const std::uint64_t left = crowd.unswept();
  crowd.remove_each(1, kCrowd, 4);
  crowd.update_each(2, kCrowd, 4);
  crowd.insert(kCrowd, kCrowd + 3000);
  CHECK(crowd.unswept() < left);  // garbage collection has swept what it needed
  must(crowd.database->finish_opening());
  // More inserts than free rows: each row is reused once.
  crowd.insert(kCrowd + 3000, kCrowd * 2);
  CHECK(crowd.ids().size() == kCrowd / 2 + kCrowd);
  must(crowd.database->verify({}));
  crowd.database.reopen();
  CHECK(crowd.ids().size() == kCrowd / 2 + kCrowd);
  must(crowd.database->verify({}));
}

TEST_CASE("a swept row is not reused while an earlier transaction is open", "[engine]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 2);
  crowd.database.reopen();
  const std::uint32_t first = crowd.unswept();
  Transaction reader = must(crowd.database->begin(AccessMode::kReadOnly));
  must(crowd.database->finish_opening());
  const auto created_now = [&] {
    std::uint32_t rows = 0;
    for (std::uint32_t row = 0; row < first; ++row) {
      const mvcc::Stamp created = crowd.rows().rows().version(row).created;
      rows += created != mvcc::kNoStamp && created > reader.snapshot() ? 1 : 0;
    }
    return rows;
  };
  // More than opening itself freed.
  crowd.insert(kCrowd, kCrowd + 6000);
  CHECK(created_now() == 0);
  reader.abort();
  for (std::int64_t i = 0; i < 200; ++i) crowd.insert(kCrowd * 2 + i, kCrowd * 2 + i + 1);
  crowd.insert(kCrowd * 3, kCrowd * 3 + 1000);
  CHECK(created_now() > 1000);
  must(crowd.database->verify({}));
}

TEST_CASE("a full pool reuses rows that were swept late, by any thread", "[engine][recovery]") {
  Crowd crowd;
  // Ids of the first rows, so that the dictionary needs no space.
  crowd.remove_each(0, 5000, 1);
  crowd.database.reopen();
  REQUIRE(crowd.unswept() > 5000);
  SECTION("no thread") {}
  SECTION("another thread, before any write needs them") {
    while (crowd.rows().row_sweep().sweep_more()) {
    }
  }
  // Few transactions, so that the clock hardly moves; later ones need no space for their intents
  // either.
  constexpr std::int64_t kRows = 1000;
  std::int64_t next = 0;
  for (int i = 0; i < 2; ++i, next += kRows) crowd.insert(next, next + kRows);
  pmem::Persister persister(crowd.database->pool().medium());
  while (crowd.database->pool().allocator().allocate(4096, persister).ok()) {
  }
  persister.fence("test");
  const auto insert_some = [&] {
    Transaction t = must(crowd.database->begin(AccessMode::kReadWrite));
    Status status;
    for (std::int64_t i = 0; i < kRows && next < 5000 && status.ok(); ++i) {
      status = t.insert(crowd.table, {Value::int64(next), Value::int64(0)}).status();
      next += status.ok() ? 1 : 0;
    }
    must(t.commit());
    return status.code();
  };
  // The first one to find the pool full sweeps every row, for later transactions.
  int refused = 0;
  for (int i = 0; i < 8 && next < 5000; ++i)
    refused += insert_some() == StatusCode::kOutOfSpace ? 1 : 0;
  CHECK(refused == 1);
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.ids().size() == kCrowd);
}

TEST_CASE("damage in rows that are swept later is reported then", "[engine][recovery]") {
  Crowd crowd;
  constexpr std::uint32_t kDamaged = 300;
  crowd.rows().rows().version(kDamaged).created = mvcc::kTimestampMax;
  crowd.database.reopen();
  const Status status = crowd.database->finish_opening();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("table crowd, row 300: time-stamp expected at most") !=
        std::string::npos);
  CHECK(crowd.database->finish_opening().code() == StatusCode::kCorrupt);
  CHECK(crowd.database->merge(crowd.table, {}).code() == StatusCode::kCorrupt);
  CHECK(crowd.ids().size() == kCrowd - 1);
  crowd.database.options.ready = Ready::kIndexesBuilt;
  CHECK(crowd.database.try_reopen().code() == StatusCode::kCorrupt);
}

TEST_CASE("a chunk's header that opening does not read is checked with its rows",
          "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 2);
  const engine::RowStore& rows = crowd.rows().rows();
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t row = 0; row < kCrowd; row = rows.end_of_chunk_with(row))
    firsts.push_back(row);
  const std::size_t chunk = firsts.size() / 2;
  const std::uint32_t first = firsts[chunk];
  const std::uint32_t end = firsts[chunk + 1];
  REQUIRE(end - first > 2 * engine::UnsweptRows::kBlockRows);
  auto* header = reinterpret_cast<engine::RowChunkLayout*>(rows.address(first));
  while (header->magic != engine::RowChunkLayout::kMagic) --header;
  SECTION("magic") { header->magic = 0; }
  SECTION("checksum") { header->table_id += 1; }
  crowd.database.reopen();
  REQUIRE(crowd.unswept() >= end);
  CHECK(crowd.ids().size() == kCrowd / 2);
  const Status status = crowd.database->finish_opening();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find(fmt::format("table crowd, rows: chunk {}", chunk)) !=
        std::string::npos);
  // No row of the chunk was freed, in none of its blocks.
  crowd.insert(kCrowd, kCrowd * 2);
  std::uint32_t dead = 0;
  for (std::uint32_t row = first; row < end; ++row)
    dead += crowd.rows().rows().version(row).deleted != mvcc::kNoStamp ? 1 : 0;
  CHECK(dead == (end - first) / 2);
  CHECK(crowd.database->merge(crowd.table, {}).code() == StatusCode::kCorrupt);
  CHECK(crowd.database->verify({}).code() == StatusCode::kCorrupt);
  PoolBuffer copy(crowd.database.span().size());
  std::copy(crowd.database.span().begin(), crowd.database.span().end(), copy.span().begin());
  CHECK_FALSE(must(engine::check_pool_in_memory(copy.span())).is_clean());
  crowd.database.options.ready = Ready::kIndexesBuilt;
  CHECK(crowd.database.try_reopen().code() == StatusCode::kCorrupt);
}

TEST_CASE("a chunk's tag is accepted only if the chunk is like the one before",
          "[engine][recovery]") {
  Crowd crowd;
  std::byte* base = crowd.database->pool().base();
  const std::uint64_t* tables = must(engine::find_catalog(crowd.database->pool()))->tables;
  auto& pointers = reinterpret_cast<engine::TableLayout*>(base + tables[0])->row_chunks;
  const std::uint64_t tag = ~pmem::ChunkListLayout::kOffsetMask & pointers.inline_chunks[3];
  REQUIRE(tag != 0);
  SECTION("a bit of a tag") { pointers.inline_chunks[3] ^= std::uint64_t{1} << 55; }
  SECTION("a tag for the first chunk") { pointers.inline_chunks[0] |= tag; }
  SECTION("another chunk's tag") { pointers.inline_chunks[2] ^= tag; }
  SECTION("a bit of an offset") { pointers.inline_chunks[3] ^= std::uint64_t{1} << 13; }
  SECTION("exchanged chunks") { std::swap(pointers.inline_chunks[2], pointers.inline_chunks[3]); }
  const Status status = crowd.database.try_reopen();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("tag") != std::string::npos);
}

TEST_CASE("a look-up reports a damaged index, a dictionary works without it", "[engine]") {
  MemoryDatabase database(std::size_t{48} << 20, IndexPlace::kPool);
  TableSchema schema("damaged");
  schema.column("id", Type::kInt64).column("name", Type::kString).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const auto insert = [&](std::int64_t id) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const auto row = t.insert(
        table, {Value::int64(id), Value::string(std::string_view(fmt::format("name {}", id)))});
    return row.ok() ? t.commit() : row.status();
  };
  for (std::int64_t id = 0; id < 3000; ++id) must(insert(id));
  {  // otherwise opening needs the index of a dictionary, and reports the same
    pmem::Persister persister(database->pool().medium());
    while (engine::keep_hints(database->table(table)->columns(), persister)) {
    }
  }
  // Indexes of the two columns, then that of the key.
  const bool is_key = GENERATE(true, false);
  std::byte* base = database->pool().base();
  const std::uint64_t* tables = must(engine::find_catalog(database->pool()))->tables;
  const auto* layout = reinterpret_cast<const engine::TableLayout*>(base + tables[0]);
  const auto* hints = reinterpret_cast<const columns::HintIndexLayout*>(
      reinterpret_cast<const std::byte*>(layout) + layout->hints_offset);
  const std::uint64_t directory = hints[is_key ? 2 : 1].directory;
  REQUIRE(directory != 0);
  auto* words = reinterpret_cast<std::uint64_t*>(base + (directory & ~std::uint64_t{63}));
  std::fill_n(words, std::uint64_t{1} << (directory & 63), 0);
  database.reopen();
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const StatusCode of_key = is_key ? StatusCode::kCorrupt : StatusCode::kOk;
  CHECK(t.get({table, 0}, {Value::int64(1)}).status().code() == of_key);
  CHECK(t.rows({table, 0}, {Value::int64(1)}, [](const Row&) { return true; }).code() == of_key);
  std::size_t found = 0;
  const std::vector<ColumnId> columns{ColumnId(0)};
  must(t.scan(table, columns, Predicate::equal(ColumnId(1), Value::string("name 77")),
              [&](const ScanBatch& batch) {
                found += batch.row_count();
                return true;
              }));
  CHECK(found == 1);
  t.abort();
  CHECK(insert(3000).code() == StatusCode::kCorrupt);
  CHECK(database->finish_opening().code() == StatusCode::kCorrupt);
  CHECK(database->verify({}).code() == StatusCode::kCorrupt);
  must(database->drop_table(table));
  must(database->finish_opening());
}

TEST_CASE("a table is merged, or dropped, with rows unswept", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 2);
  crowd.database.reopen();
  REQUIRE(crowd.unswept() != 0);
  SECTION("merged") {
    must(crowd.database->merge(crowd.table, {}));
    CHECK(crowd.unswept() == 0);
    CHECK(crowd.ids().size() == kCrowd / 2);
    must(crowd.database->verify({}));
  }
  SECTION("dropped") {
    const engine::Table& rows = crowd.rows();
    must(crowd.database->drop_table(crowd.table));
    CHECK(rows.row_sweep().unswept_rows() == 0);
    must(crowd.database->finish_opening());
  }
}

}  // namespace flugs::test
