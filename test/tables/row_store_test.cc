#include "tables/rows/row_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

// A table whose cells get wider on request; the test grants rows itself.
struct Store {
  MemoryDatabase database{std::size_t{64} << 20};
  TableId id;

  Store() {
    TableSchema schema("t");
    schema.column("a", Type::kInt64).direct().not_null().column("b", Type::kInt32);
    id = must(database->create_table(schema));
  }
  engine::Table& table() {
    engine::Table* found = database->table(id);
    if (found == nullptr) std::abort();
    return *found;
  }
  engine::RowStore& rows() { return table().rows(); }
  Status grant(std::uint8_t bits_a, std::uint8_t bits_b, engine::RowRange& range) {
    pmem::Persister persister(database->pool().medium());
    const std::uint8_t bits[] = {bits_a, bits_b};
    Status s = rows().grant(bits, range, persister);
    persister.fence("extent-zero/1");
    return s;
  }
};

}  // namespace

TEST_CASE("rows are granted once, side by side, and exist from then on", "[engine]") {
  Store store;
  CHECK_FALSE(store.rows().exists(0));
  CHECK(store.rows().current_layout() == nullptr);
  std::set<std::uint32_t> granted;
  std::size_t wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    engine::RowRange range;
    REQUIRE(store.grant(32, 1, range).ok());
    wrong += range.next < range.end ? 0 : 1;
    for (std::uint32_t row = range.next; row < range.end; ++row) {
      wrong += granted.insert(row).second ? 0 : 1;
      wrong += store.rows().exists(row) && &store.rows().layout(row) == range.layout ? 0 : 1;
      const mvcc::VersionLayout& version = store.rows().version(row);
      wrong += version.created == 0 && version.deleted == 0 ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(store.rows().rows_end() == *granted.rbegin() + 1);
  CHECK_FALSE(store.rows().exists(~0u));
}

TEST_CASE("rows lie apart, and within a line if they fit into one", "[engine]") {
  Store store;
  std::set<const std::byte*> places;
  engine::RowRange range;
  for (int i = 0; i < 300; ++i) {
    REQUIRE(store.grant(32, 1, range).ok());
    for (std::uint32_t row = range.next; row < range.end; ++row) {
      const std::byte* address = store.rows().address(row);
      const auto offset = reinterpret_cast<std::uintptr_t>(address) % 64;
      CHECK(offset + std::min(64u, range.layout->row_bytes()) <= 64);
      CHECK(places.insert(address).second);
    }
  }
}

TEST_CASE("a wider cell begins a new chunk, and widths never shrink", "[engine]") {
  Store store;
  engine::RowRange narrow;
  REQUIRE(store.grant(32, 1, narrow).ok());
  engine::RowRange wide;
  REQUIRE(store.grant(64, 1, wide).ok());
  CHECK(wide.layout != narrow.layout);
  CHECK(wide.layout->bits(0) == 64);
  CHECK(wide.layout->bits(1) >= narrow.layout->bits(1));
  engine::RowRange after;
  REQUIRE(store.grant(32, 1, after).ok());
  CHECK(after.layout == wide.layout);
  CHECK(store.rows().chunk_count() == 2);
}

TEST_CASE("previous versions are remembered and forgotten", "[engine]") {
  Store store;
  engine::RowRange range;
  REQUIRE(store.grant(32, 1, range).ok());
  CHECK(store.rows().previous(range.next) == engine::kNoRow);
  store.rows().forget_previous(range.next);
  store.rows().set_previous(range.next, 0);
  store.rows().set_previous(range.next + 1, 4000000000u);
  CHECK(store.rows().previous(range.next) == 0);
  CHECK(store.rows().previous(range.next + 1) == 4000000000u);
  CHECK(store.rows().previous(range.next + 2) == engine::kNoRow);
  store.rows().forget_previous(range.next);
  CHECK(store.rows().previous(range.next) == engine::kNoRow);
  CHECK(store.rows().dram_bytes() > 0);
}

TEST_CASE("opening finds where unused rows begin", "[engine]") {
  Store store;
  Transaction t = must(store.database->begin(AccessMode::kReadWrite));
  for (int i = 0; i < 5000; ++i) must(t.insert(store.id, {Value::int64(i), Value::int32(i % 700)}));
  must(t.commit());
  const std::size_t chunks = store.rows().chunk_count();
  CHECK(chunks > 1);
  store.database.reopen();
  CHECK(store.rows().chunk_count() == chunks);
  std::size_t rows = 0;
  for (std::uint32_t row = 0; row < store.rows().rows_end(); ++row)
    rows += store.rows().version(row).created != 0 ? 1 : 0;
  CHECK(rows == 5000);
  CHECK(store.rows().version(store.rows().rows_end() - 1).created != 0);
}

// A slot that has seen the last time-stamp believes that it knows of all chunks emptied until then.
TEST_CASE("chunks that two threads empty are emptied in the order of their time-stamps",
          "[engine]") {
  Store store;
  engine::RowStore& rows = store.rows();
  engine::RowRange ranges[2];
  REQUIRE(store.grant(32, 1, ranges[0]).ok());
  REQUIRE(store.grant(64, 1, ranges[1]).ok());
  rows.close_tail();
  REQUIRE(rows.full_chunks() == 2);
  pmem::Persister persister(store.database->pool().medium());
  pmem::Persister of_other(store.database->pool().medium());
  const pmem::Extent extent = must(rows.make_chunk(0, *rows.current_layout(), persister));
  const pmem::Extent of_second = must(rows.make_chunk(1, *rows.current_layout(), of_other));
  rows.freeze(0);
  rows.freeze(1);
  std::atomic<std::uint64_t> clock{1};
  std::atomic<bool> is_replaced{false};
  Status status_of_other;
  std::thread other;
  {
    const engine::RowStore::Move move(rows, 0);
    // Behind its time-stamp, this thread gives the other one every chance to overtake it.
    const auto slow = [&] {
      const std::uint64_t now = ++clock;
      other = std::thread([&] {
        const engine::RowStore::Move move_of_other(rows, 1);
        status_of_other = rows.replace_chunk(1, of_second, [&] { return ++clock; }, of_other);
        is_replaced = true;
      });
      for (int i = 0; i < 100 && !is_replaced; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return now;
    };
    must(rows.replace_chunk(0, extent, slow, persister));
  }
  other.join();
  must(status_of_other);
  CHECK(rows.emptied_at(ranges[0].next) == 2);
  CHECK(rows.emptied_at(ranges[1].next) == 3);
  CHECK(rows.last_emptied_at() == 3);
  rows.release_replaced();
}

// A merge closes the tail after it has changed a column. A writer may have been faster.
TEST_CASE("a chunk that was begun after a column changed is filled", "[engine]") {
  Store store;
  engine::RowStore& rows = store.rows();
  engine::RowRange range;
  REQUIRE(store.grant(32, 1, range).ok());
  must(store.table().column_reclaim().rewrite_column(1));
  CHECK(rows.rows_ahead() == 0);

  SECTION("the writer is faster") {
    REQUIRE(store.grant(32, 32, range).ok());
    const std::uint64_t ahead = rows.rows_ahead();
    CHECK(ahead > 0);
    rows.close_former_tail();
    CHECK(rows.rows_ahead() == ahead);
    engine::RowRange next;
    REQUIRE(store.grant(32, 32, next).ok());
    CHECK(next.next == range.end);
  }
  SECTION("the merge is faster") {
    rows.close_former_tail();
    CHECK(rows.full_chunks() == 1);
    engine::RowRange next;
    REQUIRE(store.grant(32, 32, next).ok());
    CHECK(rows.chunk_of(next.next) == 1);
  }
}

TEST_CASE("the store grows until the pool is full and goes on after that", "[engine]") {
  Store store;
  engine::RowRange range;
  Status status;
  std::uint64_t rows = 0;
  while (status.ok()) {
    status = store.grant(64, 32, range);
    rows += status.ok() ? range.end - range.next : 0;
  }
  CHECK(status.code() == StatusCode::kOutOfSpace);
  CHECK(rows > 500000);
  CHECK(store.grant(64, 32, range).code() == StatusCode::kOutOfSpace);
  must(store.database->drop_table(store.id));
  TableSchema schema("u");
  schema.column("a", Type::kInt64).direct().not_null().column("b", Type::kInt32);
  store.id = must(store.database->create_table(schema));
  CHECK(store.grant(64, 32, range).ok());
}

}  // namespace flugs::test
