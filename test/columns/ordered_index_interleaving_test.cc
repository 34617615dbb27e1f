#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "columns/index/ordered_index.h"

// Keys are compared outside of all locks. So any other thread may act during a comparison. The test
// does so on purpose, at each comparison in turn: it needs no race to show what happens when the
// tree changes under a descent.
namespace flugs::columns {
namespace {

// 46 leaves of 73 rows below two inner nodes below a root; all prefixes are the same.
constexpr std::uint32_t kLeafRows = 73;
constexpr std::uint32_t kLeaves = 46;
constexpr std::uint32_t kRowsOfLeaves = kLeaves * kLeafRows;
constexpr std::uint32_t kRootSeparatorLeaf = 22;
constexpr std::uint32_t kSpareRows = 4'000;
constexpr std::uint32_t kGap = 10'000;  // between the keys of neighbours

class MeddlingKeys final : public OrderedIndexCompare {
 public:
  MeddlingKeys() : key_of(kRowsOfLeaves + kSpareRows) {
    for (std::uint32_t row = 0; row < kRowsOfLeaves; ++row) key_of[row] = (row + 1) * kGap;
  }
  int rows(std::uint32_t a, std::uint32_t b) const override {
    if (calls_left > 0) {
      --calls_left;
      if (calls_left == 0) meddle();
    }
    return key_of[a] < key_of[b] ? -1 : key_of[a] > key_of[b] ? 1 : 0;
  }

  std::vector<std::uint32_t> key_of;
  std::function<void()> meddle;
  mutable std::uint32_t calls_left = 0;
};

// Rows in the order of their keys, as numbers in a vector: under a sanitizer a set of pairs takes
// most of the time of these tests.
class Expected {
 public:
  void insert(std::uint32_t key, std::uint32_t row) {
    const std::uint64_t entry = entry_of(key, row);
    entries_.insert(std::lower_bound(entries_.begin(), entries_.end(), entry), entry);
  }
  /// Whether it was there.
  bool erase(std::uint32_t key, std::uint32_t row) {
    const std::uint64_t entry = entry_of(key, row);
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry);
    if (at == entries_.end() || *at != entry) return false;
    entries_.erase(at);
    return true;
  }
  bool contains(std::uint32_t key, std::uint32_t row) const {
    return std::binary_search(entries_.begin(), entries_.end(), entry_of(key, row));
  }
  bool has_rows(const std::vector<std::uint32_t>& rows) const {
    return std::equal(rows.begin(), rows.end(), entries_.begin(), entries_.end(),
                      [](std::uint32_t row, std::uint64_t entry) {
                        return row == static_cast<std::uint32_t>(entry);
                      });
  }
  void append(std::uint32_t key, std::uint32_t row) { entries_.push_back(entry_of(key, row)); }

 private:
  static std::uint64_t entry_of(std::uint32_t key, std::uint32_t row) {
    return std::uint64_t{key} << 32 | row;
  }
  std::vector<std::uint64_t> entries_;
};

// An index and what must be in it.
class Bed {
 public:
  Bed() : index(&keys) {
    std::vector<OrderedEntry> entries;
    entries.reserve(kRowsOfLeaves);
    for (std::uint32_t row = 0; row < kRowsOfLeaves; ++row) {
      entries.push_back({0, row});
      expected.append(keys.key_of[row], row);
    }
    index.build_sorted(entries);
  }
  // Returns the row of a new entry.
  std::uint32_t insert(std::uint32_t key) {
    const std::uint32_t row = next_row++;
    keys.key_of[row] = key;
    expected.insert(key, row);
    index.insert({0, row});
    return row;
  }
  bool erase(std::uint32_t row) {
    const bool erased = index.erase({0, row});
    return expected.erase(keys.key_of[row], row) && erased;
  }
  void require_sound() const {
    const Status status = index.check();
    INFO(status.to_string());
    REQUIRE(status.ok());
    std::vector<std::uint32_t> found;
    index.scan(
        0, [](const OrderedEntry&) { return 0; },
        [&](const OrderedEntry& entry) {
          found.push_back(entry.row);
          return true;
        });
    REQUIRE(expected.has_rows(found));
  }

