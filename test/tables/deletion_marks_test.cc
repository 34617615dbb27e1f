#include "tables/rows/deletion_marks.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace flugs::engine {
namespace {

constexpr std::uint32_t kPlaces = 200;
constexpr std::size_t kWords = 4;
constexpr auto kRecentMax = static_cast<std::uint32_t>(DeletionMarks::kRecentMax);

using Places = std::vector<std::uint32_t>;

/// The rows of some words that are deleted in a snapshot, if the marks know them.
std::optional<Places> deleted(const DeletionMarks& marks, std::uint64_t snapshot,
                              std::size_t first_word = 0, std::size_t count = kWords) {
  std::vector<std::uint64_t> mask(count, ~std::uint64_t{0});
  if (!marks.clear_deleted(first_word, count, snapshot, mask.data())) return std::nullopt;
  Places places;
  for (std::uint32_t i = 0; i < count * 64; ++i)
    if ((mask[i / 64] >> (i % 64) & 1) == 0)
      places.push_back(static_cast<std::uint32_t>(first_word) * 64 + i);
  return places;
}

Places doubtful(const DeletionMarks& marks, std::size_t first_word = 0,
                std::size_t count = kWords) {
  Places places;
  marks.for_doubtful(first_word, count, [&](std::uint32_t place) { places.push_back(place); });
  return places;
}

Places all_deleted(const DeletionMarks& marks, std::size_t first_word = 0,
                   std::size_t count = kWords) {
  Places places;
  marks.for_deleted(first_word, count, [&](std::uint32_t place) { places.push_back(place); });
  std::sort(places.begin(), places.end());
  return places;
}

/// The rows that are missing in what all new snapshots see, if that is known.
std::optional<Places> unseen(DeletionMarks& marks, std::uint64_t snapshot) {
  const std::shared_ptr<const SeenRows> seen = marks.seen_from(snapshot);
  if (seen == nullptr) return std::nullopt;
  Places places;
  for (std::uint32_t i = 0; i < seen->words.size() * 64; ++i)
    if ((seen->words[i / 64] >> (i % 64) & 1) == 0 && i < kPlaces) places.push_back(i);
  CHECK(seen->count == kPlaces - places.size());
  CHECK((seen->words.back() >> (kPlaces % 64)) == 0);
  return places;
}

}  // namespace

TEST_CASE("a row is in doubt from its mark until the deletion is noted or taken back") {
  DeletionMarks marks(kPlaces);
  CHECK(doubtful(marks).empty());
  marks.mark(3);
  marks.mark(70);
  marks.mark(70);
  marks.mark(199);
  CHECK(doubtful(marks) == Places{3, 70, 199});
  CHECK(doubtful(marks, 1, 2) == Places{70});
  CHECK(deleted(marks, 100) == Places{});
  marks.take_back(70);
  marks.take_back(71);
  CHECK(doubtful(marks) == Places{3, 199});
  marks.note(3, 10);
  CHECK(doubtful(marks) == Places{199});
  marks.take_back(199);
  CHECK(doubtful(marks).empty());
  marks.mark(3);
  CHECK(doubtful(marks) == Places{3});
}

TEST_CASE("a deletion counts in the snapshots from its time-stamp on") {
  DeletionMarks marks(kPlaces);
  marks.note(5, 10);
  marks.note(130, 12);
  marks.note(64, 0);
  CHECK(deleted(marks, 9) == Places{64});
  CHECK(deleted(marks, 10) == Places{5, 64});
  CHECK(deleted(marks, 12) == Places{5, 64, 130});
  CHECK(deleted(marks, 12, 1, 1) == Places{64});
  CHECK(deleted(marks, 12, 2, 2) == Places{130});
  CHECK(all_deleted(marks) == Places{5, 64, 130});
  CHECK(all_deleted(marks, 1, 2) == Places{64, 130});
}

