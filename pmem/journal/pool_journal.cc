#include "pmem/journal/pool_journal.h"

#include "base/check.h"
#include "pmem/journal/replay.h"

namespace flugs::pmem {

Result<std::unique_ptr<PoolJournal>> PoolJournal::create(const std::string& pool_path,
                                                         std::uint64_t pool_uuid,
                                                         std::uint64_t journal_id,
                                                         JournalShape shape, const Target& target) {
  Result<DirtyPages> dirty = DirtyPages::reserve(target.pool_bytes_max, pool_path);
  if (!dirty.ok()) return std::move(dirty).status();
  Result<JournalFile> file =
      JournalFile::create(journal_path(pool_path), pool_uuid, journal_id, shape);
  if (!file.ok()) return std::move(file).status();
  std::unique_ptr<PoolJournal> made(new PoolJournal(*std::move(file), *std::move(dirty)));
  if (Status s = made->begin(target, {.place = 0, .epoch = 0}); !s.ok()) return s;
  return made;
}

Result<std::unique_ptr<PoolJournal>> PoolJournal::recover(const std::string& pool_path,
                                                          std::uint64_t pool_uuid, std::uint64_t id,
                                                          const Target& target) {
  Result<DirtyPages> dirty = DirtyPages::reserve(target.pool_bytes_max, pool_path);
  if (!dirty.ok()) return std::move(dirty).status();
  Result<JournalFile> file =
      JournalFile::open(journal_path(pool_path), pool_uuid, id, JournalFile::Use::kWrite);
  if (!file.ok()) return std::move(file).status();
  if (Status s = write_left_records(*file); !s.ok()) return s;
  std::unique_ptr<PoolJournal> found(new PoolJournal(*std::move(file), *std::move(dirty)));
  // All pages are dirty, also those that read as the journal has them: the page cache may have what
  // a failed write did not bring to the medium.
  const Result<ReplayEnd> end =
      replay(found->file_, target.pool,
             [&](std::uint64_t offset, std::uint64_t bytes) { found->dirty_.mark(offset, bytes); });
  if (!end.ok()) return end.status();
  ReplayEnd last = *end;
  if (Status s = found->make_room(target, last); !s.ok()) return s;
  if (Status s = found->begin(target, last); !s.ok()) return s;
  return found;
}

/// Openings that are cut short again and again each append a page, so a journal that is half full
/// is emptied before it is used. Usually the pace of checkpoints keeps it emptier. Protocol
/// checkpoint from step 3 on; nobody appends meanwhile. The new tail has an epoch without records:
/// a torn batch may have left whole records of the former epoch behind its end.
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
  const bool is_new = end.epoch == 0;
  JournalHead head = file_.head();
  head.epoch += is_new ? 0 : 1;
  head.is_closed = is_new ? 1 : 0;
  if (Status s = is_new ? Status() : file_.write_head(head); !s.ok()) return s;
  remove_ring();
  Result<RecordRing> ring = target.has_crash_ring ? RecordRing::named(file_, page_end(end.place))
                                                  : RecordRing::own(head.segment_bytes);
  if (!ring.ok()) return std::move(ring).status();
  journal_.emplace(file_, *std::move(ring), dirty_, target.pool.data(), end, target.replay_ns);
  checkpointer_.emplace(target.file, file_, *journal_, dirty_, target.pool.data(),
                        (target.pool_bytes_max + kPageBytes - 1) / kPageBytes);
  return {};
}

void PoolJournal::remove_ring() { pmem::remove_ring(file_); }

Status PoolJournal::set_closed(bool is_closed) {
  JournalHead head = file_.head();
  head.is_closed = is_closed ? 1 : 0;
  return file_.write_head(head);
}

Status replay_into_view(const std::string& pool_path, std::uint64_t pool_uuid, std::uint64_t id,
                        std::span<std::byte> view) {
  const Result<JournalFile> file =
      JournalFile::open(journal_path(pool_path), pool_uuid, id, JournalFile::Use::kRead);
  if (!file.ok()) return file.status();
  const auto ignore = [](std::uint64_t, std::uint64_t) {};
  const Result<ReplayEnd> end = replay(*file, view, ignore);
  const std::optional<RecordRing> ring = RecordRing::left(*file);
  if (!end.ok() || !ring.has_value() || ring->durable() > page_end(end->place)) return end.status();
  return replay_left(*ring, *file, view);
}

}  // namespace flugs::pmem
