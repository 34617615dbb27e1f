#pragma once

#include <array>
#include <cstdint>

namespace flugs::columns {

/// Moves a register full of codes into lanes with AVX-512 VBMI. vpermb moves the bytes of a lane's
/// codes into its 8-byte word, vpmultishiftqb takes each byte of the lane from its bit on, and an
/// AND cuts off the rest. A register of 512 / lane codes begins at a byte, so the same controls
/// serve all registers of a column.
struct LaneControls {
  alignas(64) std::array<std::uint8_t, 64> bytes{};
  alignas(64) std::array<std::uint8_t, 64> bits{};
};

constexpr LaneControls controls_for(unsigned width, unsigned lane) {
  LaneControls controls;
  const unsigned lane_bytes = lane / 8;
  const unsigned codes_per_word = 8 / lane_bytes;
  for (unsigned byte = 0; byte < 64; ++byte) {
    const unsigned first_bit = byte / 8 * codes_per_word * width;
    controls.bytes[byte] = static_cast<std::uint8_t>((first_bit / 8 + byte % 8) % 64);
    const unsigned code = byte % 8 / lane_bytes;
    controls.bits[byte] =
        static_cast<std::uint8_t>((first_bit % 8 + code * width + byte % lane_bytes * 8) % 64);
  }
  return controls;
}

template <unsigned kLane>
constexpr std::array<LaneControls, kLane + 1> controls_for_all() {
  static_assert(kLane == 8 || kLane == 16 || kLane == 32 || kLane == 64);
  std::array<LaneControls, kLane + 1> all;
  for (unsigned width = 1; width <= kLane; ++width) all[width] = controls_for(width, kLane);
  return all;
}

template <unsigned kLane>
inline constexpr std::array<LaneControls, kLane + 1> kLaneControls = controls_for_all<kLane>();

}  // namespace flugs::columns
