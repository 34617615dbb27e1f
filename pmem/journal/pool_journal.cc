#include "pmem/journal/pool_journal.h"

#include <algorithm>

#include "base/check.h"

namespace flugs::pmem {

namespace {

/// Whether records wait in the ring that was left, behind those of the journal without a gap. The
/// files may have been set back to an earlier state.
bool goes_on(const std::optional<RecordRing>& ring, const JournalFile& journal,
             const ReplayEnd& end) noexcept {
  return ring.has_value() && ring->waits_from() >= journal.head().tail &&
         ring->waits_from() <= page_end(end.place);
}

}  // namespace

Result<std::unique_ptr<PoolJournal>> PoolJournal::create(const std::string& pool_path,
                                                         std::uint64_t pool_uuid,
                                                         std::uint64_t journal_id,
                                                         JournalShape shape, const Target& target) {
  // What was read in the pool's file may lie in the page cache only, if the process was killed that
  // wrote it. The file on the medium may still name the journal that begins anew now.
  if (Status s = target.file.sync_data(); !s.ok()) return s;
  Result<DirtyPages> dirty = DirtyPages::reserve(target.pool_bytes_max, pool_path);
  if (!dirty.ok()) return std::move(dirty).status();
  // A process leaves one that is killed while it begins a journal: nothing waits in it.
  const auto remove_former = [](const JournalFile& former) { remove_ring_of(former); };
  Result<JournalFile> file =
      JournalFile::create(journal_path(pool_path), pool_uuid, journal_id, shape, remove_former);
  if (!file.ok()) return std::move(file).status();
  std::unique_ptr<PoolJournal> made(new PoolJournal(*std::move(file), *std::move(dirty)));
  if (Status s = made->begin(target, {.place = 0, .epoch = 0}); !s.ok()) return s;
  return made;
}

Result<std::unique_ptr<PoolJournal>> PoolJournal::recover(const std::string& pool_path,
                                                          std::uint64_t pool_uuid, std::uint64_t id,
                                                          const Target& target) {
  // As in create: the file on the medium may not name this journal yet.
  if (Status s = target.file.sync_data(); !s.ok()) return s;
  Result<DirtyPages> dirty = DirtyPages::reserve(target.pool_bytes_max, pool_path);
  if (!dirty.ok()) return std::move(dirty).status();
  Result<JournalFile> file =
      JournalFile::open(journal_path(pool_path), pool_uuid, id, JournalFile::Use::kWrite);
  if (!file.ok()) return std::move(file).status();
  std::unique_ptr<PoolJournal> found(new PoolJournal(*std::move(file), *std::move(dirty)));
  // All pages are dirty, also those that read as the journal has them: the page cache may have what
  // a failed write did not bring to the medium.
  const auto mark = [&](std::uint64_t offset, std::uint64_t bytes) {
    found->dirty_.mark(offset, bytes);
  };
  const auto show_again = [&](std::uint64_t offset, std::uint64_t bytes) {
    found->dirty_.clear_all(offset, bytes);
    return target.file.show_again(offset, target.pool.subspan(offset, bytes));
  };
  const ReplayMemory memory{target.pool, mark, show_again};
  const Result<ReplayEnd> end = replay(found->file_, memory);
  if (!end.ok()) return end.status();
  ReplayEnd last = *end;
  if (Status s = found->take_left_records(memory, last); !s.ok()) return s;
  if (Status s = found->make_room(target, last); !s.ok()) return s;
  if (Status s = found->begin(target, last); !s.ok()) return s;
  return found;
}

// Protocol journal-ring. At an opening, when the journal is replayed, and a killed process left a
// crash ring.
//   step  store                         made durable by   killed, or power cut, just after it:
//                                                         recovery
//   1     the pages of the records      their own writes  killed: writes the same pages again;
//         that wait in the ring                           power cut: has those that arrived
//   2     the head: epoch + 1           protocol          does not read the ring any more
//                                       journal-resume
//   3     the ring's file is removed    -                 -
// Must hold:  1 before 2.
//             Records of the ring follow those of the journal without a gap. A ring of another
//             opening, of another start of the system or of a copy of the journal is not read.
//             The killed process noted in the ring what is durable before it used the memory
//             again: else 1 would overwrite durable pages with later ones.
//             A ring without a record change nothing: it waits from the page behind the records
//             of the journal, and the first record of this opening must say where those end.
// Need not:   know how far the last write of the killed process came: 1 writes the same bytes.
Status PoolJournal::take_left_records(const ReplayMemory& memory, ReplayEnd& end) {
  const Result<std::optional<RecordRing>> ring = RecordRing::left(file_);
  if (!ring.ok()) return ring.status();
  if (!goes_on(*ring, file_, end)) return {};
  const Result<JournalPlace> left_end = replay_left(**ring, file_, memory);
  if (!left_end.ok()) return left_end.status();
  if (*left_end == (*ring)->waits_from()) return {};
  const std::uint64_t segment_bytes = file_.head().segment_bytes;
  for (JournalPlace place = (*ring)->waits_from(); place < *left_end;) {
    const JournalPlace part = std::min(page_end(*left_end), segment_end(place, segment_bytes));
    if (Status s = file_.write(place, {(*ring)->at(place), part - place}); !s.ok()) return s;
    place = part;
  }
  if (*left_end > end.place) end = {.place = *left_end, .epoch = file_.head().epoch};
  return {};
}

/// Openings that are cut short again and again each append a page, so a journal that is half full
/// is emptied before it is used. Usually the pace of checkpoints keeps it emptier. Protocol
/// checkpoint from step 3 on; no thread appends meanwhile. The new tail has an epoch without
/// records: a torn batch may have left whole records of the former epoch behind its end.
Status PoolJournal::make_room(const Target& target, ReplayEnd& end) {
  JournalHead head = file_.head();
  const JournalPlace place = page_end(end.place);
  if (place - head.tail <= head.data_bytes / 2) return {};
  const std::uint64_t pages = (target.pool.size() + kPageBytes - 1) / kPageBytes;
  for (std::uint64_t page = dirty_.next(0, pages); page < pages; page = dirty_.next(page, pages)) {
    dirty_.clear(page);
    const std::uint64_t offset = page * kPageBytes;
    if (Status s = target.file.write(offset, {target.pool.data() + offset, kPageBytes}); !s.ok())
      return s;
  }
  if (Status s = target.file.sync_data(); !s.ok()) return s;
  head.tail = place;
  head.needed = place;
  head.epoch += 1;
  head.tail_epoch = head.epoch;
  end = {.place = place, .epoch = head.epoch};
  return file_.write_head(head);
}

// Protocol journal-resume. The pool's file names the journal already, or will.
//   step  store                     made durable by     power cut just after it: recovery
//   1     the head: epoch + 1, not  its own write       replays the same records
//         closed
//   2     the first record: where   the first batch     replays the same records, or those behind
//         the former ones ended                         it, too
// Must hold:  1 before 2: records of an epoch that the head does not have are not read, and the
//             next opening could use the number again.
Status PoolJournal::begin(const Target& target, const ReplayEnd& end) {
  FLUGS_CHECK(target.pool.size() <= target.pool_bytes_max && !journal_.has_value());
  const bool is_new = end.epoch == 0;
  JournalHead head = file_.head();
  head.epoch += is_new ? 0 : 1;
  head.is_closed = is_new ? 1 : 0;
  if (Status s = is_new ? Status() : file_.write_head(head); !s.ok()) return s;
  if (!target.has_crash_ring) remove_ring();
  Result<RecordRing> ring = target.has_crash_ring ? RecordRing::named(file_, page_end(end.place))
                                                  : RecordRing::own(head.segment_bytes);
  if (!ring.ok()) return std::move(ring).status();
  journal_.emplace(file_, *std::move(ring), dirty_, target.pool.data(), end, target.replay_ns);
  checkpointer_.emplace(target.file, file_, *journal_, dirty_, target.pool.data(),
                        (target.pool_bytes_max + kPageBytes - 1) / kPageBytes);
  direct_writer_.emplace(target.file, *journal_, *checkpointer_, target.pool.data());
  return {};
}

Status PoolJournal::set_closed(bool is_closed) {
  JournalHead head = file_.head();
  head.is_closed = is_closed ? 1 : 0;
  return file_.write_head(head);
}

Status replay_into_view(const std::string& pool_path, std::uint64_t pool_uuid, std::uint64_t id,
                        const ReplayMemory& view) {
  const Result<JournalFile> file =
      JournalFile::open(journal_path(pool_path), pool_uuid, id, JournalFile::Use::kRead);
  if (!file.ok()) return file.status();
  const Result<std::optional<RecordRing>> ring = RecordRing::left(*file);
  if (!ring.ok()) return ring.status();
  const Result<ReplayEnd> end = replay(*file, view);
  if (!end.ok() || !goes_on(*ring, *file, *end)) return end.status();
  return replay_left(**ring, *file, view).status();
}

}  // namespace flugs::pmem
