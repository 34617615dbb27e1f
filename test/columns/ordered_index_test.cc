#include "columns/index/ordered_index.h"
#include "test/support/complaint.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <vector>

namespace flugs::columns {
namespace {

constexpr std::uint64_t kEverything = 0;

// Keys longer than the prefix: prefix and `rest` of each row. Counts calls, and reports reads of
// keys that must not be read.
class LongKeys final : public OrderedIndexCompare {
 public:
  explicit LongKeys(std::size_t rows) : rest(rows), readable(rows, 1) {}
  int rows(std::uint32_t a, std::uint32_t b) const override {
    ++calls;
    if (readable[a] == 0 || readable[b] == 0) ++unreadable_calls;
    return rest[a] < rest[b] ? -1 : rest[a] > rest[b] ? 1 : 0;
  }

  std::vector<std::uint32_t> rest;
  std::vector<char> readable;
  mutable std::uint64_t calls = 0;
  mutable std::uint64_t unreadable_calls = 0;
};

struct Less {
  const LongKeys* keys;  // null: the prefix is the key
  bool operator()(const OrderedEntry& a, const OrderedEntry& b) const {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    if (keys != nullptr && keys->rest[a.row] != keys->rest[b.row])
      return keys->rest[a.row] < keys->rest[b.row];
    return a.row < b.row;
  }
};
using Model = std::set<OrderedEntry, Less>;

std::vector<OrderedEntry> scan_prefixes(const OrderedIndex& index, std::uint64_t first,
                                        std::uint64_t last) {
  std::vector<OrderedEntry> found;
  index.scan(
      first,
      [&](const OrderedEntry& entry) {
        return entry.prefix < first ? -1 : entry.prefix > last ? 1 : 0;
      },
      [&](const OrderedEntry& entry) {
        found.push_back(entry);
        return true;
      });
  return found;
}

std::vector<OrderedEntry> scan_down_prefixes(const OrderedIndex& index, std::uint64_t first,
                                             std::uint64_t last) {
  std::vector<OrderedEntry> found;
  index.scan_down(
      last,
      [&](const OrderedEntry& entry) {
        return entry.prefix < first ? -1 : entry.prefix > last ? 1 : 0;
      },
      [&](const OrderedEntry& entry) {
        found.push_back(entry);
        return true;
      });
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<OrderedEntry> scan_all(const OrderedIndex& index) {
  return scan_prefixes(index, kEverything, ~std::uint64_t{0});
}

void require_sound(const OrderedIndex& index) {
  const Status status = index.check();
  INFO(status.to_string());
  REQUIRE(status.ok());
}

void require_same(const OrderedIndex& index, const Model& model) {
  require_sound(index);
  REQUIRE(index.size() == model.size());
  const std::vector<OrderedEntry> found = scan_all(index);
  REQUIRE(std::equal(found.begin(), found.end(), model.begin(), model.end()));
}

void require_same_between(const OrderedIndex& index, const Model& model, std::uint64_t first,
                          std::uint64_t last) {
  std::vector<OrderedEntry> expected;
  for (const OrderedEntry& entry : model)
    if (entry.prefix >= first && entry.prefix <= last) expected.push_back(entry);
  REQUIRE(scan_prefixes(index, first, last) == expected);
}

// A row has at most one entry, as in a table; it gets a new random key each time it comes back.
struct RandomWork {
  std::uint64_t prefixes;  // that keys are drawn from
  std::uint32_t rests;
  std::uint32_t rows;
};

void compare_with_model(const RandomWork& work, bool long_keys, std::uint64_t seed,
                        std::uint32_t operations) {
  std::mt19937_64 random(seed);
  LongKeys keys(work.rows);
  OrderedIndex index(long_keys ? &keys : nullptr);
  Model model(Less{long_keys ? &keys : nullptr});
  std::vector<std::uint64_t> prefix_of(work.rows);
  std::vector<char> present(work.rows, 0);
  // First mostly inserts, then mostly erases, and so on: whole levels of the tree come and go.
  const std::uint32_t phase = operations / 8;
  std::fill(keys.readable.begin(), keys.readable.end(), 0);
  for (std::uint32_t i = 0; i < operations; ++i) {
    const auto row = static_cast<std::uint32_t>(random() % work.rows);
    const bool want_insert = random() % 10 < (i / phase % 2 == 0 ? 8 : 1);
    if (want_insert && present[row] == 0) {
      prefix_of[row] = random() % work.prefixes;
      keys.rest[row] = static_cast<std::uint32_t>(random() % work.rests);
      keys.readable[row] = 1;
      index.insert({prefix_of[row], row});
      model.insert({prefix_of[row], row});
      present[row] = 1;
    } else if (!want_insert) {
      keys.readable[row] = 1;  // the caller's own row is readable, even if it is not in the index
      const bool erased = index.erase({prefix_of[row], row});
      REQUIRE(erased == (present[row] != 0));
      model.erase({prefix_of[row], row});
      present[row] = 0;
      keys.readable[row] = 0;
    }
    if (i % phase == phase - 1) {
      require_same(index, model);
      const std::uint64_t a = random() % work.prefixes;
      const std::uint64_t b = random() % work.prefixes;
      require_same_between(index, model, std::min(a, b), std::max(a, b));
      require_same_between(index, model, a, a);
      require_same_between(index, model, a + 1, a);
    }
  }
  // No erased row was compared: rows may be used again as soon as erase has returned.
  REQUIRE(keys.unreadable_calls == 0);
  for (const OrderedEntry& entry : std::vector<OrderedEntry>(model.begin(), model.end()))
    REQUIRE(index.erase(entry));
  model.clear();
  require_same(index, model);
}

TEST_CASE("an ordered index behaves like a set") {
  constexpr std::uint32_t kScale = test::rounds_of(10, 1);
  SECTION("the prefix is the key, few duplicates") {
    compare_with_model({~std::uint64_t{0}, 1, 20'000 * kScale}, false, 1, 100'000 * kScale);
  }
  SECTION("the prefix is the key, many duplicates") {
    compare_with_model({7, 1, 10'000 * kScale}, false, 2, 100'000 * kScale);
  }
  SECTION("long keys, all prefixes equal") {
    compare_with_model({1, 1'000'000, 5'000 * kScale}, true, 3, 60'000 * kScale);
  }
  SECTION("long keys, some prefixes and many duplicates") {
    compare_with_model({5, 20, 6'000 * kScale}, true, 4, 100'000 * kScale);
  }
  SECTION("long keys that are all the same") {
    compare_with_model({1, 1, 6'000 * kScale}, true, 5, 60'000 * kScale);
  }
  SECTION("very few entries") { compare_with_model({1000, 3, 120}, true, 6, 200'000); }
}

TEST_CASE("rows are not compared for an entry whose prefix says all of its key") {
  LongKeys keys(20'000);
  OrderedIndex index(&keys);
  Model model(Less{nullptr});
  std::mt19937_64 random(8);
  for (std::uint32_t row = 0; row < 20'000; ++row) {
    const OrderedEntry entry{random() % 50, row};
    index.insert(entry, true);
    model.insert(entry);
  }
  require_sound(index);
  REQUIRE(scan_all(index) == std::vector<OrderedEntry>(model.begin(), model.end()));
  keys.calls = 0;
  index.insert({7, 20'000}, true);
  REQUIRE(index.erase({7, 20'000}, true));
  REQUIRE(!index.erase({7, 20'000}, true));
  for (const OrderedEntry& entry : model) REQUIRE(index.erase(entry, true));
  REQUIRE(keys.calls == 0);
  REQUIRE(index.size() == 0);
}

TEST_CASE("full keys are compared only where prefixes are equal") {
  LongKeys keys(100'000);
  OrderedIndex index(&keys);
  for (std::uint32_t row = 0; row < 100'000; ++row)
    index.insert({std::uint64_t{row} * 0x9E3779B97F4A7C15u, row});
  REQUIRE(keys.calls == 0);
  index.insert({0x9E3779B97F4A7C15u, 0});  // as row 1
  REQUIRE(keys.calls > 0);
  REQUIRE(keys.calls < 8);
}

TEST_CASE("one among a million duplicates is found in a few comparisons") {
  constexpr std::uint32_t kDuplicates = 1'000'000;
  LongKeys keys(kDuplicates);
  std::vector<OrderedEntry> entries;
  entries.reserve(kDuplicates);
  for (std::uint32_t row = 0; row < kDuplicates; ++row) entries.push_back({42, row});
  OrderedIndex index(&keys);
  index.build_sorted(entries);
  REQUIRE(keys.calls == 0);
  REQUIRE(index.erase({42, 765'432}));
  REQUIRE_FALSE(index.erase({42, 765'432}));
  index.insert({42, 765'432});
  REQUIRE(keys.calls < 3 * 40);
  require_sound(index);
}

TEST_CASE("a scan stops when the visitor says so") {
  OrderedIndex index(nullptr);
  for (std::uint32_t row = 0; row < 10'000; ++row) index.insert({std::uint64_t{row} / 4 * 2, row});
  SECTION("by the range") {
    REQUIRE(scan_prefixes(index, 4, 4) ==
            std::vector<OrderedEntry>{{4, 8}, {4, 9}, {4, 10}, {4, 11}});
    REQUIRE(scan_prefixes(index, 5, 5).empty());
    REQUIRE(scan_down_prefixes(index, 4, 4) == scan_prefixes(index, 4, 4));
    REQUIRE(scan_down_prefixes(index, 5, 5).empty());
    REQUIRE(scan_down_prefixes(index, 4997, ~std::uint64_t{0}).size() == 4);
    REQUIRE(scan_down_prefixes(index, 0, 4).size() == 12);
    REQUIRE(scan_down_prefixes(index, kEverything, ~std::uint64_t{0}) == scan_all(index));
    REQUIRE(scan_prefixes(index, 5000, ~std::uint64_t{0}).empty());
    REQUIRE(scan_prefixes(index, 4997, ~std::uint64_t{0}).size() == 4);
    REQUIRE(scan_all(index).size() == 10'000);
  }
  SECTION("by the visitor") {
    for (const std::uint32_t wanted : {1u, 3u, 4u, 5u, 100u, 9'999u}) {
      std::uint32_t visits = 0;
      index.scan(
          0, [](const OrderedEntry&) { return 0; },
          [&](const OrderedEntry&) { return ++visits < wanted; });
      REQUIRE(visits == wanted);
      visits = 0;
      index.scan_down(
          ~std::uint64_t{0}, [](const OrderedEntry&) { return 0; },
          [&](const OrderedEntry& entry) {
            REQUIRE(entry.row == 9'999 - visits);
            return ++visits < wanted;
          });
      REQUIRE(visits == wanted);
    }
  }
  SECTION("with a range that begins behind the lower prefix") {
    std::vector<std::uint32_t> rows;
    index.scan(
        0,
        [](const OrderedEntry& entry) {
          return entry.row < 6'001 ? -1 : entry.row > 6'003 ? 1 : 0;
        },
        [&](const OrderedEntry& entry) {
          rows.push_back(entry.row);
          return true;
        });
    REQUIRE(rows == std::vector<std::uint32_t>{6'001, 6'002, 6'003});
  }
  SECTION("in an empty index") {
    index.clear();
    REQUIRE(scan_all(index).empty());
    REQUIRE(scan_down_prefixes(index, 0, ~std::uint64_t{0}).empty());
    require_sound(index);
  }
}

TEST_CASE("a visitor may change the index it visits") {
  constexpr std::uint32_t kEntries = test::rounds_of(20'000, 4'000);
  OrderedIndex index(nullptr);
  for (std::uint32_t row = 0; row < kEntries; ++row) index.insert({std::uint64_t{row} * 10, row});
  SECTION("erasing everything on the way") {
    std::uint64_t next = 0;
    index.scan(
        0, [](const OrderedEntry&) { return 0; },
        [&](const OrderedEntry& entry) {
          REQUIRE(entry.prefix == next);
          next += 10;
          return index.erase(entry);
        });
    REQUIRE(next == 10 * kEntries);
    REQUIRE(index.size() == 0);
  }
  SECTION("inserting before and behind") {
    std::uint32_t old_entries = 0;
    std::uint64_t previous = 0;
    index.scan(
        0, [](const OrderedEntry&) { return 0; },
        [&](const OrderedEntry& entry) {
          REQUIRE((old_entries == 0 || entry.prefix > previous));
          previous = entry.prefix;
          if (entry.row >= kEntries) return true;
          REQUIRE(entry.row == old_entries);
          ++old_entries;
          index.insert({entry.prefix + 5, kEntries + 2 * entry.row});
          if (entry.prefix > 0) index.insert({entry.prefix - 7, kEntries + 1 + 2 * entry.row});
          return true;
        });
    REQUIRE(old_entries == kEntries);
    REQUIRE(index.size() == 3 * kEntries - 1);
  }
  require_sound(index);
}

TEST_CASE("an index built from sorted entries is like one filled by inserts") {
  for (const std::size_t count :
       {0u, 1u, 72u, 73u, 74u, 83u, 84u, 146u, 3'300u, 3'400u, 100'000u}) {
    INFO(count);
    OrderedIndex index(nullptr);
    Model model(Less{nullptr});
    std::vector<OrderedEntry> entries;
    entries.reserve(count);
    for (std::uint32_t row = 0; row < count; ++row) entries.push_back({row / 3, row});
    index.build_sorted(entries);
    model.insert(entries.begin(), entries.end());
    require_same(index, model);
    std::mt19937_64 random(count);
    for (std::uint32_t i = 0; i < 2 * count; ++i) {
      const auto row = static_cast<std::uint32_t>(random() % (count * 2));
      const OrderedEntry entry{row / 3, row};
      if (model.erase(entry) != 0) {
        REQUIRE(index.erase(entry));
      } else {
        index.insert(entry);
        model.insert(entry);
      }
    }
    require_same(index, model);
  }
}

TEST_CASE("an index that was emptied can be built again") {
  OrderedIndex index(nullptr);
  std::vector<OrderedEntry> entries;
  entries.reserve(50'000);
  for (std::uint32_t row = 0; row < 50'000; ++row) entries.push_back({row, row});
  index.build_sorted(entries);
  for (const OrderedEntry& entry : entries) REQUIRE(index.erase(entry));
  require_sound(index);
  index.build_sorted(entries);
  require_sound(index);
  REQUIRE(scan_all(index) == entries);
}

// Each round moves the whole range of keys: a queue, a stack of time-stamps, a random hand-over.
TEST_CASE("memory stays bounded while entries come and go") {
  constexpr std::uint32_t kLive = test::rounds_of(50'000, 10'000);
  constexpr std::uint32_t kRounds = test::rounds_of(50, 15);
  std::mt19937_64 random(11);
  const auto churn = [&](const std::function<std::uint64_t(std::uint64_t)>& key_of,
                         bool shuffled_erase) {
    OrderedIndex index(nullptr);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const auto insert = [&] {
      index.insert({key_of(end), static_cast<std::uint32_t>(end)});
      ++end;
    };
    while (end < kLive) insert();
    std::size_t after_two_rounds = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      if (shuffled_erase) {
        std::vector<std::uint64_t> numbers;
        for (std::uint64_t i = begin; i < begin + kLive; ++i) numbers.push_back(i);
        std::shuffle(numbers.begin(), numbers.end(), random);
        for (const std::uint64_t i : numbers) {
          insert();
          REQUIRE(index.erase({key_of(i), static_cast<std::uint32_t>(i)}));
        }
      } else {
        for (std::uint64_t i = begin; i < begin + kLive; ++i) {
          insert();
          REQUIRE(index.erase({key_of(i), static_cast<std::uint32_t>(i)}));
        }
      }
      begin += kLive;
      if (round == 1) after_two_rounds = index.memory_bytes();
    }
    require_sound(index);
    REQUIRE(index.size() == kLive);
    REQUIRE(index.memory_bytes() <= after_two_rounds + after_two_rounds / 4);
    // 12 bytes an entry: a mean fill above a quarter, the doubling of slabs included.
    REQUIRE(index.memory_bytes() <= std::size_t{kLive} * 12 * 7);
  };
  SECTION("a queue") {
    churn([](std::uint64_t i) { return i; }, false);
  }
  SECTION("a queue from right to left") {
    churn([](std::uint64_t i) { return ~i; }, false);
  }
  SECTION("random keys") {
    churn([](std::uint64_t i) { return i * 0x9E3779B97F4A7C15u; }, false);
  }
  SECTION("ascending keys that go at random") {
    churn([](std::uint64_t i) { return i; }, true);
  }
  SECTION("many queues next to each other") {
    churn([](std::uint64_t i) { return i % 97; }, false);
  }
}

}  // namespace
}  // namespace flugs::columns
