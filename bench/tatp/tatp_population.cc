#include "bench/tatp/tatp_population.h"

#include <utility>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

/// `count` of {0 .. of-1}, every subset of that size equally likely, as bits.
std::uint8_t random_subset(Random& random, std::uint32_t count, std::uint32_t of) noexcept {
  std::uint8_t chosen = 0;
  std::uint32_t missing = count;
  for (std::uint32_t i = 0; i < of && missing > 0; ++i) {
    if (random.below(of - i) >= missing) continue;
    chosen = static_cast<std::uint8_t>(chosen | 1u << i);
    --missing;
  }
  return chosen;
}

/// The types of a subscriber: 1 to 4 of the 4, each number equally likely.
std::uint8_t random_types(Random& random) noexcept {
  const std::uint32_t count = random.between(1, kTypesMax);
  return random_subset(random, count, kTypesMax);
}

std::uint8_t random_byte(Random& random) noexcept {
  return static_cast<std::uint8_t>(random.below(256));
}

template <std::size_t size>
void fill_letters(Random& random, std::array<char, size>& letters) noexcept {
  for (char& letter : letters) letter = static_cast<char>('A' + random.below(26));
}

/// The stream of random numbers a subscriber is made from.
Random stream_of(std::uint64_t seed, std::uint32_t s_id) noexcept {
  return Random(mix64(mix64(seed) ^ s_id));
}

}  // namespace

SubscriberRecord Population::subscriber(std::uint32_t s_id) const noexcept {
  Random random = stream_of(options_.seed, s_id);
  SubscriberRecord record;
  record.s_id = s_id;
  const std::uint8_t facility_types = random_types(random);  // first: see facility_types()
  const std::uint8_t access_types = random_types(random);
  for (std::size_t i = 0; i < 10; ++i) {
    record.small[i] = static_cast<std::uint8_t>(random.below(2));
    record.small[10 + i] = static_cast<std::uint8_t>(random.below(16));
    record.small[20 + i] = random_byte(random);
  }
  record.msc_location = random.between(1, 0xffffffffu);
  record.vlr_location = random.between(1, 0xffffffffu);
  for (std::uint32_t i = 0; i < kTypesMax; ++i) {
    AccessInfoRecord& access = record.access[i];
    if ((access_types >> i & 1) == 0) continue;
    access.present = true;
    access.data1 = random_byte(random);
    access.data2 = random_byte(random);
    fill_letters(random, access.data3);
    fill_letters(random, access.data4);
  }
  bool lowest = true;
  for (std::uint32_t i = 0; i < kTypesMax; ++i) {
    FacilityRecord& facility = record.facilities[i];
    if ((facility_types >> i & 1) == 0) continue;
    facility.present = true;
    facility.is_active = random.below(100) < 85;
    facility.error_control = random_byte(random);
    facility.data_a = random_byte(random);
    if (options_.parity && std::exchange(lowest, false))
      facility.data_a = static_cast<std::uint8_t>((facility.data_a & ~1u) | record.small[0]);
    fill_letters(random, facility.data_b);
    const std::uint8_t slots = random_subset(random, random.below(4), 3);
    for (std::size_t slot = 0; slot < kStartTimes.size(); ++slot) {
      ForwardingRecord& forwarding = facility.forwarding[slot];
      if ((slots >> slot & 1) == 0) continue;
      forwarding.present = true;
      forwarding.end_time =
          static_cast<std::uint8_t>(kStartTimes[slot] + random.between(1, longest_forwarding()));
      forwarding.numberx = random.between(1, options_.subscribers);
    }
  }
  return record;
}

std::uint8_t Population::facility_types(std::uint32_t s_id) const noexcept {
  Random random = stream_of(options_.seed, s_id);
  return random_types(random);
}

}  // namespace flugs::bench
