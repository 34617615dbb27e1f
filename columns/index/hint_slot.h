#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/shared_words.h"
#include "columns/index/hint_index_layout.h"

namespace flugs::columns {

/// A word of a hint index's directory: the offset of a segment, and a number that changes with it.
namespace hint_word {

inline constexpr int kNumberShift = 48;
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kNumberShift) - 1;

constexpr std::uint64_t offset_of(std::uint64_t word) noexcept { return word & kOffsetMask; }
constexpr std::uint64_t number_of(std::uint64_t word) noexcept { return word >> kNumberShift; }

}  // namespace hint_word

/// A slot of a segment: a fingerprint and a payload plus 1 (HintSegmentLayout). Slots and words are
/// read while other threads write them.
namespace hint_slot {

inline std::uint64_t load(const std::uint64_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
inline void store(std::uint64_t& word, std::uint64_t value) noexcept {
  note_write(SharedWord::kHintLine, &word);
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}
/// Removes `wanted`, unless the slot holds something else by now. The slot does not become unused:
/// whether its line was never full is certain only while no thread writes to it.
inline bool empty(std::uint64_t& slot, std::uint64_t wanted) noexcept {
  note_write(SharedWord::kHintLine, &slot);
  return __atomic_compare_exchange_n(&slot, &wanted, HintSegmentLayout::kEmptied, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
inline bool is_live(std::uint64_t slot) noexcept { return static_cast<std::uint32_t>(slot) != 0; }
inline std::uint64_t make(std::uint32_t fingerprint, std::uint32_t payload) noexcept {
  FLUGS_DCHECK(payload != 0xFFFFFFFFu);
  return (std::uint64_t{fingerprint} << 32) | (payload + 1u);
}
inline std::uint32_t payload_of(std::uint64_t slot) noexcept {
  FLUGS_DCHECK(is_live(slot));
  return static_cast<std::uint32_t>(slot) - 1;
}
inline std::uint32_t fingerprint_of(std::uint64_t slot) noexcept {
  return static_cast<std::uint32_t>(slot >> 32);
}
/// The line of a segment in which entries of a fingerprint are, as long as it has room.
inline std::uint32_t home_of(std::uint32_t fingerprint) noexcept {
  return static_cast<std::uint32_t>(
      (std::uint64_t{fingerprint * 0x9e3779b1u} * HintSegmentLayout::kLines) >> 32);
}

}  // namespace hint_slot

}  // namespace flugs::columns
