#pragma once

#include <cstdint>
#include <vector>

#include "engine/database/database_core.h"
#include "verify/crash/rig/state.h"

namespace flugs::crash {

/// A step that is under way.
struct Pending {
  std::uint64_t number = 0;
  Step step;
  bool is_committing = false;  ///< may have taken effect; otherwise it has not
};

/// What a database that is recovered at some moment must hold.
struct Expectation {
  /// The state in which exactly those pending steps have taken effect that `taken` has a bit for,
  /// by their place.
  struct Outcome {
    std::uint32_t taken = 0;
    DatabaseState state;
  };
  std::vector<Pending> pending;
  /// All allowed outcomes. The first is that no pending step has taken effect: it has only what was
  /// acknowledged, or seen by another transaction.
  std::vector<Outcome> outcomes = std::vector<Outcome>(1);
  std::uint64_t timestamp = 0;  ///< the latest acknowledged time-stamp

  DatabaseState& state() noexcept { return outcomes.front().state; }
  const DatabaseState& state() const noexcept { return outcomes.front().state; }
  /// Call it after each change of `pending` or of state().
  void find_outcomes();
  /// The outcome that the transaction sees. If it sees none, fails with the difference from each.
  Result<Outcome*> find(engine::DatabaseCore& core, const Transaction& transaction);
};

}  // namespace flugs::crash
