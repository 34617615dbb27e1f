#include "mvcc/commit.h"

#include <catch2/catch.hpp>
#include <vector>

#include "test/support/test_slots.h"

namespace flugs::test {
namespace {

using mvcc::Commit;
using Lock = mvcc::Commit::Lock;
using Counts = mvcc::TransactionSlots::LoadCounts;

// Counts calls of flush and fence as the pool's medium sees them.
std::uint64_t fences(TestSlots& slots) { return slots.pool().medium().counters().fences; }

}  // namespace

TEST_CASE("a commit stamps its own writes and no others", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  const std::uint64_t first = *slots.commit(slot, {slots.insert(slot, 1), slots.insert(slot, 2)});
  CHECK(slots.row(1).created == first);
  CHECK(slots.row(2).created == first);
  CHECK(slots.row(1).deleted == 0);
  const mvcc::Visibility later = slots.begin(slot);
  CHECK(later.sees(slots.row(1)));
  REQUIRE(Commit::lock(slots.row(1), later) == Lock::kLocked);
  const std::uint64_t second = *slots.commit(slot, {slots.deletion(1), slots.insert(slot, 3)});
  CHECK(second > first);
  CHECK(slots.row(1).created == first);
  CHECK(slots.row(1).deleted == second);
  CHECK(slots.row(2).deleted == 0);
  CHECK(slots.row(3).created == second);
  slots->release(slot);
}

TEST_CASE("undoing takes tags and locks back", "[mvcc]") {
  TestSlots slots(2);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  slots.commit(slot, {slots.insert(slot, 1)}).value();
  const mvcc::Visibility mine = slots.begin(slot);
  const mvcc::Stamp tag = slot.tag();
  REQUIRE(Commit::lock(slots.row(1), mine) == Lock::kLocked);
  const std::vector<mvcc::Write> writes = {slots.insert(slot, 2), slots.deletion(1)};
  CHECK(slots.row(1).deleted == tag);
  Commit(*slots).undo(slot, writes);
  CHECK(slots.row(1).deleted == 0);
  CHECK(slots.row(2).created == 0);
  CHECK(slot.tag() != tag);
  CHECK(mvcc::generation_of(slot.tag()) % 2 == mvcc::generation_of(tag) % 2);
  slots->release(slot);
}

TEST_CASE("the first to lock a row wins", "[mvcc]") {
  TestSlots slots(3);
  mvcc::Slot& a = *slots->acquire();
  mvcc::Slot& b = *slots->acquire();
  slots.begin(a);
  slots.commit(a, {slots.insert(a, 1)}).value();
  const mvcc::Visibility first = slots.begin(a);
  const mvcc::Visibility second = slots.begin(b);
  CHECK(Commit::lock(slots.row(1), first) == Lock::kLocked);
  CHECK(Commit::lock(slots.row(1), first) == Lock::kDeletedBySelf);
  CHECK(Commit::lock(slots.row(1), second) == Lock::kConflict);
  SECTION("until it aborts") {
    Commit(*slots).undo(a, {slots.deletion(1)});
    CHECK(Commit::lock(slots.row(1), second) == Lock::kLocked);
    Commit(*slots).undo(b, {slots.deletion(1)});
  }
  SECTION("for good when it commits") {
    slots.commit(a, {slots.deletion(1)}).value();
    CHECK(Commit::lock(slots.row(1), second) == Lock::kConflict);
    Commit(*slots).undo(b, {});
  }
  slots->release(a);
  slots->release(b);
}

TEST_CASE("a lock that a crash left behind locks nothing", "[mvcc]") {
  TestSlots slots(2);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  slots.commit(slot, {slots.insert(slot, 1)}).value();
  const mvcc::Visibility crashed = slots.begin(slot);
  REQUIRE(Commit::lock(slots.row(1), crashed) == Lock::kLocked);
  Counts counts;
  REQUIRE(slots.reopen(2, counts).ok());
  CHECK(mvcc::is_tag(slots.row(1).deleted));  // it is still there
  mvcc::Slot& other = *slots->acquire();
  const mvcc::Visibility now = slots.begin(other);
  CHECK(now.sees(slots.row(1)));
  CHECK(Commit::lock(slots.row(1), now) == Lock::kLocked);
  CHECK(slots.commit(other, {slots.deletion(1)}).ok());
  slots->release(other);
}

TEST_CASE("opening stamps committed rows without stamps", "[mvcc]") {
  for (const std::uint32_t rows : {1u, 4u, 5u, 7u, 300u}) {
    INFO(rows << " rows");
    TestSlots slots(2);
    mvcc::Slot& slot = *slots->acquire();
    slots.begin(slot);
    const mvcc::Stamp tag = slot.tag();
    std::vector<mvcc::Write> writes;
    for (std::uint32_t row = 0; row < rows; ++row) writes.push_back(slots.insert(slot, row));
    const std::uint64_t timestamp = *slots.commit(slot, writes);
    // As if the power had been cut before the stamps reached the medium; one row was reused since.
    for (std::uint32_t row = 0; row < rows; ++row) slots.row(row).created = tag;
    slots.row(900).created = mvcc::make_tag(slot.index(), mvcc::generation_of(tag) + 1);
    slots->release(slot);
    for (int opened = 0; opened < 2; ++opened) {
      Counts counts;
      REQUIRE(slots.reopen(2, counts, TestSlots::End::kKilled).ok());
      std::size_t wrong = 0;
      for (std::uint32_t row = 0; row < rows; ++row)
        wrong += slots.row(row).created == timestamp ? 0 : 1;
      CHECK(wrong == 0);
      const mvcc::Visibility now(slots->mirrors(), slots->now(), 0);
      CHECK_FALSE(now.sees(slots.row(900)));
    }
  }
}

TEST_CASE("a torn commit record is no commit", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  const mvcc::Stamp tag = slot.tag();
  const std::uint64_t timestamp = *slots.commit(slot, {slots.insert(slot, 1)});
  slots->release(slot);
  auto* halves = slots.pool().at(
      pmem::OffsetPtr<mvcc::SlotHalfLayout>{slots.root() + sizeof(mvcc::SlotArrayLayout) + 64});
  mvcc::SlotHalfLayout& half = halves[mvcc::generation_of(tag) & 1];
  REQUIRE(Commit::is_committed(0, half));
  CHECK_FALSE(Commit::is_committed(1, half));
  SECTION("without its check") { half.commit_check ^= 1; }
  SECTION("without its time-stamp") { half.commit_timestamp = 0; }
  SECTION("with the generation of another") { half.commit_generation += 2; }
  slots.row(1).created = tag;
  Counts counts;
  REQUIRE(slots.reopen(1, counts).ok());
  const mvcc::Visibility now(slots->mirrors(), slots->now(), 0);
  CHECK_FALSE(now.sees(slots.row(1)));
  CHECK(counts.completed == 0);
  if (half.commit_timestamp != 0) CHECK(slots->now() >= timestamp);  // never given out again
}

TEST_CASE("a commit of any number of rows takes two fences", "[mvcc]") {
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  for (const std::uint32_t rows : {1u, 4u, 5u, 64u, 65u, 500u}) {
    // The first two commits of this many rows make room for their intents.
    for (int i = 0; i < 3; ++i) {
      slots.begin(slot);
      std::vector<mvcc::Write> writes;
      for (std::uint32_t row = 0; row < rows; ++row) writes.push_back(slots.insert(slot, row));
      const std::uint64_t before = fences(slots);
      slots.commit(slot, writes).value();
      INFO(rows << " rows, commit " << i);
      if (i == 2) CHECK(fences(slots) - before == 2);
    }
  }
  slots->release(slot);
}

TEST_CASE("a reader sees nothing of a commit before its second fence", "[mvcc]") {
  TestSlots slots(2);
  struct Watch final : pmem::PersistObserver {
    TestSlots* slots = nullptr;
    std::vector<bool> in_flight;
    void on_flush(const void*, std::size_t, pmem::Label) override {}
    void on_fence(pmem::Label) override {
      const mvcc::Visibility now((*slots)->mirrors(), (*slots)->now() - 1, 0);
      const auto fate = now.resolve(slots->row(1).created).fate;
      in_flight.push_back(fate == mvcc::Visibility::Fate::kInFlight &&
                          !now.happened(slots->row(1).created));
    }
  } watch;
  watch.slots = &slots;
  mvcc::Slot& slot = *slots->acquire();
  slots.begin(slot);
  const std::vector<mvcc::Write> writes = {slots.insert(slot, 1)};
  slots.pool().medium().set_observer(&watch);
  slots.commit(slot, writes).value();
  slots.pool().medium().set_observer(nullptr);
  CHECK(watch.in_flight == std::vector<bool>{true, true});
  slots->release(slot);
}

}  // namespace flugs::test
