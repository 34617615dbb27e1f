#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "columns/index/ordered_index.h"
#include "columns/index/ordered_index_node.h"

// Search in one node of an ordered index. Prefixes are compared first. Full keys, which may cost a
// cache miss each, are compared only where prefixes do not decide.
namespace flugs::columns {

/// Result of `position` if the node changed.
constexpr std::uint32_t kChanged = 0xFFFFFFFFu;

/// Searches for `entry`, or for the entry directly after it.
struct EntryTarget {
  const OrderedIndexCompare* compare;
  OrderedEntry entry;
  bool after = false;
};

/// Searches for the first entry that is not before the range of `probe`.
struct ProbeTarget {
  std::uint64_t lower_prefix;
  FunctionRef<int(const OrderedEntry&)> probe;
};

/// The first i whose prefix is not below `prefix` or, with kAbove, is above it.
template <bool kAbove, typename N>
std::uint32_t prefix_bound(const N& node, std::uint32_t first, std::uint32_t end,
                           std::uint64_t prefix) noexcept {
  const auto before = [&](std::uint32_t i) {
    return kAbove ? node.prefix(i) <= prefix : node.prefix(i) < prefix;
  };
  FLUGS_DCHECK(first <= end && end <= N::kCapacity);
  std::uint32_t length = end - first;
  if (length == 0) return first;
  while (length > 1) {  // without branches that could be mispredicted
    const std::uint32_t half = length / 2;
    first += before(first + half - 1) ? half : 0;
    length -= half;
  }
  return first + (before(first) ? 1 : 0);
}

/// The first entry of `node` that is not before the target (count() if there is none), or kChanged
/// if the node has left `version`. Any other result is not validated yet. The callback gets only
/// entries that were in the node at `version`.
template <typename N>
std::uint32_t position(const N& node, std::uint64_t version, const EntryTarget& target) {
  const std::uint64_t prefix = target.entry.prefix;
  const std::uint32_t count = node.count();
  std::uint32_t first = prefix_bound<false>(node, 0, count, prefix);
  if (first == count || node.prefix(first) != prefix) return first;
  std::uint32_t end = first + 1;
  if (end < count && node.prefix(end) == prefix) end = prefix_bound<true>(node, end, count, prefix);
  while (first < end) {
    const std::uint32_t middle = first + (end - first) / 2;
    const std::uint32_t row = node.row(middle);
    if (!node.lock.validate(version)) return kChanged;
    const int order = compare_rows(target.compare, row, target.entry.row);
    if (order < 0 || (order == 0 && target.after)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

template <typename N>
std::uint32_t position(const N& node, std::uint64_t version, const ProbeTarget& target) {
  const std::uint32_t count = node.count();
  bool changed = false;
  const auto before = [&](std::uint32_t i) {
    const OrderedEntry entry = node.entry(i);
    if (!node.lock.validate(version)) changed = true;
    return !changed && target.probe(entry) < 0;
  };
  std::uint32_t first = prefix_bound<false>(node, 0, count, target.lower_prefix);
  // Mostly that is the place already: try there before searching the rest.
  std::uint32_t end = first;
  for (std::uint32_t step = 1; end < count && before(end); step *= 2) {
    first = end + 1;
    end += step;
  }
  end = std::min(end, count);
  while (first < end && !changed) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (before(middle)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return changed ? kChanged : first;
}

}  // namespace flugs::columns
