#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "flugs/value.h"

namespace flugs::engine {

/// Rows of a batch that are worked on at a time: what is made of them stays in the second-level
/// cache.
inline constexpr std::size_t kBlockRows = 256;

/// The values of one column in the rows of a block, as the column stores and compares them
/// (columns::normalised).
struct BlockColumn {
  bool is_text = false;
  bool has_nulls = false;  ///< else `is_null` has no meaning
  std::array<std::uint8_t, kBlockRows> is_null;
  std::array<std::int64_t, kBlockRows> payloads;   ///< of numbers; 0 for NULL
  std::array<std::string_view, kBlockRows> texts;  ///< of texts; empty for NULL
  std::array<std::uint32_t, kBlockRows> entries;   ///< places in the dictionary of the batch

  bool is_null_at(std::size_t row) const noexcept {
    FLUGS_DCHECK(row < kBlockRows);
    return has_nulls && is_null[row] != 0;
  }
  Value value(std::size_t row, Type type) const noexcept {
    if (is_null_at(row)) return Value::null();
    return is_text ? Value::from_bytes(type, texts[row]) : Value::from_raw(type, payloads[row]);
  }
};

}  // namespace flugs::engine
