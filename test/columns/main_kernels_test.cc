#include "columns/main/main_kernels.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <vector>

#include "test/support/random.h"

namespace flugs::test {
namespace {

using columns::KernelRoute;
using columns::MainKernels;
using columns::PackedCodes;

constexpr std::size_t kBlocks = 5;
constexpr std::size_t kKernelRows = kBlocks * 64;

std::vector<std::uint64_t> random_words(std::size_t count, Random& random) {
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words) word = random.next();
  return words;
}

// The routes of this processor beyond the plain one.
std::vector<const MainKernels*> vector_routes() {
  std::vector<const MainKernels*> routes;
  for (const KernelRoute route : {KernelRoute::kAvx2, KernelRoute::kAvx512})
    if (columns::force_kernel_route(route)) routes.push_back(&columns::kernels());
  return routes;
}

// Calls `body(codes, kernels)` for codes of every width and every route.
template <typename Body>
void for_all(std::uint64_t seed, const Body& body) {
  Random random(seed);
  for (unsigned bits = 1; bits <= 64; ++bits) {
    if (!columns::is_code_width(bits)) continue;
    const std::vector<std::uint64_t> words = random_words((kBlocks + 1) * bits + 8, random);
    for (const MainKernels* kernels : vector_routes()) {
      INFO(kernels->name << ", " << bits << " bits");
      body(PackedCodes{words.data(), bits}, *kernels, random);
    }
  }
}

}  // namespace

TEST_CASE("packed codes are read as they were written", "[columns]") {
  Random random(21);
  for (unsigned bits = 1; bits <= 64; ++bits) {
    if (!columns::is_code_width(bits)) continue;
    std::vector<std::uint64_t> words(bits + 8);
    std::vector<std::uint64_t> wanted(64);
    // Bit by bit, as the format says.
    for (std::size_t i = 0; i < 64; ++i) {
      wanted[i] = random.next() & PackedCodes{nullptr, bits}.mask();
      for (unsigned bit = 0; bit < bits; ++bit)
        words[(i * bits + bit) / 64] |= ((wanted[i] >> bit) & 1) << ((i * bits + bit) % 64);
    }
    std::vector<std::int64_t> values(64);
    columns::plain_kernels().values({words.data(), bits}, 0, 1, 0, values.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      wrong += PackedCodes{words.data(), bits}[i] == wanted[i] ? 0 : 1;
      wrong += static_cast<std::uint64_t>(values[i]) == wanted[i] ? 0 : 1;
    }
    INFO(bits << " bits");
    CHECK(wrong == 0);
  }
}

TEST_CASE("every route unpacks like the plain one", "[columns]") {
  const MainKernels& plain = columns::plain_kernels();
  for_all(22, [&](PackedCodes codes, const MainKernels& kernels, Random& random) {
    std::vector<std::int64_t> values(kKernelRows);
    std::vector<std::int64_t> plain_values(kKernelRows);
    const std::uint64_t base = random.next();
    kernels.values(codes, 1, kBlocks, base, values.data());
    plain.values(codes, 1, kBlocks, base, plain_values.data());
    CHECK(values == plain_values);
    if (codes.bits > 32) return;
    std::vector<std::uint32_t> out(kKernelRows);
    std::vector<std::uint32_t> plain_out(kKernelRows);
    const auto limit = static_cast<std::uint32_t>(random.next() & codes.mask());
    kernels.codes(codes, 1, kBlocks, limit, out.data());
    plain.codes(codes, 1, kBlocks, limit, plain_out.data());
    CHECK(out == plain_out);
    for (const std::uint32_t last : {0u, 1u, 6u, 7u, 8u, 14u, 15u, 16u, 17u, 31u, 32u, 100u}) {
      std::vector<std::int64_t> entries(last + 1);  // exact size: a read behind them is detected
      for (std::int64_t& entry : entries) entry = static_cast<std::int64_t>(random.next());
      kernels.decode(codes, 1, kBlocks, entries.data(), last, values.data());
      plain.decode(codes, 1, kBlocks, entries.data(), last, plain_values.data());
      CHECK(values == plain_values);
    }
  });
}

TEST_CASE("every route filters like the plain one", "[columns]") {
  const MainKernels& plain = columns::plain_kernels();
  for_all(23, [&](PackedCodes codes, const MainKernels& kernels, Random& random) {
    for (int i = 0; i < 20; ++i) {
      std::uint64_t low = random.next() & codes.mask();
      std::uint64_t high = i % 4 == 0 ? low : random.next() & codes.mask();
      if (i % 5 == 0) low = 0;
      if (i % 7 == 0) high = codes.mask();
      if (codes.bits < 64 && low > high) std::swap(low, high);
      std::vector<std::uint64_t> mask = random_words(kBlocks, random);
      mask[2] = 0;
      std::vector<std::uint64_t> plain_mask = mask;
      kernels.filter(codes, 1, kBlocks, low, high, i % 2 == 0, mask.data());
      plain.filter(codes, 1, kBlocks, low, high, i % 2 == 0, plain_mask.data());
      CHECK(mask == plain_mask);
    }
  });
}

