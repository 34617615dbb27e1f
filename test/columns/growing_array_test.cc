#include "columns/cells/growing_array.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <thread>

namespace flugs::columns {
namespace {

TEST_CASE("a growing array has zeros first, and keeps its elements when it grows", "[columns]") {
  GrowingArray<std::size_t, 3> array;
  for (std::size_t i = 0; i < 3; ++i) CHECK(array[i] == 0);
  for (std::size_t i = 0; i < 1000; ++i) array.put(i, i + 1);
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(array[i] == i + 1);
  array.put(5000, 7);
  CHECK(array[5000] == 7);
  CHECK(array[4999] == 0);
  CHECK(array[999] == 1000);
}

TEST_CASE("a growing array is read while it grows", "[columns]") {
  constexpr std::size_t kElements = 200'000;
  GrowingArray<std::size_t, 4> array;
  array.put(0, 1);
  std::atomic<std::size_t> end{1};
  std::atomic<bool> is_wrong{false};
  std::thread reader([&] {
    std::size_t seen = 0;
    while (seen < kElements) {
      if (array[0] != 1) is_wrong = true;  // without reading `end`
      seen = end.load(std::memory_order_acquire);
      if (array[seen - 1] != seen || array[seen / 2] != seen / 2 + 1) is_wrong = true;
    }
  });
  for (std::size_t i = 1; i < kElements; ++i) {
    array.put(i, i + 1);
    end.store(i + 1, std::memory_order_release);
  }
  reader.join();
  CHECK_FALSE(is_wrong);
}

}  // namespace
}  // namespace flugs::columns
