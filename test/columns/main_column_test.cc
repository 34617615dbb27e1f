#include "columns/main/main_column.h"

#include <catch2/catch.hpp>
#include <limits>

#include "test/support/main_column_group.h"

namespace flugs::test {
namespace {

using columns::KernelRoute;
using columns::MainEncoding;
using columns::MainEncodings;

constexpr MainEncoding kEncodings[] = {MainEncoding::kConstant,   MainEncoding::kPacked,
                                       MainEncoding::kDictionary, MainEncoding::kRunLength,
                                       MainEncoding::kPlain,      MainEncoding::kCompressed};
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

// Runs `body` on every route of this processor, then returns to the best.
template <typename Body>
void on_every_route(const Body& body) {
  for (const KernelRoute route : {KernelRoute::kPlain, KernelRoute::kAvx2, KernelRoute::kAvx512})
    if (columns::force_kernel_route(route)) {
      INFO("route " << columns::kernels().name);
      body();
    }
}

std::vector<ModelValue> integers(Type type, std::initializer_list<std::int64_t> payloads) {
  std::vector<ModelValue> values;
  for (const std::int64_t payload : payloads) values.push_back(integer_value(type, payload));
  return values;
}

}  // namespace

TEST_CASE("every type in every encoding answers according to its values", "[columns]") {
  Random random(1);
  on_every_route([&] {
    for (int type = 1; type <= 9; ++type)
      for (const MainEncoding encoding : kEncodings)
        for (const std::uint32_t null_percent : {0u, 10u, 100u}) {
          MainColumnShape shape{
              static_cast<Type>(type), 1 + random.below(700), 40, -7, 1, null_percent};
          if (shape.type == Type::kBool) shape.spread = 1, shape.base = 0;
          if (encoding == MainEncoding::kRunLength) shape.run_rows = 30, shape.rows += 3000;
          if (encoding == MainEncoding::kConstant) shape.run_rows = 10000;
          const MainColumnGroup group(shape.type, random_values(shape, random),
                                      MainEncodings::only(encoding));
          INFO(to_string(shape.type) << ", " << static_cast<int>(group.column().encoding()) << ", "
                                     << null_percent << " % NULL");
          CHECK(first_difference(group, random) == "");
        }
  });
}

TEST_CASE("packed codes of every width", "[columns]") {
  Random random(2);
  on_every_route([&] {
    for (unsigned bits = 1; bits <= 64; ++bits) {
      MainColumnShape shape{Type::kInt64, 200 + random.below(200)};
      shape.spread = bits == 64 ? 0 : (std::uint64_t{1} << bits) - 1;
      shape.base = bits == 64 ? 0 : kGreatest - static_cast<std::int64_t>(shape.spread);
      shape.null_percent = bits % 3 == 0 ? 20 : 0;
      auto values = random_values(shape, random);
      values.push_back(integer_value(shape.type, shape.base));
      values.push_back(integer_value(
          shape.type, static_cast<std::int64_t>(static_cast<std::uint64_t>(shape.base) +
                                                (shape.spread - (bits % 3 == 0 ? 1 : 0)))));
      const MainColumnGroup group(shape.type, values, MainEncodings::only(MainEncoding::kPacked));
      INFO(bits << " bits");
      CHECK(group.column().encoding() ==
            (bits <= 60 ? MainEncoding::kPacked : MainEncoding::kPlain));
      CHECK(first_difference(group, random) == "");
    }
  });
}

TEST_CASE("dictionaries of every width", "[columns]") {
  Random random(3);
  on_every_route([&] {
    for (unsigned bits = 1; bits <= 13; ++bits)
      for (const Type type : {Type::kInt64, Type::kString, Type::kDouble}) {
        MainColumnShape shape{type, std::size_t{2} << bits, (std::uint64_t{1} << bits) - 1};
        shape.null_percent = bits % 2 == 0 ? 5 : 0;
        const MainColumnGroup group(type, random_values(shape, random),
                                    MainEncodings::only(MainEncoding::kDictionary));
        INFO(to_string(type) << ", " << bits << " bits");
        CHECK(group.column().has_entries());
        CHECK(first_difference(group, random) == "");
      }
  });
}

TEST_CASE("payloads at the ends of their type", "[columns]") {
  Random random(4);
  on_every_route([&] {
    for (const MainEncoding encoding : kEncodings)
      for (const bool has_null : {false, true})
        for (auto values :
             {integers(Type::kInt64, {kLeast, kGreatest, 0, -1, 1}),
              integers(Type::kInt64, {kLeast, kLeast + 1}), integers(Type::kInt64, {kGreatest}),
              integers(Type::kInt64, {kGreatest, kGreatest - 5}), integers(Type::kInt64, {kLeast}),
              integers(Type::kInt32, {-2147483648, 2147483647})}) {
          for (int i = 0; i < 7; ++i) values.insert(values.end(), values.begin(), values.end());
          if (has_null) values.push_back({values[0].type, true, 0, {}});
          const MainColumnGroup group(values[0].type, values, MainEncodings::only(encoding));
          INFO(static_cast<int>(encoding) << (has_null ? " with NULL" : ""));
          CHECK(first_difference(group, random) == "");
        }
  });
}

TEST_CASE("random columns answer according to their values", "[columns]") {
  Random random(5);
  for (int i = 0; i < 400; ++i) {
    MainColumnShape shape;
    shape.type = static_cast<Type>(1 + random.below(9));
    shape.rows = 1 + random.below(std::size_t{1} << random.below(13));
    shape.spread = (std::uint64_t{1} << random.below(63)) - 1 + random.below(3);
    shape.base = static_cast<std::int64_t>(random.next()) >> random.below(63);
    if (shape.type == Type::kBool) shape.spread = 1, shape.base = 0;
    shape.run_rows = random.below(3) == 0 ? 1 + random.below(100) : 1;
    shape.null_percent = random.below(3) == 0 ? random.below(101) : 0;
    const MainEncodings allowed =
        random.below(2) == 0 ? MainEncodings::all()
                             : MainEncodings::only(kEncodings[random.below(std::size(kEncodings))]);
    const MainColumnGroup group(shape.type, random_values(shape, random), allowed);
    columns::force_kernel_route(static_cast<KernelRoute>(random.below(3)));
    INFO("round " << i << ", " << to_string(shape.type) << ", encoding "
                  << static_cast<int>(group.column().encoding()));
    REQUIRE(first_difference(group, random) == "");
  }
  columns::force_kernel_route(KernelRoute::kAvx512);
}

TEST_CASE("the cheapest encoding is chosen", "[columns]") {
  Random random(6);
  const auto chosen = [&](MainColumnShape shape) {
    return MainColumnGroup(shape.type, random_values(shape, random)).column().encoding();
  };
  CHECK(chosen({Type::kInt64, 100, 0x7FFFFFFF, 0, 1000}) == MainEncoding::kConstant);
  CHECK(chosen({Type::kInt64, 5000, 100, 0, 1, 100}) == MainEncoding::kConstant);
  CHECK(chosen({Type::kInt64, 5000, 100}) == MainEncoding::kPacked);
  CHECK(chosen({Type::kInt32, 5000, 1u << 24, -50}) == MainEncoding::kPacked);
  CHECK(chosen({Type::kInt64, 5000, 0}) == MainEncoding::kPlain);
  CHECK(chosen({Type::kDouble, 5000, 0}) == MainEncoding::kPlain);
  CHECK(chosen({Type::kDouble, 5000, 100}) == MainEncoding::kDictionary);
  CHECK(chosen({Type::kString, 5000, 1000}) == MainEncoding::kDictionary);
  CHECK(chosen({Type::kString, 5000, 0}) == MainEncoding::kCompressed);
  CHECK(chosen({Type::kInt64, 50000, 100, 0, 100}) == MainEncoding::kRunLength);
  CHECK(chosen({Type::kString, 50000, 100, 0, 100}) == MainEncoding::kRunLength);
  // Texts without a pattern.
  std::vector<ModelValue> noise;
  while (noise.size() < 5000) {
    std::string text(20, ' ');
    for (char& c : text) c = static_cast<char>(random.next());
    noise.push_back(text_value(std::move(text)));
  }
  CHECK(MainColumnGroup(Type::kString, noise).column().encoding() == MainEncoding::kPlain);
  // A few values far apart: a dictionary is worth its table.
  std::vector<ModelValue> sparse = random_values({Type::kInt64, 5000, 20}, random);
  for (ModelValue& value : sparse) value.raw *= 1'000'000'007;
  CHECK(MainColumnGroup(Type::kInt64, sparse).column().encoding() == MainEncoding::kDictionary);
}

TEST_CASE("a column of a few rows, and one of whole blocks", "[columns]") {
  Random random(7);
  for (const std::size_t rows : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 1023u, 1024u, 1025u, 2048u})
    for (const MainEncoding encoding : kEncodings)
      for (const Type type : {Type::kInt64, Type::kString}) {
        const MainColumnGroup group(type, random_values({type, rows, 9, 0, 3, 10}, random),
                                    MainEncodings::only(encoding));
        INFO(rows << " rows, " << to_string(type) << ", " << static_cast<int>(encoding));
        CHECK(first_difference(group, random) == "");
      }
}

}  // namespace flugs::test
