#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "verify/crash/exploration/exploration.h"

// The catalogue of deliberate mistakes, which test the explorer. Each mistake must be found, or be
// listed as removable with the reason.
//
// If a fence is taken out, its Persister still counts its flushes as fenced, so its next fence, if
// it has nothing new to wait for, does not happen either. "Found" may therefore mean that this
// fence does the work of a later one.

namespace flugs::crash {

struct MutationCase {
  Mutation::Kind kind;
  std::string_view label;
  std::string_view protocol;  ///< its exploration must find the mistake
  Region region = Region::kOther;
  bool tears_words = false;
  std::string_view why_removable = {};  ///< empty: must be found
  bool hints = false;                   ///< with IndexPlace::kPool
  bool late = false;                    ///< with indexes in DRAM made late
};

std::span<const MutationCase> mutation_cases();
/// "no flush commit/1 (row)".
std::string to_string(const MutationCase& mutation);

enum class MutationVerdict : std::uint8_t {
  kCaught,
  kRemovable,   ///< not found, and known not to be needed
  kMissed,      ///< not found, but needed
  kNeededAgain  ///< found, although listed as removable
};
std::string_view to_string(MutationVerdict verdict);
struct MutationResult {
  MutationVerdict verdict = MutationVerdict::kMissed;
  std::string found;  ///< the report of the explorer
  double seconds = 0;
};
/// Fails when the exploration says nothing about the mistake.
Result<MutationResult> judge(const MutationCase& mutation, std::uint64_t seed);

}  // namespace flugs::crash
