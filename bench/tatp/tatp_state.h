#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bench/tatp/tatp_population.h"
#include "bench/tatp/tatp_request.h"

namespace flugs::bench {

/// Everything of one subscriber that transactions change, a number each.
class TatpState {
 public:
  static constexpr std::size_t kVlrLocation = 0;
  static constexpr std::size_t kBit1 = 1;
  static constexpr std::size_t kDataA = 2;                   ///< of facility types 1 to 4
  static constexpr std::size_t kSlots = kDataA + kTypesMax;  ///< by type, then by start time
  static constexpr std::size_t kFields = kSlots + kTypesMax * kStartTimes.size();

  static constexpr std::size_t data_a_field(std::uint32_t sf_type) noexcept {
    return kDataA + sf_type - 1;
  }
  static constexpr std::size_t slot_field(std::uint32_t sf_type,
                                          std::uint32_t start_time) noexcept {
    return kSlots + (sf_type - 1) * kStartTimes.size() + start_time / 8;
  }
  /// What a slot holds: 0 for no CALL_FORWARDING row; end times are never 0.
  static constexpr std::uint32_t slot_value(std::uint32_t end_time,
                                            std::uint32_t numberx) noexcept {
    return numberx << kEndTimeBits | end_time;
  }
  /// Subscribers whose numbers a slot value can name.
  static constexpr std::uint32_t kEndTimeBits = 6;
  static constexpr std::uint32_t kSubscribersMax = (std::uint32_t{1} << (32 - kEndTimeBits)) - 1;

  constexpr TatpState() noexcept = default;
  explicit constexpr TatpState(const SubscriberRecord& record) noexcept {
    fields_[kVlrLocation] = record.vlr_location;
    fields_[kBit1] = record.small[0];
    for (std::uint32_t type = 1; type <= kTypesMax; ++type) {
      const FacilityRecord& facility = record.facilities[type - 1];
      if (!facility.present) continue;
      fields_[data_a_field(type)] = facility.data_a;
      for (std::size_t i = 0; i < kStartTimes.size(); ++i) {
        const ForwardingRecord& forwarding = facility.forwarding[i];
        if (forwarding.present)
          fields_[slot_field(type, kStartTimes[i])] =
              slot_value(forwarding.end_time, forwarding.numberx);
      }
    }
  }

  constexpr std::uint32_t operator[](std::size_t field) const noexcept { return fields_[field]; }
  constexpr std::uint32_t forwarding_rows() const noexcept {
    std::uint32_t rows = 0;
    for (std::size_t field = kSlots; field < kFields; ++field) rows += fields_[field] != 0 ? 1 : 0;
    return rows;
  }

 private:
  std::array<std::uint32_t, kFields> fields_{};
};

}  // namespace flugs::bench
