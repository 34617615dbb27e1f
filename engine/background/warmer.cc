#include "engine/background/warmer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/thread.h"

namespace flugs::engine {

Warmer::Warmer(pmem::Pool& pool, std::vector<pmem::Extent> extents)
    : pool_(pool), extents_(std::move(extents)) {
  std::uint64_t bytes = 0;
  for (const pmem::Extent& extent : extents_) bytes += extent.bytes;
  bytes_left_.store(bytes, std::memory_order_relaxed);
  Result<std::jthread> started =
      start_thread("flugs-warm", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok())
    thread_ = *std::move(started);
  else
    bytes_left_.store(0, std::memory_order_relaxed);
}

void Warmer::run(const std::stop_token& stop) noexcept {
  sleep_.sleep_for(stop, ThreadSleep::kFirst);
  for (const pmem::Extent& extent : extents_)
    if (!warm(extent, stop)) break;
  bytes_left_.store(0, std::memory_order_relaxed);
}

// Works in steps: closing waits for one step, and so may a thread that maps or unmaps memory.
bool Warmer::warm(pmem::Extent extent, const std::stop_token& stop) noexcept {
  constexpr std::uint64_t kStepBytes = std::uint64_t{2} << 20;
  const std::uint64_t end = extent.offset + extent.bytes;
  while (extent.offset < end) {
    if (stop.stop_requested()) return false;
    const std::uint64_t step_end = (extent.offset / kStepBytes + 1) * kStepBytes;
    extent.bytes = std::min(step_end, end) - extent.offset;
    const auto begin = std::chrono::steady_clock::now();
    if (!pool_.warm(extent)) return false;
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    ns_.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
    warmed_bytes_.fetch_add(extent.bytes, std::memory_order_relaxed);
    const std::uint64_t left = bytes_left_.fetch_sub(extent.bytes, std::memory_order_relaxed);
    FLUGS_CHECK(left >= extent.bytes);
    extent.offset += extent.bytes;
  }
  return true;
}

}  // namespace flugs::engine
