#include "pmem/space/claim_map.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace flugs::pmem {
namespace {

using Pieces = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // offset, bytes

Pieces gaps_of(const ClaimMap& map, std::uint64_t begin, std::uint64_t end) {
  Pieces gaps;
  map.for_each_gap(begin, end, [&](Extent gap) { gaps.emplace_back(gap.offset, gap.bytes); });
  return gaps;
}

TEST_CASE("what is claimed already cannot be claimed again", "[pmem][claim_map]") {
  ClaimMap map;
  REQUIRE(map.add({100, 100}));
  for (const Extent again : {Extent{100, 100}, Extent{150, 1}, Extent{50, 51}, Extent{199, 50},
                             Extent{50, 500}, Extent{100, 1}, Extent{199, 1}})
    CHECK_FALSE(map.add(again));
  CHECK(map.bytes() == 100);
  CHECK(gaps_of(map, 0, 1000) == Pieces{{0, 100}, {200, 800}});
  // A piece that was refused has left nothing behind on either side.
  CHECK(map.add({99, 1}));
  CHECK(map.add({200, 1}));
  CHECK_FALSE(map.add({99, 102}));
  CHECK(gaps_of(map, 0, 1000) == Pieces{{0, 99}, {201, 799}});
}

TEST_CASE("what is free is what lies between claims", "[pmem][claim_map]") {
  ClaimMap map;
  CHECK(gaps_of(map, 64, 1024) == Pieces{{64, 960}});
  CHECK(gaps_of(map, 64, 64).empty());
  REQUIRE(map.add({64, 64}));
  REQUIRE(map.add({256, 64}));
  REQUIRE(map.add({320, 64}));
  REQUIRE(map.add({192, 64}));
  REQUIRE(map.add({960, 64}));
  REQUIRE(map.add({2048, 64}));  // of another arena
  CHECK(gaps_of(map, 64, 1024) == Pieces{{128, 64}, {384, 576}});
  CHECK(gaps_of(map, 1024, 4096) == Pieces{{1024, 1024}, {2112, 1984}});
  REQUIRE(map.add({128, 64}));
  REQUIRE(map.add({384, 576}));
  CHECK(gaps_of(map, 64, 1024).empty());
  map.clear();
  CHECK(map.bytes() == 0);
  CHECK(gaps_of(map, 64, 1024) == Pieces{{64, 960}});
}

TEST_CASE("the claim map agrees with an array of flags", "[pmem][claim_map][model]") {
  constexpr std::uint64_t kUnits = 512;
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    ClaimMap map;
    std::vector<bool> is_claimed(kUnits, false);
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t offset = random() % kUnits;
      const Extent extent{offset, 1 + random() % std::min<std::uint64_t>(16, kUnits - offset)};
      const auto first = is_claimed.begin() + static_cast<std::ptrdiff_t>(offset);
      const auto end = first + static_cast<std::ptrdiff_t>(extent.bytes);
      const bool expected = std::find(first, end, true) == end;
      REQUIRE(map.add(extent) == expected);
      if (expected) std::fill(first, end, true);
    }
    std::vector<bool> is_gap(kUnits, false);
    std::uint64_t last_end = 0;
    map.for_each_gap(0, kUnits, [&](Extent gap) {
      CHECK((gap.bytes != 0 && (gap.offset > last_end || gap.offset == 0)));  // apart from the last
      last_end = gap.offset + gap.bytes;
      std::fill_n(is_gap.begin() + static_cast<std::ptrdiff_t>(gap.offset), gap.bytes, true);
    });
    is_gap.flip();
    REQUIRE(is_gap == is_claimed);
    REQUIRE(map.bytes() ==
            static_cast<std::uint64_t>(std::count(is_claimed.begin(), is_claimed.end(), true)));
  }
}

}  // namespace
}  // namespace flugs::pmem
