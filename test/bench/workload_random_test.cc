#include "bench/support/random.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "bench/restart/restart_data.h"
#include "bench/support/clock.h"
#include "bench/tatp/tatp_request.h"

namespace flugs::bench {

namespace {

/// Number of `draws` that fall on each id, most first.
std::vector<std::uint64_t> sorted_hits(std::uint32_t subscribers, std::uint64_t draws) {
  Random random(42);
  std::vector<std::uint64_t> hits(subscribers, 0);
  const std::uint32_t a = nurand_a(subscribers);
  for (std::uint64_t i = 0; i < draws; ++i) ++hits[nurand(random, a, subscribers) - 1];
  std::sort(hits.begin(), hits.end(), std::greater<>());
  return hits;
}

double share_of_top(const std::vector<std::uint64_t>& hits, std::size_t ids, std::uint64_t draws) {
  const std::uint64_t sum =
      std::accumulate(hits.begin(), hits.begin() + static_cast<long>(ids), std::uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(draws);
}

}  // namespace

TEST_CASE("NURand is as skewed as the workload description says", "[tatp]") {
  constexpr std::uint32_t kSubscribers = 100'000;
  constexpr std::uint64_t kDraws = 20'000'000;
  const std::vector<std::uint64_t> hits = sorted_hits(kSubscribers, kDraws);
  const double hottest =
      static_cast<double>(hits[0]) / (static_cast<double>(kDraws) / kSubscribers);
  CHECK(hottest == Approx(656).epsilon(0.03));
  CHECK(share_of_top(hits, 100, kDraws) == Approx(0.106).margin(0.003));
  CHECK(share_of_top(hits, 1000, kDraws) == Approx(0.354).margin(0.003));
  CHECK(share_of_top(hits, 10'000, kDraws) == Approx(0.759).margin(0.003));
  CHECK(share_of_top(hits, 20'000, kDraws) == Approx(0.872).margin(0.003));
}

TEST_CASE("A of NURand follows from the number of subscribers", "[tatp]") {
  REQUIRE(nurand_a(1) == 65'535);
  REQUIRE(nurand_a(1'000'000) == 65'535);
  REQUIRE(nurand_a(1'000'001) == 1'048'575);
  REQUIRE(nurand_a(10'000'000) == 1'048'575);
  REQUIRE(nurand_a(10'000'001) == 2'097'151);
}

TEST_CASE("with A = 0 NURand is uniform over all subscribers", "[tatp]") {
  Random random(3);
  std::vector<std::uint32_t> hits(10, 0);
  for (int i = 0; i < 100'000; ++i) ++hits[nurand(random, 0, 10) - 1];
  for (const std::uint32_t count : hits) REQUIRE(count == Approx(10'000).epsilon(0.05));
}

TEST_CASE("the mix has the shares of the description, inputs stay in their domains", "[tatp]") {
  PopulationOptions options;
  options.subscribers = 1000;
  TatpGenerator generator(Population(options), TatpMix::kFull, TatpDistribution::kNuRand, 7);
  constexpr int kDraws = 1'000'000;
  std::array<int, kTatpTypes> counts{};
  bool inside = true;
  TatpRequest request;
  for (int i = 0; i < kDraws; ++i) {
    generator.next(request);
    ++counts[index_of(request.type)];
    inside = inside && request.s_id >= 1 && request.s_id <= 1000 && request.sub_type >= 1 &&
             request.sub_type <= 4 && request.start_time % 8 == 0 && request.start_time <= 16 &&
             request.end_time >= 1 && request.end_time <= 24 && request.numberx >= 1 &&
             request.numberx <= 1000 && request.vlr_location >= 1 && request.bit <= 1;
  }
  REQUIRE(inside);
  const std::array<double, kTatpTypes> shares = {0.35, 0.10, 0.35, 0.02, 0.14, 0.02, 0.02};
  for (std::size_t i = 0; i < kTatpTypes; ++i)
    CHECK(static_cast<double>(counts[i]) / kDraws == Approx(shares[i]).margin(0.002));
}

TEST_CASE("a mix of one transaction has no other", "[tatp]") {
  PopulationOptions options;
  options.subscribers = 1000;
  const auto check = [&](TatpMix mix, TatpType only) {
    TatpGenerator generator(Population(options), mix, TatpDistribution::kNuRand, 7);
    TatpRequest request;
    for (int i = 0; i < 1000; ++i) {
      generator.next(request);
      REQUIRE(request.type == only);
    }
  };
  check(TatpMix::kGetSubscriber, TatpType::kGetSubscriberData);
  check(TatpMix::kUpdateLocation, TatpType::kUpdateLocation);
}

TEST_CASE("processor time is split into that of the process and of the kernel", "[bench]") {
  const ProcessorTime before = process_processor_time();
  const std::uint64_t begin = process_cpu_ns();
  while (process_cpu_ns() - begin < 50'000'000) {
  }
  const ProcessorTime after = process_processor_time();
  const std::uint64_t both = after.user_ns - before.user_ns + (after.system_ns - before.system_ns);
  CHECK(both >= 40'000'000);  // the kernel counts in ticks of up to 10 ms
  CHECK(both <= 10 * 50'000'000);
}

TEST_CASE("in verification mode updates keep data_a mod 2 = bit_1 in the lowest facility",
          "[tatp]") {
  PopulationOptions options;
  options.subscribers = 500;
  options.parity = true;
  const Population population(options);
  TatpGenerator generator(population, TatpMix::kFull, TatpDistribution::kUniform, 9);
  TatpRequest request;
  int seen = 0;
  while (seen < 1000) {
    generator.next(request);
    if (request.type != TatpType::kUpdateSubscriberData) continue;
    ++seen;
    REQUIRE(request.data_a % 2 == request.bit);
    const SubscriberRecord record = population.subscriber(request.s_id);
    for (std::size_t i = 0; i + 1 < request.sub_type; ++i)
      REQUIRE_FALSE(record.facilities[i].present);
    REQUIRE(record.facilities[request.sub_type - 1u].present);
  }
}

TEST_CASE("a permutation hits everything once, whatever the size", "[random]") {
  for (const std::uint64_t size : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u, 65'537u}) {
    const Permutation permutation(size, 11);
    std::vector<bool> hit(size, false);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permutation(i);
      REQUIRE(image < size);
      REQUIRE_FALSE(hit[image]);
      hit[image] = true;
    }
  }
}

TEST_CASE("bounded numbers stay in bounds and reach both ends", "[random]") {
  Random random(5);
  std::uint32_t low = 100;
  std::uint32_t high = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint32_t value = random.between(3, 9);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  REQUIRE(low == 3);
  REQUIRE(high == 9);
}

TEST_CASE("a column of the restart benchmark has exactly its distinct values", "[restart]") {
  for (const Type type : {Type::kInt32, Type::kInt64}) {
    const RestartData data(1000, 3, type);
    for (std::size_t column = 0; column < kRestartColumns; ++column) {
      std::unordered_set<std::int64_t> values;
      for (std::uint64_t row = 0; row < 1000; ++row)
        values.insert(data.integer(column, data.ordinal(column, row)));
      REQUIRE(values.size() == 1000);
      for (std::uint64_t row = 1000; row < 20'000; ++row)
        values.insert(data.integer(column, data.ordinal(column, row)));
      REQUIRE(values.size() == 1000);
    }
  }
}

TEST_CASE("values beyond the distinct ones are new", "[restart]") {
  const RestartData data(100'000, 3, Type::kInt32);
  std::unordered_set<std::int64_t> values;
  for (std::uint64_t ordinal = 0; ordinal < 300'000; ++ordinal)
    values.insert(data.integer(0, ordinal));
  REQUIRE(values.size() == 300'000);
}

}  // namespace flugs::bench
