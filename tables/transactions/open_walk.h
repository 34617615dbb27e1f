#pragma once

#include <atomic>
#include <cstddef>

#include "flugs/status.h"

namespace flugs::engine {

/// A walk over rows that the user pulls (flugs/rows.h), as its transaction knows it. The
/// transaction and the user share it, since either may end first.
///
/// Invariant: a walk shows the rows as they were when it began. So the transaction calls
/// `read_rest` before it writes, and changes no row in place while a walk is open.
/// Thread-safety: one thread, that of the transaction; `is_over`, `abandon`: any.
class OpenWalk {
 public:
  /// `writes`: how many the transaction has made so far.
  explicit OpenWalk(std::size_t writes) noexcept : began_at_(writes) {}
  virtual ~OpenWalk() = default;
  OpenWalk(const OpenWalk&) = delete;
  OpenWalk& operator=(const OpenWalk&) = delete;

  /// Notes the rows that are left. What goes wrong is told to the user later.
  virtual void read_rest() = 0;

  std::size_t began_at() const noexcept { return began_at_; }
  /// The transaction has ended, or undone writes that the walk may show.
  void end() noexcept { is_over_.store(true, std::memory_order_release); }
  bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }
  /// The user pulls no more rows.
  void abandon() noexcept { is_abandoned_.store(true, std::memory_order_release); }
  bool is_abandoned() const noexcept { return is_abandoned_.load(std::memory_order_acquire); }

 private:
  const std::size_t began_at_;
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace flugs::engine
