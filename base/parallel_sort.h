#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/crew.h"

namespace flugs {

/// Sorts parts in parallel, and then merges pairs of parts. Not stable. `before` must not throw,
/// and is called by several threads.
template <typename Range, typename Before>
void parallel_sort(Crew& crew, std::uint32_t threads, Range& range, Before before) {
  constexpr std::size_t kPartMin = 4096;  // a smaller part is not worth a thread
  FLUGS_CHECK(threads != 0);
  const std::size_t size = range.size();
  const std::size_t parts = std::clamp<std::size_t>(size / kPartMin, 1, threads);
  const auto bound = [&](std::size_t part) {
    return range.begin() + static_cast<std::ptrdiff_t>(size * std::min(part, parts) / parts);
  };
  crew.for_each(threads, parts, [&](std::size_t i) { std::sort(bound(i), bound(i + 1), before); });
  for (std::size_t step = 1; step < parts; step *= 2)
    crew.for_each(threads, (parts + 2 * step - 1) / (2 * step), [&](std::size_t pair) {
      const std::size_t first = pair * 2 * step;
      std::inplace_merge(bound(first), bound(first + step), bound(first + 2 * step), before);
    });
}

}  // namespace flugs