  MeddlingKeys keys;
  OrderedIndex index;
  Expected expected;
  std::uint32_t next_row = kRowsOfLeaves;
};

using Act = std::function<void(Bed&, std::uint32_t row)>;

// Actions between two steps. `row` is the largest of its leaf, and a separator.
const std::vector<std::pair<const char*, Act>> kMeddling = {
    {"erase the separator", [](Bed& bed, std::uint32_t row) { bed.erase(row); }},
    {"erase and insert again",
     [](Bed& bed, std::uint32_t row) {
       bed.erase(row);
       bed.insert(bed.keys.key_of[row] - 3);
     }},
    {"join the leaf with its neighbours",
     [](Bed& bed, std::uint32_t row) {
       for (std::uint32_t r = row + 1 - kLeafRows; r <= row + kLeafRows && r < kRowsOfLeaves; ++r)
         if (r % 7 != 0) bed.erase(r);
     }},
    {"join inner nodes",
     [](Bed& bed, std::uint32_t row) {
       for (std::uint32_t r = 0; r < kRowsOfLeaves; ++r)
         if (r + 10 < row || r > row + 10) bed.erase(r);
     }},
    {"split the leaf",
     [](Bed& bed, std::uint32_t row) {
       for (std::uint32_t i = 1; i < 100; ++i) bed.insert(bed.keys.key_of[row] - 20 * i);
     }},
    {"split the inner node above",
     [](Bed& bed, std::uint32_t row) {  // by inserts at both ends of it, so the leaf itself stays
       const bool left = row / kLeafRows <= kRootSeparatorLeaf;
       const std::uint32_t first = left ? 5 : (kRootSeparatorLeaf + 1) * kLeafRows + 5;
       const std::uint32_t last = left ? kRootSeparatorLeaf * kLeafRows + 5 : kRowsOfLeaves - 5;
       for (std::uint32_t i = 1; i < 1'500; ++i) {
         bed.insert(bed.keys.key_of[first] + i);
         bed.insert(bed.keys.key_of[last] + i);
       }
     }},
};

// Operations that are interrupted.
const std::vector<std::pair<const char*, Act>> kUnderWay = {
    {"insert before the separator",
     [](Bed& bed, std::uint32_t row) { bed.insert(bed.keys.key_of[row] - 5); }},
    {"insert behind the separator",
     [](Bed& bed, std::uint32_t row) { bed.insert(bed.keys.key_of[row] + 5); }},
    {"erase the separator",
     [](Bed& bed, std::uint32_t row) {
       const bool erased = bed.index.erase({0, row});
       const bool meddler_was_first = !bed.expected.erase(bed.keys.key_of[row], row);
       REQUIRE(erased != meddler_was_first);
     }},
    {"erase what comes before it", [](Bed& bed, std::uint32_t row) { bed.erase(row - 1); }},
};

TEST_CASE("an ordered index may change at any comparison of an insert or erase") {
  for (const std::uint32_t leaf : {0u, 6u, 11u, 17u, kRootSeparatorLeaf, 30u})
    for (const auto& [meddling_name, meddling] : kMeddling)
      for (const auto& [under_way_name, under_way] : kUnderWay) {
        const std::uint32_t row = (leaf + 1) * kLeafRows - 1;
        for (std::uint32_t call = 1;; ++call) {
          INFO(under_way_name << " of leaf " << leaf << ", at comparison " << call << ": "
                              << meddling_name);
          Bed bed;
          bool meddled = false;
          const auto& meddle = meddling;
          bed.keys.meddle = [&] {
            meddled = true;
            meddle(bed, row);
          };
          bed.keys.calls_left = call;
          under_way(bed, row);
          bed.keys.calls_left = 0;
          bed.require_sound();
          if (!meddled) break;
        }
      }
}

// Scans from 60 rows before the row to 60 behind it, and calls `meddling` at the comparison number
// `call`. False: there are fewer comparisons.
bool scan_meddled(Bed& bed, bool down, std::uint32_t row, std::uint32_t call, const Act& meddling) {
  const std::uint32_t first = row - 60;
  const std::uint32_t last = row + 60;
  std::uint32_t calls_left = call;
  std::vector<std::uint32_t> found;
  const auto probe = [&](const OrderedEntry& entry) {
    if (calls_left > 0) {
      --calls_left;
      if (calls_left == 0) meddling(bed, row);
    }
    const std::uint32_t key = bed.keys.key_of[entry.row];
    return key < bed.keys.key_of[first] ? -1 : key > bed.keys.key_of[last] ? 1 : 0;
  };
  const auto visit = [&](const OrderedEntry& entry) {
    found.push_back(entry.row);
    return true;
  };
  if (down) {
    bed.index.scan_down(0, probe, visit);
    std::reverse(found.begin(), found.end());
  } else {
    bed.index.scan(0, probe, visit);
  }
  // In order, and without a missing row that was there all the time.
  REQUIRE(std::is_sorted(found.begin(), found.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(bed.keys.key_of[a], a) < std::pair(bed.keys.key_of[b], b);
  }));
  REQUIRE(std::adjacent_find(found.begin(), found.end()) == found.end());
  const std::set<std::uint32_t> seen(found.begin(), found.end());
  for (std::uint32_t r = first; r <= last; ++r)
    if (bed.expected.contains(bed.keys.key_of[r], r)) REQUIRE(seen.contains(r));
  bed.require_sound();
  return calls_left == 0;
}

TEST_CASE("an ordered index may change at any comparison of a scan") {
  for (const bool down : {false, true})
    for (const std::uint32_t leaf : {0u, 11u, kRootSeparatorLeaf})
      for (const auto& [meddling_name, meddling] : kMeddling) {
        const std::uint32_t row = (leaf + 1) * kLeafRows - 1;
        for (std::uint32_t call = 1;; call += call < 40 ? 1 : 7) {
          INFO("scan " << (down ? "down" : "up") << " at leaf " << leaf << ", at comparison "
                       << call << ": " << meddling_name);
          Bed bed;
          if (!scan_meddled(bed, down, row, call, meddling)) break;
        }
      }
}

}  // namespace
}  // namespace flugs::columns
