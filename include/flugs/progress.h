#pragma once

#include <cstdint>
#include <string_view>

namespace flugs {

/// Progress of a long operation, in steps of unlike length. `total` is 0 while it is unknown, and
/// may grow; `done` never decreases within a phase.
struct Progress {
  std::string_view phase;  ///< "dictionary indexes" or "key indexes" of RecoveryReport, or "check"
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

}  // namespace flugs
