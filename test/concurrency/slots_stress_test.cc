// Transaction slots between threads: who holds a slot, and what readers learn of its transactions.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/test_slots.h"

namespace flugs::test {

// More threads than processors, so that some are interrupted in the middle of taking a slot, while
// others take it from them and keep it for a while.
TEST_CASE("a slot is never held by two transactions at once", "[mvcc]") {
  constexpr std::uint32_t kSlots = 2;
  TestSlots slots(kSlots);
  Complaint complaint;
  std::vector<std::atomic<int>> held(kSlots);
  std::atomic<std::uint64_t> acquired{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t)
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed) && !complaint.failed()) {
        mvcc::Slot* slot = slots->acquire();
        if (slot == nullptr) continue;
        acquired.fetch_add(1, std::memory_order_relaxed);
        complaint.expect(held[slot->index()].fetch_add(1) == 0, "two hold one slot");
        for (int i = 0; i < 2000; ++i) __builtin_ia32_pause();
        complaint.expect(held[slot->index()].fetch_sub(1) == 1, "two held one slot");
        slots->release(*slot);
      }
    });
  std::this_thread::sleep_for(std::chrono::seconds(3));
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  CHECK(acquired > 1000);
  CHECK(slots->taken() == 0);
}

TEST_CASE("other threads may take slots of idle threads", "[mvcc]") {
  constexpr std::uint32_t kSlots = 4;
  TestSlots slots(kSlots);
  std::vector<mvcc::Slot*> mine;
  for (std::uint32_t i = 0; i < kSlots; ++i) mine.push_back(slots->acquire());
  CHECK(std::count(mine.begin(), mine.end(), nullptr) == 0);
  CHECK(slots->acquire() == nullptr);
  CHECK(slots->taken() == kSlots);
  for (mvcc::Slot* slot : mine) slots->release(*slot);
  std::uint32_t got = 0;
  std::thread other([&] {
    std::vector<mvcc::Slot*> theirs;
    while (mvcc::Slot* slot = slots->acquire()) theirs.push_back(slot);
    got = static_cast<std::uint32_t>(theirs.size());
    for (mvcc::Slot* slot : theirs) slots->release(*slot);
  });
  other.join();
  CHECK(got == kSlots);
  CHECK(slots->taken() == 0);
}

TEST_CASE("a transaction that ends in another thread frees its slot", "[mvcc]") {
  TestSlots slots(1);
  for (int i = 0; i < 100; ++i) {
    mvcc::Slot* slot = slots->acquire();
    REQUIRE(slot != nullptr);
    REQUIRE(slots->acquire() == nullptr);
    std::thread other([&] { slots->release(*slot); });
    other.join();
    REQUIRE(slots->taken() == 0);
  }
}

// A slot half passes from one transaction to the next while a reader resolves a tag of the former
// one. The reader must get that one's time-stamp, or learn that the tag is stale, and nothing in
// between.
TEST_CASE("a reader never takes a reused slot for the transaction it looks for", "[mvcc]") {
  constexpr std::uint64_t kRounds = 150000 * kEffort;
  TestSlots slots(1);
  mvcc::Slot& slot = *slots->acquire();
  std::atomic<mvcc::Stamp> last_tag{0};
  std::atomic<std::uint64_t> last_timestamp{0};
  std::atomic<bool> stop{false};
  std::uint64_t resolved_count = 0;
  Complaint complaint;
  std::thread reader([&] {
    using Fate = mvcc::Visibility::Fate;
    while (!stop.load(std::memory_order_relaxed) && !complaint.failed()) {
      const std::uint64_t timestamp = last_timestamp.load(std::memory_order_acquire);
      const mvcc::Stamp stamp = last_tag.load(std::memory_order_acquire);
      // Consistent: time-stamps are stored before tags, and both only rise.
      if (timestamp == 0 || last_timestamp.load(std::memory_order_acquire) != timestamp) continue;
      const mvcc::Visibility before(slots->mirrors(), timestamp - 1, 0);
      while (last_tag.load(std::memory_order_relaxed) == stamp) {
        const auto resolved = before.resolve(stamp);
        if (resolved.fate != Fate::kCommitted) break;
        ++resolved_count;
        complaint.expect(resolved.timestamp >= timestamp,
                         "resolved to " + std::to_string(resolved.timestamp));
        complaint.expect(!before.happened(stamp), "seen by a snapshot before it");
        if (complaint.failed() || stop.load(std::memory_order_relaxed)) return;
      }
    }
  });
  for (std::uint64_t round = 0; round < kRounds && !complaint.failed(); ++round) {
    slots.begin(slot);
    const mvcc::Stamp tag = slot.tag();
    const auto timestamp = slots.commit(slot, {slots.insert(slot, 0)});
    if (round % 2 == 0)
      continue;  // the reader looks for the transaction that had one half of the
                 // slot
    last_timestamp.store(*timestamp, std::memory_order_release);
    last_tag.store(tag, std::memory_order_release);
  }
  stop.store(true);
  reader.join();
  CHECK(complaint.what() == "");
  CHECK(resolved_count > 0);
  slots->release(slot);
}

}  // namespace flugs::test
