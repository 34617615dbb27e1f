#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "words/shared_words.h"

namespace flugs::engine {

/// In DRAM, a bit per row of a row group that was deleted or is being deleted, by the row's place:
/// a scan reads the MVCC entries of these rows only. A second bit marks the rows
/// that are deleted for good; no scan reads their entries again. `docs/concurrency.md` has the
/// orders.
///
/// Thread-safety: any thread. The writer whose tag is in a row's deleted word is the only one that
/// marks the row or takes the mark back.
class DeletionMarks {
 public:
  explicit DeletionMarks(std::uint32_t places)
      : word_count_((places + 63) / 64), words_(std::make_unique<Word[]>(word_count_)) {}

  /// Before the deletion's commit begins.
  void mark(std::uint32_t place) noexcept {
    if (place / 64 >= word_count_) return;
    note_write(SharedWord::kRowStamps, &words_[place / 64]);
    words_[place / 64].marked.fetch_or(bit_of(place), std::memory_order_release);
  }
  /// Before the tag is taken back from the deleted word.
  void take_back(std::uint32_t place) noexcept {
    if (place / 64 >= word_count_) return;
    note_write(SharedWord::kRowStamps, &words_[place / 64]);
    words_[place / 64].marked.fetch_and(~bit_of(place), std::memory_order_release);
  }

  /// Rows of 64 places.
  struct Rows {
    std::uint64_t gone = 0;      ///< deleted in the snapshot, and in every later one
    std::uint64_t doubtful = 0;  ///< their entries decide
  };
  Rows rows(std::size_t word, std::uint64_t snapshot) const noexcept {
    const std::uint64_t marked = words_[word].marked.load(std::memory_order_acquire);
    if (marked == 0) return {};
    // The bits before the time-stamp: pairs with settle.
    std::uint64_t settled = words_[word].settled.load(std::memory_order_acquire);
    if (settled != 0 && settled_at_.load(std::memory_order_acquire) > snapshot) settled = 0;
    return {settled, marked & ~settled};
  }
  /// Whether every marked row of `count` words is deleted for good in the snapshot. If so, their
  /// bits in `mask`, which begins with the first of these words, are cleared; if not, some may be.
  bool clear_settled(std::size_t first_word, std::size_t count, std::uint64_t snapshot,
                     std::uint64_t* mask) const noexcept;
  /// Rows that are deleted in every snapshot from `timestamp` on, by their places, ascending.
  void settle(std::span<const std::uint32_t> places, std::uint64_t timestamp) noexcept;

  /// Whether the stamps that were in the pool when the group was loaded have been marked.
  bool has_found() const noexcept { return has_found_.load(std::memory_order_acquire); }
  void set_found() noexcept { has_found_.store(true, std::memory_order_release); }

 private:
  struct Word {
    std::atomic<std::uint64_t> marked{0};
    std::atomic<std::uint64_t> settled{0};
  };
  static std::uint64_t bit_of(std::uint32_t place) noexcept {
    return std::uint64_t{1} << (place % 64);
  }

  const std::size_t word_count_;
  const std::unique_ptr<Word[]> words_;
  std::atomic<std::uint64_t> settled_at_{0};  // the latest time-stamp of a settled deletion
  std::atomic<bool> has_found_{false};
};

}  // namespace flugs::engine
