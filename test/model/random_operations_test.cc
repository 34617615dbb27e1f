// Random operations in several open transactions on several snapshots, each outcome
// compared with what a plain map with versions says (model_database.h).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "test/model/exerciser.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kOperations = 300'000;  // a night has more

std::uint64_t seed_or(std::uint64_t standard) {
  const char* given = std::getenv("FLUGS_SEED");
  return given == nullptr ? standard : std::strtoull(given, nullptr, 10);
}

std::uint64_t operations_or(std::uint64_t standard) {
  const char* given = std::getenv("FLUGS_OPERATIONS");
  return given == nullptr ? standard : std::strtoull(given, nullptr, 10);
}

}  // namespace

TEST_CASE("random operations give what a map with versions gives", "[engine][model]") {
  const std::uint64_t seed = seed_or(20140623);
  const std::uint64_t operations = operations_or(kOperations);
  WARN("FLUGS_SEED=" << seed << " FLUGS_OPERATIONS=" << operations);
  Exerciser exerciser(seed);
  for (std::uint64_t done = 0; done < operations && exerciser.complaint().empty(); ++done) {
    exerciser.step();
    // Rows are recycled only after some thousand commits: long stretches between reopenings.
    if (done % 25000 == 24999) exerciser.rest(done % 250000 == 249999);
  }
  exerciser.rest(true);
  INFO("operation " << exerciser.steps() << ", FLUGS_SEED=" << seed);
  INFO(exerciser.summary());
  REQUIRE(exerciser.complaint() == "");
}

TEST_CASE("few records under many transactions give what a map with versions gives",
          "[engine][model]") {
  const std::uint64_t seed = seed_or(4711);
  const std::uint64_t operations = operations_or(kOperations) / 5;
  WARN("FLUGS_SEED=" << seed << " FLUGS_OPERATIONS=" << operations * 5);
  Exerciser exerciser(seed, {.records = 12, .transactions = 9, .domain = 6});
  for (std::uint64_t done = 0; done < operations && exerciser.complaint().empty(); ++done) {
    exerciser.step();
    if (done % 10000 == 9999) exerciser.rest(done % 100000 == 99999);
  }
  exerciser.rest(true);
  INFO("operation " << exerciser.steps() << ", FLUGS_SEED=" << seed);
  INFO(exerciser.summary());
  REQUIRE(exerciser.complaint() == "");
}

}  // namespace flugs::test
