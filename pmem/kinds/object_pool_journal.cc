// ObjectPool on a disk: a private mapping, and a journal beside the file.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/usable_memory.h"
#include "pmem/kinds/file_journal.h"
#include "pmem/kinds/object_format.h"
#include "pmem/kinds/object_pool.h"

namespace flugs::pmem {

namespace {

constexpr std::uint64_t kJournalPart = 16;
constexpr std::uint64_t kJournalBytesMin = std::uint64_t{4} << 20;
constexpr std::uint64_t kJournalBytesMax = std::uint64_t{64} << 20;

constexpr std::uint64_t kLastLine = kPoolBytesMax / kLineBytes - 1;
static_assert(RunHead{.line = kLastLine, .lines = 1}.line == kLastLine);  // a record can name it

JournalShape shape_for(std::uint64_t pool_bytes, const PoolOptions& options) noexcept {
  const std::uint64_t fitting =
      std::clamp(pool_bytes / kJournalPart, kJournalBytesMin, kJournalBytesMax);
  return journal_shape(options.journal_bytes == 0 ? fitting : options.journal_bytes);
}

}  // namespace

/// Checks the file and maps it.
Result<PoolHeader> ObjectPool::map_existing(std::uint64_t bytes, const PoolOptions& options) {
  const Result<FileView> view = file_.view();
  if (!view.ok()) return view.status();
  const NeededJournal needed = journal_needed_by(view->bytes());
  if (needed.id != 0) return map_replayed(bytes, options, view->bytes(), needed);
  Result<PoolHeader> header = check_before_opening(view->bytes());
  if (!header.ok()) return header;
  Status status = map(header->max_bytes, options.max_bytes, map_flags());
  if (!status.ok()) return status;
  return header;
}

/// Does the same for a file that comes from a disk, with a journal that it needs. The file gets the
/// pages that the journal changes.
Result<PoolHeader> ObjectPool::map_replayed(std::uint64_t bytes, const PoolOptions& options,
                                            std::span<std::byte> view,
                                            const NeededJournal& needed) {
  Result<DirtyPages> changed = DirtyPages::reserve(std::max<std::uint64_t>(bytes, 1), path());
  if (!changed.ok()) return std::move(changed).status();
  Status status = replay_into_view(file_, needed, view, *changed);
  if (!status.ok()) return status;
  Result<PoolHeader> header = check_before_opening(view);
  if (!header.ok()) return header;
  status = map(bytes, options.max_bytes, map_flags());
  if (!status.ok()) return status;
  const std::uint64_t pages = (mapped_bytes_ + kPageBytes - 1) / kPageBytes;
  for (std::uint64_t page = changed->next(0, pages); page < pages;
       page = changed->next(page + 1, pages)) {
    const std::uint64_t offset = page * kPageBytes;
    std::memcpy(space_.base() + offset, view.data() + offset,
                std::min(kPageBytes, mapped_bytes_ - offset));
  }
  status = file_.sync();
  if (status.ok()) status = unmap_from(header->max_bytes);
  if (!status.ok()) return status;
  return header;
}

/// The journal, if the file needs one, is stored into the mapping before anything is checked: the
/// file alone may be between two states.
Result<PoolHeader> ObjectPool::map_with_journal(std::uint64_t bytes, const PoolOptions& options) {
  if (bytes == 0) return check_before_opening({});
  Status status = map(bytes, options.max_bytes, map_flags());
  if (!status.ok()) return status;
  const std::span<std::byte> file(space_.base(), mapped_bytes_);
  const NeededJournal needed = journal_needed_by(file);
  if (needed.id != 0) {
    Result<std::unique_ptr<PoolJournal>> found =
        PoolJournal::recover(path(), needed.pool_uuid, needed.id, journal_target(options));
    if (!found.ok()) return std::move(found).status();
    journal_ = *std::move(found);
  }
  Result<PoolHeader> header = check_before_opening(file);
  if (!header.ok()) return header;
  status = unmap_from(header->max_bytes);
  if (!status.ok()) return status;
  return header;
}

/// A file whose growth was cut short is longer than its pool.
Status ObjectPool::unmap_from(std::uint64_t bytes) {
  const std::uint64_t begin = round_up(bytes, kPageBytes);
  const std::uint64_t end = mapped_bytes_;
  mapped_bytes_ = bytes;
  if (begin >= end) return {};
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(space_.base() + begin, end - begin, PROT_NONE, kFlags, -1, 0) != MAP_FAILED) return {};
  return Status(StatusCode::kIoError, fmt::format("{}: cannot unmap what lies behind the pool: {}",
                                                  path(), std::strerror(errno)));
}

PoolJournal::Target ObjectPool::journal_target(const PoolOptions& options) noexcept {
  return {.pool = {space_.base(), mapped_bytes_},
          .pool_bytes_max = space_.bytes(),
          .file = file_,
          .replay_ns = options.replay_ns,
          .has_crash_ring = options.has_crash_ring};
}

