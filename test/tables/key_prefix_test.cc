// The first bytes of ordered keys: their order is that of the keys, of any types.
#include "tables/keys/key_prefix.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "columns/column/column.h"
#include "tables/keys/key_compare.h"
#include "test/support/model_value.h"

namespace flugs::test {
namespace {

using engine::KeyPrefix;

KeyPrefix of_integer(std::int64_t v) {
  KeyPrefix prefix;
  prefix.add_integer(v);
  return prefix;
}

/// Ascending numbers around each one at which a class begins or a byte is full.
std::vector<std::int64_t> edges() {
  std::set<std::int64_t> all = {0, std::numeric_limits<std::int64_t>::max(),
                                std::numeric_limits<std::int64_t>::min()};
  std::vector<std::int64_t> centres;
  for (int bit = 0; bit < 63; ++bit) centres.push_back(std::int64_t{1} << bit);
  for (const std::int64_t n : {96L, 96L + (96L << 8), 96L + (96L << 8) + (32L << 16)})
    centres.push_back(n);
  std::int64_t begin = 96 + (96 << 8) + (32 << 16) + (8 << 24);
  for (int bytes = 4; bytes < 8; ++bytes) {
    centres.push_back(begin);
    begin += std::int64_t{1} << (8 * bytes);
  }
  centres.push_back(begin);
  for (const std::int64_t centre : centres)
    for (std::int64_t near = -300; near <= 300; ++near)
      if (near <= std::numeric_limits<std::int64_t>::max() - centre) {
        all.insert(centre + near);
        all.insert(-(centre + near));
        all.insert(-(centre + near) - 1 - 1024);
      }
  return {all.begin(), all.end()};
}

std::size_t bytes_of(std::int64_t v) {
  const KeyPrefix prefix = of_integer(v);
  if (!prefix.is_whole()) return 9;
  std::size_t bytes = 8;
  for (std::uint64_t rest = prefix.greatest() - prefix.bits(); rest != 0; rest >>= 8) --bytes;
  return bytes;
}

struct RandomKeys {
  Random random{7};
  std::vector<std::string> texts = std::vector<std::string>(1 << 16);
  std::size_t next = 0;

