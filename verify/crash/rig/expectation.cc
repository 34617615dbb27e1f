#include "verify/crash/rig/expectation.h"

#include <cstddef>
#include <string>
#include <utility>

namespace flugs::crash {

void Expectation::find_outcomes() {
  outcomes.resize(1);
  // A table is dropped only when no transaction is left that wrote to it.
  for (const bool is_drop : {false, true}) {
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (!pending[i].is_committing || pending[i].step.dropped.empty() == is_drop) continue;
      const std::size_t known = outcomes.size();
      for (std::size_t k = 0; k < known; ++k) {
        Outcome outcome{outcomes[k].taken | 1U << i, outcomes[k].state};
        if (model_step(pending[i].step, outcome.state)) outcomes.push_back(std::move(outcome));
      }
    }
  }
}

Result<Expectation::Outcome*> Expectation::find(engine::DatabaseCore& core,
                                                const Transaction& transaction) {
  for (Outcome& outcome : outcomes) {
    const Result<bool> is_seen = sees(core, transaction, outcome.state);
    if (!is_seen.ok()) return is_seen.status();
    if (*is_seen) return &outcome;
  }
  std::string unlike;
  for (const Outcome& outcome : outcomes) {
    unlike += unlike.empty() ? "" : "; nor after what was in flight: ";
    unlike += must_see(core, transaction, outcome.state).message();
  }
  return Status(StatusCode::kCorrupt, std::move(unlike));
}

}  // namespace flugs::crash
