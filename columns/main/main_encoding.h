#pragma once

#include <bit>
#include <cstdint>

#include "columns/main/main_column_layout.h"
#include "flugs/value.h"

namespace flugs::columns {

/// The encodings that a builder may choose from. Plain is always allowed, for columns that no other
/// encoding can hold; constant is always allowed for a column of NULLs, which no other can hold.
class MainEncodings {
 public:
  static constexpr MainEncodings all() noexcept { return MainEncodings(0xFF); }
  static constexpr MainEncodings only(MainEncoding encoding) noexcept {
    return MainEncodings(1u << static_cast<unsigned>(encoding));
  }
  constexpr MainEncodings without(MainEncoding encoding) const noexcept {
    return MainEncodings(bits_ & ~(1u << static_cast<unsigned>(encoding)));
  }
  constexpr bool has(MainEncoding encoding) const noexcept {
    return encoding == MainEncoding::kPlain ||
           ((bits_ >> static_cast<unsigned>(encoding)) & 1) != 0;
  }
  /// Whether it allows just one encoding, which is then used wherever it can hold the column,
  /// whatever it costs.
  constexpr bool is_only_one() const noexcept { return std::has_single_bit(bits_); }

 private:
  constexpr explicit MainEncodings(unsigned bits) noexcept : bits_(bits) {}
  unsigned bits_;
};

/// The facts about a column that decide its encoding.
struct MainColumnFacts {
  Type type = Type::kInt64;
  std::uint32_t rows = 0;
  std::uint32_t nulls = 0;
  std::uint32_t runs = 0;      ///< runs of equal rows, with NULL equal to NULL
  std::uint64_t spread = 0;    ///< greatest payload - least; not for text and double
  std::uint64_t distinct = 0;  ///< distinct values without NULL; 0: too many for a dictionary to
                               ///< pay
};

struct MainEncodingChoice {
  MainEncoding encoding = MainEncoding::kPlain;
  bool has_entries = false;
  unsigned code_bits = 0;
};

/// Number of codes for a column's values and NULL: as many as entries, or as payloads from the
/// least to the greatest (0: more codes than any width holds).
std::uint64_t codes_for_entries(const MainColumnFacts& facts) noexcept;
std::uint64_t codes_for_payloads(const MainColumnFacts& facts) noexcept;

/// The encoding with the lowest cost. The cost is the number of bytes, because a scan waits for
/// memory. The bytes of a dictionary of numbers count 1.5 times, because decoding uses a table; run
/// lengths count twice, because finding one row takes a search. So packed codes stay unless a
/// dictionary takes less than two thirds of their bytes, and runs are 8 or more rows long.
MainEncodingChoice choose_encoding(const MainColumnFacts& facts, MainEncodings allowed) noexcept;

/// With more distinct values than this, no dictionary would be chosen; 0: counting is unnecessary.
std::uint64_t distinct_limit(const MainColumnFacts& facts, MainEncodings allowed) noexcept;

}  // namespace flugs::columns
