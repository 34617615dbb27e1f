#include "pmem/journal/checkpointer.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/thread.h"
#include "pmem/journal/record_images.h"

namespace flugs::pmem {

namespace {

/// A commit waits behind a batch for about a millisecond, if its pages are scattered.
constexpr std::uint64_t kBatchPages = 64;
/// How long the thread waits before it tries a failed checkpoint again.
constexpr std::chrono::seconds kFailurePause{1};

}  // namespace

Checkpointer::Checkpointer(PageFile& pool_file, JournalFile& journal_file, Journal& journal,
                           DirtyPages& dirty, const std::byte* base, std::uint64_t pages_max)
    : pool_file_(pool_file),
      journal_file_(journal_file),
      journal_(journal),
      dirty_(dirty),
      base_(base),
      pages_max_(pages_max),
      copies_(kBatchPages * kPageBytes) {}

Checkpointer::~Checkpointer() { stop(); }

Status Checkpointer::start() {
  FLUGS_CHECK(!thread_.joinable());
  Result<std::jthread> started =
      start_thread("flugs-checkpt", [this](const std::stop_token& stop) { run_until(stop); });
  if (!started.ok()) return started.status();
  thread_ = *std::move(started);
  return {};
}

void Checkpointer::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

// After a failure nothing is lost: the journal keeps its records, and appending waits when it is
// full. The thread tries again until the file can be written.
void Checkpointer::run_until(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (journal_.wait_until_checkpoint_wanted(stop)) {
    while (!run().ok() && !journal_.has_failed() && !stop.stop_requested()) {
      std::unique_lock lock(mutex);
      stopped.wait_for(lock, stop, kFailurePause, [] { return false; });
    }
  }
}

// Protocol checkpoint.
//   step  store                         where           made durable by  power cut just after it:
//                                                                        recovery
//   1     tail := end of the journal    memory          -                replays from the old tail
//   2     a page's mark taken away,     memory          -                the same
//         then the page copied
//   3     the copies, when all records  the pool's      step 4           replays from the old tail:
//         so far are durable            file                             sets every line that the
//                                                                        journal has, which mends
//                                                                        torn pages
//   4     fdatasync                     the pool's      itself           the same
//                                       file
//   5     the journal's head: the tail  journal         its own write,   replays from the old tail,
//         of step 1                                     synchronous      or from the new one
//   6     space before the tail used    journal         later records    as 5; a record there has
//         again                                                          another place
// Must hold:  1 before 2, else a page could be copied before the record of a line in it, which the
//             new tail leaves out.
//             Each mark before its copy, else a store in between would be missed.
//             The records be durable in 3: a page must not have a store whose fence is lost.
//             4 before 5, 5 before 6.
// Need not:   any order of the pages.
Status Checkpointer::run() {
  const std::scoped_lock lock(mutex_);
  JournalHead head = journal_file_.head();
  head.tail = journal_.end();
  head.tail_epoch = head.epoch;
  head.needed = head.tail;
  written_.clear();
  Status status = write_pages(0, pages_max_, head.needed);
  if (status.ok()) status = journal_.wait_between_work(head.needed);
  if (status.ok()) status = pool_file_.sync_data();
  if (status.ok()) status = journal_file_.write_head(head);
  journal_.note_checkpoint(status);
  if (status.ok()) {
    journal_.recycle(head.tail);
  } else {
    mark_all_again();
  }
  return status;
}

Status Checkpointer::write_now(std::uint64_t offset, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  JournalPlace needed = 0;
  written_.clear();
  const std::uint64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes;
  Status status = write_pages(offset / kPageBytes, end, needed);
  if (status.ok()) status = pool_file_.sync_data();
  mark_all_again();  // the journal's tail has not passed them
  return status;
}

Status Checkpointer::write_pages(std::uint64_t first, std::uint64_t end, JournalPlace& needed) {
  FLUGS_CHECK(first <= end && end <= pages_max_);
  for (std::uint64_t page = dirty_.next(first, end); page < end; page = dirty_.next(page, end)) {
    const std::uint64_t first_of_batch = page;
    if (Status s = write_batch(page, end, needed); !s.ok()) return s;
    // Sent on at once, under no lock: otherwise the sync of a whole checkpoint keeps the
    // device from commits for some 100 ms, and a killed process from ending.
    const std::uint64_t offset = first_of_batch * kPageBytes;
    if (Status s = pool_file_.send(offset, page * kPageBytes - offset); !s.ok()) return s;
  }
  return {};
}

/// Copies dirty pages from `page` on, and writes them. Moves `page` behind them.
Status Checkpointer::write_batch(std::uint64_t& page, std::uint64_t end, JournalPlace& needed) {
  const std::scoped_lock lock(batch_mutex_);
  batch_.clear();
  for (; page < end && batch_.size() < kBatchPages; page = dirty_.next(page + 1, end)) {
    if (!dirty_.clear(page)) continue;
    copy_words(copies_.data() + batch_.size() * kPageBytes, base_ + page * kPageBytes, kPageBytes);
    batch_.push_back(page);
  }
  written_.insert(written_.end(), batch_.begin(), batch_.end());
  const JournalPlace end_of_journal = journal_.end();
  needed = std::max(needed, end_of_journal);
  if (Status s = journal_.wait_between_work(end_of_journal); !s.ok()) return s;
  return write_copies();
}

/// Neighbours with one call.
Status Checkpointer::write_copies() {
  for (std::size_t i = 0; i < batch_.size();) {
    std::size_t next = i + 1;
    while (next < batch_.size() && batch_[next] == batch_[next - 1] + 1) ++next;
    const std::span<const std::byte> pages(copies_.data() + i * kPageBytes,
                                           (next - i) * kPageBytes);
    if (Status s = pool_file_.write(batch_[i] * kPageBytes, pages); !s.ok()) return s;
    i = next;
  }
  return {};
}

// The kernel takes pages for clean whose writing failed, so they are written again whatever the
// page cache has.
void Checkpointer::mark_all_again() noexcept {
  for (const std::uint64_t page : written_) journal_.mark_again(page * kPageBytes, kPageBytes);
}

Status Checkpointer::without_pages(std::uint64_t offset, std::uint64_t bytes,
                                   FunctionRef<Status()> work) {
  if (Status s = journal_.wait_all_durable(); !s.ok()) return s;
  const std::scoped_lock lock(batch_mutex_);
  clear_marks(offset, bytes);
  return work();
}

void Checkpointer::forget_pages(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(batch_mutex_);
  clear_marks(offset, bytes);
}

/// Under batch_mutex_.
void Checkpointer::clear_marks(std::uint64_t offset, std::uint64_t bytes) noexcept {
  FLUGS_CHECK(offset % kPageBytes == 0 && bytes % kPageBytes == 0);
  dirty_.clear_all(offset, bytes);
}

}  // namespace flugs::pmem
