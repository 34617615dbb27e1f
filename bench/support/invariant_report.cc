#include "bench/support/invariant_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flugs::bench {

void InvariantReport::check(Invariant invariant) noexcept {
  Check& state = states_[static_cast<std::size_t>(invariant)];
  if (state == Check::kNotChecked) state = Check::kHeld;
}

void InvariantReport::broken(Invariant invariant, std::string problem) {
  states_[static_cast<std::size_t>(invariant)] = Check::kBroken;
  if (problems_.size() < kProblemsMax)
    problems_.push_back(fmt::format("T{}: {}", static_cast<std::size_t>(invariant) + 1, problem));
}

void InvariantReport::merge(const InvariantReport& other) {
  for (std::size_t i = 0; i < kInvariants; ++i) states_[i] = std::max(states_[i], other.states_[i]);
  lost_acknowledged_ += other.lost_acknowledged_;
  for (const std::string& problem : other.problems_)
    if (problems_.size() < kProblemsMax) problems_.push_back(problem);
}

bool InvariantReport::all_held() const noexcept {
  return std::none_of(states_.begin(), states_.end(),
                      [](Check state) { return state == Check::kBroken; });
}

}  // namespace flugs::bench
