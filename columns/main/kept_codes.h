#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace flugs::columns {

/// For each code of a column of a row group, what its readers have found to stand for it, kept from
/// query to query: the ValueID in the column's dictionary + 1; 0: no reader has looked yet. A
/// ValueID never changes, and only a column's first edition has a dictionary.
///
/// Thread-safety: any thread. Two threads may look the same code up: they find the same.
class KeptCodes {
 public:
  KeptCodes() noexcept = default;
  KeptCodes(const KeptCodes&) = delete;
  KeptCodes& operator=(const KeptCodes&) = delete;
  ~KeptCodes() { delete[] codes_.load(std::memory_order_relaxed); }

  /// `count` is the same in all calls.
  std::atomic<std::uint32_t>* codes(std::size_t count) {
    std::atomic<std::uint32_t>* known = codes_.load(std::memory_order_acquire);
    if (known != nullptr) return known;
    auto made = std::make_unique<std::atomic<std::uint32_t>[]>(count);
    if (!codes_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel,
                                        std::memory_order_acquire))
      return known;
    return made.release();
  }

 private:
  std::atomic<std::atomic<std::uint32_t>*> codes_{nullptr};
};

}  // namespace flugs::columns