  Value value(Type type) {
    if (random.chance(10)) return Value::null();
    const auto near = [&](std::int64_t centre) {
      return centre + static_cast<std::int64_t>(random.below(5)) - 2;
    };
    switch (type) {
      case Type::kBool:
        return Value::boolean(random.chance(50));
      case Type::kDouble: {
        const double some[] = {-std::numeric_limits<double>::infinity(),
                               -1.5,
                               -1e-300,
                               -0.0,
                               0.0,
                               1e-300,
                               1.5,
                               1e300,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
        return columns::normalised(Value::real(some[random.below(std::size(some))]), type);
      }
      case Type::kString:
      case Type::kBytes: {
        std::string& text = texts[next++ % texts.size()];
        text.assign(random.below(7), 'a');
        for (char& c : text)
          c = static_cast<char>(random.chance(60) ? random.below(4) : 0xFE + random.below(2));
        return Value::from_bytes(type, text);
      }
      default: {
        const std::int64_t centres[] = {
            0, 96, -5, 96 + (96 << 8), -1029, 1 << 20, INT32_MAX - 2, INT32_MIN + 2};
        return Value::from_raw(type, near(centres[random.below(std::size(centres))]));
      }
    }
  }
  std::vector<Value> key(const std::vector<Type>& types) {
    std::vector<Value> values;
    for (const Type type : types) values.push_back(value(type));
    return values;
  }
};

KeyPrefix prefix_of(const std::vector<Value>& values, const std::vector<Type>& types) {
  KeyPrefix prefix;
  for (std::size_t i = 0; i < values.size(); ++i) prefix.add(values[i], types[i]);
  return prefix;
}

int order_of(const std::vector<Value>& a, const std::vector<Value>& b, std::size_t columns) {
  for (std::size_t i = 0; i < columns; ++i)
    if (const int order = engine::compare_values(a[i], b[i]); order != 0) return order;
  return 0;
}

}  // namespace

TEST_CASE("prefixes of integers ascend with them", "[engine]") {
  const std::vector<std::int64_t> all = edges();
  REQUIRE(all.size() > 40'000);
  std::size_t wrong = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const KeyPrefix before = of_integer(all[i - 1]);
    const KeyPrefix after = of_integer(all[i]);
    // With nine bytes the last one is left to the rows.
    const bool is_cut = !before.is_whole() && !after.is_whole();
    wrong += is_cut ? before.bits() > after.bits() : before.greatest() >= after.bits();
  }
  CHECK(wrong == 0);
  KeyPrefix null;
  null.add(Value::null(), Type::kInt64);
  CHECK(null.greatest() < of_integer(std::numeric_limits<std::int64_t>::min()).bits());
}

TEST_CASE("prefixes of integers of 18 bits leave no gap in their order", "[engine]") {
  std::size_t wrong = 0;
  for (std::int64_t v = -(1 << 17); v < 1 << 17; ++v)
    wrong += of_integer(v).greatest() >= of_integer(v + 1).bits();
  CHECK(wrong == 0);
}

TEST_CASE("small numbers take few bytes of a prefix", "[engine]") {
  CHECK(bytes_of(0) == 1);
  CHECK(bytes_of(95) == 1);
  CHECK(bytes_of(96) == 2);
  CHECK(bytes_of(24'671) == 2);
  CHECK(bytes_of(24'672) == 3);
  CHECK(bytes_of(2'121'823) == 3);
  CHECK(bytes_of(2'121'824) == 4);
  CHECK(bytes_of(136'339'551) == 4);
  CHECK(bytes_of(136'339'552) == 5);
  CHECK(bytes_of(INT32_MAX) == 5);
  CHECK(bytes_of(INT32_MIN) == 5);
  CHECK(bytes_of(1'767'225'600'000'000) == 8);  // a time in microseconds
  CHECK(bytes_of(INT64_MAX) == 9);
  CHECK(bytes_of(-1) == 1);
  CHECK(bytes_of(-4) == 1);
  CHECK(bytes_of(-5) == 2);
  CHECK(bytes_of(-1028) == 2);
  CHECK(bytes_of(-1029) == 3);
}

TEST_CASE("prefixes have the documented bytes", "[engine][format]") {
  const std::vector<Type> types = {Type::kInt32, Type::kString, Type::kInt64};
  using namespace std::string_view_literals;
  CHECK(prefix_of({Value::int32(1), Value::string("a\0b"sv), Value::int64(-1)}, types).bits() ==
        0x1461'0200'6201'1200u);
  CHECK(prefix_of({Value::int32(300), Value::null(), Value::int64(70'000)}, types).bits() ==
        0x73cc'00d3'b110'0000u);
  CHECK(prefix_of({Value::real(-2.0)}, {Type::kDouble}).bits() == 0x3fff'ffff'ffff'ffffu);
  CHECK(prefix_of({Value::null(), Value::boolean(true)}, {Type::kDouble, Type::kBool}).bits() == 0);
}

TEST_CASE("a column that becomes wider, or bytes, keeps its prefixes", "[engine]") {
  for (const std::int64_t v : {0L, 95L, 96L, -1L, 100'000L, -100'000L, 2147483647L, -2147483648L}) {
    KeyPrefix narrow;
    narrow.add(Value::int32(static_cast<std::int32_t>(v)), Type::kInt32);
    KeyPrefix wide;
    wide.add(Value::int64(v), Type::kInt64);
    CHECK(narrow.bits() == wide.bits());
  }
  KeyPrefix text;
  text.add(Value::string("some"), Type::kString);
  KeyPrefix bytes;
  bytes.add(Value::from_bytes(Type::kBytes, "some"), Type::kBytes);
  CHECK(text.bits() == bytes.bits());
}

// For keys of three columns of any types, and bounds on their first columns.
TEST_CASE("prefixes always have the order of their keys", "[engine]") {
  RandomKeys random;
  std::size_t wrong = 0;
  std::size_t told_apart = 0;
  constexpr int kPairs = 400;
  for (int first = 1; first <= 9; ++first)
    for (int second = 1; second <= 9; ++second)
      for (int third = 1; third <= 9; third += 2) {
        const std::vector<Type> types = {static_cast<Type>(first), static_cast<Type>(second),
                                         static_cast<Type>(third)};
        for (int pair = 0; pair < kPairs; ++pair) {
          const std::vector<Value> a = random.key(types);
          const std::vector<Value> b = random.key(types);
          const std::uint64_t prefix = prefix_of(a, types).bits();
          const KeyPrefix other = prefix_of(b, types);
          const int order = order_of(a, b, 3);
          wrong += prefix < other.bits() && order >= 0;
          wrong += prefix > other.bits() && order <= 0;
          wrong += prefix != other.bits() && order == 0;
          wrong += prefix == other.bits() && other.is_whole() && order != 0;
          told_apart += prefix != other.bits();
          for (std::size_t columns = 0; columns < 3; ++columns) {
            const KeyPrefix bound =
                prefix_of({b.begin(), b.begin() + static_cast<std::ptrdiff_t>(columns)}, types);
            const int place = order_of(a, b, columns);
            const int told = prefix < bound.bits() ? -1 : prefix > bound.greatest() ? 1 : 0;
            wrong += told != 0 && told != place;
            wrong += told == 0 && place != 0 && bound.is_whole();
            wrong += told == 0 && columns == 0 && !bound.is_whole();
          }
        }
      }
  CHECK(wrong == 0);
  CHECK(told_apart > std::size_t{9 * 9 * 5} * kPairs * 3 / 4);
}

}  // namespace flugs::test
