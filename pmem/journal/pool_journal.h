#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/journal/checkpointer.h"
#include "pmem/journal/direct_writer.h"
#include "pmem/journal/dirty_pages.h"
#include "pmem/journal/journal.h"
#include "pmem/journal/journal_file.h"
#include "pmem/journal/replay.h"

namespace flugs::pmem {

/// The journal of an open pool, from its file to its checkpoints.
class PoolJournal {
 public:
  struct Target {
    std::span<std::byte> pool;     ///< mapped privately; may grow behind its end
    std::uint64_t pool_bytes_max;  ///< how far
    PageFile& file;
    std::uint64_t replay_ns;      ///< time of replay after a crash that checkpoints aim at
    bool has_crash_ring = false;  ///< RecordRing::named, instead of RecordRing::own
  };

  /// For a pool that needs no journal: begins the journal `journal_id` anew. What the pool's file
  /// has is made durable first, here and by recover. Fails as JournalFile::create.
  static Result<std::unique_ptr<PoolJournal>> create(const std::string& pool_path,
                                                     std::uint64_t pool_uuid,
                                                     std::uint64_t journal_id, JournalShape shape,
                                                     const Target& target);
  /// For a pool that needs the journal `id`: stores what the journal has into the mapping. Fails as
  /// JournalFile::open and replay.
  static Result<std::unique_ptr<PoolJournal>> recover(const std::string& pool_path,
                                                      std::uint64_t pool_uuid, std::uint64_t id,
                                                      const Target& target);

  /// Says durably in the journal's head whether the pool is closed. Otherwise no other pool can
  /// begin the journal anew. Only while no checkpoint runs.
  Status set_closed(bool is_closed);

  /// Removes the file of the crash ring. Records that wait in it are lost when the process ends.
  void remove_ring() noexcept { remove_ring_of(file_); }

  std::uint64_t id() const noexcept { return file_.head().journal_id; }
  Journal& journal() noexcept { return *journal_; }
  Checkpointer& checkpointer() noexcept { return *checkpointer_; }
  DirectWriter& direct_writer() noexcept { return *direct_writer_; }

 private:
  PoolJournal(JournalFile file, DirtyPages dirty)
      : file_(std::move(file)), dirty_(std::move(dirty)) {}
  Status take_left_records(const ReplayMemory& memory, ReplayEnd& end);
  Status make_room(const Target& target, ReplayEnd& end);
  Status begin(const Target& target, const ReplayEnd& end);

  JournalFile file_;
  DirtyPages dirty_;
  std::optional<Journal> journal_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<DirectWriter> direct_writer_;
};

/// Stores what the journal `id` of the pool at `pool_path` has into a view of the pool's file, for
/// a process that only reads. Fails as PoolJournal::recover.
Status replay_into_view(const std::string& pool_path, std::uint64_t pool_uuid, std::uint64_t id,
                        const ReplayMemory& view);

}  // namespace flugs::pmem
