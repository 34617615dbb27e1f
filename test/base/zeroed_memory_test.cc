#include "base/zeroed_memory.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>

#include "base/stable_array.h"

namespace flugs::columns {
namespace {

TEST_CASE("memory that is kept is zero for whoever takes it next", "[columns]") {
  constexpr std::size_t kBytes = std::size_t{3} << 12;
  keep_zeroed_memory(2);
  auto* first = static_cast<std::byte*>(take_zeroed(kBytes));
  first[0] = std::byte{1};
  first[99] = std::byte{2};
  give_back_zeroed(first, kBytes, 100);
  auto* second = static_cast<std::byte*>(take_zeroed(kBytes));
  CHECK(second == first);
  for (std::size_t i = 0; i < kBytes; ++i) REQUIRE(second[i] == std::byte{0});
  give_back_zeroed(second, kBytes, 0);
  keep_zeroed_memory(0);
}

TEST_CASE("a stable array starts as zeros whatever lay there before", "[columns]") {
  keep_zeroed_memory(4);
  for (std::uint64_t round = 1; round < 4; ++round) {
    StableArray<std::uint64_t> array(1000);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(static_cast<std::uint64_t>(array[i]) == 0);
    array.begin(700) = round;
    array.begin(3) = round;
    array[700] += 1;
  }
  keep_zeroed_memory(0);
}

}  // namespace
}  // namespace flugs::columns
