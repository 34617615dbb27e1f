#pragma once

#include <cstdint>

#include "columns/main_column_layout.h"
#include "flugs/value.h"

namespace flugs::columns {

/// Which encodings a builder may choose from. Plain is always among them, for what no other can
/// hold, and so is constant for a column of NULLs, which no other holds.
class MainEncodings {
 public:
  static constexpr MainEncodings all() noexcept { return MainEncodings(0xFF); }
  static constexpr MainEncodings only(MainEncoding encoding) noexcept {
    return MainEncodings(1u << static_cast<unsigned>(encoding));
  }
  constexpr bool has(MainEncoding encoding) const noexcept {
    return encoding == MainEncoding::kPlain ||
           ((bits_ >> static_cast<unsigned>(encoding)) & 1) != 0;
  }
  /// Just one, wherever it can hold the column, whatever it costs.
  constexpr bool is_only_one() const noexcept { return bits_ != 0xFF; }

 private:
  constexpr explicit MainEncodings(unsigned bits) noexcept : bits_(bits) {}
  unsigned bits_;
};

/// What decides on the encoding of a column.
struct MainColumnFacts {
  Type type = Type::kInt64;
  std::uint32_t rows = 0;
  std::uint32_t nulls = 0;
  std::uint32_t runs = 0;      ///< of equal rows, NULL equal to NULL
  std::uint64_t spread = 0;    ///< greatest payload - least; not for text and double
  std::uint64_t distinct = 0;  ///< values, without NULL; 0: too many for a dictionary to pay
};

struct MainEncodingChoice {
  MainEncoding encoding = MainEncoding::kPlain;
  bool has_entries = false;
  unsigned code_bits = 0;
};

/// Codes that a column's values and NULL need: as many as entries, or as payloads from the least
/// to the greatest (0: more than a width of codes holds).
std::uint64_t codes_for_entries(const MainColumnFacts& facts) noexcept;
std::uint64_t codes_for_payloads(const MainColumnFacts& facts) noexcept;

/// The encoding that costs least. Its cost is its bytes, since a scan waits for memory; a
/// dictionary of numbers counts 1.5 times, since decoding it goes through a table, and run lengths
/// count twice, since finding one row takes a search. So packed codes stay unless a dictionary
/// takes less than two thirds of their bytes, and runs are 8 or more rows long.
MainEncodingChoice choose_encoding(const MainColumnFacts& facts, MainEncodings allowed) noexcept;

/// With more distinct values than this no dictionary would be chosen; 0: nobody has to count them.
std::uint64_t distinct_limit(const MainColumnFacts& facts, MainEncodings allowed) noexcept;

}  // namespace flugs::columns
