#include "pmem/space/free_map.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

namespace flugs::pmem {
namespace {

TEST_CASE("free pieces merge with their neighbours", "[pmem][free_map]") {
  FreeMap map;
  CHECK(map.add({100, 10}));
  CHECK(map.add({120, 10}));
  CHECK(map.piece_count() == 2);
  CHECK(map.add({110, 10}));
  CHECK(map.piece_count() == 1);
  CHECK(map.largest_bytes() == 30);
  CHECK(map.bytes_ending_at(130) == 30);
  CHECK(map.bytes_ending_at(129) == 0);
}

TEST_CASE("the reserve counts whole steps of each free piece", "[pmem][free_map]") {
  constexpr std::uint64_t kStep = Reserve::kStepBytes;
  FreeMap map;
  REQUIRE(map.add({0, kStep - 1}));
  REQUIRE(map.add({2 * kStep, 2 * kStep - 1}));
  CHECK(map.reservable_bytes() == kStep);
  REQUIRE(map.add({kStep - 1, 1}));  // makes the first piece a step
  CHECK(map.reservable_bytes() == 2 * kStep);
  REQUIRE(map.add({kStep, kStep}));  // joins both
  CHECK(map.reservable_bytes() == 3 * kStep);
  REQUIRE(map.take_at({kStep / 2, kStep}));  // leaves half a step, and two and a half less a byte
  CHECK(map.reservable_bytes() == 2 * kStep);
  REQUIRE(map.take(kStep / 2)->offset == 0);
  CHECK(map.reservable_bytes() == 2 * kStep);
  CHECK(map.free_bytes() == 5 * kStep / 2 - 1);
}

TEST_CASE("a free piece cannot be added again", "[pmem][free_map]") {
  FreeMap map;
  REQUIRE(map.add({100, 100}));
  CHECK_FALSE(map.add({100, 100}));
  CHECK_FALSE(map.add({150, 1}));
  CHECK_FALSE(map.add({50, 51}));
  CHECK_FALSE(map.add({199, 50}));
  CHECK(map.free_bytes() == 100);
  CHECK(map.piece_count() == 1);
}

TEST_CASE("the smallest piece that fits is taken, of equal ones the lowest", "[pmem][free_map]") {
  FreeMap map;
  REQUIRE(map.add({1000, 500}));
  REQUIRE(map.add({300, 50}));
  REQUIRE(map.add({200, 50}));
  CHECK(map.take(40)->offset == 200);
  CHECK(map.take(50)->offset == 300);
  CHECK(map.take(60)->offset == 1000);
  CHECK_FALSE(map.take(441));
  CHECK(map.take(440)->offset == 1060);
  CHECK(map.take(10)->offset == 240);
  CHECK(map.free_bytes() == 0);
}

TEST_CASE("what is taken below an offset lies as far to the front as it can", "[pmem][free_map]") {
  FreeMap map;
  REQUIRE(map.add({1000, 500}));
  REQUIRE(map.add({200, 50}));
  REQUIRE(map.add({400, 100}));
  CHECK_FALSE(map.take_below(60, 459));  // would end at 460
  CHECK(map.take_below(60, 460)->offset == 400);
  CHECK(map.take_below(60, 5000)->offset == 1000);
  CHECK(map.take_below(50, 5000)->offset == 200);
  CHECK_FALSE(map.take_below(41, 1000));
  CHECK(map.take_below(40, 1000)->offset == 460);
  CHECK(map.free_bytes() == 440);
}

TEST_CASE("the free map agrees with an array of flags", "[pmem][free_map][model]") {
  constexpr std::uint64_t kUnits = 512;
  FreeMap map;
  std::vector<bool> is_free(kUnits, false);
  std::mt19937_64 random(7);
  const auto all = [&](Extent e, bool wanted) {
    for (std::uint64_t i = e.offset; i < e.offset + e.bytes; ++i) {
      if (is_free[i] != wanted) return false;
    }
    return true;
  };
  const auto set = [&](Extent e, bool value) {
    for (std::uint64_t i = e.offset; i < e.offset + e.bytes; ++i) is_free[i] = value;
  };
  for (int step = 0; step < 200000; ++step) {
    const std::uint64_t offset = random() % kUnits;
    const Extent extent{offset, 1 + random() % std::min<std::uint64_t>(16, kUnits - offset)};
    switch (random() % 2) {
      case 0: {
        const bool expected = all(extent, false);
        REQUIRE(map.add(extent) == expected);
        if (expected) set(extent, true);
        break;
      }
      default: {
        const auto taken = map.take(extent.bytes);
        if (!taken) {
          REQUIRE(map.largest_bytes() < extent.bytes);
          break;
        }
        REQUIRE(taken->bytes == extent.bytes);
        REQUIRE(all(*taken, true));
        set(*taken, false);
      }
    }
    if (step % 1000 == 0) {
      std::uint64_t free = 0;
      std::uint64_t pieces = 0;
      for (std::uint64_t i = 0; i < kUnits; ++i) {
        free += is_free[i] ? 1 : 0;
        pieces += is_free[i] && (i == 0 || !is_free[i - 1]) ? 1 : 0;
      }
      REQUIRE(map.free_bytes() == free);
      REQUIRE(map.piece_count() == pieces);
    }
  }
}

}  // namespace
}  // namespace flugs::pmem
