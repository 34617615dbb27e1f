#include "bench/support/merge_watch.h"

#include <chrono>
#include <utility>

#include "bench/support/clock.h"

namespace flugs::bench {

namespace {

constexpr std::chrono::milliseconds kMergeSlice{10};
// The share of a slice that a merge must take for the slice to count as one with a merge. A slice
// with less, but some, counts nowhere.
constexpr double kMergingShare = 0.5;

}  // namespace

MergeWatch::MergeWatch(const Database& database, std::function<std::uint64_t()> executed)
    : database_(database),
      executed_(std::move(executed)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void MergeWatch::run(const std::stop_token& stop) {
  std::uint64_t then_ns = monotonic_ns();
  std::uint64_t executed_then = executed_();
  double merged_then = database_.statistics().merge_seconds;
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kMergeSlice);
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t executed_now = executed_();
    const double merged_now = database_.statistics().merge_seconds;
    const double seconds = static_cast<double>(now_ns - then_ns) * 1e-9;
    const double merged = merged_now - merged_then;
    merging_.store(merged >= kMergingShare * seconds, std::memory_order_relaxed);
    if (merged == 0 || merged >= kMergingShare * seconds) {
      Slices& slices = merged == 0 ? without_ : with_;
      slices.executed += executed_now - executed_then;
      slices.seconds += seconds;
    }
    then_ns = now_ns;
    executed_then = executed_now;
    merged_then = merged_now;
  }
}

std::optional<double> MergeWatch::share_during_merge() {
  thread_.request_stop();
  thread_.join();
  if (with_.seconds == 0 || without_.executed == 0) return std::nullopt;
  return static_cast<double>(with_.executed) / with_.seconds /
         (static_cast<double>(without_.executed) / without_.seconds);
}

}  // namespace flugs::bench
