#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/spin_lock.h"

namespace flugs::engine {

/// The rows of a group that every snapshot from `since` on sees, until a row is marked.
struct SeenRows {
  std::uint64_t since = 0;
  std::uint32_t count = 0;
  std::vector<std::uint64_t> words;  ///< a bit per place; 0 behind the last one
};

/// Marks in DRAM: which rows of a row group were deleted or are being deleted, by the row's place.
/// With them a scan need not read the MVCC entries in the pool. A row goes through three states:
///   in doubt   from before the deletion's commit begins: the row's MVCC entry decides
///   recent     the deletion has committed: its time-stamp stands in a short list
///   settled    a bit; every snapshot from `settled_at_` on is without the row
/// `docs/concurrency.md` has the orders.
///
/// Thread-safety: any thread. Writers take the lock, readers take none but in seen_from. The writer
/// whose tag is in a row's deleted word is the only one that changes the row's state.
class DeletionMarks {
 public:
  explicit DeletionMarks(std::uint32_t places)
      : places_(places),
        word_count_((places + 63) / 64),
        words_(std::make_unique<Word[]>(2 * word_count_)) {}

  /// Puts the row in doubt. Call it before the deletion's commit begins.
  void mark(std::uint32_t place) noexcept;
  /// Marks the row as not deleted. Call it before the tag is taken back from the deleted word.
  void take_back(std::uint32_t place) noexcept;
  /// Marks the row as deleted in every snapshot from `timestamp` on. Call it after the commit.
  void note(std::uint32_t place, std::uint64_t timestamp) noexcept;

  /// The rows that the snapshot sees, if all new snapshots see the same: made once after a change,
  /// and shared. Null: a row is in doubt, or the snapshot is older than a deletion; then ask
  /// clear_unseen. Fails with std::bad_alloc.
  std::shared_ptr<const SeenRows> seen_from(std::uint64_t snapshot);

  /// Sets the bits of `count` places from `first` on, a multiple of 64, and clears those of rows
  /// that were deleted in the snapshot. Calls `ask(place)`, perhaps more than once, for rows whose
  /// MVCC entry decides; `ask` clears the row's bit, now or later, if the snapshot does not see the
  /// row.
  template <typename Ask>
  void clear_unseen(std::uint32_t first, std::size_t count, std::uint64_t snapshot,
                    std::uint64_t* mask, const Ask& ask) const {
    FLUGS_DCHECK(first % 64 == 0);
    const std::size_t first_word = first / 64;
    const std::size_t words = (count + 63) / 64;
    set_bits(mask, count);
    for_doubtful(first_word, words, ask);  // first: a row that changes meanwhile is met below
    if (clear_deleted(first_word, words, snapshot, mask)) return;
    set_bits(mask, count);
    for_doubtful(first_word, words, ask);
    for_deleted(first_word, words, ask);
  }
  /// Sets the first `count` bits of `mask`, and clears the others of its last word.
  static void set_bits(std::uint64_t* mask, std::size_t count) noexcept;

  // The steps of clear_unseen.
  /// Calls `visit(place)` for the rows in doubt among those of `count` words.
  template <typename Visit>
  void for_doubtful(std::size_t first_word, std::size_t count, const Visit& visit) const {
    FLUGS_DCHECK(first_word + count <= word_count_);
    if (doubtful_.load(std::memory_order_acquire) != 0)
      for_set(words_.get(), first_word, count, visit);
  }
  /// Clears the bits of rows whose deletion had committed in the snapshot; `mask` begins with the
  /// first of these words. Returns false if it cannot tell for all rows, because the snapshot is
  /// older than a settled deletion or rows are being settled; then `mask` is useless.
  bool clear_deleted(std::size_t first_word, std::size_t count, std::uint64_t snapshot,
                     std::uint64_t* mask) const noexcept;
  /// Calls `visit(place)`, perhaps twice, for rows whose deletion has committed, and for those that
  /// are settled meanwhile. Reads the list from its end to its beginning, then the bits: rows move
  /// only in that direction.
  template <typename Visit>
  void for_deleted(std::size_t first_word, std::size_t count, const Visit& visit) const {
    FLUGS_DCHECK(first_word + count <= word_count_);
    for (std::size_t i = recent_count_.load(std::memory_order_acquire); i-- > 0;)
      if (const std::uint32_t place = recent_[i].place.load(std::memory_order_acquire);
          place / 64 - first_word < count)
        visit(place);
    for_set(settled_words(), first_word, count, visit);
  }

  /// How often a row was noted. Two threads that find deletions at a time note a row twice.
  std::uint32_t noted() const noexcept { return noted_.load(std::memory_order_relaxed); }
  /// Whether the deletions that were in the pool when the group was loaded are known.
  bool has_found() const noexcept { return has_found_.load(std::memory_order_acquire); }
  void set_found() noexcept { has_found_.store(true, std::memory_order_release); }

  /// Most deletions that are recent at a time; then the older half is settled.
  static constexpr std::size_t kRecentMax = 64;
  static_assert(kRecentMax % 2 == 0);

 private:
  using Word = std::atomic<std::uint64_t>;
  struct Recent {
    std::atomic<std::uint64_t> timestamp{0};
    std::atomic<std::uint32_t> place{0};
  };

  static std::uint64_t bit_of(std::uint32_t place) noexcept {
    return std::uint64_t{1} << (place % 64);
  }
  template <typename Visit>
  static void for_set(const Word* words, std::size_t first_word, std::size_t count,
                      const Visit& visit) {
    for (std::size_t w = first_word; w < first_word + count; ++w)
      for (std::uint64_t bits = words[w].load(std::memory_order_acquire); bits != 0;
           bits &= bits - 1)
        visit(static_cast<std::uint32_t>(w * 64) +
              static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
  Word* settled_words() const noexcept { return words_.get() + word_count_; }
  void set_doubt(std::uint32_t place, bool is_doubtful) noexcept;
  void settle_older_half() noexcept;
  void fill(SeenRows& seen) const noexcept;

  const std::uint32_t places_;
  const std::size_t word_count_;
  const std::unique_ptr<Word[]> words_;  // a bit per place: in doubt; behind them: settled
  SpinLock lock_;                        // protects the members below and the words; a leaf
  std::atomic<std::uint32_t> doubtful_{0};
  std::atomic<std::uint32_t> recent_count_{0};
  std::atomic<std::uint32_t> noted_{0};
  std::atomic<std::uint64_t> settlings_{0};   // twice their number; odd: one is under way
  std::atomic<std::uint64_t> settled_at_{0};  // the latest time-stamp of a settled deletion
  std::atomic<bool> has_found_{false};
  std::array<Recent, kRecentMax> recent_;
  std::shared_ptr<const SeenRows> seen_;  // null: not made since the last change; for lock holders
};

}  // namespace flugs::engine
