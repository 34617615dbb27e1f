#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "base/mutex.h"

namespace flugs::engine {

/// When chunks of rows were thawed: a merge had frozen them, and left them for lack of room. Lists
/// of their free rows from before no longer hold. Only full pools have such chunks.
/// Thread-safety: any thread.
class ThawedChunks final {
 public:
  /// `since` only grows.
  void note(std::uint32_t first_row, std::uint64_t since) {
    const std::lock_guard guard(mutex_);
    thawed_at_[first_row] = since;
  }
  /// Whether the chunk was thawed after `checked_at`.
  bool is_after(std::uint32_t first_row, std::uint64_t checked_at) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = thawed_at_.find(first_row);
    return found != thawed_at_.end() && found->second > checked_at;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> thawed_at_;  // by the chunk's first row
};

}  // namespace flugs::engine
