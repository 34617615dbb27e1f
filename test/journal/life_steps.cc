// The steps that a Life draws.
#include <algorithm>
#include <numeric>
#include <utility>

#include "pmem/journal/record_images.h"
#include "test/journal/life.h"

namespace flugs::test {

namespace {

/// How much is drawn from few lines, so that steps meet.
constexpr unsigned kHotPercent = 85;
constexpr std::uint64_t kManyLinesMin = 50;
constexpr std::uint64_t kManyLinesMax = 150;  // of more than two records
constexpr std::uint64_t kSegmentBytes = kRingBytes / 4;
constexpr std::uint64_t kMemoryRingBytes = 2 * kSegmentBytes;
constexpr std::uint64_t kLinesOfRecord = kSegmentBytes / 4 / pmem::kLineBytes;
constexpr std::uint64_t kCallsOfCheckpoint = 12;
constexpr std::uint64_t kDirectPagesMax = 3;
constexpr unsigned kKillBehindFencePercent = 50;
constexpr unsigned kPunchPercent = 3;
constexpr std::uint64_t kRecoveredMax = 6;

std::uint64_t page_of(std::uint32_t line) { return line * pmem::kLineBytes / pmem::kPageBytes; }

std::vector<std::uint32_t> lines_of(std::uint64_t first_page, std::uint64_t pages) {
  constexpr std::uint64_t kLinesOfPage = pmem::kPageBytes / pmem::kLineBytes;
  std::vector<std::uint32_t> lines(pages * kLinesOfPage);
  std::iota(lines.begin(), lines.end(), static_cast<std::uint32_t>(first_page * kLinesOfPage));
  return lines;
}

}  // namespace

void Life::step() {
  const std::uint64_t choice = random_.below(100);
  if (choice < 4) {
    write_directly();
  } else if (choice < 33) {
    store_some();
  } else if (choice < 69) {
    fence_some();
  } else if (choice < 73) {
    fence_many();
  } else if (choice < 79) {
    fence_to_page_end();
  } else if (choice < 91) {
    is_lazy_&& random_.chance(90) ? fence_many() : wait();
  } else if (choice < 93) {
    punch_page();
  } else if (choice < 98) {
    if (!is_lazy_ || random_.chance(30)) checkpoint();
  } else {
    // Nobody promises anything by it.
    static_cast<void>(journal_->checkpointer().write_now(
        random_.below(kPoolPages) * pmem::kPageBytes, pmem::kPageBytes));
  }
}

/// What other threads do meanwhile.
void Life::others(std::uint64_t steps_max) {
  if (!is_open_ || is_others_turn_ || !is_well()) return;
  is_others_turn_ = true;
  for (std::uint64_t i = random_.below(steps_max + 1); i != 0 && is_well(); --i) {
    const std::uint64_t choice = random_.below(10);
    if (choice < 4) {
      store_some();
    } else if (choice < 8) {
      fence_some();
    } else if (!is_writing_batch_) {
      wait();
    }
  }
  is_others_turn_ = false;
}

/// Where a thread that punches holes need not wait for a batch of pages.
void Life::others_outside_batch() {
  others();
  if (!is_open_ || is_others_turn_ || !is_well() || !appending_.empty()) return;
  if (!random_.chance(kPunchPercent)) return;
  is_others_turn_ = true;
  punch_page();
  is_others_turn_ = false;
}

/// In a page that somebody uses.
std::uint32_t Life::drawn_line() {
  const std::vector<std::uint32_t>& near = appending_.empty() ? hot_lines_ : appending_;
  for (;;) {
    const auto line = random_.chance(kHotPercent)
                          ? near[random_.below(near.size())]
                          : static_cast<std::uint32_t>(1 + random_.below(kPoolLines - 1));
    const bool is_free =
        page_of(line) == free_page_ || std::binary_search(unshared_.begin(), unshared_.end(), line);
    if (!is_free) return line;
  }
}

void Life::store_into(std::uint32_t line) {
  const auto words = static_cast<std::uint8_t>(random_.chance(60) ? 0xFF : 1 + random_.below(0xFF));
  const std::uint64_t number = model_.store(line, words);
  auto* const to = reinterpret_cast<std::uint64_t*>(memory().data() + line * pmem::kLineBytes);
  for (std::uint64_t word = 0; word < kWordsOfLine; ++word)
    if ((words >> word & 1) != 0) to[word] = number;
  unflushed_.push_back(line);
}

void Life::store_some() {
  for (std::uint64_t i = random_.below(4); i != 0; --i) store_into(drawn_line());
}

/// Some of the lines stay unflushed. Sometimes a line is flushed that has nothing new.
void Life::fence_some() {
  if (random_.chance(70)) store_some();
  std::vector<std::uint32_t> lines;
  std::vector<std::uint32_t> left;
  for (const std::uint32_t line : unflushed_) (random_.chance(75) ? lines : left).push_back(line);
  unflushed_ = std::move(left);
  if (random_.chance(10)) lines.push_back(drawn_line());
  fence(std::move(lines));
}

void Life::fence_many() {
  const std::uint64_t lines = kManyLinesMin + random_.below(kManyLinesMax - kManyLinesMin);
  const std::uint64_t first = 1 + random_.below(kPoolLines - lines);
  std::vector<std::uint32_t> run;
  for (std::uint64_t line = first; line < first + lines; ++line) {
    run.push_back(static_cast<std::uint32_t>(line));
    store_into(run.back());
    unflushed_.pop_back();
  }
  fence(std::move(run));
}

/// The record ends with a page, so that what comes behind it begins one. A record of r runs with n
/// lines in all has 16 + 8 r + 64 n bytes.
void Life::fence_to_page_end() {
  const std::uint64_t end = journal().end();
  const std::uint64_t bytes = pmem::page_end(end + 1) - end;
  for (const std::uint64_t runs : {2, 4, 6, 8}) {
    const std::uint64_t heads = sizeof(pmem::RecordHead) + runs * sizeof(pmem::RunHead);
    if (bytes < heads + runs * pmem::kLineBytes || (bytes - heads) % pmem::kLineBytes != 0)
      continue;
    const std::uint64_t lines = (bytes - heads) / pmem::kLineBytes;
    const std::uint64_t first = 1 + random_.below(kPoolLines - lines - runs);
    std::vector<std::uint32_t> stored(lines);
    for (std::uint64_t i = 0; i < lines; ++i) {
      stored[i] = static_cast<std::uint32_t>(first + i + std::min(i, runs - 1));
      store_into(stored[i]);
      unflushed_.pop_back();
    }
    fence(std::move(stored));
    return;
  }
}

/// What recovery stores while nobody else uses the pool. The journal may be half full already.
void Life::recover_lines() {
  for (std::uint64_t i = 1 + random_.below(kRecoveredMax); i != 0 && is_well(); --i) fence_many();
}

/// False: nothing was appended, and the lines are still to be flushed.
bool Life::fence(std::vector<std::uint32_t> lines) {
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  if (lines.empty()) return false;
  std::vector<pmem::LineRun> runs;
  for (const std::uint32_t line : lines) {
    const std::byte* const begin = memory().data() + line * pmem::kLineBytes;
    if (!runs.empty() && runs.back().begin + runs.back().lines * pmem::kLineBytes == begin)
      ++runs.back().lines;
    else
      runs.push_back({begin, 1});
  }
  // A full journal makes the append wait for a checkpoint.
  const bool may_wait = !is_others_turn_ && random_.chance(50);
  if (!may_wait && !has_room(pmem::record_bytes(runs), lines.size() / kLinesOfRecord + 1)) {
    if (!is_others_turn_) checkpoint();
    if (!is_well() || !has_room(pmem::record_bytes(runs), lines.size() / kLinesOfRecord + 1)) {
      unflushed_.insert(unflushed_.end(), lines.begin(), lines.end());
      return false;
    }
  }
  const std::vector<LineModel::Captured> captured = model_.capture(lines);
  const std::uint64_t reserved = reserved_;
  std::swap(appending_, lines);
  reserved_ +=
      pmem::record_bytes(runs) + (appending_.size() / kLinesOfRecord + 2) * pmem::kPageBytes;
  const pmem::JournalPlace place = journal().append(runs);
  reserved_ = reserved;
  std::swap(appending_, lines);
  if (!is_well()) return false;
  model_.fence(captured, place);
  if (random_.chance(kKillBehindFencePercent)) cuts_.kill(*this, "a fence has ended");
  return true;
}

/// A fence with a store into another line than these.
bool Life::fence_outside(const std::vector<std::uint32_t>& lines) {
  unshared_ = lines;
  const std::uint32_t line = drawn_line();
  unshared_.clear();
  store_into(line);
  unflushed_.pop_back();
  return fence({line}) && is_well();
}

/// Some pages become free with a fence, and get new content in one piece. A later fence is what
/// leads to it.
void Life::write_directly() {
  const std::uint64_t pages = 1 + random_.below(kDirectPagesMax);
  const std::uint64_t first = 1 + random_.below(kPoolPages - pages);
  std::vector<std::uint32_t> lines = lines_of(first, pages);
  if (!fence_outside(lines)) return;
  model_.free(lines);
  // The model takes a fence for durable when it sees a later store.
  if (!fence_outside(lines) || !has_room(pmem::kPageBytes, 1)) return;
  const auto is_here = [&](std::uint32_t line) { return line >= lines[0] && line <= lines.back(); };
  std::erase_if(unflushed_, is_here);
  unshared_ = lines;
  for (const std::uint32_t line : lines) store_into(line);
  std::erase_if(unflushed_, is_here);
  const std::vector<LineModel::Captured> captured = model_.capture(lines);
  const std::span<std::byte> content =
      memory().subspan(first * pmem::kPageBytes, pages * pmem::kPageBytes);
  if (random_.chance(20)) calls_until_failure_ = 1 + random_.below(3);
  const bool is_written = journal_->direct_writer().write(content);
  calls_until_failure_ = 0;
  unshared_.clear();
  if (!is_well()) return;
  if (is_written)
    model_.fence(captured, journal().end());
  else
    fence(std::move(lines));
}

/// Whether nobody needs to be waited for by an append of these bytes, in so many records.
bool Life::has_room(std::uint64_t bytes, std::uint64_t records) {
  const pmem::JournalPlace end = journal().end();
  const std::uint64_t left = kSegmentBytes - end % kSegmentBytes;
  const std::uint64_t lost = left < bytes ? std::min(left, bytes / records + pmem::kPageBytes) : 0;
  const std::uint64_t most = lost + bytes + records * pmem::kPageBytes;
  if (is_writing_batch_ && end + most - journal().durable() > kMemoryRingBytes) return false;
  return journal().used_bytes() + reserved_ + most + pmem::kPageBytes <= kRingBytes;
}

/// A fence says that nobody uses a page any more. Then the page becomes a hole.
void Life::punch_page() {
  const std::uint64_t page = 1 + random_.below(kPoolPages - 1);
  const auto is_here = [&](std::uint32_t line) { return page_of(line) == page; };
  if (std::any_of(unshared_.begin(), unshared_.end(), is_here)) return;
  free_page_ = page;
  std::erase_if(unflushed_, [&](std::uint32_t line) { return page_of(line) == page; });
  const std::uint32_t line = drawn_line();
  store_into(line);
  unflushed_.pop_back();
  const std::uint64_t offset = page * pmem::kPageBytes;
  if (fence({line})) {
    model_.free(lines_of(page, 1));
    const std::uint64_t fences = model_.ended();
    static_cast<void>(journal_->checkpointer().without_pages(offset, pmem::kPageBytes, [&] {
      const Bytes zeros(pmem::kPageBytes);
      std::copy(zeros.begin(), zeros.end(), memory().data() + offset);
      model_.punch(page, fences);
      pool_file_.write(offset, zeros, random_);
      cuts_.cut(*this, "a hole is punched");
      return Status();
    }));
  }
  free_page_ = kPoolPages;
}

/// An append waits for room.
void Life::wait_for_others() { checkpoint(); }

void Life::wait() {
  const pmem::JournalPlace place = journal().end();
  if (!journal().wait_durable(place).ok()) return;
  model_.promise(place);
  cuts_.cut(*this, "a promise is made");
}

void Life::checkpoint() {
  if (random_.chance(12)) calls_until_failure_ = 1 + random_.below(kCallsOfCheckpoint);
  // A process is often ended that meets failures.
  if (!journal_->checkpointer().run().ok()) is_ended_ = random_.chance(40);
  calls_until_failure_ = 0;
}

}  // namespace flugs::test
