#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/journal/journal_file.h"

namespace flugs::pmem {

/// Memory in which records wait for their write: two segments of the journal, used in turn. It may
/// be a file on /dev/shm, a crash ring. This file outlives the process, and the next opening finds
/// the records that the killed process had not written yet.
class RecordRing {
 public:
  /// Memory of this process, as large as two segments of `segment_bytes`.
  static RecordRing own(std::uint64_t segment_bytes);
  /// A new file, in place of the one that an earlier process left. Records wait from `durable` on.
  /// kIoError, kOutOfSpace: there can be no file.
  static Result<RecordRing> named(const JournalFile& journal, JournalPlace durable);
  /// The file that a killed process left. Nothing, if there is none, or if it belongs to another
  /// opening of the journal or to an earlier start of the system. It can only be read: a reader
  /// must not change what the next opening needs. kIoError: it cannot be read, and may have what
  /// was promised.
  static Result<std::optional<RecordRing>> left(const JournalFile& journal);
  RecordRing(RecordRing&& other) noexcept;
  RecordRing& operator=(RecordRing&&) = delete;
  ~RecordRing();

  std::uint64_t bytes() const noexcept { return bytes_; }
  bool outlives_process() const noexcept { return head_ != nullptr; }
  std::byte* at(JournalPlace place) const noexcept { return ring_ + place % bytes_; }
  /// Must be called before the memory of what was written is used again.
  void note_durable(JournalPlace place) noexcept;

  /// The place from which on records wait in a file that was left.
  JournalPlace waits_from() const noexcept { return waits_from_; }
  /// Calls `use` with a copy of each whole record that waits in a file that was left, in their
  /// order, while it returns ok. Returns the place where they end. Fails as `use`.
  Result<JournalPlace> for_each_record(
      const JournalHead& head,
      FunctionRef<Status(JournalPlace place, std::span<const std::byte> record)> use) const;

 private:
  struct Head;
  explicit RecordRing(std::uint64_t segment_bytes) noexcept
      : segment_bytes_(segment_bytes), bytes_(2 * segment_bytes) {}
  bool map(int fd, int protection) noexcept;
  bool fits(const JournalHead& journal) const noexcept;

  std::uint64_t segment_bytes_;
  std::uint64_t bytes_;
  std::byte* ring_ = nullptr;
  Head* head_ = nullptr;  // of a file: the page before the ring
  JournalPlace waits_from_ = 0;
};

/// Removes the file of the journal's crash ring, if there is one.
void remove_ring_of(const JournalFile& journal) noexcept;

}  // namespace flugs::pmem
