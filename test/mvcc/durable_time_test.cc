// Snapshots of what is durable, on a medium whose device the test moves on.
#include "mvcc/durable_time.h"

#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "test/support/temporary_database.h"
#include "test/support/test_slots.h"

namespace flugs::test {
namespace {

/// A journal that is durable up to where the test says.
class StandingJournal final : public pmem::LineJournal {
 public:
  pmem::JournalPlace append(std::span<const pmem::LineRun>) noexcept override { return 0; }
  Status wait_durable(pmem::JournalPlace) override { return {}; }
  Status wait_all_durable() override { return {}; }
  bool is_durable(pmem::JournalPlace place) const noexcept override { return place <= at; }
  pmem::JournalPlace durable() const noexcept override { return at; }
  Status want_durable(pmem::JournalPlace, std::chrono::microseconds) override { return {}; }
  bool outlives_process() const noexcept override { return false; }
  void when_durable(pmem::JournalPlace, std::function<void(const Status&)>) override {}
  pmem::JournalPlace end() const noexcept override { return at; }
  pmem::JournalCounters counters() const noexcept override { return {}; }
  Status check_writable(std::uint64_t) override { return {}; }

  pmem::JournalPlace at = 0;
};

struct StandingDevice {
  StandingDevice() { time.connect(&journal, mirrors, 10); }
  void commit(std::size_t slot, std::uint64_t timestamp, pmem::JournalPlace end) {
    time.note(mirrors[slot], groups[slot], timestamp, end);
  }
  void set(std::size_t slot, std::size_t half, mvcc::SlotState state, std::uint64_t timestamp) {
    mirrors[slot].half[half].timestamp = timestamp;
    mirrors[slot].half[half].state = mvcc::SlotMirror::pack(2 + half, state);
  }

  StandingJournal journal;
  std::vector<mvcc::SlotMirror> mirrors{3};
  std::uint32_t groups[3] = {};
  mvcc::DurableTime time;
};

}  // namespace

TEST_CASE("commits that are not durable hold the durable time back", "[mvcc]") {
  StandingDevice device;
  CHECK(device.time.look(20) == 20);
  device.commit(1, 15, 100);
  device.commit(2, 14, 120);
  device.commit(1, 16, 200);
  device.commit(1, 17, 300);
  CHECK(device.time.look(20) == 13);
  device.journal.at = 119;
  CHECK(device.time.look(20) == 13);
  device.journal.at = 120;
  CHECK(device.time.look(20) == 15);
  device.journal.at = 200;
  CHECK(device.time.look(20) == 15);  // 16 is in one group with 17
  device.journal.at = 300;
  CHECK(device.time.look(20) == 20);
}

TEST_CASE("commits without end do not hold the durable time back for ever", "[mvcc]") {
  StandingDevice device;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    device.commit(0, 100 + i, i * 10);
    if (i > 30) device.journal.at = (i - 30) * 10;  // there are always 30 behind
    const std::uint64_t found = device.time.look(100 + i);
    CHECK(found < 100 + i);  // nothing that is not durable
    CHECK(found <= 100 + (i > 30 ? i - 30 : 0));
    if (i > 100) CHECK(found >= 100 + i - 63);  // two groups of at most 31, and one more
  }
}

TEST_CASE("a commit that has no time-stamp yet holds the durable time back", "[mvcc]") {
  using mvcc::SlotState;
  StandingDevice device;
  device.set(1, 0, SlotState::kCommitting, 18);
  CHECK(device.time.look(20) == 17);
  device.set(1, 0, SlotState::kCommitting, 30);
  CHECK(device.time.look(20) == 20);
  device.set(1, 0, SlotState::kCommitting, 0);
  device.mirrors[1].snapshot = 12;
  CHECK(device.time.look(20) == 12);
  device.mirrors[1].snapshot = mvcc::SlotMirror::kNoSnapshot;  // it has ended meanwhile
  CHECK(device.time.look(20) == 20);
  for (const SlotState state : {SlotState::kActive, SlotState::kCommitted, SlotState::kAborted}) {
    device.set(1, 0, state, 18);
    CHECK(device.time.look(20) == 20);
  }
  device.set(1, 1, SlotState::kCommitting, 18);
  CHECK(device.time.look(20) == 17);
}

TEST_CASE("the floor of durable snapshots only rises", "[mvcc]") {
  StandingDevice device;
  CHECK(device.time.floor() == 10);
  CHECK(device.time.raise_floor(20) == 20);
  device.commit(0, 15, 100);
  CHECK(device.time.look(30) == 14);
  CHECK(device.time.raise_floor(30) == 20);
  CHECK(device.time.floor() == 20);
}

TEST_CASE("without a journal a durable snapshot is like any other", "[mvcc]") {
  TestSlots slots(2);
  mvcc::Slot& slot = *slots->acquire();
  for (int i = 0; i < 5; ++i) slots->advance();
  CHECK(slots->begin_durable_snapshot(slot) == slots->now());
  slots->advance();
  CHECK(slots->durable_now(slot) == slots->now());
  CHECK(slots->oldest_snapshot() == slots->now() - 1);
  slots->release(slot);
}

TEST_CASE("no durable snapshot is below the floor", "[mvcc]") {
  const TemporaryPath path("/var/tmp");
  TestSlots slots(3, path.string());
  if (slots.pool().medium().journal() == nullptr) return;
  mvcc::Slot& reader = *slots->acquire();
  for (int i = 0; i < 5; ++i) slots->advance();
  const std::uint64_t floor = slots->oldest_snapshot();
  // As if a commit had been found late.
  mvcc::SlotMirror::Half& half = slots->mirrors()[reader.index() == 0 ? 1 : 0].half[0];
  half.timestamp = 1;
  half.state = mvcc::SlotMirror::pack(2, mvcc::SlotState::kCommitting);
  CHECK(slots->begin_durable_snapshot(reader) == floor);
  CHECK(slots->durable_now(reader) == floor);
  slots->release(reader);
}

TEST_CASE("what a durable snapshot may see is not collected, also before it begins", "[mvcc]") {
  const TemporaryPath path("/var/tmp");
  TestSlots slots(2, path.string());
  if (slots.pool().medium().journal() == nullptr) return;  // /var/tmp is memory here
  mvcc::Slot& writer = *slots->acquire();
  mvcc::Slot& reader = *slots->acquire();
  slots.begin(writer);
  const std::uint64_t first = *slots.commit(writer, {slots.insert(writer, 1)});
  slots.begin(writer);
  const std::uint64_t second = *slots.commit(writer, {slots.insert(writer, 2)}, pmem::kSometime);
  slots.begin(writer);
  const std::uint64_t third = *slots.commit(writer, {slots.insert(writer, 3)}, pmem::kSometime);
  slots->end_snapshot(writer);
  CHECK(slots->oldest_snapshot() == first);
  CHECK(slots->begin_durable_snapshot(reader) == first);
  const mvcc::Visibility visibility(slots->mirrors(), first, mvcc::kNoStamp);
  CHECK(visibility.sees(slots.row(1)));
  CHECK_FALSE(visibility.sees(slots.row(2)));
  slots->catch_up(third);
  CHECK(slots->durable_now(reader) == third);
  CHECK(slots->oldest_snapshot() == first);  // the reader has the former snapshot
  slots->end_snapshot(reader);
  CHECK(slots->oldest_snapshot() == third);
  CHECK(slots->begin_durable_snapshot(reader) == third);
  CHECK(second < third);
  slots->release(reader);
  slots->release(writer);
}

}  // namespace flugs::test
