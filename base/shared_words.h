#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"

// Counts accesses to words that several threads use, by kind, in a build with FLUGS_COUNT_ATOMICS
// (preset "counting"). The counts show how many cache lines each transaction gets from another
// thread (docs/scaling.md). In every other build note_write and note_read do nothing.

namespace flugs {

/// The structure that a word belongs to.
enum class SharedWord : std::uint8_t {
  kClock,       ///< the clock of commits, when it is a counter
  kSlotMirror,  ///< state and time-stamp of a slot's transaction
  kSnapshot,    ///< registered snapshot of a slot, and its claim
  kSlotHalf,    ///< commit record and intents, in the pool
  kRowStamps,   ///< created and deleted words of rows
  kRowCells,    ///< cells of rows that are being written
  kRowLinks,    ///< links to previous versions
  kKeyBucket,   ///< buckets of hash indexes in DRAM, dictionaries' and keys'
  kKeyNode,     ///< nodes of ordered indexes
  kHintLock,    ///< locks of hash indexes in the pool
  kHintLine,    ///< lines of hash indexes in the pool
  kRowGrant,    ///< the end of a table: 64 rows at a time
  kFreeRows,    ///< a table's free rows: 64 at a time
  kDictionary,  ///< ValueIDs given out, entries known to be durable
  kRowLocks,    ///< locks of Transaction::lock
  kRetryQueue,  ///< the queue of transactions that are retried
  kNumbers,     ///< auto-increment: 16 to 1024 numbers at a time
  kSpace,       ///< the pool's free space
};
inline constexpr std::size_t kSharedWords = 18;
static_assert(kSharedWords == static_cast<std::size_t>(SharedWord::kSpace) + 1);
std::string_view to_string(SharedWord word) noexcept;

/// Accesses by kind of word. A contended access needed a line that another thread had written, or,
/// for writes, read since.
struct SharedWordCounts {
  struct Counts {
    std::uint64_t writes = 0;  ///< atomic read-modify-writes, and stores that others may read
    std::uint64_t contended_writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t contended_reads = 0;
  };
  std::array<Counts, kSharedWords> of{};

  Counts& operator[](SharedWord word) noexcept { return of[static_cast<std::size_t>(word)]; }
  const Counts& operator[](SharedWord word) const noexcept {
    return of[static_cast<std::size_t>(word)];
  }
  SharedWordCounts& operator+=(const SharedWordCounts& other) noexcept;
  SharedWordCounts operator-(const SharedWordCounts& before) const noexcept;
};

/// Records which thread had which line last: a model of caches that never lose a line for want of
/// room. A table keeps lines by the hash of their address. If two lines share a place, the one used
/// last is known, and the other counts as never used. So the counts are too small, if anything.
/// Thread-safety: any thread, each with a Reader of its own.
class LineWatch {
 public:
  /// What one thread knows of lines that other threads wrote.
  class Reader {
   public:
    explicit Reader(std::uint32_t thread) : thread_(thread), seen_(kSeen) {
      FLUGS_CHECK(thread >= 1 && thread <= kThreadsMax);
    }
    std::uint32_t thread() const noexcept { return thread_; }

   private:
    friend class LineWatch;
    static constexpr std::size_t kSeen = std::size_t{1} << 16;
    std::uint32_t thread_;             // 1 to kThreadsMax
    std::vector<std::uint64_t> seen_;  // line, tag and version: as of the thread's last access
  };
  static constexpr std::uint32_t kThreadsMax = 4095;

  explicit LineWatch(unsigned log2_lines);

  /// Whether the line came from another thread.
  bool write(Reader& reader, const void* address) noexcept;
  bool read(Reader& reader, const void* address) noexcept;

 private:
  // A line's word: tag (24 bits), the last writer (12), its version (27), read by others since (1).
  static constexpr int kTagShift = 40;
  static constexpr int kThreadShift = 28;
  static_assert(kThreadsMax == (1u << (kTagShift - kThreadShift)) - 1);
  static constexpr std::uint64_t kVersionStep = 2;
  static constexpr std::uint64_t kVersionMask = ((std::uint64_t{1} << kThreadShift) - 1) & ~1ULL;
  static constexpr std::uint64_t kReadByOthers = 1;
  static std::uint64_t hash_of(const void* address) noexcept;
  static std::uint32_t writer_of(std::uint64_t line) noexcept {
    return static_cast<std::uint32_t>(line >> kThreadShift) & kThreadsMax;
  }
  static std::uint64_t seen_as(std::uint64_t hash, std::uint64_t line) noexcept {
    return (hash & ~kVersionMask) | (line & kVersionMask);
  }
  std::atomic<std::uint64_t>& line_of(std::uint64_t hash) noexcept {
    return lines_[(hash >> 8) & mask_];
  }

  std::uint64_t mask_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> lines_;
};

#ifdef FLUGS_COUNT_ATOMICS
inline constexpr bool kCountsSharedWords = true;
#else
inline constexpr bool kCountsSharedWords = false;
#endif

void count_write(SharedWord word, const void* address) noexcept;
void count_read(SharedWord word, const void* address) noexcept;
/// Counts of this thread, since it began.
const SharedWordCounts& shared_word_counts() noexcept;

inline void note_write(SharedWord word, const void* address) noexcept {
  if constexpr (kCountsSharedWords) count_write(word, address);
}
inline void note_read(SharedWord word, const void* address) noexcept {
  if constexpr (kCountsSharedWords) count_read(word, address);
}

}  // namespace flugs
