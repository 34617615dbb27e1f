#include "mvcc/clock.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "mvcc/visibility.h"

namespace flugs::mvcc {
namespace {

bool can_use_processors() {
  const Status status = Clock::check_processors();
  if (!status.ok()) WARN(status.message());
  return status.ok();
}

// Two threads exchange messages: one a time-stamp that it has passed, the other its snapshot.
// Returns the number of contradictions.
std::uint64_t count_wrong(Clock& clock, int rounds) {
  std::atomic<std::uint64_t> passed{0};
  std::atomic<std::uint64_t> seen{0};
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    for (std::uint64_t last = 0;;) {
      std::uint64_t told = 0;
      while ((told = passed.load(std::memory_order_acquire)) == last) {
      }
      if (told == ~std::uint64_t{0}) return;
      last = told;
      const std::uint64_t snapshot = clock.read();
      wrong += snapshot < told ? 1 : 0;  // must see what was answered
      seen.store(snapshot, std::memory_order_release);
    }
  });
  std::uint64_t too_low = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t timestamp = clock.take();
    clock.pass(timestamp);
    seen.store(0, std::memory_order_relaxed);
    passed.store(timestamp, std::memory_order_release);
    std::uint64_t snapshot = 0;
    while ((snapshot = seen.load(std::memory_order_acquire)) == 0) {
    }
    too_low += clock.take() <= snapshot ? 1 : 0;  // must not see what comes later
  }
  passed.store(~std::uint64_t{0}, std::memory_order_release);
  reader.join();
  return wrong + too_low;
}

}  // namespace

TEST_CASE("the counter counts", "[mvcc]") {
  Clock clock;
  clock.set(41);
  CHECK(clock.read() == 41);
  CHECK(clock.take() == 42);
  CHECK(clock.read() == 42);
  clock.pass(42);
  CHECK(clock.advance() == 43);
  CHECK(clock.read() == 43);
}

TEST_CASE("the processors' clock continues above earlier time-stamps", "[mvcc]") {
  if (!can_use_processors()) return;
  for (const std::uint64_t latest : {std::uint64_t{0}, std::uint64_t{1} << 61}) {
    Clock clock;
    clock.use_processors();
    clock.set(latest);
    std::uint64_t snapshot = clock.read();
    CHECK(snapshot > latest);
    CHECK(snapshot < latest + (std::uint64_t{1} << 40));
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t timestamp = clock.take();
      REQUIRE(timestamp > snapshot);
      REQUIRE(clock.read() < timestamp + (std::uint64_t{1} << 40));
      clock.pass(timestamp);
      REQUIRE(clock.read() >= timestamp);
      REQUIRE(clock.lowest() >= timestamp);
      snapshot = clock.read();
      REQUIRE(clock.latest() > snapshot);
      const std::uint64_t advanced = clock.advance();
      REQUIRE(advanced > snapshot);
      REQUIRE(clock.read() >= advanced);
      snapshot = clock.read();
    }
  }
}

TEST_CASE("a snapshot covers all commits that its thread knows, and none after it", "[mvcc]") {
  Clock counter;
  counter.set(7);
  CHECK(count_wrong(counter, 20'000) == 0);
  if (!can_use_processors()) return;
  Clock processors;
  processors.use_processors();
  processors.set(7);
  CHECK(count_wrong(processors, 20'000) == 0);
}

TEST_CASE("with the same time-stamp, transactions in lower slots come first", "[mvcc]") {
  std::vector<SlotMirror> mirrors(3);
  const auto set = [&](std::uint32_t slot, SlotState state) {
    mirrors[slot].half[0].state.store(SlotMirror::pack(4, state));
    mirrors[slot].half[0].timestamp.store(100);
  };
  set(0, SlotState::kCommitted);
  set(1, SlotState::kCommitting);
  set(2, SlotState::kCommitting);
  const Stamp own = make_tag(1, 4);
  const Visibility mine = Visibility::at_commit(mirrors, 100, own);
  const Stamp lower = make_tag(0, 4);
  const Stamp higher = make_tag(2, 4);
  CHECK(mine.happened(lower));
  CHECK_FALSE(mine.happened(higher));  // a reader would wait for it
  CHECK(mine.happened(own));
  const Stamp stamped = 100;
  CHECK(mine.happened(stamped));
  // A reader at 100 waits for both of the others, and then sees them.
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    set(2, SlotState::kCommitted);
  });
  CHECK(Visibility(mirrors, 100, own).happened(higher));
  writer.join();
}

}  // namespace flugs::mvcc
