#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "columns/index/ordered_index.h"
#include "columns/index/ordered_index_search.h"

// An ordered index as a whole: building, clearing, counting, auditing.
namespace flugs::columns {

void OrderedIndex::clear() {
  store_.clear();
  reset();
}

std::size_t OrderedIndex::size() const noexcept {
  std::int64_t total = 0;
  for (const SizeStripe& stripe : size_) total += stripe.entries.load(std::memory_order_relaxed);
  return static_cast<std::size_t>(std::max<std::int64_t>(total, 0));
}

void OrderedIndex::build_sorted(std::span<const OrderedEntry> entries) {
  FLUGS_CHECK(size() == 0);
  clear();  // erasing the last entries may have left inner nodes
  if (entries.empty()) return;
  for (std::size_t i = 1; i < entries.size(); ++i)
    FLUGS_CHECK(entries[i - 1].prefix <= entries[i].prefix);
  store_.free(static_cast<Leaf*>(anchor_->child(0)));

  // Builds one level at a time: its nodes, and the largest entry below each. All nodes of a level
  // get the same number of entries, so none has too few.
  std::vector<Node*> nodes((entries.size() + kLeafEntriesBuilt - 1) / kLeafEntriesBuilt);
  std::vector<OrderedEntry> largest(nodes.size());
  Leaf* previous = nullptr;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const std::size_t begin = entries.size() * k / nodes.size();
    const std::size_t end = entries.size() * (k + 1) / nodes.size();
    Leaf* leaf = store_.new_leaf();
    leaf->next.store(nullptr, std::memory_order_relaxed);
    leaf->assign(entries.subspan(begin, end - begin));
    if (previous != nullptr) previous->next.store(leaf, std::memory_order_release);
    previous = leaf;
    nodes[k] = leaf;
    largest[k] = entries[end - 1];
  }
  while (nodes.size() > 1) {
    std::vector<Node*> upper((nodes.size() + kInnerEntriesBuilt) / (kInnerEntriesBuilt + 1));
    std::vector<OrderedEntry> upper_largest(upper.size());
    for (std::size_t k = 0; k < upper.size(); ++k) {
      const std::size_t begin = nodes.size() * k / upper.size();
      const std::size_t end = nodes.size() * (k + 1) / upper.size();
      Inner* inner = store_.new_inner();
      inner->assign(std::span(largest).subspan(begin, end - begin - 1),
                    std::span(nodes).subspan(begin, end - begin));
      upper[k] = inner;
      upper_largest[k] = largest[end - 1];
    }
    nodes = std::move(upper);
    largest = std::move(upper_largest);
  }
  anchor_->set_child(0, nodes[0]);
  add_to_size(nodes[0], static_cast<std::int64_t>(entries.size()));
}

struct OrderedIndex::Audit {
  const Leaf* last_leaf = nullptr;
  OrderedEntry last{};
  std::size_t entries = 0;
  std::uint32_t leaf_level = 0;  // known once there is a last_leaf
};

namespace {

Status broken(std::string what) {
  return {StatusCode::kCorrupt, "ordered index: " + std::move(what)};
}

}  // namespace

Status OrderedIndex::audit(const Node& node, std::uint32_t level, Audit& state) const {
  if (level > kDepthMax) return broken("too many levels");
  if (node.lock.is_locked()) return broken("a node is locked");
  const std::uint32_t count = node.count();
  const std::uint32_t capacity = node.is_leaf ? kLeafEntries : kInnerEntries;
  if (count > capacity) return broken("a node has " + std::to_string(count) + " entries");
  if (count == 0 && (level > 0 || !node.is_leaf) && !(level == 0 && size() == 0))
    return broken("an empty node on level " + std::to_string(level));
  if (!node.is_leaf) {
    const auto& inner = static_cast<const Inner&>(node);
    for (std::uint32_t i = 0; i <= count; ++i) {
      if (Status status = audit(*inner.child(i), level + 1, state); !status.ok()) return status;
      if (i < count && inner.entry(i) != state.last)
        return broken("a separator is not the largest entry before it, on level " +
                      std::to_string(level));
    }
    return {};
  }
  const auto& leaf = static_cast<const Leaf&>(node);
  if (state.last_leaf != nullptr) {
    if (state.last_leaf->next.load(std::memory_order_relaxed) != &leaf)
      return broken("a leaf is not linked to the next");
    if (state.leaf_level != level) return broken("leaves on different levels");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const OrderedEntry entry = leaf.entry(i);
    if (state.entries != 0 && !precedes(compare_, state.last, entry))
      return broken("entries out of order at position " + std::to_string(state.entries));
    state.last = entry;
    ++state.entries;
  }
  state.last_leaf = &leaf;
  state.leaf_level = level;
  return {};
}

Status OrderedIndex::check() const {
  Audit state;
  if (Status status = audit(*anchor_->child(0), 0, state); !status.ok()) return status;
  if (state.last_leaf->next.load(std::memory_order_relaxed) != nullptr)
    return broken("the last leaf is linked to a next leaf");
  if (state.entries != size())
    return broken(std::to_string(state.entries) + " entries, but the size says " +
                  std::to_string(size()));
  return {};
}

}  // namespace flugs::columns
