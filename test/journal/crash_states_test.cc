// Explores the crash states of the journal of a pool on a disk (crash_states.h).
#include "test/journal/crash_states.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "test/support/complaint.h"

namespace flugs::test {

TEST_CASE(
    "no power cut in the journal, a checkpoint or an opening loses what is durable, and no "
    "kill what lies in a crash ring",
    "[journal]") {
  const char* const times = std::getenv("FLUGS_CRASH_STATES");
  const char* const seed = std::getenv("FLUGS_SEED");
  const std::uint64_t factor = times == nullptr ? 1 : std::strtoull(times, nullptr, 10);
  const std::uint64_t states = factor * static_cast<std::uint64_t>(rounds_of(300'000, 30'000));
  const std::uint64_t first = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
  CrashStates explored(first);
  explored.explore(states);
  std::printf("%llu scripts, %llu states, %llu of them nested, %llu left by a kill\n",
              static_cast<unsigned long long>(explored.scripts() - first),
              static_cast<unsigned long long>(explored.states()),
              static_cast<unsigned long long>(explored.nested()),
              static_cast<unsigned long long>(explored.killed()));
  INFO("FLUGS_SEED=SCRIPT begins with that script");
  CHECK(explored.violation() == "");
  CHECK(explored.states() >= states);
}

}  // namespace flugs::test
