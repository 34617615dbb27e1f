// The filter of a join's keys: it must not lose a key, and must drop nearly everything else.
#include "query/vectors/key_filter.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <vector>

#include "query/vectors/run_context.h"
#include "test/support/random.h"

namespace flugs::query {
namespace {

using test::Random;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

struct Keys {
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> is_null;

  void add(std::int64_t value, bool null = false) {
    values.push_back(value);
    is_null.push_back(null ? 1 : 0);
  }
  std::shared_ptr<const KeyFilter> filter(MemoryBudget& budget) const {
    return KeyFilter::make(values, is_null, budget);
  }
};

bool may_be(const KeyFilter& filter, std::int64_t value) {
  std::int64_t found = 7;
  filter.find(&value, 1, &found);
  REQUIRE((found == 0 || found == 1));
  return found == 1;
}

}  // namespace

TEST_CASE("dense keys are told apart exactly") {
  MemoryBudget budget(kPlenty);
  const std::int64_t least =
      GENERATE(std::int64_t{-5000}, std::int64_t{0}, std::numeric_limits<std::int64_t>::min(),
               std::numeric_limits<std::int64_t>::max() - 60'000);
  Random random(static_cast<std::uint64_t>(least) + 1);
  Keys keys;
  std::set<std::int64_t> expected;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t key = least + static_cast<std::int64_t>(random.below(60'000));
    const bool is_null = random.chance(10);
    keys.add(key, is_null);
    if (!is_null) expected.insert(key);
  }
  const std::shared_ptr<const KeyFilter> filter = keys.filter(budget);
  CHECK(filter->is_exact());
  CHECK(filter->key_count() == expected.size());
  CHECK(filter->least() == *expected.begin());
  CHECK(filter->greatest() == *expected.rbegin());
  std::uint64_t wrong = 0;
  for (std::int64_t i = 0; i < 60'000; ++i)
    wrong += may_be(*filter, least + i) != (expected.count(least + i) != 0) ? 1 : 0;
  CHECK(wrong == 0);
  CHECK_FALSE(may_be(*filter, least < 0 ? std::numeric_limits<std::int64_t>::max() : -1));
}

TEST_CASE("scattered keys are all found, and few others") {
  MemoryBudget budget(kPlenty);
  Random random(3);
  Keys keys;
  for (int i = 0; i < 10'000; ++i) keys.add(static_cast<std::int64_t>(random.next()));
  keys.add(std::numeric_limits<std::int64_t>::min());
  keys.add(std::numeric_limits<std::int64_t>::max());
  const std::shared_ptr<const KeyFilter> filter = keys.filter(budget);
  CHECK_FALSE(filter->is_exact());
  for (const std::int64_t key : keys.values) REQUIRE(may_be(*filter, key));
  int found = 0;
  for (int i = 0; i < 100'000; ++i)
    found += may_be(*filter, static_cast<std::int64_t>(random.next())) ? 1 : 0;
  CHECK(found < 5000);
}

TEST_CASE("a filter of no key drops everything") {
  MemoryBudget budget(kPlenty);
  Keys keys;
  if (GENERATE(false, true)) keys.add(7, true);
  const std::shared_ptr<const KeyFilter> filter = keys.filter(budget);
  CHECK(filter->is_empty());
  CHECK_FALSE(may_be(*filter, 7));
  CHECK_FALSE(may_be(*filter, 0));
}

TEST_CASE("a filter counts for the memory of its query, and is left out without any") {
  Keys keys;
  for (std::int64_t key = 0; key < 100'000; ++key) keys.add(key * 3);
  MemoryBudget small(1000);
  CHECK(keys.filter(small) == nullptr);
  MemoryBudget budget(kPlenty);
  {
    const std::shared_ptr<const KeyFilter> filter = keys.filter(budget);
    CHECK(budget.peak() >= 300'000 / 8);
  }
  CHECK(budget.try_take(kPlenty));  // all was given back
  budget.give_back(kPlenty);
}

}  // namespace flugs::query
