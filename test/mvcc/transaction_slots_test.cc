#include "mvcc/transaction_slots.h"

#include <catch2/catch.hpp>
#include <vector>

#include "test/support/test_slots.h"

namespace flugs::test {
namespace {

using Counts = mvcc::TransactionSlots::LoadCounts;

mvcc::SlotArrayLayout& array_of(TestSlots& slots) {
  return *slots.pool().at(pmem::OffsetPtr<mvcc::SlotArrayLayout>{slots.root()});
}

}  // namespace

TEST_CASE("all slots can be taken and no more", "[mvcc]") {
  TestSlots slots(3);
  std::vector<mvcc::Slot*> taken;
  while (mvcc::Slot* slot = slots->acquire()) taken.push_back(slot);
  CHECK(taken.size() == 3);
  CHECK(slots->taken() == 3);
  slots->release(*taken[1]);
  CHECK(slots->acquire() == taken[1]);
  for (mvcc::Slot* slot : taken) slots->release(*slot);
  CHECK(slots->taken() == 0);
}

TEST_CASE("the oldest snapshot is that of the oldest open transaction", "[mvcc]") {
  TestSlots slots(3);
  const std::uint64_t start = slots->now();
  CHECK(slots->oldest_snapshot() == start);
  mvcc::Slot& first = *slots->acquire();
  CHECK(slots->begin_snapshot(first) == start);
  slots->advance();
  mvcc::Slot& second = *slots->acquire();
  CHECK(slots->begin_snapshot(second) == start + 1);
  CHECK(slots->oldest_snapshot() == start);
  slots->release(first);
  CHECK(slots->oldest_snapshot() == start + 1);
  slots->end_snapshot(second);
  slots->advance();
  CHECK(slots->oldest_snapshot() == start + 2);
  slots->release(second);
}

TEST_CASE("threads share the oldest snapshot that one of them found, for a while", "[mvcc]") {
  TestSlots slots(2);
  for (int i = 0; i < 1000; ++i) slots->advance();
  std::uint64_t mine = 0;
  std::uint64_t others = 0;
  const std::uint64_t found = slots->shared_oldest_snapshot(others);
  CHECK(found == slots->now());
  CHECK(others == found);
  for (int i = 0; i < 200; ++i) slots->advance();
  CHECK(slots->shared_oldest_snapshot(mine) == found);  // 200 ago, and mine 1200 ago
  CHECK(mine == found);
  for (int i = 0; i < 100; ++i) slots->advance();
  CHECK(slots->shared_oldest_snapshot(mine) == slots->now());  // no thread has looked since
  // An open transaction holds it back, even if it was found before.
  mvcc::Slot& open = *slots->acquire();
  const std::uint64_t snapshot = slots->begin_snapshot(open);
  for (int i = 0; i < 1000; ++i) slots->advance();
  CHECK(slots->shared_oldest_snapshot(others) == snapshot);
  slots->release(open);
  mine = 0;
  CHECK(slots->shared_oldest_snapshot(mine) == snapshot);
  mine = slots->now();
  for (int i = 0; i < 10; ++i) slots->advance();
  CHECK(slots->shared_oldest_snapshot(mine) == slots->now());
}

TEST_CASE("time-stamps and generations are not given out twice, also not after reopening",
          "[mvcc]") {
  TestSlots slots(2);
  mvcc::Slot* slot = slots->acquire();
  std::uint64_t last = 0;
  mvcc::Stamp tag = 0;
  for (int i = 0; i < 10; ++i) {
    slots.begin(*slot);
    tag = slot->tag();
    last = *slots.commit(*slot, {slots.insert(*slot, 1)});
  }
  slots->release(*slot);
  const std::uint32_t index = slot->index();
  for (int opened = 0; opened < 3; ++opened) {
    Counts counts;
    REQUIRE(slots.reopen(2, counts).ok());
    CHECK(slots->now() >= last);
    mvcc::Slot* again = slots->acquire();
    if (again->index() != index) again = slots->acquire();
    slots.begin(*again);
    CHECK(mvcc::generation_of(again->tag()) > mvcc::generation_of(tag));
    CHECK(*slots.commit(*again, {slots.insert(*again, 1)}) > last);
    last = slots->now();
    tag = again->tag();
    slots->release(*again);
  }
}

TEST_CASE("a new process shows no state of a slot's former transactions", "[mvcc]") {
  TestSlots slots(1);
  // A crash may leave a tag of generation 0 of a slot that was not used since.
  slots.row(7).created = mvcc::make_tag(0, 0);
  Counts counts;
  REQUIRE(slots.reopen(1, counts).ok());
  const mvcc::Visibility now(slots->mirrors(), slots->now(), 0);
  CHECK(now.resolve(slots.row(7).created).fate == mvcc::Visibility::Fate::kNothing);
  CHECK_FALSE(now.sees(slots.row(7)));
}

// The half keeps the former transaction's time-stamp until the next one commits: the state of one
// transaction and the time-stamp of another must never appear together.
TEST_CASE("begin_writing changes the state of one half only", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  const std::uint64_t generation = mvcc::generation_of(slot.tag());
  const std::uint64_t first = *slots.commit(slot, {slots.insert(slot, 1)});
  slots.begin(slot);
  slots.commit(slot, {slots.insert(slot, 2)}).value();
  slots.begin(slot);
  const mvcc::SlotMirror::Half& half = slots->mirrors()[0].half[generation & 1];
  CHECK(half.state.load() == mvcc::SlotMirror::pack(generation + 2, mvcc::SlotState::kActive));
  CHECK(half.timestamp.load() == first);
  mvcc::Commit(*slots).undo(slot, {});
  slots->release(slot);
}

TEST_CASE("the slot array grows and keeps its limits", "[mvcc]") {
  TestSlots slots(2);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  const std::uint64_t last = *slots.commit(slot, {slots.insert(slot, 1)});
  const std::uint64_t generation = mvcc::generation_of(slot.tag());
  slots->release(slot);
  const std::uint64_t before = slots.root();
  Counts counts;
  REQUIRE(slots.reopen(100, counts).ok());
  CHECK(slots.root() != before);
  CHECK(slots->slot_count() == 100);
  CHECK(slots->now() >= last);
  mvcc::Slot& fresh = *slots->acquire();
  slots.begin(fresh);
  CHECK(mvcc::generation_of(fresh.tag()) > generation);
  mvcc::Commit(*slots).undo(fresh, {});
  slots->release(fresh);
  // Fewer slots may be used; the array stays.
  REQUIRE(slots.reopen(1, counts).ok());
  CHECK(slots->slot_count() == 1);
  REQUIRE(slots.reopen(100, counts).ok());
  CHECK(slots->slot_count() == 100);
}

namespace {

constexpr std::uint32_t kMany = 500;
// Intents in the halves themselves, plus the count of those in a block.
constexpr std::uint64_t kFew = 2 * std::uint64_t{mvcc::SlotHalfLayout::kInlineIntents};

void commit_many(TestSlots& slots, mvcc::Slot& slot) {
  slots.begin(slot);
  std::vector<mvcc::Write> writes;
  for (std::uint32_t i = 0; i < kMany; ++i) writes.push_back(slots.insert(slot, i));
  slots.commit(slot, writes).value();
}

bool sees_many(TestSlots& slots) {
  const mvcc::Visibility now(slots->mirrors(), slots->now(), 0);
  for (std::uint32_t i = 0; i < kMany; ++i)
    if (!now.sees(slots.row(i))) return false;
  return true;
}

}  // namespace

TEST_CASE("opening examines the intents of a large transaction at most once", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  Counts counts;
  commit_many(slots, slot);
  SECTION("never when the database was closed") {
    slots->release(slot);
    REQUIRE(slots.reopen(1, counts).ok());
    CHECK(counts.intents <= kFew);
  }
  SECTION("once when the process was killed") {
    // As if it had been killed before it stamped the last of its rows.
    slots.row(kMany - 1).created = mvcc::make_tag(0, mvcc::generation_of(slot.tag()) - 1);
    slots->release(slot);
    REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
    CHECK(counts.intents == kMany);
    CHECK(counts.completed == 1);
    CHECK(sees_many(slots));
    REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
    CHECK(counts.intents <= kFew);
  }
  SECTION("never when the slot's next transaction committed before the process was killed") {
    slots.begin(slot);
    slots.commit(slot, {slots.insert(slot, kMany)}).value();
    slots->release(slot);
    REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
    CHECK(counts.intents <= kFew);
  }
  SECTION("once when the next one, as large, had not committed") {
    // Its intents are in the half of the transaction before the last one.
    slots.begin(slot);
    slots.commit(slot, {slots.insert(slot, kMany)}).value();
    slots.begin(slot);
    std::vector<mvcc::Write> deletions;
    for (std::uint32_t i = 0; i < kMany; ++i) {
      slots.row(i).deleted = slot.tag();
      deletions.push_back(slots.deletion(i));
    }
    const auto refused = mvcc::Commit(*slots).run(
        slot, deletions, 0, [](pmem::Persister&) {}, [] {}, [](std::uint64_t) { return false; });
    CHECK(refused.code() == StatusCode::kConflict);
    slots->release(slot);
    REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
    CHECK(counts.intents >= kMany);
    CHECK(counts.undone == 1);
    CHECK(sees_many(slots));
    REQUIRE(slots.reopen(1, counts, TestSlots::End::kKilled).ok());
    CHECK(counts.intents <= kFew);
  }
  CHECK(sees_many(slots));
}

TEST_CASE("a damaged slot array is reported", "[mvcc]") {
  TestSlots slots(2);
  SECTION("magic") { array_of(slots).magic ^= 1; }
  SECTION("checksum") { array_of(slots).slot_count = 3; }
  SECTION("pointer outside the pool") { slots.root() = std::uint64_t{1} << 40; }
  SECTION("pointer not aligned") { slots.root() += 8; }
  SECTION("an offset that names no intent block") {
    auto* halves = slots.pool().at(
        pmem::OffsetPtr<mvcc::SlotHalfLayout>{slots.root() + sizeof(mvcc::SlotArrayLayout) + 64});
    halves[0].overflow = slots.root();
  }
  Counts counts;
  const Status status = slots.reopen(2, counts);
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().size() > 40);
}

}  // namespace flugs::test
