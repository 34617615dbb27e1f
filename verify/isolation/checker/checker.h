#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "verify/isolation/checker/anomaly.h"
#include "verify/isolation/checker/history.h"

namespace flugs::isolation {

struct CheckOptions {
  Level level = Level::kStrongSnapshot;
  /// Also look for cycles that the level allows: if there are some, the history is worth checking.
  bool reports_allowed = false;
};

/// The result of a check. Reports of several histories can be added up.
struct Report {
  struct Anomalies {
    std::uint64_t forbidden = 0;
    std::uint64_t allowed = 0;
  };
  std::uint64_t transactions = 0;
  std::uint64_t operations = 0;
  std::uint64_t committed = 0;
  std::uint64_t aborted = 0;
  std::uint64_t unknown = 0;           ///< killed before the answer
  std::uint64_t unknown_happened = 0;  ///< of these, seen by others
  std::uint64_t dependencies = 0;
  std::uint64_t forbidden = 0;  ///< anomalies that the level excludes; of cycles, one per knot
  std::array<Anomalies, kAnomalyCount> by_kind{};
  /// The first forbidden anomaly of each kind, and the shortest cycle, in words.
  std::vector<std::string> words;

  void add(const Report& other);
};

/// Checks a history. Takes time in proportion to its operations and to the elements that were read,
/// and no more than a few seconds for a million of them.
/// Fails with: kInvalidArgument (as `infer`).
Result<Report> check(const History& history, const CheckOptions& options);

}  // namespace flugs::isolation
