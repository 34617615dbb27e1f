// Random operations in several open transactions on random tables, which change meanwhile; each
// outcome is compared with a map of versions (model_database.h).
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>

#include "bench/support/random.h"
#include "test/model/exerciser.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kOperations = 400'000;  // a night has more
constexpr std::uint64_t kFixedSeed = 20140623;

std::uint64_t number_or(const char* variable, std::uint64_t standard) {
  const char* given = std::getenv(variable);
  return given == nullptr ? standard : std::strtoull(given, nullptr, 10);
}

/// A different seed each day.
std::uint64_t seed_of_today() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::hours>(now).count()) /
         24;
}

struct Run {
  CallCounts calls = {};
  WorldFigures figures = {};
  std::string complaint = {};
};

/// Runs `operations` in worlds with their own tables; with FLUGS_WORLD only in that one.
Run run_worlds(std::uint64_t seed, std::uint64_t operations) {
  constexpr std::uint64_t kNoWorld = ~std::uint64_t{0};
  const std::uint64_t only = number_or("FLUGS_WORLD", kNoWorld);
  const std::uint64_t steps = std::clamp<std::uint64_t>(operations / 20, 2'000, 40'000);
  Run run;
  for (std::uint64_t world = 0; world * steps < operations; ++world) {
    if (only != kNoWorld && world != only) continue;
    Exerciser exerciser(bench::mix64(bench::mix64(seed) + world));
    for (std::uint64_t i = 0; i < steps && exerciser.complaint().empty(); ++i) exerciser.step();
    if (exerciser.complaint().empty()) exerciser.finish_world();
    run.calls.add(exerciser.calls());
    run.figures.add(exerciser.figures());
    if (exerciser.complaint().empty()) continue;
    run.complaint = "FLUGS_SEED=" + std::to_string(seed) +
                    " FLUGS_OPERATIONS=" + std::to_string(operations) +
                    " FLUGS_WORLD=" + std::to_string(world) + ": " + exerciser.complaint();
    break;
  }
  return run;
}

}  // namespace

TEST_CASE("random operations on random tables agree with a map of versions", "[engine][model]") {
  const std::uint64_t seed = number_or("FLUGS_SEED", kFixedSeed);
  const std::uint64_t operations = number_or("FLUGS_OPERATIONS", kOperations);
  WARN("FLUGS_SEED=" << seed << " FLUGS_OPERATIONS=" << operations);
  const Run run = run_worlds(seed, operations);
  WARN(run.figures.to_string() << "\n" << run.calls.to_string());
  REQUIRE(run.complaint == "");
  if (std::getenv("FLUGS_WORLD") == nullptr && operations >= kOperations)
    for (const std::string_view name : run.calls.never()) FAIL_CHECK("never called: " << name);
}

TEST_CASE("random operations with the seed of the day agree with a map of versions",
          "[engine][model]") {
  if (std::getenv("FLUGS_SEED") != nullptr) return;  // the other test handles it
  const std::uint64_t seed = seed_of_today();
  const std::uint64_t operations = number_or("FLUGS_OPERATIONS", kOperations);
  WARN("FLUGS_SEED=" << seed << " FLUGS_OPERATIONS=" << operations);
  const Run run = run_worlds(seed, operations);
  WARN(run.figures.to_string());
  REQUIRE(run.complaint == "");
}

}  // namespace flugs::test
