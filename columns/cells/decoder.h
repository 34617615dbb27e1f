#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "flugs/value.h"

namespace flugs::columns {

/// How to get a column's values from its cells.
enum class DecodeKind : std::uint8_t {
  kCode8,     ///< ValueID of an 8-byte entry (types of up to 4 bytes)
  kCode16,    ///< ValueID of a 16-byte entry (types of 8 bytes)
  kCodeText,  ///< ValueID of a 32-byte entry
  kNarrow,    ///< payload of a 32-bit type
  kWide,      ///< payload of any other fixed-width type
  kText,      ///< text cell
  kDropped,   ///< NULL, whatever the cell
  kChanged,   ///< cells of several editions: the Column decodes them
};

/// The part of a column that decoding a row needs, in 16 bytes. The decoders of all columns of a
/// table lie side by side, so reading a whole row does not visit a Column object per cell. A
/// dictionary keeps its column's decoder up to date.
struct Decoder {
  static constexpr std::uint32_t kNoCode = 0xFFFFFFFFu;
  /// ValueIDs below it are in the dictionary's first chunk.
  static constexpr std::uint32_t kFirstEntries = 256;

  std::atomic<const std::byte*> first_entries{nullptr};
  std::atomic<std::uint32_t> null_code{kNoCode};
  std::atomic<DecodeKind> kind{DecodeKind::kWide};
  /// Type and scale of the column's values, except NULL. Valid once `kind` is acquired and is not
  /// kChanged.
  std::atomic<std::uint16_t> type_and_scale{0};

  void set_type(Type type, std::uint8_t scale) noexcept {
    type_and_scale.store(static_cast<std::uint16_t>(static_cast<unsigned>(type) | scale << 8),
                         std::memory_order_relaxed);
  }
  ValueKind value_kind() const noexcept {
    const std::uint16_t both = type_and_scale.load(std::memory_order_relaxed);
    return std::bit_cast<ValueKind>(both | std::uint32_t{1} << 16);
  }
};
static_assert(sizeof(Decoder) == 16);

}  // namespace flugs::columns
