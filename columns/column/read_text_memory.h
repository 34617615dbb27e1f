#pragma once

#include <atomic>
#include <cstdint>

namespace flugs::columns {

/// The memory of texts that were compressed and were read, of all row groups of a table.
/// Thread-safety: any thread.
class ReadTextMemory {
 public:
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  void add(std::uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void subtract(std::uint64_t bytes) noexcept {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  /// What MergePolicy::read_text_bytes_max says.
  std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  void set_limit(std::uint64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> limit_{0};
};

}  // namespace flugs::columns
