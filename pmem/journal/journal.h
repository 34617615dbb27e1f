#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "pmem/journal/batch_waiters.h"
#include "pmem/journal/dirty_pages.h"
#include "pmem/journal/journal_file.h"
#include "pmem/journal/record_ring.h"
#include "pmem/journal/replay.h"
#include "pmem/journal/soon_writer.h"
#include "pmem/medium/line_journal.h"

namespace flugs::pmem {

/// The journal of a pool on a disk: images of lines in one order for all threads. Records are
/// gathered in memory; the first thread that waits writes all that is there, and the others wait
/// for it. No timer delays it. The protocol is at `append`.
///
/// Source: the idea of a self-clocking group commit, and failure-atomic msync (EuroSys 2013).
class Journal final : public LineJournal {
 public:
  /// Gathers records in `ring`. Goes on behind `end`, in epoch `file.head().epoch`. `base` is the
  /// beginning of the pool. `replay_ns` is the time of replay from which on a checkpoint is wanted.
  Journal(JournalFile& file, RecordRing ring, DirtyPages& dirty, const std::byte* base,
          const ReplayEnd& end, std::uint64_t replay_ns);

  JournalPlace append(std::span<const LineRun> runs) noexcept override;
  /// Appends that all images so far of these whole pages are older than what the pool's file has,
  /// or will have. Returns the place behind it. As append otherwise.
  JournalPlace revoke(std::uint64_t offset, std::uint64_t bytes) noexcept;
  Status wait_durable(JournalPlace place) override { return wait(place, Returns::kSoon); }
  /// The same for a thread that does other work before it waits again.
  Status wait_between_work(JournalPlace place) { return wait(place, Returns::kNo); }
  Status wait_all_durable() override;
  bool is_durable(JournalPlace place) const noexcept override { return durable() >= place; }
  bool outlives_process() const noexcept override { return ring_.outlives_process(); }
  Status want_durable(JournalPlace place, std::chrono::microseconds within) override;
  void when_durable(JournalPlace place, std::function<void(const Status&)> callback) override;
  JournalPlace end() const noexcept override;
  JournalCounters counters() const noexcept override;
  Status check_writable(std::uint64_t bytes) override;

  JournalPlace durable() const noexcept override {
    return durable_.load(std::memory_order_acquire);
  }

  /// The space before `tail` may be written again: the file's head says so, durably.
  void recycle(JournalPlace tail) noexcept;
  /// Waits until a checkpoint is wanted; false: `stop` was requested, or the journal has failed.
  bool wait_until_checkpoint_wanted(const std::stop_token& stop);
  /// Why the latest checkpoint failed; ok: it did not.
  void note_checkpoint(const Status& status);
  /// Pages that were revoked are in the pool's file now.
  void note_direct_write(std::uint64_t bytes) noexcept;
  bool has_failed() const noexcept { return has_failed_.load(std::memory_order_acquire); }
  /// Marks pages as dirty again, whose writing failed.
  void mark_again(std::uint64_t offset, std::uint64_t bytes) noexcept;

  /// Bytes that are not recycled yet. Thread-safety: any thread.
  std::uint64_t used_bytes() const noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Returns = BatchWaiters::Returns;
  Status wait(JournalPlace place, Returns returns);
  Lock lock_soon() noexcept;
  void append_part(Lock& lock, std::span<const LineRun> part) noexcept;
  bool make_room(Lock& lock, std::uint64_t bytes) noexcept;
  void put(RecordKind kind, std::uint64_t bytes, std::uint16_t runs = 0) noexcept;
  void seal(std::byte* record, std::uint64_t bytes) noexcept;
  void pad_to(JournalPlace place) noexcept;
  void resume_behind(JournalPlace place) noexcept;
  void write_batch(Lock& lock, Returns returns) noexcept;
  bool is_long_to_replay() const noexcept;
  void look_again() noexcept;
  void want_checkpoint() noexcept;
  std::uint64_t used() const noexcept { return tail_ - recycled_; }
  std::uint64_t most_for_new() const noexcept;

  JournalFile& file_;
  DirtyPages& dirty_;
  const std::byte* const base_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t data_bytes_;
  const std::uint64_t replay_ns_;
  const std::uint64_t journal_id_;
  const std::uint64_t epoch_;
  RecordRing ring_;

  mutable std::mutex mutex_;  // protects what follows, and the ring from durable_ on; held alone
  std::condition_variable written_;  // durable_ or recycled_ has moved; for those that need room
  BatchWaiters waiters_;             // for durable_
  std::condition_variable_any wants_checkpoint_;
  JournalPlace tail_;
  JournalPlace recycled_;
  bool is_writing_ = false;     // a thread writes from durable_ on, or is about to
  JournalPlace batch_end_ = 0;  // of what it writes; not behind durable_: not known yet
  bool is_checkpoint_wanted_ = false;
  std::vector<LineRun> part_;
  JournalCounters counters_;
  Status failure_;                       // of the journal's file: the first one, for ever
  Status checkpoint_failure_;            // of the latest checkpoint
  std::atomic<bool> has_failed_{false};  // release, once; failure_ says why
  std::atomic<bool> needs_look_{false};  // for check_writable; relaxed, under mutex_
  std::atomic<JournalPlace> durable_;    // release by the writing thread, partner durable()
  SoonWriter soon_;                      // last: its thread uses all of the above
};

}  // namespace flugs::pmem
