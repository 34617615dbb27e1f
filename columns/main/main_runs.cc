#include "columns/main/main_runs.h"

#include <cstddef>

#include "base/check.h"
#include "columns/main/main_column_layout.h"

namespace flugs::columns {

std::uint32_t MainRuns::of(std::uint32_t row) const noexcept {
  FLUGS_DCHECK(count_ != 0 && row < row_count_);
  const std::uint32_t step = row >> MainColumnLayout::kRowsPerRunStartLog2;
  const std::uint32_t last_step = (row_count_ - 1) >> MainColumnLayout::kRowsPerRunStartLog2;
  const std::uint32_t last = count_ - 1;
  const std::uint32_t low = std::min(starts_[step], last);
  const std::uint32_t high = step < last_step ? std::min(starts_[step + 1], last) : last;
  // Halves the candidate runs, without a branch that could be mispredicted.
  const std::uint32_t* begin = ends_ + low;
  std::uint32_t count = high > low ? high - low : 0;
  while (count > 1) {
    const std::uint32_t half = count / 2;
    begin += std::size_t{half} * static_cast<std::size_t>(begin[half - 1] <= row);
    count -= half;
  }
  if (count == 1 && *begin <= row) ++begin;
  return static_cast<std::uint32_t>(begin - ends_);
}

}  // namespace flugs::columns
