#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tables/transactions/left_texts.h"

namespace flugs::engine {

class Table;

/// A row that no transaction will read again once every snapshot has passed `since`.
struct DeadRow {
  DeadRow(Table* of, std::uint64_t since_timestamp, std::uint64_t fence_count, std::uint32_t row_id,
          std::uint16_t keys) noexcept
      : table(of), since(since_timestamp), fences(fence_count), row(row_id), changed_keys(keys) {}

  Table* table;
  std::uint64_t since;
  std::uint64_t fences;  ///< its removal is durable once the slot has this many commits; 0: already
  std::uint32_t row;
  std::uint16_t changed_keys;  ///< bit per key whose index still names the row
  /// Bit per key, of the first few, whose hash of the row is kept: the values behind the hash may
  /// be out of the caches when the row leaves the index.
  std::uint16_t known_hashes = 0;
  static constexpr std::size_t kHashesKept = 2;
  std::array<std::uint32_t, kHashesKept> upper_halves{};  ///< the half of a hash that indexes use

  void keep_hash(std::size_t key, std::uint64_t hash) noexcept {
    FLUGS_DCHECK(key < kHashesKept);
    upper_halves[key] = static_cast<std::uint32_t>(hash >> 32);
    known_hashes |= static_cast<std::uint16_t>(1u << key);
  }
  std::optional<std::uint64_t> hash_of_key(std::size_t key) const noexcept {
    if ((known_hashes & (1u << key)) == 0) return {};
    return std::uint64_t{upper_halves[key]} << 32;
  }
};

/// Dead rows in the order in which they died. A ring that keeps its memory: a std::deque would
/// allocate a block for every twelve rows that pass through it.
class DeadRowQueue final {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  DeadRow& operator[](std::size_t i) noexcept {
    FLUGS_DCHECK(i < size_);
    return rows_[(first_ + i) & (rows_.size() - 1)];
  }
  const DeadRow& operator[](std::size_t i) const noexcept {
    FLUGS_DCHECK(i < size_);
    return rows_[(first_ + i) & (rows_.size() - 1)];
  }
  DeadRow& front() noexcept { return (*this)[0]; }
  void reserve(std::size_t rows) {
    while (rows_.size() < rows) grow();
  }
  void push(const DeadRow& row) { push(row, row.since); }
  /// `since` is passed separately: storing it into `row` first would stall the copy on store
  /// forwarding.
  void push(const DeadRow& row, std::uint64_t since) {
    if (size_ == rows_.size()) grow();
    ++size_;
    DeadRow& last = (*this)[size_ - 1];
    last = row;
    last.since = since;
  }
  void pop() noexcept {
    FLUGS_DCHECK(!empty());
    first_ = (first_ + 1) & (rows_.size() - 1);
    --size_;
    // After a long snapshot, or a transaction that deleted much.
    if (size_ == 0 && rows_.size() > kRowsKept) rows_ = {};
  }

 private:
  static constexpr std::size_t kRowsAtFirst = 64;
  static_assert(std::has_single_bit(kRowsAtFirst));
  static constexpr std::size_t kRowsKept = std::size_t{1} << 16;

  void grow() {
    std::vector<DeadRow> larger(rows_.empty() ? kRowsAtFirst : rows_.size() * 2,
                                DeadRow(nullptr, 0, 0, 0, 0));
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    rows_.swap(larger);
    first_ = 0;
  }

  std::vector<DeadRow> rows_;  // a power of two of them
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

/// The oldest snapshot of all transactions, as a slot knows it. Finding it out interrupts the other
/// processors. So a slot uses an answer from some transactions ago. At worst it is too low: then
/// rows are collected later than they could be.
class KnownOldestSnapshot final {
 public:
  std::uint64_t get() const noexcept { return snapshot_; }
  void set(std::uint64_t snapshot) noexcept { snapshot_ = snapshot; }
  /// A transaction of the slot that wrote, or tried to, has ended.
  void note_ending() noexcept { ++endings_; }
  /// Whether it is time to look again: after a number of transactions of the slot, or of dead rows
  /// if transactions are large.
  bool is_due(std::size_t dead_rows) const noexcept {
    return endings_ - endings_then_ >= kEndingsPerLook ||
           dead_rows > dead_rows_then_ + kDeadRowsPerLook;
  }
  void renew(std::uint64_t snapshot, std::size_t dead_rows) noexcept {
    snapshot_ = snapshot;
    endings_then_ = endings_;
    dead_rows_then_ = dead_rows;
  }
  /// For TransactionSlots::shared_oldest_snapshot: when this slot looked last, a time-stamp.
  std::uint64_t& looked_at() noexcept { return looked_at_; }

