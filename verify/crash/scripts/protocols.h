#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "verify/crash/scripts/turns.h"

// The catalogue of protocols. To add a protocol: write its script in a protocols_*.cc, declare it
// in scripts.h, and add a line to protocols.cc. `flugs prove explore`, the tests and the mutations
// find it there.

namespace flugs::crash {

using Script = void (*)(CrashRig&);

struct Protocol {
  std::string_view name;
  std::string_view what;  ///< a description for people
  Script script;
  TurnMix turns;  ///< how the random continuation of a further round is mixed
  std::uint32_t pool_kilobytes = 160;
  bool watches_creation = false;
  /// Above 0: the script runs this many threads, and each exploration looks at many schedules.
  std::uint32_t threads = 0;
  bool gives_back = false;  ///< RigOptions::gives_back
};

std::span<const Protocol> protocols();
/// Null when there is none of that name.
const Protocol* find_protocol(std::string_view name);

}  // namespace flugs::crash
