#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmem/medium/line_journal.h"
#include "pmem/medium/medium.h"
#include "pmem/medium/persist.h"

namespace flugs::test {

inline constexpr std::uint64_t kPoolPages = 16;
inline constexpr std::uint64_t kPoolBytes = kPoolPages * pmem::kPageBytes;
inline constexpr std::uint64_t kPoolLines = kPoolBytes / pmem::kLineBytes;
inline constexpr std::uint64_t kWordsOfLine = pmem::kLineBytes / sizeof(std::uint64_t);
/// Names the journal as the header of a real pool does. The model does not judge it.
inline constexpr std::uint64_t kHeaderLine = 0;

/// What was stored into the lines of a pool, and what of it a power cut may leave.
///
/// Every store has a number, greater than those before it, and stores this number into some words
/// of a line. A fence captures what was in the words of the lines that were flushed for it. The
/// rules are those of persistent memory (docs/persistence.md, M1 to M3), word by word:
///
/// * A word shows a store that was made to this word, or what it had when the model began.
/// * A word may show a store that nobody has flushed: its line was evicted.
/// * A fence that was promised is durable. No word shows less than what such a fence captured.
/// * A store comes behind all fences that its thread, or a thread that it knows of, has passed. So
///   a store that any word shows makes every fence before it durable. If it did not, the later
///   store of a protocol would be there without the lines that it needs.
///
/// So the judge takes D, the last fence that was promised or that comes before a store that some
/// word shows. Each word must show at least the newest store that a fence up to D has captured.
/// Nothing else is asked for: a word may be as new as it likes, and the words of a line may be of
/// different ages.
///
/// With a crash ring a killed process has promised more than a power cut leaves: every fence that
/// has ended.
class LineModel {
 public:
  /// A word of a line as a fence is about to capture it.
  struct Captured {
    std::uint32_t line;
    std::array<std::uint64_t, kWordsOfLine> words;
  };

  /// All of `pool` is durable. Numbers of stores begin with `first_store`; none in `pool` is so
  /// great.
  LineModel(std::span<const std::byte> pool, std::uint64_t first_store);

  /// Stores with lesser numbers were made in what a cut has taken back: nobody may see them.
  void skip_to(std::uint64_t next_store);
  std::uint64_t first_store() const noexcept { return first_store_; }
  std::uint64_t next_store() const noexcept { return first_store_ + stores_.size(); }
  /// Notes a store into those words of a line whose bits are set in `words`. Returns its number.
  std::uint64_t store(std::uint32_t line, std::uint8_t words);
  /// The page is zeros from now on, in memory and in the file. A word that shows 0 shows this
  /// store, which comes behind the first `fences` fences.
  void punch(std::uint64_t page, std::uint64_t fences);
  /// What a fence captures that is about to begin. Others may store before it ends.
  std::vector<Captured> capture(std::span<const std::uint32_t> lines) const;
  /// The fence has ended, at this place of the journal.
  void fence(std::span<const Captured> captured, pmem::JournalPlace place);
  /// With the latest fence these lines have become free space: from then on nobody asks for what
  /// they had.
  void free(std::span<const std::uint32_t> lines);
  /// Every fence that ended before `place` is promised.
  void promise(pmem::JournalPlace place);
  std::uint64_t promised() const noexcept { return promised_; }
  std::uint64_t ended() const noexcept { return fences_.size(); }

  /// The fences that must be there.
  enum class Kept : std::uint8_t { kPromised, kEnded };
  /// The process is killed; another one finds `pool`, which a power cut may still take back in
  /// part. Nothing comes any more of the fences that are not kept.
  void kill(std::span<const std::byte> pool, Kept kept);
  /// Whoever uses the pool now may rely on every fence that has ended.
  void promise_ended() { promised_ = ended(); }

  /// What is wrong with a pool that a power cut has left, or a killed process; empty: nothing.
  std::string judge(std::span<const std::byte> pool, Kept kept) const;

 private:
  struct Store {
    std::uint32_t line;
    std::uint8_t words;
    std::uint64_t fences;  ///< how many fences had ended before it
  };
  struct Capture {
    std::uint64_t fence;
    std::uint64_t store;
  };
  struct Line {
    std::uint32_t line;
    std::array<std::uint64_t, kWordsOfLine> now;
    std::array<std::vector<Capture>, kWordsOfLine> captures;  ///< both numbers ascend
  };
  Line& touched(std::uint32_t line);
  std::uint64_t begin_of(std::uint32_t line, std::uint64_t word) const {
    return begin_[line * kWordsOfLine + word];
  }
  static constexpr std::uint32_t kNoLine = ~std::uint32_t{0};
  std::uint64_t punched(std::uint32_t line) const {
    return punched_[line * pmem::kLineBytes / pmem::kPageBytes];
  }
  /// The store that a word of a line shows.
  std::uint64_t shown(std::uint32_t line, std::uint64_t word) const {
    return word == 0 && punched(line) != 0 ? punched(line) : word;
  }
  bool is_made(std::uint64_t store, std::uint32_t line, std::uint64_t word) const;
  std::string durable_fences(const std::uint64_t* pool, std::uint64_t& fences,
                             std::uint64_t& because) const;

  std::vector<std::uint64_t> begin_;
  std::uint64_t first_store_;
  std::vector<Store> stores_;
  std::vector<pmem::JournalPlace> fences_;  // fence n ended at fences_[n - 1]
  std::uint64_t promised_ = 0;
  std::vector<std::uint32_t> index_;  // of a line in touched_, from 1; 0: nothing was stored there
  std::vector<Line> touched_;
  std::vector<std::uint64_t> punched_;  // for each page: the last store of this kind, or 0
};

}  // namespace flugs::test
