// What aggregates keep beside their states: lists of values, and sketches of distinct values.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "query/operators/distinct_sketch.h"
#include "query/operators/quantile.h"
#include "query/operators/value_list.h"
#include "query/vectors/failure.h"
#include "test/support/random.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::Random;

namespace {

constexpr std::uint64_t kEnough = std::uint64_t{256} << 20;

std::vector<std::int64_t> values_of(const ValueList& list) {
  std::vector<std::int64_t> values;
  for (ValueChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
    const auto* const first = reinterpret_cast<const std::int64_t*>(chunk->values());
    values.insert(values.end(), first, first + chunk->used);
    if (chunk == list.last) break;
  }
  return values;
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

DistinctSketch* sketch_of(std::int64_t first, std::int64_t count, KeptMemory& memory) {
  DistinctSketch* sketch = nullptr;
  for (std::int64_t i = 0; i < count; ++i) note_hash(sketch, hash_integer(first + i), memory);
  return sketch;
}

double error_of(std::int64_t first, std::int64_t count) {
  MemoryBudget budget(kEnough);
  KeptMemory memory(budget);
  const auto estimate = static_cast<double>(estimate_of(sketch_of(first, count, memory)));
  return estimate / static_cast<double>(count) - 1;
}

}  // namespace

TEST_CASE("a quantile is the first value with its part of the values before it") {
  CHECK(quantile_index(0, 5) == 0);
  CHECK(quantile_index(0.2, 5) == 0);
  CHECK(quantile_index(0.21, 5) == 1);
  CHECK(quantile_index(1, 5) == 4);
  CHECK(quantile_index(0.07, 100) == 6);  // the double is above 0.07
  CHECK(quantile_index(0.29, 100) == 28);
  CHECK(quantile_index(1.0 / 3, 3) == 0);
  CHECK(quantile_index(2.0 / 3, 3) == 1);
  CHECK(quantile_index(0.1, 1'000'000'000'000'000'000) == 99'999'999'999'999'999);
}

TEST_CASE("lists of values are joined, also a second time in another order") {
  MemoryBudget budget(kEnough);
  KeptMemory memory(budget);
  ValueList lists[3] = {};
  std::vector<std::int64_t> expected[3];
  for (std::int64_t i = 0; i < 9000; ++i) {
    const std::size_t at = i < 100 ? 0 : i % 3 == 0 ? 1 : 2;
    append(lists[at], i, memory);
    expected[at].push_back(i);
  }
  for (const auto& order : {std::vector<std::size_t>{0, 1, 2}, {2, 0, 1}, {1, 2}}) {
    ValueList all = {};
    std::vector<std::int64_t> values;
    for (const std::size_t at : order) {
      append_list(lists[at], all);
      values = joined(values, expected[at]);
    }
    append_list({}, all);
    CHECK(values_of(all) == values);
    for (const std::size_t at : order) CHECK(values_of(lists[at]) == expected[at]);
  }
}

TEST_CASE("what aggregates keep counts for the budget") {
  MemoryBudget budget(100'000);
  KeptMemory memory(budget);
  ValueList texts = {};
  std::size_t count = 0;
  const auto fill = [&] {
    for (;; ++count) append(texts, std::string_view("text"), memory);
  };
  CHECK_THROWS_AS(fill(), Failure);
  CHECK(count > 80'000 / sizeof(std::string_view) - 1500);
  CHECK(count <= 100'000 / sizeof(std::string_view));
  CHECK(budget.peak() > 80'000);
  memory.clear();
  CHECK(budget.try_take(100'000));
  budget.give_back(100'000);
}

TEST_CASE("a sketch counts few values nearly exactly, and many within its error") {
  MemoryBudget budget(kEnough);
  CHECK(estimate_of(nullptr) == 0);
  for (const std::int64_t count : {1, 2, 3, 10}) CHECK(error_of(0, count) == 0);
  for (const std::int64_t count : {100, 255, 256, 257, 1000, 4096, 20'000, 300'000})
    CHECK(std::abs(error_of(7'000'000, count)) < 0.06);
  for (const std::int64_t count : {200, 2000, 20'000}) {
    double squares = 0;
    double sum = 0;
    constexpr int kRounds = 50;
    for (int round = 0; round < kRounds; ++round) {
      const double error = error_of(round * 1'000'000, count);
      squares += error * error;
      sum += error;
    }
    CHECK(std::sqrt(squares / kRounds) < 0.022);
    CHECK(std::abs(sum / kRounds) < 0.01);
  }
}

TEST_CASE("a sketch of the same values is the same in any order and in any parts") {
  MemoryBudget budget(kEnough);
  KeptMemory memory(budget);
  Random random(3);
  for (const std::int64_t count : {1, 5, 200, 400, 3000, 30'000}) {
    const std::int64_t expected = estimate_of(sketch_of(0, count, memory));
    DistinctSketch* backwards = nullptr;
    for (std::int64_t i = count - 1; i >= 0; --i)
      for (int twice = 0; twice < 2; ++twice) note_hash(backwards, hash_integer(i), memory);
    CHECK(estimate_of(backwards) == expected);
    for (int round = 0; round < 4; ++round) {
      std::vector<DistinctSketch*> parts;
      for (std::int64_t first = 0; first < count;) {
        const std::int64_t size =
            1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count - first)));
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(random.below(parts.size() + 1)),
                     sketch_of(first, size, memory));
        first += size;
      }
      for (int again = 0; again < 2; ++again) {  // records may be merged a second time
        DistinctSketch* all = nullptr;
        for (DistinctSketch* part : parts) merge_sketches(part, all, memory);
        CHECK(estimate_of(all) == expected);
      }
    }
  }
}

TEST_CASE("hashes at the ends of their range have a place in a sketch") {
  MemoryBudget budget(kEnough);
  KeptMemory memory(budget);
  DistinctSketch* sketch = nullptr;
  note_hash(sketch, 0, memory);
  note_hash(sketch, ~std::uint64_t{0}, memory);
  CHECK(estimate_of(sketch) == 2);
  for (std::uint64_t i = 0; i < DistinctSketch::kRegisters; ++i)
    note_hash(sketch, i << (64 - DistinctSketch::kIndexBits), memory);
  CHECK(sketch->is_dense());
  CHECK(estimate_of(sketch) > std::int64_t{1} << 60);
}
