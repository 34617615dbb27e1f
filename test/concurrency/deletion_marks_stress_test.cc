// Rows of a group are deleted while other threads read which rows exist.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/random.h"
#include "tables/rows/deletion_marks.h"
#include "test/support/complaint.h"

namespace flugs::engine {
namespace {

constexpr std::uint32_t kPlaces = 256;
constexpr std::size_t kWords = kPlaces / 64;
constexpr std::uint64_t kCommitting = ~std::uint64_t{0};
constexpr std::uint32_t kWriters = 2;
constexpr std::uint32_t kReaders = 2;
constexpr std::size_t kGroups = 1500 * test::kEffort;

/// A row group that consists only of the data that marks are about.
class Group {
 public:
  // As a transaction that deletes one row: its lock, the mark, the commit.
  void remove(std::uint32_t place) {
    marks_.mark(place);
    deleted_[place].store(kCommitting, std::memory_order_release);
    const std::uint64_t timestamp = clock_.fetch_add(1, std::memory_order_seq_cst) + 1;
    deleted_[place].store(timestamp, std::memory_order_release);
    marks_.note(place, timestamp);
  }
  void try_to_remove(std::uint32_t place) {
    marks_.mark(place);
    marks_.take_back(place);
  }

  // Whether each row is correctly visible or invisible.
  bool look(std::uint64_t snapshot) {
    // Rows that are in doubt later commit later.
    if (const std::shared_ptr<const SeenRows> seen = marks_.seen_from(snapshot); seen != nullptr) {
      shared_.fetch_add(1, std::memory_order_relaxed);
      if (!is_right(seen->words.data(), snapshot)) return false;
    }
    std::array<std::uint64_t, kWords> mask;
    const auto ask = [&](std::uint32_t place) {
      if (is_deleted(place, snapshot)) mask[place / 64] &= ~(std::uint64_t{1} << (place % 64));
    };
    marks_.clear_unseen(0, kPlaces, snapshot, mask.data(), ask);
    return is_right(mask.data(), snapshot);
  }
  std::size_t shared() const { return shared_.load(); }
  std::uint64_t snapshot() const { return clock_.load(std::memory_order_seq_cst); }

 private:
  bool is_right(const std::uint64_t* mask, std::uint64_t snapshot) const {
    for (std::uint32_t place = 0; place < kPlaces; ++place)
      if (((mask[place / 64] >> (place % 64) & 1) == 0) != is_deleted(place, snapshot))
        return false;
    return true;
  }
  bool is_deleted(std::uint32_t place, std::uint64_t snapshot) const {
    std::uint64_t deleted = 0;
    do deleted = deleted_[place].load(std::memory_order_acquire);
    while (deleted == kCommitting);
    return deleted != 0 && deleted <= snapshot;
  }

  DeletionMarks marks_{kPlaces};
  std::atomic<std::size_t> shared_{0};  // looks by what snapshots share
  std::atomic<std::uint64_t> clock_{1};
  std::vector<std::atomic<std::uint64_t>> deleted_ =
      std::vector<std::atomic<std::uint64_t>>(kPlaces);
};

}  // namespace

TEST_CASE("each snapshot sees exactly the rows deleted by then as deleted") {
  std::vector<std::unique_ptr<Group>> groups;
  for (std::size_t i = 0; i < kGroups; ++i) groups.push_back(std::make_unique<Group>());
  std::atomic<std::size_t> current{0};
  test::Complaint complaint;
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] {
      bench::Random random(w);
      for (std::size_t g = 0; g < kGroups && !complaint.failed(); ++g) {
        for (std::uint32_t place = w; place < kPlaces; place += kWriters) {
          if (random.between(0, 3) == 0) groups[g]->try_to_remove(place);
          if (random.between(0, 3) != 0) groups[g]->remove(place);
        }
        current.store(g + 1);
      }
      current.store(kGroups);
    });
  for (std::uint32_t r = 0; r < kReaders; ++r)
    threads.emplace_back([&, r] {
      std::size_t seen = 0;
      std::uint64_t old = 0;
      for (std::size_t g = 0; (g = current.load()) < kGroups;) {
        Group& group = *groups[g];
        if (std::exchange(seen, g) != g) old = group.snapshot();
        complaint.expect(group.look(group.snapshot()), "a new snapshot");
        // One reader keeps a snapshot from before many deletions.
        if (r == 0) complaint.expect(group.look(old), "an old snapshot");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& group : groups)
    complaint.expect(group->look(group->snapshot()), "the last snapshot");
  CHECK(complaint.what() == "");
  std::size_t shared = 0;
  for (const auto& group : groups) shared += group->shared();
  CHECK(shared > kGroups);  // not only the last look at each
}

}  // namespace flugs::engine
