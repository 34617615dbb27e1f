// Sets of integers against std::set: dense ones, which are bits, and scattered ones.
#include "query/vectors/integer_set.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "test/support/random.h"

using flugs::query::IntegerSet;
using flugs::test::Random;

namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

/// The values, their neighbours, and the ends of the type.
void check_integers(const std::vector<std::int64_t>& values) {
  const IntegerSet set(values);
  const std::set<std::int64_t> expected(values.begin(), values.end());
  std::vector<std::int64_t> asked = {kLeast, kLeast + 1, -1, 0, 1, kGreatest - 1, kGreatest};
  for (const std::int64_t value : values) {
    asked.push_back(value);
    if (value != kLeast) asked.push_back(value - 1);
    if (value != kGreatest) asked.push_back(value + 1);
  }
  std::vector<std::int64_t> found(asked.size(), 7);
  set.find(asked.data(), asked.size(), found.data());
  int wrong = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bool is_in = expected.count(asked[i]) != 0;
    if (set.contains(asked[i]) != is_in || found[i] != (is_in ? 1 : 0)) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a set of integers contains what it was made of") {
  check_integers({});
  check_integers({0});
  check_integers({kLeast});
  check_integers({kGreatest, kGreatest});
  check_integers({kLeast, kGreatest});
  check_integers({kLeast, -1, 0, 1, kGreatest});
  check_integers({5, 3, 5, 4, 3});
  check_integers({0, 65'534});  // of as many bits as a small set may have
  check_integers({0, 65'535});
  check_integers({0, 65'536});
}

TEST_CASE("sets of integers of any spread and size") {
  Random random(31);
  for (const std::uint64_t spread :
       {std::uint64_t{3}, std::uint64_t{1} << 10, std::uint64_t{1} << 16, std::uint64_t{1} << 20,
        std::uint64_t{1} << 40, ~std::uint64_t{0}})
    for (const int size : {1, 2, 3, 50, 500, 5000}) {
      const auto first = static_cast<std::int64_t>(random.next() >> 1);
      std::vector<std::int64_t> values;
      for (int i = 0; i < size; ++i)
        values.push_back(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + random.next() % spread));
      check_integers(values);
    }
}
