#pragma once

#include <algorithm>
#include <chrono>

namespace flugs {

// The end of a wait that a user has limited, perhaps by milliseconds::max().
inline std::chrono::steady_clock::time_point deadline_after(
    std::chrono::steady_clock::time_point start, std::chrono::milliseconds limit) noexcept {
  using Clock = std::chrono::steady_clock;
  // Compared in milliseconds, because the longest limits overflow nanoseconds.
  const auto room =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - start);
  return limit >= room ? Clock::time_point::max() : start + limit;
}

}  // namespace flugs
