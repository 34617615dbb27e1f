#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "verify/crash/rig/mutation.h"
#include "verify/crash/scripts/protocols.h"

namespace flugs::crash {

/// One look at one protocol. All members but the budgets decide how crash points and images are
/// numbered, and are in the words that replay a failure.
struct Exploration {
  std::string protocol;
  /// Round 0 explores the script. Any other round runs the script unwatched and explores a random
  /// continuation, a different one in each round.
  std::uint32_t round = 0;
  std::uint64_t seed = 1;
  std::uint32_t slots = 2;
  bool hints = false;  ///< IndexPlace::kPool
  bool late = false;   ///< no index in DRAM is made by opening, however small
  bool tears_words = false;
  bool at_flushes = false;
  std::uint32_t nested_depth = 1;
  std::uint64_t combinations_max = 128;
  std::uint32_t random_images = 16;
  std::string schedule = {};  ///< of a protocol with threads, "12>1.40>0": explores only this
                              ///< schedule
  // Budgets.
  std::uint32_t nested_one_in = 16;
  std::uint64_t images_max = 2500;
  std::string replay = {};  ///< crash points and images, "12,3;0,1": only these
};

struct ExplorationResult {
  ExplorerReport report;
  std::map<UnflushedSite, std::uint64_t> unflushed;  ///< CrashRig::unflushed_at_acknowledgement
  Status outcome;
  std::string replay;  ///< of the first failure, for read_replay; empty when there is none
  double seconds = 0;  ///< of the processor
};

ExplorationResult explore(const Exploration& exploration, const Mutation& mutation = {});

/// Size of the pool that the exploration looks at.
std::size_t pool_bytes(const Exploration& exploration, const Protocol& protocol);
/// The options for the explorer. Fails with kInvalidArgument: `replay`.
Result<ExplorerOptions> explorer_options(const Exploration& exploration);
/// Names the whole exploration, for read_replay.
std::string replay_words(const Exploration& exploration);
/// Names the state that failed.
std::string replay_words(const Exploration& exploration, const CrashFailure& failure);
/// The words of ExplorationResult::replay. Fails with kInvalidArgument.
Result<Exploration> read_replay(std::string_view words);

/// Whether exploring with the mutation finds a mistake; `found` says what was found. Runs in a
/// process of its own, because a mutation may make a database stop. Fails when the exploration says
/// nothing about the mutation.
Result<bool> finds(const Exploration& exploration, const Mutation& mutation, std::string& found);

}  // namespace flugs::crash
