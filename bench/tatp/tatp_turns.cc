#include "bench/tatp/tatp_turns.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/support/clock.h"
#include "bench/tatp/tatp_user.h"

namespace flugs::bench {

namespace {

/// The users of all sides; those of one side work at a time.
class Turns {
 public:
  Turns(std::span<const TatpSide> sides, const Population& population,
        const TatpTurnsOptions& options)
      : options_(options) {
    for (const TatpSide& side : sides)
      users_.push_back(
          std::make_unique<TatpUsers>(*side.database, *side.tables, population, options.run));
    for (const auto& users : users_) users->control().set(TatpPhase::kPaused);
  }

  /// Turns of `phase` until each side has had `seconds`, which are added to `had`.
  void run(TatpPhase phase, double seconds, std::vector<double>& had) {
    for (bool backwards = false; had.front() < seconds; backwards = !backwards) {
      if (options_.run.progress && !options_.run.progress(had.front(), seconds)) return;
      for (std::size_t i = 0; i < users_.size(); ++i) {
        const std::size_t side = backwards ? users_.size() - 1 - i : i;
        if (users_[side]->control().failed.load()) return;
        had[side] += turn(*users_[side], phase, seconds - had[side]);
      }
    }
  }

  void end(std::vector<TatpRunResult>& results) {
    for (std::size_t i = 0; i < users_.size(); ++i) {
      users_[i]->stop();
      users_[i]->add_to(results[i]);
    }
  }

 private:
  double turn(TatpUsers& users, TatpPhase phase, double seconds_left) const {
    const std::uint64_t begin = monotonic_ns();
    users.control().set(phase);
    const std::chrono::duration<double> longest = std::chrono::milliseconds(options_.turn_ms);
    std::this_thread::sleep_for(
        std::min(longest, std::chrono::duration<double>(std::max(seconds_left, 0.0))));
    users.control().set(TatpPhase::kPaused);
    return seconds_since(begin);
  }

  const TatpTurnsOptions& options_;
  std::vector<std::unique_ptr<TatpUsers>> users_;
};

}  // namespace

std::vector<TatpRunResult> run_tatp_by_turns(std::span<const TatpSide> sides,
                                             const Population& population,
                                             const TatpTurnsOptions& options) {
  std::vector<TatpRunResult> results(sides.size());
  if (sides.empty()) return results;
  Turns turns(sides, population, options);
  std::vector<double> seconds(sides.size());
  turns.run(TatpPhase::kRampUp, options.run.ramp_up_seconds, seconds);
  for (std::size_t i = 0; i < sides.size(); ++i)
    results[i].before = sides[i].database->statistics();
  std::fill(seconds.begin(), seconds.end(), 0);
  turns.run(TatpPhase::kSampling, options.run.seconds, seconds);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    results[i].seconds = seconds[i];
    results[i].after = sides[i].database->statistics();
  }
  turns.end(results);
  return results;
}

}  // namespace flugs::bench