 private:
  static constexpr std::uint64_t kEndingsPerLook = 2048;
  static constexpr std::size_t kDeadRowsPerLook = 16384;

  std::uint64_t snapshot_ = 0;
  std::uint64_t looked_at_ = 0;
  std::uint64_t endings_ = 0;
  std::uint64_t endings_then_ = 0;  // `endings` at that look
  std::size_t dead_rows_then_ = 0;  // as many waited then
};

/// The rows that transactions of one slot have deleted, on their way to being used again: protocol
/// recycle, which RowReclaimer performs.
///
///   dying        deleted by the transaction that runs
///   dead         its deletion has been committed; indexes still name the row
///   unreachable  out of every index; readers may still hold its id from before
///
/// After that the row is one of the slot's local rows (SlotRows). A row that the running
/// transaction inserted, and that was taken back, is unreachable at once.
///
/// Invariants:
/// * `dead` is in the order of `since`, and `unreachable` too, but for rows that were given back by
///   the running transaction. These have kGivenBack in `since` and stand at the end.
/// * A row is in one of the three at a time.
///
/// Thread-safety: the thread that has the slot.
class DeadRows final {
 public:
  /// `since` of rows that the running transaction has given back: it has not ended.
  static constexpr std::uint64_t kGivenBack = ~std::uint64_t{0};

  // ---------------------------------------------------------- while the transaction runs: dying

  void add_dying(const DeadRow& row) { dying_.push_back(row); }
  DeadRow& newest_dying() noexcept {
    FLUGS_DCHECK(!dying_.empty());
    return dying_.back();
  }
  std::span<const DeadRow> dying() const noexcept { return dying_; }
  /// Keeps the first `count` dying rows; the others live on.
  void keep_dying(std::size_t count) noexcept {
    FLUGS_DCHECK(count <= dying_.size());
    while (dying_.size() > count) dying_.pop_back();
  }
  void clear_dying() noexcept {
    dying_.clear();
    texts_.clear();
  }
  /// The transaction has committed: its rows are dead. They also stay in `dying()` until
  /// `clear_dying`.
  void commit(std::uint64_t timestamp) {
    for (const DeadRow& row : dying_) dead_.push(row, timestamp);
    texts_.commit(timestamp);
  }
  /// Reserves memory of `dead` for the commit of this transaction, and for `more` rows besides.
  void reserve(std::size_t more) { dead_.reserve(dead_.size() + dying_.size() + more); }

  // ------------------------------------------------------------------------- rows that wait

  /// The transaction inserted the row and has taken it back. Other transactions may have found it
  /// in an index and go on to its previous version.
  void give_back(Table& table, std::uint32_t row) {
    unreachable_.push({&table, kGivenBack, 0, row, 0});
  }
  bool has_given_back() const noexcept {
    return !unreachable_.empty() && unreachable_[unreachable_.size() - 1].since == kGivenBack;
  }
  /// Called at the end of the transaction: from `since` on no transaction finds the rows that it
  /// has given back. Returns their number.
  std::size_t end_giving_back(std::uint64_t since) noexcept {
    std::size_t given_back = 0;
    for (std::size_t i = unreachable_.size(); i > 0 && unreachable_[i - 1].since == kGivenBack;
         --i, ++given_back)
      unreachable_[i - 1].since = since;
    return given_back;
  }
  bool empty() const noexcept {
    return dead_.empty() && unreachable_.empty() && texts_.none_waits();
  }
  DeadRowQueue& dead() noexcept { return dead_; }
  DeadRowQueue& unreachable() noexcept { return unreachable_; }
  KnownOldestSnapshot& oldest_snapshot() noexcept { return oldest_snapshot_; }
  /// Long texts of these rows, and of rows that live on.
  LeftTexts& texts() noexcept { return texts_; }
  const LeftTexts& texts() const noexcept { return texts_; }

  // ----------------------------------------------------------------------- when the pool is full

  /// Whether the transaction found no space for rows.
  void set_wants_rows(bool wants) noexcept { wants_rows_ = wants; }
  bool take_wants_rows() noexcept { return std::exchange(wants_rows_, false); }
  /// `rows_wanted` grows whenever a transaction finds no space: true once for each new count.
  bool is_news(std::uint64_t rows_wanted) noexcept {
    return std::exchange(rows_wanted_seen_, rows_wanted) != rows_wanted;
  }

 private:
  std::vector<DeadRow> dying_;
  DeadRowQueue dead_;
  DeadRowQueue unreachable_;
  KnownOldestSnapshot oldest_snapshot_;
  LeftTexts texts_;
  bool wants_rows_ = false;
  std::uint64_t rows_wanted_seen_ = 0;
};

}  // namespace flugs::engine
