// Tests of the tests: every mutation of the catalogue is caught, or known to be unnecessary.

#include <catch2/catch.hpp>
#include <cstdio>
#include <set>
#include <string>

#include "verify/crash/exploration/mutations.h"

namespace flugs::crash {
namespace {

/// Sites that can be removed without any failure; docs/persistence.md, section 7, says why they
/// stay. A new or missing entry shows a change of a protocol or of the explorer's power.
const std::set<std::string> kRemovable = {
    "chunk_list/2: flush behind its fence",
    "chunk_list/2: no fence",
    "commit/4: flush behind its fence",
    "create_database/1: no fence",
    "create_database/1: no flush",
    "create_tables/2: last line not flushed",
    "forget_intents/1: no fence",
    "forget_intents/1: no flush",
    "hint_change/2: no fence",
    "hint_change/2: no flush",
    "hint_change/3: no fence",
    "hint_change/3: no flush",
    "hint_directory/2: no fence",
    "hint_directory/2: no flush",
    "hint_go_on/1: no fence",
    "hint_go_on/1: no flush",
    "hint_go_on/2: no fence",
    "hint_go_on/2: no flush",
    "hole-punch/2: no fence",
    "hole-punch/2: no flush",
    "keep_hints/2: no fence",
    "keep_hints/2: no flush",
    "pool-create/1: no fence",
    "pool-create/1: no flush",
    "pool-create/2: last line not flushed",
    "pool-create/2: stored a fence early",
    "row_group/1: last line not flushed",
    "sweep/2: no flush",
};

TEST_CASE("every mutation is caught or known to be removable", "[crash]") {
  std::size_t caught = 0;
  std::set<std::string> removable;
  for (const MutationCase& mutation : mutation_cases()) {
    const Result<MutationResult> result = judge(mutation, 1);
    INFO(to_string(mutation) << ": " << result.status().to_string());
    REQUIRE(result.ok());
    std::printf("%s: %s, %.1f s\n", to_string(mutation).c_str(),
                result->found == "ok" ? "not found" : "found", result->seconds);
    INFO(result->found);
    CHECK((result->verdict == MutationVerdict::kCaught ||
           result->verdict == MutationVerdict::kRemovable));
    caught += result->verdict == MutationVerdict::kCaught ? 1 : 0;
    if (result->verdict == MutationVerdict::kRemovable) removable.insert(to_string(mutation));
  }
  CHECK(caught == 194);
  CHECK(removable == kRemovable);
}

TEST_CASE("the mutations include every flush and fence that the scripts reach", "[crash]") {
  for (const Protocol& protocol : protocols()) {
    // No crash point has this number.
    const ExplorationResult result =
        explore({.protocol = std::string(protocol.name), .replay = "999999999,0"});
    INFO(protocol.name << ": " << result.outcome.to_string());
    CHECK(result.outcome.ok());
  }
  std::set<std::string> judged;
  for (const MutationCase& mutation : mutation_cases()) {
    if (mutation.kind == Mutation::Kind::kNoFlush)
      judged.insert("flush " + std::string(mutation.label));
    if (mutation.kind == Mutation::Kind::kNoFence)
      judged.insert("fence " + std::string(mutation.label));
  }
  for (const std::string& site : watched_sites()) {
    INFO(site);
    CHECK(judged.contains(site));
  }
}

}  // namespace
}  // namespace flugs::crash
