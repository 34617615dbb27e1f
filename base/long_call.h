#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "flugs/progress.h"
#include "flugs/status.h"

namespace flugs {

/// The status of a call whose caller asked it to stop. `what`: the object that it worked on.
inline Status stopped_by_caller(std::string_view what) {
  return Status(StatusCode::kCancelled, std::string(what) + ": the caller asked the call to stop");
}

/// A long call as its caller sees it: it tells the caller how far it is, and looks whether the
/// caller has asked it to stop. Work that begins again takes neither progress nor the total back.
/// Thread-safety: one thread at a time; `is_asked_to_stop`: any thread.
class LongCall final {
 public:
  /// `options` and `phase` must outlive the object.
  LongCall(const CallOptions& options, std::string_view phase) noexcept
      : options_(options), phase_(phase) {}

  bool is_asked_to_stop() const noexcept { return options_.stop.stop_requested(); }
  void tell(std::uint64_t done, std::uint64_t total) {
    if (!options_.progress) return;
    done_ = std::max(done_, done);
    total_ = std::max({total_, total, done_});
    options_.progress({phase_, done_, total_});
  }
  /// The work is done; `total`: how much it was.
  void tell_end(std::uint64_t total) {
    const std::uint64_t all = std::max(total_, total);
    tell(all, all);
  }
  /// Tells the caller, unless it has asked to stop. False: it has.
  bool goes_on(std::uint64_t done, std::uint64_t total) {
    if (is_asked_to_stop()) return false;
    tell(done, total);
    return !is_asked_to_stop();
  }
  static constexpr std::uint64_t kRowsPerTell = 1024;
  /// As goes_on, for each of many rows: tells only at some of them.
  bool goes_on_at_row(std::uint64_t row, std::uint64_t total) {
    return row % kRowsPerTell == 0 ? goes_on(row, total) : !is_asked_to_stop();
  }

 private:
  const CallOptions& options_;
  std::string_view phase_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace flugs
