#include "bench/tatp/tatp_population.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>

namespace flugs::bench {

namespace {

constexpr std::uint32_t kSubscribers = 100'000;

PopulationOptions options_of(bool reference_end_time, bool parity) {
  PopulationOptions options;
  options.subscribers = kSubscribers;
  options.reference_end_time = reference_end_time;
  options.parity = parity;
  return options;
}

struct Counts {
  double access = 0;
  double facilities = 0;
  double active = 0;
  double forwarding = 0;
  std::array<double, kTypesMax> access_by_type{};
  std::array<double, kTypesMax> facilities_by_type{};
  std::array<double, 3> forwarding_by_start{};
};

Counts count(const Population& population) {
  Counts counts;
  for (std::uint32_t s_id = 1; s_id <= population.subscribers(); ++s_id) {
    const SubscriberRecord record = population.subscriber(s_id);
    for (std::size_t i = 0; i < kTypesMax; ++i) {
      counts.access += record.access[i].present;
      counts.access_by_type[i] += record.access[i].present;
      const FacilityRecord& facility = record.facilities[i];
      counts.facilities += facility.present;
      counts.facilities_by_type[i] += facility.present;
      counts.active += facility.present && facility.is_active;
      for (std::size_t slot = 0; slot < 3; ++slot) {
        counts.forwarding += facility.forwarding[slot].present;
        counts.forwarding_by_start[slot] += facility.forwarding[slot].present;
      }
    }
  }
  return counts;
}

/// Share of GET_NEW_DESTINATION's possible inputs, all equally likely, that find a row.
double found_share(const Population& population) {
  double found = 0;
  double asked = 0;
  for (std::uint32_t s_id = 1; s_id <= population.subscribers(); ++s_id) {
    const SubscriberRecord record = population.subscriber(s_id);
    for (const FacilityRecord& facility : record.facilities) {
      for (std::size_t start = 0; start < 3; ++start) {
        asked += 24;
        if (!facility.present || !facility.is_active) continue;
        int longest = 0;
        for (std::size_t slot = 0; slot <= start; ++slot)
          if (facility.forwarding[slot].present)
            longest = std::max<int>(longest, facility.forwarding[slot].end_time);
        found += std::clamp(longest - 1, 0, 24);  // end times 1 .. longest - 1
      }
    }
  }
  return found / asked;
}

}  // namespace

TEST_CASE("a population has the cardinalities of the description", "[tatp]") {
  const Counts counts = count(Population(options_of(false, false)));
  CHECK(counts.access / kSubscribers == Approx(2.5).epsilon(0.01));
  CHECK(counts.facilities / kSubscribers == Approx(2.5).epsilon(0.01));
  CHECK(counts.forwarding / kSubscribers == Approx(3.75).epsilon(0.01));
  CHECK(counts.active / counts.facilities == Approx(0.85).epsilon(0.01));
  // Every type and every start time alike: 2.5 of 4, half of 3 slots.
  for (std::size_t i = 0; i < kTypesMax; ++i) {
    CHECK(counts.access_by_type[i] / kSubscribers == Approx(0.625).epsilon(0.01));
    CHECK(counts.facilities_by_type[i] / kSubscribers == Approx(0.625).epsilon(0.01));
  }
  for (const double rows : counts.forwarding_by_start)
    CHECK(rows / counts.facilities == Approx(0.5).epsilon(0.01));
}

TEST_CASE("GET_NEW_DESTINATION gives the derived results for both end time rules", "[tatp]") {
  CHECK(found_share(Population(options_of(false, false))) == Approx(0.1479).margin(0.002));
  CHECK(found_share(Population(options_of(true, false))) == Approx(0.242).margin(0.002));
}

TEST_CASE("columns stay in their domains", "[tatp]") {
  const Population population(options_of(false, false));
  bool inside = true;
  for (std::uint32_t s_id = 1; s_id <= 20'000; ++s_id) {
    const SubscriberRecord record = population.subscriber(s_id);
    for (std::size_t i = 0; i < 10; ++i)
      inside = inside && record.small[i] <= 1 && record.small[10 + i] <= 15;
    inside = inside && record.msc_location >= 1 && record.vlr_location >= 1;
    for (const FacilityRecord& facility : record.facilities)
      for (std::size_t slot = 0; slot < 3; ++slot) {
        const ForwardingRecord& row = facility.forwarding[slot];
        if (!row.present) continue;
        inside = inside && row.end_time > kStartTimes[slot] &&
                 row.end_time <= kStartTimes[slot] + 8 && row.numberx >= 1 &&
                 row.numberx <= kSubscribers;
      }
  }
  REQUIRE(inside);
}

TEST_CASE("the types of a subscriber are known without its record", "[tatp]") {
  const Population population(options_of(false, false));
  for (std::uint32_t s_id = 1; s_id <= 1000; ++s_id) {
    const SubscriberRecord record = population.subscriber(s_id);
    for (std::size_t i = 0; i < kTypesMax; ++i)
      REQUIRE(((population.facility_types(s_id) >> i & 1) != 0) == record.facilities[i].present);
  }
}

TEST_CASE("in verification mode the lowest facility's data_a mod 2 is bit_1", "[tatp]") {
  const Population population(options_of(false, true));
  for (std::uint32_t s_id = 1; s_id <= 1000; ++s_id) {
    const SubscriberRecord record = population.subscriber(s_id);
    std::size_t lowest = 0;
    while (!record.facilities[lowest].present) ++lowest;
    REQUIRE(record.facilities[lowest].data_a % 2 == record.small[0]);
  }
}

TEST_CASE("a number is the id padded to 15 digits", "[tatp]") {
  REQUIRE(SubNbr(1).text() == "000000000000001");
  REQUIRE(SubNbr(4'294'967'295u).text() == "000004294967295");
}

}  // namespace flugs::bench
