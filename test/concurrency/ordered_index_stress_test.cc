#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "columns/index/ordered_index.h"

namespace flugs::columns {
namespace {

// The key of row r is prefix_of(r), and among equal prefixes full_key_of(r). Rows divisible by four
// are stable; the others belong to the writer (r % 4 - 1).
struct Keys {
  std::uint32_t rows;
  std::uint64_t prefixes;
  bool long_keys;

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 31)) * 0x7FB5D329728EA185u;
    return (x ^ (x >> 27)) * 0x81DADEF4BC2DD44Du;
  }
  std::uint64_t prefix_of(std::uint32_t row) const { return mix(row) % prefixes; }
  std::uint32_t full_key_of(std::uint32_t row) const {
    return long_keys ? static_cast<std::uint32_t>(mix(row + 99) % 50) : 0;
  }
  OrderedEntry entry_of(std::uint32_t row) const { return {prefix_of(row), row}; }
};

class CompareKeys final : public OrderedIndexCompare {
 public:
  explicit CompareKeys(const Keys& keys) : keys_(keys) {}
  int rows(std::uint32_t a, std::uint32_t b) const override {
    const std::uint32_t x = keys_.full_key_of(a);
    const std::uint32_t y = keys_.full_key_of(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }

 private:
  const Keys& keys_;
};

bool is_stable(std::uint32_t row) { return row % 4 == 0; }

// The first error of any thread: Catch's macros belong to the main thread.
class Complaint {
 public:
  void expect(bool condition, const char* what) {
    if (condition) return;
    const std::lock_guard guard(mutex_);
    if (what_.empty()) what_ = what;
    failed_.store(true, std::memory_order_relaxed);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  std::string what() const {
    const std::lock_guard guard(mutex_);
    return what_;
  }

 private:
  mutable std::mutex mutex_;
  std::string what_;
  std::atomic<bool> failed_{false};
};

// Every stable entry between the prefixes must be seen once, and everything in order.
void scan_once(const OrderedIndex& index, const Keys& keys, std::uint64_t first, std::uint64_t last,
               const std::vector<std::uint32_t>& stable_below, std::uint32_t slow_every,
               Complaint& complaint) {
  bool has_previous = false;
  OrderedEntry previous{};
  std::uint32_t stable_seen = 0;
  std::uint32_t visits = 0;
  index.scan(
      first,
      [&](const OrderedEntry& entry) {
        return entry.prefix < first ? -1 : entry.prefix > last ? 1 : 0;
      },
      [&](const OrderedEntry& entry) {
        complaint.expect(entry.row < keys.rows && keys.prefix_of(entry.row) == entry.prefix,
                         "an entry that was never inserted");
        complaint.expect(entry.prefix >= first && entry.prefix <= last, "not in the range");
        if (has_previous) {
          const bool ascending =
              std::tuple(previous.prefix, keys.full_key_of(previous.row), previous.row) <
              std::tuple(entry.prefix, keys.full_key_of(entry.row), entry.row);
          complaint.expect(ascending, "out of order, or twice");
        }
        previous = entry;
        has_previous = true;
        stable_seen += is_stable(entry.row) ? 1 : 0;
        if (++visits % slow_every == 0) std::this_thread::yield();
        return !complaint.failed();
      });
  complaint.expect(stable_seen == stable_below[last + 1] - stable_below[first],
                   "a stable entry was not seen");
}

void write(OrderedIndex& index, const Keys& keys, std::uint32_t writer, std::uint32_t operations,
           std::vector<char>& present, Complaint& complaint) {
  std::mt19937_64 random(writer + 1);
  const std::uint32_t mine = keys.rows / 4;
  for (std::uint32_t i = 0; i < operations && !complaint.failed(); ++i) {
    // Sweeps of mostly inserts and mostly erases, so that leaves fill up and run empty.
    const bool want_insert = random() % 8 < (i / mine % 2 == 0 ? 7 : 1);
    const std::uint32_t row = static_cast<std::uint32_t>(random() % mine) * 4 + writer + 1;
    if (want_insert && present[row] == 0) {
      index.insert(keys.entry_of(row));
      present[row] = 1;
    } else if (!want_insert) {
      complaint.expect(index.erase(keys.entry_of(row)) == (present[row] != 0),
                       "erase found what is not there, or did not find what is");
      present[row] = 0;
    }
  }
}

struct Load {
  Keys keys;
  std::uint32_t writers;  // up to 3
  std::uint32_t scanners;
  std::uint32_t operations;  // of each writer
};

void stress(const Load& load) {
  const Keys& keys = load.keys;
  const CompareKeys compare(keys);
  OrderedIndex index(keys.long_keys ? &compare : nullptr);
  std::vector<std::uint32_t> stable_below(keys.prefixes + 1, 0);  // entries with a smaller prefix
  std::uint32_t stable = 0;
  for (std::uint32_t row = 0; row < keys.rows; row += 4) {
    index.insert(keys.entry_of(row));
    ++stable_below[keys.prefix_of(row) + 1];
    ++stable;
  }
  for (std::uint64_t p = 1; p <= keys.prefixes; ++p) stable_below[p] += stable_below[p - 1];

  Complaint complaint;
  std::atomic<std::uint32_t> writing{load.writers};
  std::vector<std::vector<char>> present(load.writers, std::vector<char>(keys.rows, 0));
  std::vector<std::thread> threads;
  threads.reserve(load.writers + load.scanners);
  for (std::uint32_t w = 0; w < load.writers; ++w)
    threads.emplace_back([&, w] {
      write(index, keys, w, load.operations, present[w], complaint);
      writing.fetch_sub(1);
    });
  for (std::uint32_t s = 0; s < load.scanners; ++s)
    threads.emplace_back([&, s] {
      std::mt19937_64 random(1000 + s);
      while (writing.load() > 0 && !complaint.failed()) {
        std::uint64_t first = random() % keys.prefixes;
        std::uint64_t last = random() % keys.prefixes;
        if (first > last) std::swap(first, last);
        scan_once(index, keys, first, last, stable_below, s == 0 ? 50 : 5'000, complaint);
        scan_once(index, keys, first, first, stable_below, 1'000, complaint);
      }
    });
  for (std::thread& thread : threads) thread.join();
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());

  std::size_t expected = stable;
  for (const auto& rows : present)
    for (const char is_present : rows) expected += is_present != 0 ? 1u : 0u;
  REQUIRE(index.size() == expected);
  const Status status = index.check();
  INFO(status.to_string());
  REQUIRE(status.ok());
  scan_once(index, keys, 0, keys.prefixes - 1, stable_below, 1'000'000, complaint);
  REQUIRE_FALSE(complaint.failed());
}

TEST_CASE("scans of an ordered index see every stable entry while writers are at work") {
  SECTION("the prefix is the key") { stress({{40'000, 30'000, false}, 2, 2, 150'000}); }
  SECTION("long keys and duplicates") { stress({{20'000, 10, true}, 2, 2, 60'000}); }
  SECTION("a small index with much contention") { stress({{600, 40, true}, 3, 1, 100'000}); }
  SECTION("many more threads than processors") { stress({{4'000, 100, true}, 3, 13, 20'000}); }
}

// Each writer erases the smallest of its own entries and appends at the other end: leaves and inner
// nodes are split at one edge and joined at the other, and memory is used again under the readers.
TEST_CASE("an ordered index as a queue of several writers") {
  constexpr std::uint32_t kWriters = 3;
  constexpr std::uint32_t kLive = 3'000;
  constexpr std::uint32_t kTotal = 60'000;
  OrderedIndex index(nullptr);
  Complaint complaint;
  std::atomic<std::uint32_t> writing{kWriters};
  std::vector<std::thread> threads;
  threads.reserve(kWriters);
  for (std::uint32_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] {
      for (std::uint32_t i = 0; i < kTotal && !complaint.failed(); ++i) {
        index.insert({i, i * kWriters + w});
        if (i >= kLive)
          complaint.expect(index.erase({i - kLive, (i - kLive) * kWriters + w}), "lost an entry");
      }
      writing.fetch_sub(1);
    });
  std::uint64_t scans = 0;
  while (writing.load() > 0 && !complaint.failed()) {
    std::uint64_t previous = 0;
    index.scan(
        0, [](const OrderedEntry&) { return 0; },
        [&](const OrderedEntry& entry) {
          const std::uint64_t position = entry.prefix * kWriters + entry.row % kWriters;
          complaint.expect(position + 1 > previous, "out of order");
          previous = position + 1;
          complaint.expect(entry.row / kWriters == entry.prefix, "a torn entry");
          return !complaint.failed();
        });
    ++scans;
  }
  for (std::thread& thread : threads) thread.join();
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());
  REQUIRE(scans > 0);
  REQUIRE(index.size() == std::size_t{kWriters} * kLive);
  REQUIRE(index.memory_bytes() <= std::size_t{2} << 20);
  const Status status = index.check();
  INFO(status.to_string());
  REQUIRE(status.ok());
}

// Rows come back with another key as soon as they were erased. A comparison with a key that changed
// under the index would lead a descent the wrong way for good.
class ChangingKeys final : public OrderedIndexCompare {
 public:
  explicit ChangingKeys(std::uint32_t rows) : keys_(rows) {}
  int rows(std::uint32_t a, std::uint32_t b) const override {
    const std::uint32_t x = keys_[a].load(std::memory_order_relaxed);
    const std::uint32_t y = keys_[b].load(std::memory_order_relaxed);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  void set(std::uint32_t row, std::uint32_t key) {
    keys_[row].store(key, std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<std::uint32_t>> keys_;
};

TEST_CASE("rows may be used again at once") {
  constexpr std::uint32_t kWriters = 4;
  constexpr std::uint32_t kRowsEach = 5'000;
  constexpr std::uint32_t kOperations = 100'000;
  const std::uint32_t distinct = GENERATE(3u, 1'000'000u);
  ChangingKeys keys(kWriters * kRowsEach);
  OrderedIndex index(&keys);
  Complaint complaint;
  std::atomic<std::size_t> expected{0};
  std::vector<std::thread> threads;
  threads.reserve(kWriters);
  for (std::uint32_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] {
      std::mt19937_64 random(w);
      std::vector<char> present(kRowsEach, 0);
      for (std::uint32_t i = 0; i < kOperations && !complaint.failed(); ++i) {
        const auto mine = static_cast<std::uint32_t>(random() % kRowsEach);
        const std::uint32_t row = mine * kWriters + w;
        if (present[mine] != 0) {
          complaint.expect(index.erase({7, row}), "lost an entry");
        } else {
          keys.set(row, static_cast<std::uint32_t>(random() % distinct));
          index.insert({7, row});
        }
        present[mine] ^= 1;
      }
      for (const char is_present : present) expected.fetch_add(is_present != 0 ? 1u : 0u);
    });
  for (std::thread& thread : threads) thread.join();
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());
  REQUIRE(index.size() == expected.load());
  const Status status = index.check();
  INFO(status.to_string());
  REQUIRE(status.ok());
}

}  // namespace
}  // namespace flugs::columns
