#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/invariant_report.h"
#include "bench/ycsb/ycsb_rows.h"

namespace flugs::bench {

/// What must hold when no operation is in flight, by the numbers of the workload's description.
enum class YcsbInvariant : std::uint8_t {
  kKeys,    ///< Y1: the rows loaded and inserted are there, each once, and no other ones
  kFields,  ///< Y2: each field is what its key and its version make of it, so none is torn
  kIndex,   ///< Y7: the key's index leads to each row once
};
inline constexpr std::array<std::string_view, 3> kYcsbInvariantNames = {"Y1", "Y2", "Y7"};

class YcsbReport {
 public:
  void check(YcsbInvariant invariant) noexcept;
  /// Says what is wrong, in words that name the row. Only the first few are kept.
  void broken(YcsbInvariant invariant, std::string problem);

  Check state(YcsbInvariant invariant) const noexcept {
    return states_[static_cast<std::size_t>(invariant)];
  }
  bool all_held() const noexcept;  ///< none is broken
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  static constexpr std::size_t kProblemsMax = 20;

  std::array<Check, kYcsbInvariantNames.size()> states_{};
  std::vector<std::string> problems_;
};

/// Takes all rows of a database, flugs or another one, in any order.
class YcsbFindings {
 public:
  /// `count`: the rows that there must be: those loaded, and those inserted.
  YcsbFindings(const YcsbRows& rows, std::uint64_t count);

  /// A row whose key is a text.
  void row(std::string_view key, std::span<const std::string_view> fields);
  /// A row whose key is a number.
  void row(std::uint64_t number, std::span<const std::string_view> fields);

  /// After all rows. Y7 is the caller's.
  YcsbReport check();

 private:
  /// What a key's text ends with, and the number of its row.
  struct Name {
    std::uint64_t digits;
    std::uint64_t number;
  };

  YcsbRows rows_;
  std::vector<Name> names_;      ///< by digits; of kHashed
  std::vector<bool> are_there_;  ///< by number
  YcsbReport report_;
};

}  // namespace flugs::bench
