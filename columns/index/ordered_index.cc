#include "columns/index/ordered_index.h"

#include <algorithm>

#include "base/check.h"
#include "columns/index/ordered_index_descent.h"
#include "columns/index/ordered_index_search.h"

namespace flugs::columns {

namespace {

// Two nodes are joined only if that leaves room; else the next insert would split the node again.
constexpr std::uint32_t kLeafEntriesJoined = kLeafEntries - kLeafEntries / 4;
constexpr std::uint32_t kInnerEntriesJoined = kInnerEntries - kInnerEntries / 4;
// Where two nodes are not joined, each gets enough of their entries.
static_assert((kLeafEntriesJoined + 1) / 2 >= kLeafEntriesMin);
static_assert((kInnerEntriesJoined + 1) / 2 - 1 >= kInnerEntriesMin);

// A point look-up needs an entry or two: copy a few first, then more at a time.
constexpr std::uint32_t kFirstBatch = 4;

}  // namespace

OrderedIndex::OrderedIndex(const OrderedIndexCompare* compare) : compare_(compare) { reset(); }

void OrderedIndex::reset() {
  anchor_ = store_.new_inner();
  anchor_->set_child(0, store_.new_leaf());
  for (SizeStripe& stripe : size_) stripe.entries.store(0, std::memory_order_relaxed);
}

void OrderedIndex::add_to_size(const Node* node, std::int64_t entries) noexcept {
  const std::size_t stripe = reinterpret_cast<std::uintptr_t>(node) / sizeof(Leaf) % kSizeStripes;
  size_[stripe].entries.fetch_add(entries, std::memory_order_relaxed);
}

bool OrderedIndex::has_bad_fill(Purpose purpose, const Path& path) const noexcept {
  const Node& node = *path.node;
  if (purpose == Purpose::kRead) return false;
  if (purpose == Purpose::kInsert)
    return node.count() == (node.is_leaf ? kLeafEntries : kInnerEntries);
  if (path.depth == 1) return !node.is_leaf && node.count() == 0;  // a root may be nearly empty
  return node.count() < (node.is_leaf ? kLeafEntriesMin : kInnerEntriesMin);
}

// ---- insert

void OrderedIndex::insert(const OrderedEntry& entry, bool is_whole) {
  const EntryTarget target{is_whole ? nullptr : compare_, entry};
  SpinWait wait;
  while (try_insert(target, false) == Outcome::kAgain) wait.once();
}

bool OrderedIndex::insert_unless_there(const OrderedEntry& entry) {
  const EntryTarget target{compare_, entry};
  SpinWait wait;
  for (;;) {
    const Outcome outcome = try_insert(target, true);
    if (outcome != Outcome::kAgain) return outcome == Outcome::kDone;
    wait.once();
  }
}

OrderedIndex::Outcome OrderedIndex::try_insert(const EntryTarget& target, bool may_be_there) {
  Path path;
  const OrderedEntry& entry = target.entry;
  const Descent descent = descend<Purpose::kInsert>(target, path);
  if (descent == Descent::kBadFill) split(path);
  if (descent != Descent::kLeaf) return Outcome::kAgain;
  Leaf& leaf = path.leaf();
  const std::uint32_t i = position(leaf, path.version, target);
  if (i == kChanged || !leaf.lock.upgrade(path.version)) return Outcome::kAgain;
  const bool is_there = i < leaf.count() && leaf.entry(i) == entry;
  if (is_there && may_be_there) {
    leaf.lock.unlock();
    return Outcome::kPresent;
  }
  FLUGS_CHECK(!is_there);
  // A separator is the largest entry of its leaf: only the last leaf can get a larger one.
  FLUGS_DCHECK(i < leaf.count() || leaf.next.load(std::memory_order_relaxed) == nullptr);
  leaf.insert(i, entry);
  leaf.lock.unlock();
  add_to_size(&leaf, 1);
  return Outcome::kDone;
}

// Splits the full path.node. Its parent has room; otherwise the descent would have stopped there.
void OrderedIndex::split(const Path& path) {
  const Step& parent = path.parent();
  if (!parent.node->lock.upgrade(parent.version)) return;
  Node* node = path.node;
  if (node->lock.upgrade(path.version)) {
    FLUGS_DCHECK(node->count() == (node->is_leaf ? kLeafEntries : kInnerEntries));
    bool at_right_edge = true;
    for (std::uint32_t i = 0; i < path.depth; ++i)
      at_right_edge = at_right_edge && path.steps[i].child == path.steps[i].node->count();
    Inner* above = parent.node;
    std::uint32_t i = parent.child;
    if (above == anchor_) {  // no thread gets past the locked anchor to the new root
      above = store_.new_inner();
      above->assign({}, std::array{node});
      anchor_->set_child(0, above);
      i = 0;
    }
    Node* right = nullptr;
    const OrderedEntry separator =
        node->is_leaf ? split_leaf(static_cast<Leaf&>(*node), right, at_right_edge)
                      : split_inner(static_cast<Inner&>(*node), right, at_right_edge);
    above->insert_child(i, separator, right);
    node->lock.unlock();
  }
  parent.node->lock.unlock();
}

OrderedEntry OrderedIndex::split_leaf(Leaf& left, Node*& right_out, bool at_right_edge) {
  const std::uint32_t n = left.count();
  const std::uint32_t kept = at_right_edge ? kLeafEntriesBuilt : n / 2;
  FLUGS_CHECK(kept >= 1 && kept < n);
  Leaf* right = store_.new_leaf();
  for (std::uint32_t i = kept; i < n; ++i) right->set_entry(i - kept, left.entry(i));
  right->set_count(n - kept);
  right->next.store(left.next.load(std::memory_order_relaxed), std::memory_order_release);
  left.next.store(right, std::memory_order_release);
  left.set_count(kept);
  right_out = right;
  return left.entry(kept - 1);
}

OrderedEntry OrderedIndex::split_inner(Inner& left, Node*& right_out, bool at_right_edge) {
  const std::uint32_t n = left.count();
  const std::uint32_t kept = at_right_edge ? kInnerEntriesBuilt : n / 2;
  FLUGS_CHECK(kept >= 1 && kept < n);
  Inner* right = store_.new_inner();
  for (std::uint32_t i = kept + 1; i < n; ++i) right->set_entry(i - kept - 1, left.entry(i));
  for (std::uint32_t i = kept + 1; i <= n; ++i) right->set_child(i - kept - 1, left.child(i));
  right->set_count(n - kept - 1);
  left.set_count(kept);
  right_out = right;
  return left.entry(kept);
}

// ---- erase

bool OrderedIndex::erase(const OrderedEntry& entry, bool is_whole) {
  const EntryTarget target{is_whole ? nullptr : compare_, entry};
  SpinWait wait;
  for (;;) {
    const Outcome outcome = try_erase(target);
    if (outcome != Outcome::kAgain) return outcome == Outcome::kDone;
    wait.once();
  }
}

OrderedIndex::Outcome OrderedIndex::try_erase(const EntryTarget& target) {
  Path path;
  const OrderedEntry& entry = target.entry;
  const Descent descent = descend<Purpose::kErase>(target, path);
  if (descent == Descent::kBadFill) join(path);
  if (descent != Descent::kLeaf) return Outcome::kAgain;
  Leaf& leaf = path.leaf();
  const std::uint32_t i = position(leaf, path.version, target);
  if (i == kChanged) return Outcome::kAgain;
  const std::uint32_t count = leaf.count();
  if (i >= count || leaf.entry(i) != entry)
    return leaf.lock.validate(path.version) ? Outcome::kAbsent : Outcome::kAgain;
  if (i + 1 == count) return erase_largest(path, entry);
  if (!leaf.lock.upgrade(path.version)) return Outcome::kAgain;
  leaf.erase(i);
  leaf.lock.unlock();
  add_to_size(&leaf, -1);
  return Outcome::kDone;
}

// The largest entry of a leaf is also the separator of one inner node, unless the leaf is the last;
// the entry before it becomes the separator. This narrows the range of every node between the two.
// So all of them are locked and get a new version, and a descent in one of them starts again.
OrderedIndex::Outcome OrderedIndex::erase_largest(const Path& path, const OrderedEntry& entry) {
  std::uint32_t first = path.depth;  // steps[first] has the separator; path.depth when none has
  for (std::uint32_t s = path.depth; s-- > 1;) {
    const Step& step = path.steps[s];
    if (step.child >= step.node->count() || step.node->entry(step.child) != entry) continue;
    first = s;
    break;
  }
  std::uint32_t locked = first;
  while (locked < path.depth && path.steps[locked].node->lock.upgrade(path.steps[locked].version))
    ++locked;
  bool valid = locked == path.depth && path.node->lock.upgrade(path.version);
  const bool leaf_locked = valid;
  // No node may have the separator now that the leaf is locked: only under this lock can its
  // largest entry become a separator.
  if (first == path.depth)
    for (std::uint32_t s = 0; s < path.depth; ++s)
      valid = valid && path.steps[s].node->lock.validate(path.steps[s].version);
  if (valid) {
    Leaf& leaf = path.leaf();
    const std::uint32_t count = leaf.count();
    if (first < path.depth) {
      FLUGS_CHECK(count >= 2);  // the descent lets no smaller leaf pass
      path.steps[first].node->set_entry(path.steps[first].child, leaf.entry(count - 2));
    }
    leaf.erase(count - 1);
  }
  if (leaf_locked) path.node->lock.unlock();
  for (std::uint32_t s = first; s < locked; ++s) path.steps[s].node->lock.unlock();
  if (!valid) return Outcome::kAgain;
  add_to_size(path.node, -1);
  return Outcome::kDone;
}

// Joins path.node, which has too few entries, with a neighbour below the same parent, or fills it
// up from there. An inner root without separators is removed instead.
void OrderedIndex::join(const Path& path) {
  Inner& parent = *path.parent().node;
  if (!parent.lock.upgrade(path.parent().version)) return;
  if (&parent == anchor_) {
    if (path.node->lock.upgrade(path.version)) {
      auto* root = static_cast<Inner*>(path.node);
      anchor_->set_child(0, root->child(0));
      root->lock.unlock();
      store_.free(root);
    }
  } else {
    // The descent made sure that the parent has at least two children.
    FLUGS_CHECK(parent.count() >= 1);
    const std::uint32_t i = std::min(path.parent().child, parent.count() - 1);
    Node* left = parent.child(i);
    Node* right = parent.child(i + 1);
    left->lock.lock();
    right->lock.lock();
    if (left->is_leaf) {
      join_leaves(parent, i, static_cast<Leaf&>(*left), static_cast<Leaf&>(*right));
    } else {
      join_inners(parent, i, static_cast<Inner&>(*left), static_cast<Inner&>(*right));
    }
    left->lock.unlock();
  }
  parent.lock.unlock();
}

void OrderedIndex::join_leaves(Inner& parent, std::uint32_t i, Leaf& left, Leaf& right) {
  FLUGS_DCHECK(parent.lock.is_locked() && left.lock.is_locked() && right.lock.is_locked());
  FLUGS_DCHECK(left.next.load(std::memory_order_relaxed) == &right);
  std::array<OrderedEntry, std::size_t{2} * kLeafEntries> entries;
  std::uint32_t n = 0;
  for (std::uint32_t k = 0; k < left.count(); ++k) entries[n++] = left.entry(k);
  for (std::uint32_t k = 0; k < right.count(); ++k) entries[n++] = right.entry(k);
  const std::span all(entries.data(), n);
  const bool joined = n <= kLeafEntriesJoined;
  const std::uint32_t kept = joined ? n : n / 2;
  left.assign(all.first(kept));
  if (joined) {
    left.next.store(right.next.load(std::memory_order_relaxed), std::memory_order_release);
    parent.erase_child_after(i);
  } else {
    right.assign(all.subspan(kept));
    parent.set_entry(i, entries[kept - 1]);
  }
  right.lock.unlock();
  if (joined) store_.free(&right);
}

void OrderedIndex::join_inners(Inner& parent, std::uint32_t i, Inner& left, Inner& right) {
  FLUGS_DCHECK(parent.lock.is_locked() && left.lock.is_locked() && right.lock.is_locked());
  std::array<OrderedEntry, std::size_t{2} * kInnerEntries + 1> entries;
  std::array<Node*, std::size_t{2} * kInnerEntries + 2> children;
  std::uint32_t n = 0;
  std::uint32_t m = 0;
  for (std::uint32_t k = 0; k < left.count(); ++k) entries[n++] = left.entry(k);
  for (std::uint32_t k = 0; k <= left.count(); ++k) children[m++] = left.child(k);
  entries[n++] = parent.entry(i);
  for (std::uint32_t k = 0; k < right.count(); ++k) entries[n++] = right.entry(k);
  for (std::uint32_t k = 0; k <= right.count(); ++k) children[m++] = right.child(k);
  const std::span separators(entries.data(), n);
  const std::span below(children.data(), m);
  const bool joined = n <= kInnerEntriesJoined;
  const std::uint32_t kept = joined ? n : n / 2;
  left.assign(separators.first(kept), below.first(kept + 1));
  if (joined) {
    parent.erase_child_after(i);
  } else {
    right.assign(separators.subspan(kept + 1), below.subspan(kept + 1));
    parent.set_entry(i, entries[kept]);
  }
  right.lock.unlock();
  if (joined) store_.free(&right);
}

// ---- scan

void OrderedIndex::scan(std::uint64_t lower_prefix, Probe probe, Visit visit) const {
  OrderedEntry last{};
  bool has_last = false;
  SpinWait wait;
  for (;;) {
    Path path;
    std::uint32_t first = kChanged;
    // After an interruption go on behind the last visited entry, whatever the leaves are now.
    const auto find = [&](const auto& target) {
      if (descend<Purpose::kRead>(target, path) == Descent::kLeaf)
        first = position(path.leaf(), path.version, target);
    };
    if (has_last) {
      find(EntryTarget{compare_, last, true});
    } else {
      find(ProbeTarget{lower_prefix, probe});
    }
    if (first != kChanged && scan_from(path, first, probe, visit, last, has_last)) return;
    wait.once();
  }
}

// Visits entries from entry `first` of path.leaf() on; false when a leaf has changed, with `last`
// visited.
//
// The next leaf's version is noted before this leaf is validated. So the next leaf, at that
// version, begins where this one ended. If it still has that version when the scan gets there, it
// is the right continuation, however long the visits took and whatever became of this leaf.
bool OrderedIndex::scan_from(const Path& path, std::uint32_t first, Probe probe, Visit visit,
                             OrderedEntry& last, bool& has_last) const {
  std::array<OrderedEntry, kLeafEntries> batch;
  std::uint32_t batch_max = kFirstBatch;
  const Leaf* leaf = &path.leaf();
  std::uint64_t version = path.version;
  while (leaf != nullptr) {
    const std::uint32_t count = leaf->count();
    const std::uint32_t end = std::min(std::max(first, count), first + batch_max);
    const std::uint32_t n = end - first;
    FLUGS_DCHECK(n <= batch.size());
    for (std::uint32_t i = 0; i < n; ++i) batch[i] = leaf->entry(first + i);
    const Leaf* next = leaf;
    std::uint64_t next_version = version;
    if (end == count) {
      next = leaf->next.load(std::memory_order_acquire);
      if (next != nullptr) {
        prefetch_node(next);
        next_version = next->lock.read();
      }
    }
    if (!leaf->lock.validate(version)) return false;

    // If the largest entry is in the range, all are.
    const bool all_inside = n > 0 && probe(batch[n - 1]) == 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!all_inside && probe(batch[i]) != 0) return true;
      last = batch[i];
      has_last = true;
      if (!visit(batch[i])) return true;
    }
    first = next == leaf ? end : 0;
    leaf = next;
    version = next_version;
    batch_max = std::min(batch_max * 4, kLeafEntries);
  }
  return true;
}

}  // namespace flugs::columns
