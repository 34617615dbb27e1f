#pragma once

#include <cstdint>
#include <vector>

#include "history/dependencies.h"

namespace flugs::history {

/// Transactions of which each comes before the next, and the last before the first.
struct Cycle {
  struct Step {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool is_real_time = false;     ///< `from` had its answer before `to` began
    std::uint32_t dependency = 0;  ///< else: position in Dependencies::edges
  };
  Anomaly anomaly = Anomaly::kG0;
  bool in_real_time = false;  ///< with a step of real time
  std::vector<Step> steps;
};

/// Cycles that a level forbids, one for each knot of transactions that hang together, the shortest
/// that a bounded search finds there; and, with `reports_allowed`, those that it does not forbid.
/// No knot is missed: only how short and of which kind the cycle in it is depends on the search.
///
/// Snapshot isolation forbids each cycle without two anti-dependencies side by side (Fekete et al.,
/// TODS 2005). With a start and a commit for each transaction, and each dependency between those of
/// them that it orders, those are the cycles of a graph: no more than that is searched for.
std::vector<Cycle> find_cycles(const History& history, const Dependencies& dependencies,
                               Level level, bool reports_allowed);

}  // namespace flugs::history
