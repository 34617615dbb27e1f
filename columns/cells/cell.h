#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/types.h"
#include "flugs/value.h"

namespace flugs::columns {

/// The content of a row's cell for one column, before packing: a code, an integer payload or a text
/// cell.
struct Cell {
  std::uint64_t low = 0;
  std::uint64_t high = 0;  // text only
  bool is_null = false;    // direct cells only: a dictionary has an entry for NULL
};

/// Text in 16 bytes: up to 15 bytes in place, or the place of a longer text.
///   byte 15    0 to 15: that many bytes stand in bytes 0..14
///              0xFF: bytes 0..7 hold the pool offset, bytes 8..11 the length in bytes
namespace text_cell {

inline constexpr std::size_t kInlineBytesMax = 15;
inline constexpr std::uint8_t kOutOfLine = 0xFF;
static_assert(std::endian::native == std::endian::little);

inline Cell make_inline(std::string_view text) noexcept {
  FLUGS_DCHECK(text.size() <= kInlineBytesMax);
  char bytes[16] = {};
  if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
  bytes[15] = static_cast<char>(text.size());
  Cell cell;
  std::memcpy(&cell.low, bytes, 8);
  std::memcpy(&cell.high, bytes + 8, 8);
  return cell;
}
inline Cell make_out_of_line(std::uint64_t offset, std::uint32_t length) noexcept {
  return {offset, std::uint64_t{length} | (std::uint64_t{kOutOfLine} << 56), false};
}

inline std::uint8_t tag_of(std::uint64_t high) noexcept {
  return static_cast<std::uint8_t>(high >> 56);
}
inline std::uint32_t length_of(std::uint64_t high) noexcept {
  const std::uint8_t tag = tag_of(high);
  return tag == kOutOfLine ? static_cast<std::uint32_t>(high) : tag;
}

/// The text of the cell at address `cell`, in the pool of `pool_bytes` based at `base`; empty when
/// the cell points outside the pool or is no text cell.
inline std::string_view view(const std::byte* cell, const std::byte* base,
                             std::uint64_t pool_bytes) noexcept {
  std::uint64_t high = 0;
  std::memcpy(&high, cell + 8, 8);
  if (tag_of(high) <= kInlineBytesMax) return {reinterpret_cast<const char*>(cell), tag_of(high)};
  if (tag_of(high) != kOutOfLine) return {};
  std::uint64_t offset = 0;
  std::memcpy(&offset, cell, 8);
  if (offset == 0 || offset > pool_bytes || static_cast<std::uint32_t>(high) > pool_bytes - offset)
    return {};
  return {reinterpret_cast<const char*>(base + offset), static_cast<std::uint32_t>(high)};
}

inline bool is_plausible(std::uint64_t low, std::uint64_t high, std::uint64_t pool_bytes) noexcept {
  if (tag_of(high) <= kInlineBytesMax) return true;
  return tag_of(high) == kOutOfLine && low != 0 && low <= pool_bytes &&
         static_cast<std::uint32_t>(high) <= pool_bytes - low;
}

}  // namespace text_cell
}  // namespace flugs::columns
