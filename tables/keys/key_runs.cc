#include "tables/keys/key_runs.h"

#include <algorithm>

namespace flugs::engine {

std::uint64_t KeyRuns::unserved_rows() const noexcept {
  std::uint64_t rows = 0;
  const std::uint32_t end = rows_.rows_end();
  for (std::uint32_t first = 0; first < end;) {
    const std::uint32_t chunk_end = std::min(end, rows_.end_of_chunk_with(first));
    if (!serves(first)) rows += chunk_end - first;
    first = chunk_end;
  }
  return rows;
}

void KeyRuns::for_each_unserved(std::uint32_t first, std::uint32_t end,
                                FunctionRef<void(std::uint32_t row)> visit) const {
  while (first < end) {
    const std::uint32_t chunk_end = std::min(end, rows_.end_of_chunk_with(first));
    if (!serves(first))
      for (std::uint32_t row = first; row < chunk_end; ++row)
        if (runs_.is_created(row)) visit(row);
    first = chunk_end;
  }
}

}  // namespace flugs::engine
