#pragma once

#include <algorithm>
#include <cstdint>

namespace flugs::columns {

/// The runs of a main column with run-length encoding: rows side by side that have one code. Reads
/// of damaged runs stay inside the parts of the column.
/// Thread-safety: any thread.
class MainRuns {
 public:
  /// No runs.
  MainRuns() = default;
  /// `ends` has the row behind each run; `starts`, per 1024 rows, the run of the first of them.
  MainRuns(const std::uint32_t* ends, const std::uint32_t* starts, std::uint32_t count,
           std::uint32_t row_count) noexcept
      : ends_(ends), starts_(starts), count_(count), row_count_(row_count) {}

  bool empty() const noexcept { return count_ == 0; }
  std::uint32_t count() const noexcept { return count_; }
  /// The run of a row. Only if there are runs.
  std::uint32_t of(std::uint32_t row) const noexcept;
  /// The end of a run in which the row is; behind the row even if the run is damaged.
  std::uint32_t end_of(std::uint32_t run, std::uint32_t row) const noexcept {
    return run + 1 < count_ ? std::max(ends_[run], row + 1) : row_count_;
  }
  /// Calls part(first, count, run) for the parts of runs in [first, first + count).
  template <typename Part>
  void for_parts(std::uint32_t first, std::uint32_t count, const Part& part) const {
    const std::uint32_t end = first + count;
    for (std::uint32_t run = count != 0 ? of(first) : 0; first < end; ++run) {
      const std::uint32_t run_end = std::min(end_of(run, first), end);
      part(first, run_end - first, run);
      first = run_end;
    }
  }

  // As they are in the pool, for audits.
  std::uint32_t stored_end(std::uint32_t run) const noexcept { return ends_[run]; }
  std::uint32_t stored_start(std::uint32_t step) const noexcept { return starts_[step]; }

 private:
  const std::uint32_t* ends_ = nullptr;
  const std::uint32_t* starts_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t row_count_ = 0;
};

}  // namespace flugs::columns
