#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proof/exploration.h"

// The catalogue of deliberate mistakes: does the explorer have teeth? Each must be found, or be
// written down as removable with the reason.
//
// A fence that is taken out still counts its flushes as fenced in their Persister, so that a next
// fence of it with nothing new to wait for does not happen: "found" may therefore mean that this
// fence does the work of a later one.

namespace flugs::proof {

struct MutationCase {
  Mutation::Kind kind;
  std::string_view label;
  std::string_view protocol;  ///< whose exploration has to find it
  Region region = Region::kOther;
  bool tears_words = false;
  std::string_view why_removable = {};  ///< empty: must be found
  bool hints = false;                   ///< with IndexMode::kHint
  bool late = false;                    ///< with indexes in DRAM made late
};

std::span<const MutationCase> mutation_cases();
/// "no flush commit/1 (row)".
std::string to_string(const MutationCase& mutation);

enum class MutationVerdict : std::uint8_t {
  kCaught,
  kRemovable,   ///< not found, and known not to be needed
  kMissed,      ///< not found, but needed
  kNeededAgain  ///< found, although said to be removable
};
std::string_view to_string(MutationVerdict verdict);
struct MutationResult {
  MutationVerdict verdict = MutationVerdict::kMissed;
  std::string found;  ///< what the explorer said
  double seconds = 0;
};
/// Fails when the exploration says nothing about it.
Result<MutationResult> judge(const MutationCase& mutation, std::uint64_t seed);

}  // namespace flugs::proof
