#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flugs::engine {

/// What the columns of a table took when somebody last looked whether they should begin anew
/// (decision 0026), which costs a visit to every text. Thread-safety: one thread at a time.
class ReclaimChecks {
 public:
  /// Whether the column, which takes `bytes`, is worth another look: it has a quarter more than at
  /// the last one, or less than half; or the room that it wanted then is there.
  bool take(std::size_t column, std::uint64_t bytes, std::uint64_t free_bytes) {
    Check& check = check_of(column);
    const bool has_changed = bytes >= check.bytes + check.bytes / 4 || bytes <= check.bytes / 2;
    const bool has_room = check.free_bytes_wanted != 0 && free_bytes >= check.free_bytes_wanted;
    if (!has_changed && !has_room) return false;
    check = {bytes, 0};
    return true;
  }
  /// It would have begun anew if there had been so many free bytes in the pool.
  void note_no_room(std::size_t column, std::uint64_t free_bytes_wanted) {
    check_of(column).free_bytes_wanted = free_bytes_wanted;
  }

 private:
  struct Check {
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes_wanted = 0;  ///< 0: it was not for want of room
  };
  Check& check_of(std::size_t column) {
    if (checks_.size() <= column) checks_.resize(column + 1);
    return checks_[column];
  }

  std::vector<Check> checks_;
};

}  // namespace flugs::engine
