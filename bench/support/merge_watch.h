#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "flugs/database.h"

namespace flugs::bench {

/// Throughput while a merge is at work, and while none is: looks every 10 ms, in a thread of its
/// own, for as long as it lives.
class MergeWatch {
 public:
  /// `executed` counts the work that is compared. Both arguments must outlive the object.
  MergeWatch(const Database& database, std::function<std::uint64_t()> executed);

  /// Whether a merge was at work in most of the last slice.
  bool is_merging() const noexcept { return merging_.load(std::memory_order_relaxed); }
  /// Ends the thread. Nothing when there was no slice with a merge, or none without.
  std::optional<double> share_during_merge();

 private:
  struct Slices {
    std::uint64_t executed = 0;
    double seconds = 0;
  };
  void run(const std::stop_token& stop);

  const Database& database_;
  std::function<std::uint64_t()> executed_;
  Slices with_;
  Slices without_;
  std::atomic<bool> merging_{false};
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::bench
