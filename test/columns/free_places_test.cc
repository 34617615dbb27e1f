#include "columns/cells/free_places.h"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "test/support/random.h"

namespace flugs::test {
namespace {

namespace text_place = columns::text_place;

TEST_CASE("a place has the size that its text's length says", "[columns]") {
  std::uint64_t before = 0;
  std::size_t wrong = 0;
  for (std::uint64_t bytes = 16; bytes < 300000; bytes += 1 + bytes / 900) {
    const std::uint64_t size = text_place::bytes_for(bytes);
    const bool is_right = size >= bytes && size % text_place::kGrainBytes == 0 && size >= before &&
                          size - bytes < std::max<std::uint64_t>(8, bytes / 16 + 1) &&
                          text_place::bytes_for(size) == size &&
                          text_place::size_within(size) == size &&
                          text_place::size_within(bytes) <= bytes &&
                          text_place::size_of(text_place::number_of(size)) == size &&
                          text_place::number_of(size) < text_place::kSizes;
    wrong += is_right ? 0 : 1;
    before = size;
  }
  CHECK(wrong == 0);
  constexpr std::uint64_t kLongest = 0x7FFFFFFF;
  CHECK(text_place::number_of(text_place::bytes_for(kLongest)) < text_place::kSizes);
}

TEST_CASE("a place is taken for a text of its size, or divided", "[columns]") {
  columns::FreePlaces free;
  CHECK(free.empty());
  CHECK(free.take(104) == 0);
  free.add(8000, 104);
  CHECK(free.bytes() == 104);
  CHECK(free.take(96) == 0);  // the rest would be of no use
  CHECK(free.take(112) == 0);
  CHECK(free.take(104) == 8000);
  CHECK(free.empty());
  free.add(8000, 208);
  CHECK(free.take(104) == 8000);
  CHECK(free.take(104) == 8104);
  CHECK(free.empty());
  free.add(8000, 8);  // no text is so short
  CHECK(free.empty());
  free.add(8000, 104);
  free.clear();
  CHECK(free.empty());
  CHECK(free.take(104) == 0);
}

TEST_CASE("no byte is in two places, and hardly any is lost", "[columns]") {
  constexpr std::uint64_t kFirst = 4096;
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 22;
  columns::FreePlaces free;
  free.add(kFirst, kBytes);
  CHECK(free.bytes() > kBytes - 16);
  Random random(7);
  std::map<std::uint64_t, std::uint64_t> taken;
  std::uint64_t bytes_taken = 0;
  std::size_t wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    if (random.chance(51) || taken.empty()) {
      const std::uint64_t size =
          text_place::bytes_for(16 + random.below(random.chance(5) ? 20000 : 200));
      const std::uint64_t place = free.take(size);
      if (place == 0) continue;
      const auto behind = taken.lower_bound(place);
      wrong += place < kFirst || place + size > kFirst + kBytes ? 1 : 0;
      wrong += behind != taken.end() && place + size > behind->first ? 1 : 0;
      wrong +=
          behind != taken.begin() && std::prev(behind)->first + std::prev(behind)->second > place
              ? 1
              : 0;
      taken[place] = size;
      bytes_taken += size;
    } else {
      auto chosen = taken.lower_bound(kFirst + random.below(kBytes));
      if (chosen == taken.end()) chosen = taken.begin();
      free.add(chosen->first, chosen->second);
      bytes_taken -= chosen->second;
      taken.erase(chosen);
    }
  }
  CHECK(wrong == 0);
  CHECK(bytes_taken + free.bytes() > kBytes * 99 / 100);
}

}  // namespace
}  // namespace flugs::test
