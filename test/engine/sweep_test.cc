// What opening leaves for later: rows that nobody has swept yet.

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>

#include "engine/table.h"
#include "mvcc/stamps.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kCrowd = 20'000;

/// A table with a primary key, larger than what opening sweeps at once; nobody sweeps by himself.
struct Crowd {
  MemoryDatabase database{std::size_t{48} << 20, IndexMode::kHint};
  TableId table;

  Crowd() {
    database.options.sweeps_in_background = false;
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
    return must(t.find({table, 0}, {Value::int64(id)})).id();
  }
  /// Each in a transaction of its own: garbage collection goes by transactions.
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
      for (const std::int64_t id : batch.integers(0)) REQUIRE(found.insert(id).second);
      return true;
    }));
    return found;
  }
  std::uint64_t unswept() { return database->statistics().rows_unswept; }
  engine::Table& rows() { return *database->table(table); }
};

}  // namespace

TEST_CASE("opening leaves all but the last rows for later", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.reopen();
  CHECK(crowd.unswept() >= kCrowd / 2);
  CHECK(crowd.unswept() % engine::UnsweptRows::kBlockRows == 0);
  CHECK(crowd.rows().statistics().rows_free < kCrowd / 4);
  CHECK(crowd.ids().size() == kCrowd * 3 / 4);
  must(crowd.database->verify({}));
  must(crowd.database->finish_opening());
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.rows().statistics().rows_free >= kCrowd / 4);
  must(crowd.database->verify({}));
}

TEST_CASE("opening that is to leave nothing sweeps every row", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.options.ready = Ready::kIndexesBuilt;
  crowd.database.reopen();
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.database->report().rows_recycled >= kCrowd / 4);
  CHECK(crowd.rows().statistics().rows_free == crowd.database->report().rows_recycled);
}

TEST_CASE("a row that dies before it is swept is given free once", "[engine][recovery]") {
  Crowd crowd;
  crowd.remove_each(0, kCrowd, 4);
  crowd.database.reopen();
  const std::uint64_t left = crowd.unswept();
  crowd.remove_each(1, kCrowd, 4);
  crowd.update_each(2, kCrowd, 4);
  crowd.insert(kCrowd, kCrowd + 3000);
  CHECK(crowd.unswept() < left);  // garbage collection has swept what it needed
  must(crowd.database->finish_opening());
  // More than there are free rows: each is taken once.
  crowd.insert(kCrowd + 3000, kCrowd * 2);
  CHECK(crowd.ids().size() == kCrowd / 2 + kCrowd);
  must(crowd.database->verify({}));
  crowd.database.reopen();
  CHECK(crowd.ids().size() == kCrowd / 2 + kCrowd);
  must(crowd.database->verify({}));
}

TEST_CASE("a swept row is not written while a transaction is open that began before", "[engine]") {
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
  // More than opening itself gave free.
  crowd.insert(kCrowd, kCrowd + 6000);
  CHECK(created_now() == 0);
  reader.abort();
  for (std::int64_t i = 0; i < 200; ++i) crowd.insert(kCrowd * 2 + i, kCrowd * 2 + i + 1);
  crowd.insert(kCrowd * 3, kCrowd * 3 + 1000);
  CHECK(created_now() > 1000);
  must(crowd.database->verify({}));
}

TEST_CASE("a full pool takes rows that were swept late, by whomever", "[engine][recovery]") {
  Crowd crowd;
  // Ids of the first rows, so that the dictionary needs no space.
  crowd.remove_each(0, 5000, 1);
  crowd.database.reopen();
  REQUIRE(crowd.unswept() > 5000);
  SECTION("nobody") {}
  SECTION("another thread, before anybody needs them") {
    while (crowd.rows().sweep_more()) {
    }
  }
  // Few transactions, so that time hardly goes on; those that come later need no space for their
  // intents, either.
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
  // The first to find the pool full has every row swept, for the transactions behind it.
  int refused = 0;
  for (int i = 0; i < 8 && next < 5000; ++i)
    refused += insert_some() == StatusCode::kOutOfSpace ? 1 : 0;
  CHECK(refused == 1);
  CHECK(crowd.unswept() == 0);
  CHECK(crowd.ids().size() == kCrowd);
}

TEST_CASE("damage in rows that are swept later is reported when they are", "[engine][recovery]") {
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
    CHECK(rows.unswept_rows() == 0);
    must(crowd.database->finish_opening());
  }
}

}  // namespace flugs::test