/// From here on fences append to a journal: the one that was found, whose checkpoints may begin, or
/// a new one. `named`: the id in the header that counts.
Status ObjectPool::begin_journal(std::uint64_t pool_uuid, std::uint64_t named,
                                 const PoolOptions& options) {
  const bool is_found = journal_ != nullptr;
  direct_write_bytes_ = options.direct_write_bytes;
  memory_bytes_ = usable_memory_bytes();
  if (!is_found) {
    Result<std::unique_ptr<PoolJournal>> made = PoolJournal::create(
        path(), pool_uuid, random_id(), shape_for(mapped_bytes_, options), journal_target(options));
    if (!made.ok()) return std::move(made).status();
    journal_ = *std::move(made);
  }
  medium().set_journal(&journal_->journal());
  // A closing that was cut short may have left id 0 in the header that counts, and not in the other
  // one: then name_journal goes on, and starts the checkpoints.
  const bool is_named = named == journal_->id();
  return is_found && is_named ? journal_->checkpointer().start() : Status();
}

// Protocol journal-begin. While the pool is opened, by one thread; no checkpoint runs before 5.
//   step  store                        made durable by     power cut just after it: recovery
//   1     the journal, empty; its      its own write       the file names none: not looked for
//         head says: closed
//   2     both headers: its id         in the journal      the same; what the journal has is gone
//   3     the pages with the headers   fdatasync           replays the journal, if it reads the id
//   4     the head: not closed         its own write       replays the journal
//   5     checkpoints                  protocol            replays the journal
//                                      checkpoint
// Must hold:  The file be synced before 1, and before a journal that it names is used: a killed
//             process may have left a header in the page cache only, of 3 or of journal-end. Else
//             the medium could name a journal that begins anew, or not the one that has promises.
//             3 before 5, and before anything is promised: a file that has pages of checkpoints,
//             but does not name the journal, would be taken for whole.
//             3 before 4: no pool could use a journal that no file names and that is not closed.
//             4 before anything is promised: until then another pool may begin the journal anew,
//             if this one is moved away.
//             3 before any direct write: replay would not know what it has revoked.
Status ObjectPool::name_journal() {
  if (root()->headers[0].journal_id == journal_->id()) {
    write_directly();
    return {};
  }
  {
    Persister persister(medium());
    set_journal_id(*root(), journal_->id(), persister);
    if (Status s = persister.wait_durable(); !s.ok()) return s;
  }
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(root()) - base());
  Status status = journal_->checkpointer().write_now(offset, sizeof(PoolRoot{}.headers));
  if (status.ok()) status = journal_->set_closed(false);
  if (!status.ok()) return status;
  status = journal_->checkpointer().start();
  if (status.ok())
    write_directly();
  else
    static_cast<void>(journal_->set_closed(true));
  return status;
}

void ObjectPool::write_directly() noexcept {
  if (direct_write_bytes_ != 0)
    medium().set_page_writer(&journal_->direct_writer(), direct_write_bytes_);
}

// Protocol journal-end. When the pool is closed, and no other thread uses it.
//   step  store                        made durable by     power cut just after it: recovery
//   1     all dirty pages              checkpoint          replays what the journal has left
//   2     the journal's head: closed   its own write       the same
//   3     both headers: id 0           in the journal      replays it
//   4     the pages with the headers   checkpoint          replays it, or the file names none
// Must hold:  1 before 4. After a failure the file may go on to name its journal, or not.
//             1 before 2: from then on the file has everything but the headers of 3.
//             2 before 4: a file that names no journal needs none that is not closed.
//             1 before the crash ring is removed: then nothing that was promised waits in it.
void ObjectPool::end_journal() {
  detach_allocator();
  Checkpointer& checkpointer = journal_->checkpointer();
  checkpointer.stop();
  if (!checkpointer.run().ok() || !journal_->set_closed(true).ok()) return;
  journal_->remove_ring();  // nothing that was promised waits in it
  {
    Persister persister(medium());
    set_journal_id(*root(), 0, persister);
  }
  static_cast<void>(checkpointer.run());  // closed as it is: everything else is in the file
}

/// The file was opened on a medium without journals: what it needed is stored and durable.
Status ObjectPool::do_without_journal() {
  const std::uint64_t journal_id = root()->headers[0].journal_id;
  if (journal_id == 0) return {};
  {
    Persister persister(medium());
    set_journal_id(*root(), 0, persister);
  }
  const std::string journal = journal_path(path());
  const Result<JournalFile> file =
      JournalFile::open(journal, root()->headers[0].uuid, journal_id, JournalFile::Use::kRead);
  if (file.ok()) remove_ring_of(*file);
  ::unlink(journal.c_str());
  return {};
}

// Protocol hole-punch, step 2. The pieces' records in the journal stay; replay may store into free
// space, which no thread reads.
// Must hold:  the record that made the space free be durable before the blocks go.
//             No copy of these pages be on its way to the file.
Status ObjectPool::punch_with_journal(std::uint64_t offset, std::uint64_t bytes) {
  return journal_->checkpointer().without_pages(offset, bytes, [&]() -> Status {
    if (::madvise(base() + offset, bytes, MADV_DONTNEED) != 0)
      return Status(StatusCode::kIoError,
                    fmt::format("{}: madvise: {}", path(), std::strerror(errno)));
    return file_.punch(offset, bytes);
  });
}

}  // namespace flugs::pmem
