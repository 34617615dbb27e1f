#include "mvcc/intent_blocks.h"

#include <xxhash.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/support/test_slots.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kPieceBytes = 4096;
constexpr std::uint64_t kPieceWords = (kPieceBytes - sizeof(mvcc::IntentBlockLayout)) / 8;

/// Takes all space, and gives every second piece of it back. Returns the pieces that stay.
std::vector<pmem::Extent> cut_into_pieces(TestSlots& slots) {
  pmem::ExtentAllocator& allocator = slots.pool().allocator();
  pmem::Persister persister(slots.pool().medium());
  std::vector<pmem::Extent> all;
  for (auto e = allocator.allocate(kPieceBytes, persister); e.ok();
       e = allocator.allocate(kPieceBytes, persister))
    all.push_back(*e);
  persister.fence("extent-zero/1");
  std::vector<pmem::Extent> kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % 2 == 0)
      kept.push_back(all[i]);
    else
      allocator.release(all[i]);
  return kept;
}

/// Inserts into tables that nobody has, so that each takes a word of its own, and then deletions of
/// all rows, which take 32 words.
std::vector<mvcc::Write> writes_of(TestSlots& slots, mvcc::Slot& slot, std::size_t other_words) {
  std::vector<mvcc::Write> writes;
  for (std::uint32_t i = 0; i < other_words; ++i)
    writes.push_back({&slots.row(0), 2 + i, 0, sizeof(mvcc::VersionLayout), false});
  for (std::uint32_t row = 0; row < TestSlots::kRows; ++row) {
    mvcc::store_stamp(slots.row(row).deleted, slot.tag());
    writes.push_back(slots.deletion(row));
  }
  return writes;
}

bool sees_any_row(TestSlots& slots) {
  const mvcc::Visibility now(slots->mirrors(), slots->now(), 0);
  for (std::uint32_t i = 1; i < TestSlots::kRows; ++i)
    if (now.sees(slots.row(i))) return true;
  return false;
}

void insert_rows(TestSlots& slots, mvcc::Slot& slot) {
  slots.begin(slot);
  std::vector<mvcc::Write> rows;
  for (std::uint32_t i = 0; i < TestSlots::kRows; ++i) rows.push_back(slots.insert(slot, i));
  slots.commit(slot, rows).value();
}

}  // namespace

TEST_CASE("intents lie in several blocks if no piece of the pool is as large", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  insert_rows(slots, slot);
  cut_into_pieces(slots);
  const std::uint64_t before = slots->bytes_in_pool();
  slots.begin(slot);
  // The masks of the deletions lie on both sides of a border between blocks, in one of the cases
  // with a mask in another block than its intent.
  const std::size_t other_words = 3 + 2 * kPieceWords - GENERATE(14U, 15U);
  slots.commit(slot, writes_of(slots, slot, other_words)).value();
  CHECK(slots->bytes_in_pool() >= before + 3 * kPieceBytes);
  CHECK_FALSE(sees_any_row(slots));
  // As if the process had been killed before it stamped the rows.
  const mvcc::Stamp tag = mvcc::make_tag(0, mvcc::generation_of(slot.tag()) - 1);
  for (std::uint32_t i = 0; i < TestSlots::kRows; ++i) slots.row(i).deleted = tag;
  slots->release(slot);
  mvcc::TransactionSlots::LoadCounts counts;
  REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
  CHECK(counts.completed == 1);
  CHECK(counts.intents >= other_words + TestSlots::kRows - 3);
  for (std::uint32_t i = 0; i < TestSlots::kRows; ++i)
    CHECK_FALSE(mvcc::is_tag(slots.row(i).deleted));
  CHECK_FALSE(sees_any_row(slots));
}

TEST_CASE("blocks of intents are used again, and given back for larger ones", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  insert_rows(slots, slot);
  cut_into_pieces(slots);
  const std::uint64_t free = slots.pool().allocator().free_bytes();
  const std::uint64_t before = slots->bytes_in_pool();
  for (const std::size_t pieces : {2, 2, 1, 5, 5, 4}) {
    slots.begin(slot);
    slots.commit(slot, writes_of(slots, slot, pieces * kPieceWords - 40)).value();
    CHECK(slots.pool().allocator().free_bytes() + slots->bytes_in_pool() == free + before);
  }
  slots->release(slot);
  mvcc::TransactionSlots::LoadCounts counts;
  REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
  // Five in each half, in place of the piece that held the intents of the insertions.
  CHECK(slots->bytes_in_pool() == before + (2 * 5 - 1) * kPieceBytes);
  REQUIRE(slots.reopen(8, counts).ok());  // a larger array; its slots have no blocks yet
  CHECK(slots->bytes_in_pool() < before + kPieceBytes);
}

TEST_CASE("a transaction whose intents find no room fails and takes no space", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  insert_rows(slots, slot);
  std::vector<pmem::Extent> kept = cut_into_pieces(slots);
  pmem::Persister persister(slots.pool().medium());
  while (slots.pool().allocator().free_bytes() > 2 * kPieceBytes)
    static_cast<void>(slots.pool().allocator().allocate(kPieceBytes, persister).value());
  persister.fence("extent-zero/1");
  const std::uint64_t free = slots.pool().allocator().free_bytes();
  slots.begin(slot);
  const std::vector<mvcc::Write> writes = writes_of(slots, slot, 3 * kPieceWords);
  const auto refused = slots.commit(slot, writes);
  CHECK(refused.code() == StatusCode::kOutOfSpace);
  CHECK(slots.pool().allocator().free_bytes() == free);
  mvcc::Commit(*slots).undo(slot, {});
  // With another piece it fits.
  slots.pool().allocator().release(kept.back());
  slots.pool().allocator().release(kept.front());
  slots.begin(slot);
  CHECK(slots.commit(slot, writes_of(slots, slot, 3 * kPieceWords)).ok());
  slots->release(slot);
}

TEST_CASE("a damaged chain of intent blocks is reported", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  insert_rows(slots, slot);
  cut_into_pieces(slots);
  slots.begin(slot);
  slots.commit(slot, writes_of(slots, slot, 2 * kPieceWords)).value();
  slots->release(slot);
  const auto* halves = slots.pool().at(
      pmem::OffsetPtr<mvcc::SlotHalfLayout>{slots.root() + sizeof(mvcc::SlotArrayLayout) + 64});
  const std::uint64_t first = std::max(halves[0].overflow, halves[1].overflow);
  auto* block = slots.pool().at(pmem::OffsetPtr<mvcc::IntentBlockLayout>{first});
  REQUIRE(block->next != 0);
  const auto reseal = [&] { block->checksum = XXH3_64bits(block, 24); };
  std::string words;
  SECTION("a wrong word") {
    block->next += 64;
    words = "has a damaged header";
  }
  SECTION("a chain that leads to itself") {
    block->next = first;
    reseal();
    words = "overlaps";
  }
  SECTION("a chain that leads out of the pool") {
    block->next = std::uint64_t{1} << 40;
    reseal();
    words = "lies outside the pool";
  }
  SECTION("a block without room for its header") {
    block->bytes = 8;
    reseal();
    words = "has a damaged header";
  }
  mvcc::TransactionSlots::LoadCounts counts;
  const Status status = slots.reopen(1, counts, TestSlots::End::kKilled);
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("transaction slot 0, half") != std::string::npos);
  CHECK(status.message().find(words) != std::string::npos);
}

}  // namespace flugs::test
