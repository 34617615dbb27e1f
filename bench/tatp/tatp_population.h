#pragma once

#include <array>
#include <cstdint>

#include "bench/tatp/tatp_schema.h"

namespace flugs::bench {

/// One row of ACCESS_INFO, SPECIAL_FACILITY and CALL_FORWARDING as the population makes it.
struct AccessInfoRecord {
  bool present = false;
  std::uint8_t data1 = 0;
  std::uint8_t data2 = 0;
  std::array<char, 3> data3{};
  std::array<char, 5> data4{};
  friend bool operator==(const AccessInfoRecord&, const AccessInfoRecord&) = default;
};

struct ForwardingRecord {
  bool present = false;
  std::uint8_t end_time = 0;
  std::uint32_t numberx = 0;  ///< the subscriber whose number it is
  friend bool operator==(const ForwardingRecord&, const ForwardingRecord&) = default;
};

struct FacilityRecord {
  bool present = false;
  bool is_active = false;
  std::uint8_t error_control = 0;
  std::uint8_t data_a = 0;
  std::array<char, 5> data_b{};
  std::array<ForwardingRecord, 3> forwarding{};  ///< by start time: 0, 8, 16
};

/// A subscriber with everything that belongs to it, in all four tables.
struct SubscriberRecord {
  std::uint32_t s_id = 0;
  std::array<std::uint8_t, 30> small{};  ///< bit_1..10, hex_1..10, byte2_1..10
  std::uint32_t msc_location = 0;
  std::uint32_t vlr_location = 0;
  std::array<AccessInfoRecord, kTypesMax> access{};    ///< by ai_type - 1
  std::array<FacilityRecord, kTypesMax> facilities{};  ///< by sf_type - 1
};

/// What a population is made by. The same options give the same rows, whatever the order and the
/// number of threads.
struct PopulationOptions {
  std::uint32_t subscribers = 100'000;
  std::uint64_t seed = 1;
  /// end_time - start_time uniform over 1..24, as the reference loader has it, not 1..8.
  bool reference_end_time = false;
  /// T8: data_a mod 2 = bit_1 in the lowest facility of each subscriber.
  bool parity = false;
};

/// The initial database as a pure function of the subscriber's id (1 to `subscribers`).
class Population {
 public:
  explicit Population(const PopulationOptions& options) noexcept : options_(options) {}

  const PopulationOptions& options() const noexcept { return options_; }
  std::uint32_t subscribers() const noexcept { return options_.subscribers; }
  /// Largest end_time - start_time, 8 as the description has it.
  std::uint32_t longest_forwarding() const noexcept { return options_.reference_end_time ? 24 : 8; }
  SubscriberRecord subscriber(std::uint32_t s_id) const noexcept;
  /// Bit t-1 is set when the subscriber has special facility type t. At least one is.
  std::uint8_t facility_types(std::uint32_t s_id) const noexcept;

 private:
  PopulationOptions options_;
};

}  // namespace flugs::bench
