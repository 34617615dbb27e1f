#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flugs::engine {

/// The size of each column of a table at the last check whether to rewrite it (decision 0026). Such
/// a check visits every text. Thread-safety: one thread at a time.
class ReclaimChecks {
 public:
  /// Whether the column, which takes `bytes`, is worth another check: it has grown by a quarter
  /// since the last check, or shrunk below half; or the space that a rewrite lacked then is free
  /// now.
  bool is_due(std::size_t column, std::uint64_t bytes, std::uint64_t free_bytes) {
    const Check& check = check_of(column);
    const bool has_changed = bytes >= check.bytes + check.bytes / 4 || bytes <= check.bytes / 2;
    return has_changed || (check.free_bytes_wanted != 0 && free_bytes >= check.free_bytes_wanted);
  }
  /// The same, for a caller that checks the column now.
  bool take(std::size_t column, std::uint64_t bytes, std::uint64_t free_bytes) {
    if (!is_due(column, bytes, free_bytes)) return false;
    check_of(column) = {bytes, 0};
    return true;
  }
  /// Rows have left the heaps of columns: each column is worth another check.
  void forget() noexcept { checks_.clear(); }
  /// The check would have rewritten the column if the pool had had this many free bytes.
  void note_no_room(std::size_t column, std::uint64_t free_bytes_wanted) {
    check_of(column).free_bytes_wanted = free_bytes_wanted;
  }
  /// Notes that a merge of a pool with little room would like columns to begin anew later. True:
  /// they may. False from the third time on, where calls with the same `refusals`, the pool's count
  /// (pmem::SpaceReport), are the same time: writes are refused all the same.
  bool put_off(std::uint64_t refusals) {
    constexpr int kTimesMax = 2;
    if (refusals != put_off_at_) ++times_put_off_;
    put_off_at_ = refusals;
    return times_put_off_ <= kTimesMax;
  }
  /// They began anew, or there is room.
  void end_put_off() noexcept { times_put_off_ = 0; }

 private:
  struct Check {
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes_wanted = 0;  ///< 0: the check did not lack space
  };
  Check& check_of(std::size_t column) {
    if (checks_.size() <= column) checks_.resize(column + 1);
    return checks_[column];
  }

  std::vector<Check> checks_;
  std::uint64_t put_off_at_ = 0;
  int times_put_off_ = 0;  // at different counts
};

}  // namespace flugs::engine