TEST_CASE("with many deletions the older half is settled") {
  DeletionMarks marks(kPlaces);
  Places places;
  for (std::uint32_t i = 0; i < kRecentMax; ++i) {
    marks.note(2 * i, 100 + i);
    places.push_back(2 * i);
  }
  // Each snapshot is still known.
  CHECK(deleted(marks, 99) == Places{});
  CHECK(deleted(marks, 100) == Places{0});
  CHECK(deleted(marks, 1000) == places);
  marks.note(199, 100 + kRecentMax);
  places.push_back(199);
  CHECK(all_deleted(marks) == places);
  CHECK(deleted(marks, 1000) == places);
  const std::uint64_t settled_at = 100 + kRecentMax / 2 - 1;
  CHECK(deleted(marks, settled_at - 1) == std::nullopt);
  CHECK(deleted(marks, 99) == std::nullopt);
  CHECK(deleted(marks, settled_at) ==
        Places(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(kRecentMax / 2)));
  CHECK(deleted(marks, settled_at + 1)->size() == kRecentMax / 2 + 1);
  CHECK(all_deleted(marks, 0, 1).size() == 32);
}

TEST_CASE("the latest settled deletion bounds the snapshots, in any order") {
  DeletionMarks marks(kPlaces);
  marks.note(0, 500);
  for (std::uint32_t i = 1; i < 3 * kRecentMax; ++i) marks.note(i, 7);
  CHECK(deleted(marks, 499) == std::nullopt);
  CHECK(deleted(marks, 500)->size() == 3 * kRecentMax);
}

TEST_CASE("rows that a snapshot does not see are cleared or looked up") {
  DeletionMarks marks(kPlaces);
  const auto left = [&](std::uint64_t snapshot, Places& asked) {
    std::vector<std::uint64_t> mask(2, 0);
    marks.clear_unseen(64, 100, snapshot, mask.data(),
                       [&](std::uint32_t place) { asked.push_back(place); });
    CHECK((mask[1] >> 36) == 0);
    std::sort(asked.begin(), asked.end());
    return std::popcount(mask[0]) + std::popcount(mask[1]);
  };
  marks.mark(70);
  marks.note(71, 10);
  Places asked;
  CHECK(left(10, asked) == 99);
  CHECK(asked == Places{70});
  asked.clear();
  CHECK(left(9, asked) == 100);
  CHECK(asked == Places{70});
  // Both snapshots are older than the settled deletions: all rows may be visible, and are looked
  // up.
  for (std::uint32_t i = 0; i < 2 * kRecentMax; ++i) marks.note(72 + i % 8, 20);
  asked.clear();
  CHECK(left(19, asked) == 100);
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  CHECK(asked == Places{70, 71, 72, 73, 74, 75, 76, 77, 78, 79});
  asked.clear();
  CHECK(left(20, asked) == 91);
  CHECK(asked == Places{70});
}

TEST_CASE("places outside of the group stay unchanged") {
  DeletionMarks marks(kPlaces);
  for (const std::uint32_t place : {256u, 0xFFFFFFFFu}) {
    marks.mark(place);
    marks.take_back(place);
    marks.note(place, 1);
  }
  CHECK(doubtful(marks).empty());
  CHECK(all_deleted(marks).empty());
}

TEST_CASE("has_found is true after set_found") {
  DeletionMarks marks(kPlaces);
  CHECK_FALSE(marks.has_found());
  marks.set_found();
  CHECK(marks.has_found());
}

TEST_CASE("what all new snapshots see is made once after each change") {
  DeletionMarks marks(kPlaces);
  CHECK(unseen(marks, 0) == Places{});
  const std::shared_ptr<const SeenRows> first = marks.seen_from(5);
  CHECK(marks.seen_from(9) == first);
  marks.mark(3);
  CHECK(marks.seen_from(9) == nullptr);
  marks.mark(199);
  marks.take_back(199);
  CHECK(marks.seen_from(9) == nullptr);
  marks.note(3, 10);
  CHECK(unseen(marks, 10) == Places{3});
  CHECK(unseen(marks, 9) == std::nullopt);
  CHECK(first->count == kPlaces);  // as it was
  const std::shared_ptr<const SeenRows> second = marks.seen_from(12);
  CHECK(marks.seen_from(11) == second);
  marks.mark(64);
  marks.take_back(64);
  CHECK(unseen(marks, 12) == Places{3});

  // Recent ones become settled ones.
  Places all = {3};
  for (std::uint32_t i = 0; i < 2 * kRecentMax; ++i) {
    marks.note(20 + i, 20 + i);
    all.push_back(20 + i);
  }
  const std::uint64_t latest = 20 + 2 * kRecentMax - 1;
  CHECK(unseen(marks, latest) == all);
  CHECK(unseen(marks, latest - 1) == std::nullopt);
}

}  // namespace flugs::engine