TEST_CASE("every route looks codes up like the plain one", "[columns]") {
  const MainKernels& plain = columns::plain_kernels();
  for_all(25, [&](PackedCodes codes, const MainKernels& kernels, Random& random) {
    if (codes.bits > 20) return;
    for (int i = 0; i < 10; ++i) {
      const auto limit = static_cast<std::uint32_t>((random.next() & codes.mask()) >> (i % 3));
      const std::vector<std::uint64_t> wanted = random_words(limit / 64 + 1, random);
      std::vector<std::uint64_t> mask = random_words(kBlocks, random);
      std::vector<std::uint64_t> plain_mask = mask;
      kernels.members(codes, 1, kBlocks, wanted.data(), limit, mask.data());
      plain.members(codes, 1, kBlocks, wanted.data(), limit, plain_mask.data());
      CHECK(mask == plain_mask);
    }
  });
}

TEST_CASE("every route aggregates like the plain one", "[columns]") {
  const MainKernels& plain = columns::plain_kernels();
  for_all(24, [&](PackedCodes codes, const MainKernels& kernels, Random& random) {
    std::vector<std::uint64_t> some = random_words(kBlocks, random);
    some[1] = 0;
    const std::vector<std::uint64_t> none(kBlocks);
    const std::uint64_t origin = codes.bits == 64 ? std::uint64_t{1} << 63 : 0;
    const std::uint64_t* const masks[] = {nullptr, some.data(), none.data()};
    for (const std::uint64_t* mask : masks) {
      for (const bool counts : {false, true}) {
        const auto sum = kernels.sum(codes, 1, kBlocks, origin, counts, mask);
        const auto plain_sum = plain.sum(codes, 1, kBlocks, origin, counts, mask);
        CHECK((sum.sum == plain_sum.sum && sum.not_zero == plain_sum.not_zero));
      }
      const auto extremes = kernels.extremes(codes, 1, kBlocks, origin, origin, mask);
      const auto plain_extremes = plain.extremes(codes, 1, kBlocks, origin, origin, mask);
      if (mask == none.data()) {
        CHECK((extremes.min > extremes.max && plain_extremes.min > plain_extremes.max));
      } else {
        CHECK((extremes.min == plain_extremes.min && extremes.max == plain_extremes.max));
      }
      // Code 0 does not count when the least is searched from 1 on.
      const auto values = kernels.extremes(codes, 1, kBlocks, 1, 0, mask);
      const auto plain_values = plain.extremes(codes, 1, kBlocks, 1, 0, mask);
      CHECK(values.max == plain_values.max);
      if (values.max != 0) CHECK(values.min == plain_values.min);
    }
  });
}

TEST_CASE("every route counts the bits of any number of words", "[columns]") {
  Random random(27);
  for (const MainKernels* kernels : vector_routes())
    for (std::size_t count = 0; count < 40; ++count) {
      const std::vector<std::uint64_t> words = random_words(count, random);
      CHECK(kernels->bits_set(words.data(), count) ==
            columns::plain_kernels().bits_set(words.data(), count));
    }
}

TEST_CASE("every route fills values like the plain one", "[columns]") {
  Random random(26);
  const std::vector<std::uint64_t> words = random_words(kKernelRows, random);
  const std::vector<std::int64_t> values(words.begin(), words.end());
  for (const MainKernels* kernels : vector_routes())
    for (int i = 0; i < 20; ++i) {
      std::vector<std::uint64_t> mask = random_words(kBlocks, random);
      mask[1] = 0;
      mask[3] = ~std::uint64_t{0};
      std::vector<std::int64_t> filled = values;
      std::vector<std::int64_t> plain_filled = values;
      CHECK(kernels->bits_set(mask.data(), kBlocks) ==
            columns::plain_kernels().bits_set(mask.data(), kBlocks));
      kernels->fill_clear(mask.data(), kBlocks, -7, filled.data());
      columns::plain_kernels().fill_clear(mask.data(), kBlocks, -7, plain_filled.data());
      INFO(kernels->name);
      CHECK(filled == plain_filled);
      for (std::size_t row = 0; row < kKernelRows; ++row) {
        const bool kept = ((mask[row / 64] >> (row % 64)) & 1) != 0;
        REQUIRE(plain_filled[row] == (kept ? values[row] : -7));
      }
    }
}

TEST_CASE("sums of the greatest codes do not overflow", "[columns]") {
  for (const unsigned bits : {8u, 15u, 16u, 30u, 32u, 60u, 64u})
    for (const MainKernels* kernels : vector_routes()) {
      constexpr std::size_t kMany = 3000;
      const std::vector<std::uint64_t> words(kMany * bits + 8, ~std::uint64_t{0});
      const PackedCodes codes{words.data(), bits};
      const auto sum = kernels->sum(codes, 0, kMany, 0, true, nullptr);
      INFO(kernels->name << ", " << bits << " bits");
      CHECK((sum.sum == columns::UInt128{codes.mask()} * (kMany * 64)));
      CHECK(sum.not_zero == kMany * 64);
    }
}

}  // namespace flugs::test
