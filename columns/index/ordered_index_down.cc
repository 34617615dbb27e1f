// Scanning an ordered index in descending order.

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/check.h"
#include "columns/index/ordered_index.h"
#include "columns/index/ordered_index_descent.h"
#include "columns/index/ordered_index_search.h"

namespace flugs::columns {

/// The entries of one leaf that are before a target.
struct OrderedIndex::Before {
  std::array<OrderedEntry, kLeafEntries> entries;
  std::uint32_t count = 0;
  bool has_left = false;
  OrderedEntry left{};  // the largest entry of the leaves to the left of this one
};

// A leaf has no link to its left neighbour. Its largest entry is a separator on the way down, and
// the next descent looks for that entry. All nodes of the way are validated at the end, so what was
// read existed at one moment. False: a node has changed.
template <typename Target>
bool OrderedIndex::read_before(const Target& target, bool with_target, Before& out) const {
  Path path;
  if (descend<Purpose::kRead>(target, path) != Descent::kLeaf) return false;
  const Leaf& leaf = path.leaf();
  out.count = position(leaf, path.version, target);
  if (out.count == kChanged) return false;
  FLUGS_DCHECK(out.count <= out.entries.size());
  for (std::uint32_t i = 0; i < out.count; ++i) out.entries[i] = leaf.entry(i);
  if constexpr (std::is_same_v<Target, EntryTarget>)
    if (with_target && out.count < leaf.count() && leaf.entry(out.count) == target.entry)
      out.entries[out.count++] = target.entry;
  out.has_left = false;
  for (std::uint32_t s = path.depth; s-- > 1 && !out.has_left;) {
    const Step& step = path.steps[s];
    out.has_left = step.child > 0;
    if (out.has_left) out.left = step.node->entry(step.child - 1);
  }
  for (std::uint32_t s = 0; s < path.depth; ++s)
    if (!path.steps[s].node->lock.validate(path.steps[s].version)) return false;
  return leaf.lock.validate(path.version);
}

void OrderedIndex::scan_down(std::uint64_t upper_prefix, Probe probe, Visit visit) const {
  // Finds the first entry behind the range: no entry with a prefix below this one is.
  const auto is_behind = [&](const OrderedEntry& entry) { return probe(entry) > 0 ? 0 : -1; };
  Before batch;
  bool is_first = true;
  SpinWait wait;
  for (;;) {
    const bool is_read =
        is_first ? read_before(ProbeTarget{upper_prefix, is_behind}, false, batch)
                 : read_before(EntryTarget{compare_, OrderedEntry(batch.left)}, true, batch);
    if (!is_read) {
      wait.once();
      continue;
    }
    // If the smallest entry is in the range, all are.
    const bool all_inside = batch.count > 0 && probe(batch.entries[0]) == 0;
    for (std::uint32_t i = batch.count; i-- > 0;)
      if ((!all_inside && probe(batch.entries[i]) != 0) || !visit(batch.entries[i])) return;
    if (!batch.has_left) return;
    is_first = false;
  }
}

}  // namespace flugs::columns
