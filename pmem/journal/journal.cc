#include "pmem/journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "pmem/journal/record_images.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

namespace {

constexpr std::uint64_t kPartRunsMax = 4096;
static_assert(kPartRunsMax <= std::numeric_limits<decltype(RecordHead::runs)>::max());
/// What replay costs, measured: the device reads the bytes, and meanwhile another thread checks and
/// stores them; a page is copied on its first store.
constexpr std::uint64_t kReadNsPerKib = 1500;
constexpr std::uint64_t kStoreNsPerKib = 500;
constexpr std::uint64_t kReplayPageNs = 2100;
/// Records that no thread waits for are written when they take this part of the ring in memory.
constexpr std::uint64_t kMuchPart = 8;
/// This part of the ring is kept for calls that have begun.
constexpr std::uint64_t kKeptPart = 4;
constexpr int kSpinsMax = 100;

}  // namespace

Journal::Journal(JournalFile& file, RecordRing ring, DirtyPages& dirty, const std::byte* base,
                 const ReplayEnd& end, std::uint64_t replay_ns)
    : file_(file),
      dirty_(dirty),
      base_(base),
      segment_bytes_(file.head().segment_bytes),
      data_bytes_(file.head().data_bytes),
      replay_ns_(replay_ns),
      journal_id_(file.head().journal_id),
      epoch_(file.head().epoch),
      ring_(std::move(ring)),
      tail_(page_end(end.place)),
      recycled_(file.head().tail),
      durable_(tail_),
      soon_(*this) {
  FLUGS_CHECK(ring_.bytes() == 2 * segment_bytes_);
  if (end.epoch != 0) resume_behind(end.place);
}

/// A torn batch ends within a page. The page stays as it is, and this record says where it ended.
void Journal::resume_behind(JournalPlace place) noexcept {
  constexpr std::uint64_t kBytes = sizeof(RecordHead) + sizeof(ResumeBody);
  static_assert(kBytes % kRecordStep == 0);
  const ResumeBody body{.continues = place, .epoch = epoch_};
  std::memcpy(ring_.at(tail_) + sizeof(RecordHead), &body, sizeof body);
  put(RecordKind::kResume, kBytes);
}

