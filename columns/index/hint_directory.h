#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/zeroed_memory.h"
#include "columns/index/hint_index_layout.h"
#include "columns/index/hint_segments.h"
#include "columns/index/hint_slot.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"

namespace flugs::columns {

/// The directory of a hint index: the words in the pool, and their copy in DRAM, which look-ups
/// use. A word of the copy is stored once that of the pool is durable; 0: the word was not read
/// since opening, and is checked when it is. Damage is remembered.
///
/// Thread-safety: any thread; changes, and functions that say so, one thread at a time.
class HintDirectory {
 public:
  static constexpr unsigned kDepthMax = 24;

  /// A directory made after opening has all words.
  class Copy {
   public:
    explicit Copy(unsigned log2_words);
    ~Copy();
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    unsigned depth() const noexcept { return depth_; }
    std::size_t count() const noexcept { return std::size_t{1} << depth_; }
    std::uint64_t& word(std::size_t index) const noexcept {
      FLUGS_DCHECK(index < count());
      return words_[index];
    }
    std::size_t index_of(std::uint32_t fingerprint) const noexcept {
      return static_cast<std::size_t>((std::uint64_t{fingerprint} << depth_) >> 32);
    }

    /// Small pages while single words are read; huge pages only when all are.
    void begin_reading() noexcept {
      if (is_large()) touch_small_pages(words_, bytes());
    }
    void end_reading() const noexcept {
      if (is_large()) join_pages(words_, bytes());
    }

   private:
    std::size_t bytes() const noexcept { return count() * sizeof(std::uint64_t); }
    bool is_large() const noexcept { return bytes() >= kHugePageBytes / 4; }
    unsigned depth_;
    std::uint64_t* words_;  // through load and store
  };

  HintDirectory(HintIndexLayout& layout, const HintSegments& segments) noexcept
      : layout_(layout), segments_(segments), base_(segments.pool().base()) {}

  /// Opening, after the segments: claims the words; fails with kCorrupt. They are checked later.
  Status load();
  /// Opening, after claims are finished: completes an interrupted change.
  void recover(pmem::Persister& persister);

  /// Null: the index is empty.
  Copy* current() const noexcept { return current_.load(std::memory_order_acquire); }
  /// Whether no change came between: the directory is still `copy`, and its word `seen`.
  bool is_still(const Copy* copy, std::size_t index, std::uint64_t seen) const noexcept {
    return hint_slot::load(copy->word(index)) == seen && current() == copy;
  }
  /// A word; 0 only if it is damaged.
  std::uint64_t word_of(const Copy& copy, std::size_t index) const noexcept {
    const std::uint64_t word = hint_slot::load(copy.word(index));
    return __builtin_expect(word != 0, 1) ? word : read_word(copy, index);
  }
  /// The word of a fingerprint; 0 also if the index is empty.
  std::uint64_t word_for(std::uint32_t fingerprint) const noexcept {
    const Copy* copy = current();
    return copy == nullptr ? 0 : word_of(*copy, copy->index_of(fingerprint));
  }
  /// Words that name the same segment.
  struct Block {
    std::size_t first = 0;
    std::size_t span = 1;
  };
  Block block_of(const Copy& copy, std::size_t index) const noexcept;

  /// See HintIndex::damage.
  Status damage() const;
  /// Reads some words that have not been used yet, from `first` on, and moves `first` behind them.
  /// True: more are left. One thread at a time.
  bool read_some(std::size_t& first);
  bool has_much_to_read() const noexcept;

  /// Removes all entries of a fingerprint with `payload`; see HintIndex::erase.
  bool erase(std::uint32_t fingerprint, std::uint32_t payload) noexcept;

  // Changes: one thread at a time.
  /// Makes a directory of one word in `words`. `segment` is empty and flushed.
  void create(pmem::Extent words, std::uint64_t segment, pmem::Persister& persister);
  /// Makes twice as many words, each named twice. Fails with kOutOfSpace, or as damage().
  Status double_words(pmem::Persister& persister);
  /// Makes the words of a block name other segments, the first half `lower`, the others `upper`;
  /// the segments are durable. `old_word` is theirs.
  void change(const Block& block, std::uint64_t old_word, std::uint64_t lower, std::uint64_t upper,
              pmem::Persister& persister) noexcept;

  std::uint64_t bytes_in_pool() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  void release_all();
  void add_pages(pmem::WarmList& pages) const;

 private:
  static constexpr std::uint64_t kNoWord = ~std::uint64_t{0};
  static constexpr std::uint64_t kDepthMask = 63;
  static_assert(kDepthMax <= kDepthMask);

  // HintIndexLayout::directory.
  static unsigned depth_of(std::uint64_t directory) noexcept {
    return static_cast<unsigned>(directory & kDepthMask);
  }
  std::uint64_t* words_of(std::uint64_t directory) const noexcept {
    return reinterpret_cast<std::uint64_t*>(base_ + (directory & ~kDepthMask));
  }
  static pmem::Extent extent_of(std::uint64_t directory) noexcept {
    return {directory & ~kDepthMask, sizeof(std::uint64_t) << depth_of(directory)};
  }
  static std::uint64_t checksum_of(const HintIndexLayout::Change& change) noexcept;
  bool is_change_valid() const noexcept;
  std::uint64_t read_word(const Copy& copy, std::size_t index) const noexcept;
  void read_all();
  void publish(std::uint64_t directory, std::unique_ptr<Copy> copy, pmem::Persister& persister,
               pmem::Label label);
  void apply(const HintIndexLayout::Change& record, pmem::Persister& persister) noexcept;

  HintIndexLayout& layout_;
  const HintSegments& segments_;
  std::byte* const base_;  // of the pool
  std::atomic<Copy*> current_{nullptr};
  // The first damaged word of the directory and the value found there: kept, because both may
  // change.
  mutable std::atomic<std::uint64_t> damaged_word_{kNoWord};
  mutable std::atomic<std::uint64_t> found_there_{0};
  std::atomic<bool> is_all_read_{false};
  std::atomic<std::uint64_t> bytes_{0};
  std::vector<std::unique_ptr<Copy>> copies_;  // former ones too: readers may still use them
};

}  // namespace flugs::columns
