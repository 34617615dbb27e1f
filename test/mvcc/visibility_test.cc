#include "mvcc/visibility.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "mvcc/slot_mirror.h"
#include "mvcc/stamps.h"

namespace flugs::mvcc {
namespace {

using Fate = Visibility::Fate;

// Three slots' mirrors; slot 0 is ours, with generation 8.
struct Mirrors {
  std::vector<SlotMirror> mirrors = std::vector<SlotMirror>(3);

  void set(std::uint32_t slot, std::uint64_t generation, SlotState state, std::uint64_t timestamp) {
    SlotMirror::Half& half = mirrors[slot].half[generation & 1];
    half.state.store(SlotMirror::pack(generation, state));
    half.timestamp.store(timestamp);
  }
  Visibility at(std::uint64_t snapshot) { return {mirrors, snapshot, make_tag(0, 8)}; }
};

}  // namespace

TEST_CASE("a time-stamp has happened in snapshots at or above it", "[mvcc]") {
  Mirrors m;
  const Stamp stamp = 10;
  CHECK_FALSE(m.at(9).happened(stamp));
  CHECK(m.at(10).happened(stamp));
  CHECK(m.at(11).happened(stamp));
  const Stamp never = kNoStamp;
  CHECK_FALSE(m.at(~std::uint64_t{0} >> 1).happened(never));
}

TEST_CASE("a zero-filled row is invisible", "[mvcc]") {
  Mirrors m;
  CHECK_FALSE(m.at(100).sees({0, 0}));
}

TEST_CASE("a row is seen from its creation to its deletion", "[mvcc]") {
  Mirrors m;
  const VersionLayout row{5, 9};
  CHECK_FALSE(m.at(4).sees(row));
  CHECK(m.at(5).sees(row));
  CHECK(m.at(8).sees(row));
  CHECK_FALSE(m.at(9).sees(row));
  CHECK(m.at(5).sees({5, 0}));
  CHECK_FALSE(m.at(9).sees({9, 9}));
}

TEST_CASE("a transaction sees what it created and not what it deleted", "[mvcc]") {
  Mirrors m;
  m.set(0, 8, SlotState::kActive, 0);
  const Stamp own = make_tag(0, 8);
  CHECK(m.at(10).sees({own, 0}));
  CHECK_FALSE(m.at(10).sees({own, own}));
  CHECK_FALSE(m.at(10).sees({5, own}));
  CHECK(m.at(10).resolve(own).fate == Fate::kOwn);
}

TEST_CASE("another transaction's writes have happened if it committed at or below the snapshot",
          "[mvcc]") {
  Mirrors m;
  const Stamp tag = make_tag(1, 4);
  m.set(1, 4, SlotState::kActive, 0);
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kInFlight);
  m.set(1, 4, SlotState::kAborted, 0);
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kNothing);
  // Committing above the snapshot: the reader need not wait.
  m.set(1, 4, SlotState::kCommitting, 11);
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kInFlight);
  m.set(1, 4, SlotState::kCommitted, 11);
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(11).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kCommitted);
  CHECK(m.at(10).resolve(tag).timestamp == 11);
}

TEST_CASE("a tag of a former generation means nothing", "[mvcc]") {
  Mirrors m;
  const Stamp tag = make_tag(1, 4);
  m.set(1, 6, SlotState::kCommitted, 3);  // the same half, a later transaction
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kNothing);
  m.set(1, 6, SlotState::kActive, 0);
  CHECK_FALSE(m.at(10).happened(tag));
  // The other half does not matter.
  m.set(1, 4, SlotState::kCommitted, 7);
  m.set(1, 5, SlotState::kActive, 0);
  CHECK(m.at(10).happened(tag));
}

TEST_CASE("a tag of an unused slot means nothing", "[mvcc]") {
  Mirrors m;
  const Stamp tag = make_tag(3, 1);
  CHECK_FALSE(m.at(10).happened(tag));
  CHECK(m.at(10).resolve(tag).fate == Fate::kNothing);
}

// P1 and the order of commits: if the time-stamp is at or below the snapshot, or unknown, the
// reader waits until the commit is durable, and then sees it.
TEST_CASE("a reader waits for a commit that may be below its snapshot", "[mvcc]") {
  for (const std::uint64_t known : {std::uint64_t{0}, std::uint64_t{9}}) {
    Mirrors m;
    const Stamp tag = make_tag(1, 4);
    m.set(1, 4, SlotState::kCommitting, known);
    std::atomic<bool> durable{false};
    std::atomic<bool> started{false};
    bool happened = false;
    bool was_durable = false;
    std::thread reader([&] {
      started.store(true);
      happened = m.at(10).happened(tag);
      was_durable = durable.load();
    });
    while (!started.load()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    m.mirrors[1].half[0].timestamp.store(9);
    durable.store(true);
    m.mirrors[1].half[0].state.store(SlotMirror::pack(4, SlotState::kCommitted));
    reader.join();
    CHECK(happened);
    CHECK(was_durable);
  }
}

TEST_CASE("a reader that waits is released by a stamp or a time-stamp above its snapshot",
          "[mvcc]") {
  Mirrors m;
  const Stamp tag = make_tag(1, 4);
  m.set(1, 4, SlotState::kCommitting, 0);
  bool happened = true;
  std::thread reader([&] { happened = m.at(10).happened(tag); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  m.mirrors[1].half[0].timestamp.store(11);
  reader.join();
  CHECK_FALSE(happened);
}

TEST_CASE("tags hold slot and generation apart", "[mvcc]") {
  for (const std::uint32_t slot : {0u, 1u, 127u, kSlotsMax - 1})
    for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{1}, kGenerationMax}) {
      const Stamp tag = make_tag(slot, generation);
      CHECK(is_tag(tag));
      CHECK(slot_of(tag) == slot);
      CHECK(generation_of(tag) == generation);
    }
  CHECK_FALSE(is_tag(kTimestampMax));
}

}  // namespace flugs::mvcc
