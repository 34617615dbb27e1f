#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"

// The nodes of columns/index/ordered_index.h, and where their memory comes from.
//
// A node is read without a lock: note its version, read, and trust the result only if the version
// is still the same. So every field that a reader may read while a writer changes it is atomic.
// Stores are releases and loads acquires (plain moves on x86). Therefore a reader that saw any part
// of a change also sees that the version has moved.
//
// Memory of a leaf stays a leaf for ever, and memory of an inner node an inner node. So a reader
// that still has a pointer to a freed or reused node reads fields of the right type, and slots
// below any count that it can see have held an entry at some time.
namespace flugs::columns {

/// One key of one row. See OrderedIndex for the order.
struct OrderedEntry {
  std::uint64_t prefix;
  std::uint32_t row;

  friend bool operator==(const OrderedEntry&, const OrderedEntry&) = default;
};

/// A version that is odd while a writer holds the node, and larger afterwards.
class VersionLock {
 public:
  /// Waits until no writer holds it.
  std::uint64_t read() const noexcept {
    SpinWait wait;
    for (;;) {
      note_read(SharedWord::kKeyNode, this);
      const std::uint64_t version = word_.load(std::memory_order_acquire);
      if ((version & 1) == 0) return version;
      wait.once();
    }
  }
  /// Whether all that was read since `read` returned `version` existed at one moment.
  bool validate(std::uint64_t version) const noexcept {
    return word_.load(std::memory_order_acquire) == version;
  }
  /// Locks, if no thread has locked since `read` returned `version`. Never waits.
  bool upgrade(std::uint64_t version) noexcept {
    note_write(SharedWord::kKeyNode, this);
    return word_.compare_exchange_strong(version, version + 1, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  /// Waits, so the caller may use it only for nodes below or to the right of those that it holds.
  void lock() noexcept {
    while (!upgrade(read())) {
    }
  }
  void unlock() noexcept {
    FLUGS_DCHECK(is_locked());
    word_.store(word_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  bool is_locked() const noexcept { return (word_.load(std::memory_order_relaxed) & 1) != 0; }

 private:
  std::atomic<std::uint64_t> word_{0};
};

struct Node {
  explicit Node(bool leaf) noexcept : is_leaf(leaf) {}

  std::uint32_t count() const noexcept { return count_word.load(std::memory_order_acquire); }
  void set_count(std::uint32_t count) noexcept {
    count_word.store(count, std::memory_order_release);
  }

  VersionLock lock;
  std::atomic<std::uint32_t> count_word{0};  // entries
  const bool is_leaf;
};

/// Up to `kCapacity` entries in ascending order. Prefixes are apart from rows, because a search
/// needs only prefixes and then one row.
template <std::uint32_t kCapacity>
struct EntryArray {
  std::uint64_t prefix(std::uint32_t i) const noexcept {
    return prefixes[i].load(std::memory_order_acquire);
  }
  std::uint32_t row(std::uint32_t i) const noexcept {
    return rows[i].load(std::memory_order_acquire);
  }
  OrderedEntry entry(std::uint32_t i) const noexcept { return {prefix(i), row(i)}; }
  void set_entry(std::uint32_t i, const OrderedEntry& entry) noexcept {
    FLUGS_DCHECK(i < kCapacity);
    prefixes[i].store(entry.prefix, std::memory_order_release);
    rows[i].store(entry.row, std::memory_order_release);
  }
  /// Makes room at `i` in the first `count` entries.
  void shift_up(std::uint32_t i, std::uint32_t count) noexcept {
    FLUGS_DCHECK(i <= count && count < kCapacity);
    for (std::uint32_t k = count; k > i; --k) set_entry(k, entry(k - 1));
  }
  /// Removes entry `i` of the first `count`.
  void shift_down(std::uint32_t i, std::uint32_t count) noexcept {
    FLUGS_DCHECK(i < count && count <= kCapacity);
    for (std::uint32_t k = i; k + 1 < count; ++k) set_entry(k, entry(k + 1));
  }

  std::array<std::atomic<std::uint64_t>, kCapacity> prefixes;
  std::array<std::atomic<std::uint32_t>, kCapacity> rows;
};

// 1,024 = 24 of header + 83 entries of 12. Random 8-byte keys, 10 M entries: insert 440 ns, look-up
// 600 ns; nodes of 512 bytes: 520 and 690; 2,048 bytes for inner nodes only: no difference.
constexpr std::uint32_t kLeafEntries = 83;
// 1,024 = 16 of header + 50 separators of 12 + 51 children of 8.
constexpr std::uint32_t kInnerEntries = 50;
// Below a quarter a node is joined with a neighbour, or filled up from it.
constexpr std::uint32_t kLeafEntriesMin = kLeafEntries / 4;
constexpr std::uint32_t kInnerEntriesMin = kInnerEntries / 4;
// A rebuilt index leaves room for an eighth more; so does a split where keys only ever ascend.
constexpr std::uint32_t kLeafEntriesBuilt = kLeafEntries - kLeafEntries / 8;
constexpr std::uint32_t kInnerEntriesBuilt = kInnerEntries - kInnerEntries / 8;
static_assert(kLeafEntriesMin >= 2, "the largest entry of a leaf can go and leave another");

struct alignas(64) Leaf : Node, EntryArray<kLeafEntries> {
  static constexpr std::uint32_t kCapacity = kLeafEntries;

  Leaf() noexcept : Node(true) {}
  void insert(std::uint32_t i, const OrderedEntry& entry) noexcept {
    FLUGS_DCHECK(lock.is_locked());
    const std::uint32_t n = count();
    shift_up(i, n);
    set_entry(i, entry);
    set_count(n + 1);  // last: a slot below the count has been written
  }
  void erase(std::uint32_t i) noexcept {
    FLUGS_DCHECK(lock.is_locked());
    const std::uint32_t n = count();
    shift_down(i, n);
    set_count(n - 1);
  }
  void assign(std::span<const OrderedEntry> entries) noexcept {
    for (std::uint32_t i = 0; i < entries.size(); ++i) set_entry(i, entries[i]);
    set_count(static_cast<std::uint32_t>(entries.size()));
  }

  std::atomic<Leaf*> next{nullptr};
};

/// Child i holds the entries up to and including separator i, the last child the rest. A separator
/// *is* the largest entry below its child, never just some bound: erasing that entry replaces the
/// separator, so the tree compares only rows that are in it.
struct alignas(64) Inner : Node, EntryArray<kInnerEntries> {
  static constexpr std::uint32_t kCapacity = kInnerEntries;

  Inner() noexcept : Node(false) {}
  Node* child(std::uint32_t i) const noexcept {
    return children[i].load(std::memory_order_acquire);
  }
  void set_child(std::uint32_t i, Node* child) noexcept {
    FLUGS_DCHECK(i <= kCapacity && child != nullptr);
    children[i].store(child, std::memory_order_release);
  }
  /// Child `i` was split: it keeps the entries up to `separator`, `right` has the rest.
  void insert_child(std::uint32_t i, const OrderedEntry& separator, Node* right) noexcept {
    const std::uint32_t n = count();
    shift_up(i, n);
    for (std::uint32_t k = n + 1; k > i + 1; --k) set_child(k, child(k - 1));
    set_entry(i, separator);
    set_child(i + 1, right);
    set_count(n + 1);
  }
  /// Child `i + 1` was joined to child `i`.
  void erase_child_after(std::uint32_t i) noexcept {
    const std::uint32_t n = count();
    shift_down(i, n);
    for (std::uint32_t k = i + 1; k < n; ++k) set_child(k, child(k + 1));
    set_count(n - 1);
  }
  /// There must be one child more than separators.
  void assign(std::span<const OrderedEntry> separators, std::span<Node* const> below) noexcept {
    FLUGS_DCHECK(below.size() == separators.size() + 1);
    for (std::uint32_t i = 0; i < separators.size(); ++i) set_entry(i, separators[i]);
    for (std::uint32_t i = 0; i < below.size(); ++i) set_child(i, below[i]);
    set_count(static_cast<std::uint32_t>(separators.size()));
  }

  std::array<std::atomic<Node*>, kInnerEntries + 1> children;
};

static_assert(sizeof(Leaf) == 1024 && sizeof(Inner) == 1024);

/// Memory for nodes, kept until destruction; freed nodes are reused first.
/// Thread-safety: any thread, except `clear`.
class NodeStore {
 public:
  NodeStore() = default;
  ~NodeStore() { clear(); }
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  Leaf* new_leaf();
  Inner* new_inner();
  /// The node must be unlocked and out of the tree, with a version larger than when it was in it.
  void free(Leaf* leaf);
  void free(Inner* inner);
  /// Returns everything to the operating system.
  void clear() noexcept;
  std::size_t memory_bytes() const noexcept {
    return memory_bytes_.load(std::memory_order_relaxed);
  }

 private:
  struct Slab {
    void* memory;
    std::size_t bytes;
  };
  void* allocate(std::size_t bytes);

  SpinLock lock_;  // protects all below; innermost
  std::vector<Leaf*> free_leaves_;
  std::vector<Inner*> free_inners_;
  std::vector<Slab> slabs_;
  std::size_t slab_used_ = 0;  // bytes of the last slab
  std::atomic<std::size_t> memory_bytes_{0};
};

}  // namespace flugs::columns