/// The mutex is held for less than a microsecond, which is less than a thread needs to fall asleep
/// and to wake up.
Journal::Lock Journal::lock_soon() noexcept {
  Lock lock(mutex_, std::try_to_lock);
  for (int spins = 0; !lock.owns_lock() && spins < kSpinsMax; ++spins) {
    __builtin_ia32_pause();
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

/// Under mutex_: ends the record of `bytes` at tail_ with its checksum, which goes into the place
/// that write_record has left.
void Journal::seal(std::byte* record, std::uint64_t bytes) noexcept {
  FLUGS_DCHECK(bytes >= sizeof(RecordHead) && bytes % kRecordStep == 0);
  FLUGS_DCHECK(tail_ % segment_bytes_ + bytes <= segment_bytes_);
  const std::uint64_t checksum = checksum_of({record, bytes}, {journal_id_, tail_, epoch_});
  std::memcpy(record, &checksum, sizeof checksum);
  tail_ += bytes;
}

void Journal::put(RecordKind kind, std::uint64_t bytes, std::uint16_t runs) noexcept {
  const RecordHead head{
      .checksum = 0, .bytes = static_cast<std::uint32_t>(bytes), .kind = kind, .runs = runs};
  std::byte* const record = ring_.at(tail_);
  std::memcpy(record, &head, sizeof head);
  seal(record, bytes);
}

void Journal::pad_to(JournalPlace place) noexcept {
  FLUGS_CHECK(place >= tail_ && place - tail_ <= segment_bytes_);
  if (place == tail_) return;
  std::memset(ring_.at(tail_), 0, place - tail_);
  put(RecordKind::kPad, place - tail_);
}

// Protocol journal. The pool is mapped privately: no store reaches its file by itself.
//   step  store                          where        made durable by  power cut just after it:
//                                                                      recovery
//   1     the engine's stores            memory       -                gone
//   2     a flush notes its lines        memory       -                gone
//   3     a fence marks the lines'       the ring in  step 4           gone; it was not promised
//         pages, takes a place, copies   memory
//         the images
//   4     the batch, up to a page        journal      its own write,   replays all of it, or the
//                                                     synchronous      records before the first
//                                                     torn
//   5     wait_durable returns           -            -                keeps what was promised
// Must hold:  3 in this order, under the mutex: a mark after the place could miss a checkpoint, and
//             an image before the place could stand behind a newer one of its line.
//             Whole pages be written in 4, and no page twice before it is recycled: a torn page
//             would take promised records along.
//             4 before 5.
// Need not:   wait in 3. Later records stand behind it, whichever thread appends them.
JournalPlace Journal::append(std::span<const LineRun> runs) noexcept {
  const std::uint64_t lines_max = segment_bytes_ / 4 / kLineBytes;
  Lock lock = lock_soon();
  if (has_failed()) return tail_;
  std::uint64_t lines = 0;
  part_.clear();
  for (LineRun run : runs) {
    while (run.lines != 0) {
      const std::uint64_t taken = std::min(run.lines, lines_max - lines);
      part_.push_back({run.begin, taken});
      run = {run.begin + taken * kLineBytes, run.lines - taken};
      lines += taken;
      if (lines == lines_max || part_.size() == kPartRunsMax) {
        append_part(lock, std::exchange(part_, {}));
        part_.clear();
        lines = 0;
      }
    }
  }
  if (!part_.empty()) {
    std::vector<LineRun> part = std::move(part_);
    append_part(lock, part);
    part_ = std::move(part);
  }
  if (is_long_to_replay()) want_checkpoint();
  look_again();
  return tail_;
}

JournalPlace Journal::revoke(std::uint64_t offset, std::uint64_t bytes) noexcept {
  FLUGS_CHECK(offset % kPageBytes == 0 && bytes % kPageBytes == 0);
  constexpr std::uint64_t kBytes =
      (sizeof(RecordHead) + sizeof(RunHead) + kRecordStep - 1) / kRecordStep * kRecordStep;
  Lock lock = lock_soon();
  std::uint64_t line = offset / kLineBytes;
  for (std::uint64_t left = bytes / kLineBytes; left != 0 && make_room(lock, kBytes);) {
    const std::uint64_t lines = std::min(left, kRevokedLinesMax);
    const RunHead run{.line = line, .lines = lines};
    std::byte* const body = ring_.at(tail_) + sizeof(RecordHead);
    std::memset(body, 0, kBytes - sizeof(RecordHead));
    std::memcpy(body, &run, sizeof run);
    put(RecordKind::kRevoke, kBytes, 1);
    line += lines;
    left -= lines;
  }
  if (is_long_to_replay()) want_checkpoint();
  look_again();
  return tail_;
}

void Journal::append_part(Lock& lock, std::span<const LineRun> part) noexcept {
  const std::uint64_t bytes = record_bytes(part);
  if (!make_room(lock, bytes)) return;
  for (const LineRun& run : part) {
    FLUGS_DCHECK(run.begin >= base_);
    dirty_.mark(static_cast<std::uint64_t>(run.begin - base_), run.lines * kLineBytes);
  }
  std::byte* const record = ring_.at(tail_);
  write_record(record, part, base_);
  seal(record, bytes);
  counters_.records += 1;
  counters_.record_bytes += bytes;
}

/// Waits until a record of `bytes` fits behind tail_, in its segment, with the pad of its batch.
/// False: the journal's file has failed.
bool Journal::make_room(Lock& lock, std::uint64_t bytes) noexcept {
  FLUGS_CHECK(bytes <= segment_bytes_ - kPageBytes);
  while (!has_failed()) {
    const std::uint64_t left = segment_bytes_ - tail_ % segment_bytes_;
    const JournalPlace end = tail_ + (left < bytes ? left : 0) + bytes + kPageBytes;
    if (end - durable() > ring_.bytes() && is_writing_) {
      written_.wait(lock);
    } else if (end - durable() > ring_.bytes()) {
      is_writing_ = true;
      write_batch(lock, Returns::kNo);
      lock.lock();
    } else if (end - recycled_ > data_bytes_) {
      want_checkpoint();
      written_.wait(lock);
    } else {
      if (left < bytes) pad_to(tail_ + left);
      return true;
    }
  }
  return false;
}

/// Writes the records so far, as far as their segment goes, and frees the lock. The caller has set
/// is_writing_. After a failure it is unknown which bytes of the batch are on the medium. So it is
/// never written again, and nothing behind it: what is durable stays a prefix of what was done.
void Journal::write_batch(Lock& lock, Returns returns) noexcept {
  FLUGS_CHECK(lock.owns_lock() && is_writing_);
  const JournalPlace begin = durable();
  FLUGS_CHECK(begin % kPageBytes == 0 && begin < tail_);
  const JournalPlace end_max = segment_end(begin, segment_bytes_);
  if (tail_ < end_max) pad_to(page_end(tail_));
  FLUGS_CHECK(tail_ - begin <= ring_.bytes());  // nothing that waits was overwritten
  const JournalPlace end = std::min(tail_, end_max);
  batch_end_ = end;
  waiters_.begin_write(returns);
  lock.unlock();
  const Status status = file_.write(begin, {ring_.at(begin), end - begin});
  lock.lock();
  is_writing_ = false;
  if (status.ok()) {
    ring_.note_durable(end);
    durable_.store(end, std::memory_order_release);
    counters_.writes += 1;
    counters_.written_bytes += end - begin;
  } else {
    failure_ =
        Status(status.code(),
               fmt::format("{}; from now on the database can only be read: close it, see to "
                           "the disk, and open it again. What was in the last write is there "
                           "then, or not",
                           status.message()));
    has_failed_.store(true, std::memory_order_release);
    look_again();
    wants_checkpoint_.notify_all();
  }
  written_.notify_all();
  waiters_.end_write(lock, !status.ok());
}

Status Journal::wait(JournalPlace place, Returns returns) {
  bool has_written = false;
  for (bool is_first = true; durable() < place; is_first = false) {
    Lock lock(mutex_);
    FLUGS_CHECK(place <= tail_);
    if (durable() >= place) break;
    if (has_failed()) return failure_;
    if (is_first && returns == Returns::kSoon) waiters_.arrive();
    if (is_writing_) {
      waiters_.sleep(lock, place <= batch_end_, returns);
      continue;
    }
    is_writing_ = true;
    if (!has_written) waiters_.gather(lock);
    write_batch(lock, returns);
    has_written = true;
  }
  return {};
}

Status Journal::wait_all_durable() { return wait_durable(end()); }

Status Journal::want_durable(JournalPlace place, std::chrono::microseconds within) {
  if (has_failed()) return wait_durable(place);
  const JournalPlace done = durable();
  const bool is_much = place > done && place - done > ring_.bytes() / kMuchPart;
  if (within != kSometime) return soon_.want(place, within, is_much);
  if (is_much) soon_.begin(place);
  return {};
}

void Journal::when_durable(JournalPlace place, std::function<void(const Status&)> callback) {
  soon_.when_durable(place, std::move(callback));
}

/// Waits while the journal is nearly full. A call that has begun finds the rest of it, so it hardly
/// ever waits for a checkpoint, which may fail.
Status Journal::check_writable(std::uint64_t bytes) {
  if (!needs_look_.load(std::memory_order_relaxed)) return {};
  Lock lock(mutex_);
  while (used() > most_for_new() && failure_.ok() && checkpoint_failure_.ok()) {
    want_checkpoint();
    written_.wait(lock);
  }
  if (!failure_.ok()) return failure_;
  const bool has_room = used() <= most_for_new() && bytes <= most_for_new() - used();
  return has_room ? Status() : checkpoint_failure_;
}

void Journal::note_checkpoint(const Status& status) {
  const Lock lock(mutex_);
  checkpoint_failure_ = status;
  look_again();
  written_.notify_all();
}

/// Under mutex_, after a change of what check_writable looks at.
void Journal::look_again() noexcept {
  const bool is_well = failure_.ok() && checkpoint_failure_.ok() && used() <= most_for_new();
  needs_look_.store(!is_well, std::memory_order_relaxed);
}

/// Under mutex_.
void Journal::want_checkpoint() noexcept {
  if (is_checkpoint_wanted_) return;
  is_checkpoint_wanted_ = true;
  wants_checkpoint_.notify_one();
}

JournalPlace Journal::end() const noexcept {
  const Lock lock(mutex_);
  return tail_;
}

std::uint64_t Journal::most_for_new() const noexcept {
  return data_bytes_ - data_bytes_ / kKeptPart;
}

bool Journal::is_long_to_replay() const noexcept {
  const std::uint64_t kib = used() / 1024;
  return used() > data_bytes_ / 2 || kib * kReadNsPerKib > replay_ns_ ||
         dirty_.count() * kReplayPageNs + kib * kStoreNsPerKib > replay_ns_;
}

void Journal::recycle(JournalPlace tail) noexcept {
  const Lock lock(mutex_);
  FLUGS_CHECK(tail >= recycled_ && tail <= durable());
  recycled_ = tail;
  look_again();
  written_.notify_all();
}

bool Journal::wait_until_checkpoint_wanted(const std::stop_token& stop) {
  Lock lock(mutex_);
  wants_checkpoint_.wait(lock, stop, [this] { return is_checkpoint_wanted_ || has_failed(); });
  is_checkpoint_wanted_ = false;
  return !has_failed() && !stop.stop_requested();
}

void Journal::mark_again(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const Lock lock(mutex_);
  dirty_.mark(offset, bytes);
}

void Journal::note_direct_write(std::uint64_t bytes) noexcept {
  const Lock lock(mutex_);
  counters_.direct_writes += 1;
  counters_.direct_bytes += bytes;
}

std::uint64_t Journal::used_bytes() const noexcept {
  const Lock lock(mutex_);
  return used();
}

JournalCounters Journal::counters() const noexcept {
  const SoonWriter::Counts soon = soon_.counts();
  const Lock lock(mutex_);
  JournalCounters counters = counters_;
  counters.soon = soon.wanted;
  counters.late = soon.late;
  return counters;
}

}  // namespace flugs::pmem
