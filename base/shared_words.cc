#include "base/shared_words.h"

#include <algorithm>

namespace flugs {

namespace {

constexpr std::array<std::string_view, kSharedWords> kSharedWordNames = {
    "clock",     "slot_mirror", "snapshot",  "slot_half",   "row_stamps", "row_cells",
    "row_links", "key_bucket",  "key_node",  "hint_lock",   "hint_line",  "row_grant",
    "free_rows", "dictionary",  "row_locks", "retry_queue", "numbers",    "space"};

// 2^24 lines are a gigabyte of memory that transactions touch; in other builds only a test counts.
constexpr unsigned kLog2LinesOfProcess = kCountsSharedWords ? 24 : 10;

struct ThreadCounts {
  LineWatch::Reader reader;
  SharedWordCounts counts;
};

LineWatch& line_watch() {
  static LineWatch watch(kLog2LinesOfProcess);
  return watch;
}

// Numbers of ended threads are not given again: after 4095 threads, every further one counts as the
// last of them.
ThreadCounts& of_this_thread() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local ThreadCounts counts{LineWatch::Reader(std::min(++threads, LineWatch::kThreadsMax)),
                                   {}};
  return counts;
}

}  // namespace

std::string_view to_string(SharedWord word) noexcept {
  return kSharedWordNames[static_cast<std::size_t>(word)];
}

SharedWordCounts& SharedWordCounts::operator+=(const SharedWordCounts& other) noexcept {
  for (std::size_t i = 0; i < kSharedWords; ++i) {
    of[i].writes += other.of[i].writes;
    of[i].contended_writes += other.of[i].contended_writes;
    of[i].reads += other.of[i].reads;
    of[i].contended_reads += other.of[i].contended_reads;
  }
  return *this;
}

SharedWordCounts SharedWordCounts::operator-(const SharedWordCounts& before) const noexcept {
  SharedWordCounts difference;
  for (std::size_t i = 0; i < kSharedWords; ++i)
    difference.of[i] = {
        of[i].writes - before.of[i].writes, of[i].contended_writes - before.of[i].contended_writes,
        of[i].reads - before.of[i].reads, of[i].contended_reads - before.of[i].contended_reads};
  return difference;
}

LineWatch::LineWatch(unsigned log2_lines)
    : mask_((std::uint64_t{1} << log2_lines) - 1),
      lines_(new std::atomic<std::uint64_t>[std::size_t{1} << log2_lines]()) {}

std::uint64_t LineWatch::hash_of(const void* address) noexcept {
  constexpr std::uintptr_t kLine = 64;
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) / kLine;
  hash *= 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return hash * 0xd6e8feb86659fd93u;
}

bool LineWatch::write(Reader& reader, const void* address) noexcept {
  const std::uint64_t hash = hash_of(address);
  const std::uint64_t tag = hash >> kTagShift;
  std::atomic<std::uint64_t>& line = line_of(hash);
  std::uint64_t seen = line.load(std::memory_order_relaxed);
  for (;;) {
    const bool is_known = seen != 0 && seen >> kTagShift == tag;
    const std::uint64_t version =
        is_known ? ((seen & kVersionMask) + kVersionStep) & kVersionMask : kVersionStep;
    const std::uint64_t now =
        (tag << kTagShift) | (std::uint64_t{reader.thread_} << kThreadShift) | version;
    if (!line.compare_exchange_weak(seen, now, std::memory_order_relaxed)) continue;
    reader.seen_[hash % Reader::kSeen] = seen_as(hash, now);
    return is_known && (writer_of(seen) != reader.thread_ || (seen & kReadByOthers) != 0);
  }
}

bool LineWatch::read(Reader& reader, const void* address) noexcept {
  const std::uint64_t hash = hash_of(address);
  std::atomic<std::uint64_t>& line = line_of(hash);
  std::uint64_t seen = line.load(std::memory_order_relaxed);
  const bool is_known = seen != 0 && seen >> kTagShift == hash >> kTagShift;
  if (!is_known || writer_of(seen) == reader.thread_) return false;
  if ((seen & kReadByOthers) == 0)  // a failure means that it was written again, or read: no matter
    line.compare_exchange_strong(seen, seen | kReadByOthers, std::memory_order_relaxed);
  std::uint64_t& known = reader.seen_[hash % Reader::kSeen];
  if (known == seen_as(hash, seen)) return false;
  known = seen_as(hash, seen);
  return true;
}

void count_write(SharedWord word, const void* address) noexcept {
  ThreadCounts& mine = of_this_thread();
  SharedWordCounts::Counts& counts = mine.counts[word];
  ++counts.writes;
  if (line_watch().write(mine.reader, address)) ++counts.contended_writes;
}

void count_read(SharedWord word, const void* address) noexcept {
  ThreadCounts& mine = of_this_thread();
  SharedWordCounts::Counts& counts = mine.counts[word];
  ++counts.reads;
  if (line_watch().read(mine.reader, address)) ++counts.contended_reads;
}

const SharedWordCounts& shared_word_counts() noexcept { return of_this_thread().counts; }

}  // namespace flugs
