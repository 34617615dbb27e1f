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
/// caller has asked it to stop. Work that begins again does not take progress back.
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
    options_.progress({phase_, done_, std::max(total, done_)});
  }
  /// Tells the caller, unless it has asked to stop. False: it has.
  bool goes_on(std::uint64_t done, std::uint64_t total) {
    if (is_asked_to_stop()) return false;
    tell(done, total);
    return !is_asked_to_stop();
  }
  /// As goes_on, for each of many rows: tells only at some of them.
  bool goes_on_at_row(std::uint64_t row, std::uint64_t total) {
    constexpr std::uint64_t kRowsPerTell = 1024;
    return row % kRowsPerTell == 0 ? goes_on(row, total) : !is_asked_to_stop();
  }

 private:
  const CallOptions& options_;
  std::string_view phase_;
  std::uint64_t done_ = 0;
};

}  // namespace flugs
