#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "columns/index/ordered_index_node.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"

namespace flugs::columns {

/// Compares the full keys of two rows whose prefixes are equal.
///
/// Must be a total preorder that stays the same for rows in the index. Called from any thread
/// without a lock, also on a row that is being erased. The index discards such a result, but the
/// call must return for every row that was ever inserted.
class OrderedIndexCompare {
 public:
  /// <0, 0, >0 as the key of `a` is smaller than, equal to, larger than that of `b`.
  virtual int rows(std::uint32_t a, std::uint32_t b) const = 0;

 protected:
  ~OrderedIndexCompare() = default;
};

/// <0, 0, >0 as a row is before, the same as, or after another row of the same prefix. Without
/// `compare` the prefix is the whole key.
inline int compare_rows(const OrderedIndexCompare* compare, std::uint32_t a, std::uint32_t b) {
  if (a == b) return 0;
  if (compare != nullptr)
    if (const int order = compare->rows(a, b); order != 0) return order;
  return a < b ? -1 : 1;
}

/// The order of entries: prefix, full key, row.
inline bool precedes(const OrderedIndexCompare* compare, const OrderedEntry& a,
                     const OrderedEntry& b) {
  return a.prefix != b.prefix ? a.prefix < b.prefix : compare_rows(compare, a.row, b.row) < 0;
}

struct EntryTarget;

/// A DRAM B+-tree of (key, row) for many readers and writers at once. Readers take no lock: they
/// note the version of a node, read, and start again if the version has changed (optimistic lock
/// coupling, Leis et al., "The ART of Practical Synchronization"). Writers lock the nodes that they
/// change.
///
/// Entries are ordered by the first 8 bytes of the key (`prefix`), then by the full key through
/// OrderedIndexCompare, then by row: every entry is unique, and found in O(log n) even among
/// millions of duplicates of its key.
///
/// Nodes: when erasing leaves a node less than a quarter full, it is joined with its neighbour or
/// filled up from it. Freed nodes are reused. So memory follows the largest number of entries that
/// there ever was, not the number of inserts. columns/index/ordered_index_node.h says why readers
/// may still use a freed node.
///
/// Reuse of rows: the index compares only rows that are in it. So once `erase` has returned, its
/// row may come back with another key, unless a scan that began before is still running.
///
/// Thread-safety: any thread, except where said.
class OrderedIndex {
 public:
  /// Compares the range of a scan to entries: <0 the entry is before the range, 0 inside, >0
  /// behind.
  using Probe = FunctionRef<int(const OrderedEntry&)>;
  using Visit = FunctionRef<bool(const OrderedEntry&)>;

  /// Without `compare` the prefix is the whole key. `compare` must outlive the index.
  explicit OrderedIndex(const OrderedIndexCompare* compare);
  ~OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  /// The entry must not be present; the key of its row must be readable by `compare` already.
  /// `is_whole`: the prefix says all of the key, so entries with the same prefix have the same key,
  /// and no rows are compared.
  void insert(const OrderedEntry& entry, bool is_whole = false);
  /// The same for an entry that may be present; false if it is.
  bool insert_unless_there(const OrderedEntry& entry);
  /// False when absent. The key of its row must still be readable.
  bool erase(const OrderedEntry& entry, bool is_whole = false);

  /// Visits the entries inside the range in ascending order until `visit` returns false. No entry
  /// with a prefix below `lower_prefix` may be inside. Entries inserted or erased meanwhile may be
  /// visited or not; all others are visited exactly once. No node is locked during `visit`: it may
  /// take long and may change this index.
  void scan(std::uint64_t lower_prefix, Probe probe, Visit visit) const;

  /// The same in descending order. No entry with a prefix below `upper_prefix` may be behind the
  /// range.
  void scan_down(std::uint64_t upper_prefix, Probe probe, Visit visit) const;

  /// Fills an empty index with ascending entries. Thread-safety: no other thread uses the index.
  void build_sorted(std::span<const OrderedEntry> entries);

  /// Exact when no thread writes.
  std::size_t size() const noexcept;
  std::size_t memory_bytes() const noexcept { return store_.memory_bytes(); }
  /// Thread-safety: no other thread uses the index.
  void clear();

  /// Audits order, separators, fill, links and size; kCorrupt says what is wrong.
  /// Thread-safety: no thread may write meanwhile.
  Status check() const;

 private:
  // Twice what 2^32 rows need: 8 levels of 12 children, leaves of 20 entries hold 8.6 * 10^9.
  static constexpr std::uint32_t kDepthMax = 16;
  static constexpr std::size_t kSizeStripes = 16;

  struct Step {
    Inner* node;
    std::uint64_t version;
    std::uint32_t child;  // which of its children comes next
  };
  /// From the anchor down to `node`; each step was the parent of the next at one moment.
  struct Path {
    std::array<Step, kDepthMax> steps;
    std::uint32_t depth;
    Node* node;
    std::uint64_t version;

    Leaf& leaf() const noexcept {
      FLUGS_DCHECK(node->is_leaf);
      return static_cast<Leaf&>(*node);
    }
    const Step& parent() const noexcept {
      FLUGS_DCHECK(depth >= 1 && depth <= kDepthMax);
      return steps[depth - 1];
    }
  };
  enum class Purpose : std::uint8_t { kRead, kInsert, kErase };
  enum class Descent : std::uint8_t {
    kLeaf,     // path.node is the leaf
    kChanged,  // another thread got in between: start again
    kBadFill,  // path.node must be split (to insert) or joined (to erase) first
  };
  enum class Outcome : std::uint8_t { kDone, kAbsent, kPresent, kAgain };
  struct Audit;
  struct alignas(64) SizeStripe {
    std::atomic<std::int64_t> entries{0};
  };

  template <Purpose kPurpose, typename Target>
  Descent descend(const Target& target, Path& path) const;
  bool has_bad_fill(Purpose purpose, const Path& path) const noexcept;

  Outcome try_insert(const EntryTarget& target, bool may_be_there);
  void split(const Path& path);
  OrderedEntry split_leaf(Leaf& left, Node*& right_out, bool at_right_edge);
  OrderedEntry split_inner(Inner& left, Node*& right_out, bool at_right_edge);

  Outcome try_erase(const EntryTarget& target);
  Outcome erase_largest(const Path& path, const OrderedEntry& entry);
  void join(const Path& path);
  void join_leaves(Inner& parent, std::uint32_t i, Leaf& left, Leaf& right);
  void join_inners(Inner& parent, std::uint32_t i, Inner& left, Inner& right);

  struct Before;
  template <typename Target>
  bool read_before(const Target& target, bool with_target, Before& out) const;
  bool scan_from(const Path& path, std::uint32_t first, Probe probe, Visit visit,
                 OrderedEntry& last, bool& has_last) const;
  Status audit(const Node& node, std::uint32_t level, Audit& state) const;

  void reset();
  void add_to_size(const Node* node, std::int64_t entries) noexcept;

  const OrderedIndexCompare* compare_;
  NodeStore store_;
  // Has no separators; its only child is the root, so the root has a parent like any other node.
  Inner* anchor_;
  // Per leaf in stripes, since one counter would be a word that all writers share, which the tree
  // avoids.
  std::array<SizeStripe, kSizeStripes> size_;
};

}  // namespace flugs::columns
