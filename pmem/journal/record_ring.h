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
/// be a file on /dev/shm, which outlives the process: the next opening writes to the journal what
/// the killed process had not written yet (write_left_records).
class RecordRing {
 public:
  /// Memory of this process, as large as two segments of `segment_bytes`.
  static RecordRing own(std::uint64_t segment_bytes);
  /// A new file, in place of the one that an earlier process left. Records wait from `durable` on.
  /// kIoError, kOutOfSpace: there can be no file.
  static Result<RecordRing> named(const JournalFile& journal, JournalPlace durable);
  /// The file that a killed process left, if it belongs to the latest opening of the journal, and
  /// the system runs since. Nothing if it cannot be read or is damaged: then it is lost as memory
  /// of the process would be.
  static std::optional<RecordRing> left(const JournalFile& journal);
  RecordRing(RecordRing&& other) noexcept;
  RecordRing& operator=(RecordRing&&) = delete;
  ~RecordRing();

  std::uint64_t bytes() const noexcept { return bytes_; }
  bool outlives_process() const noexcept { return head_ != nullptr; }
  std::byte* at(JournalPlace place) const noexcept { return ring_ + place % bytes_; }
  /// Must be called before the memory of what was written is used again.
  void note_durable(JournalPlace place) noexcept;

  /// Of a file that was left: calls `use` for each whole record that waits in it, in their order.
  /// Returns the place where they end.
  JournalPlace for_each_record(
      const JournalHead& head,
      FunctionRef<void(JournalPlace place, std::span<const std::byte> record)> use) const;
  /// Of a file: the place from which on records wait.
  JournalPlace durable() const noexcept;

 private:
  struct Head;
  explicit RecordRing(std::uint64_t segment_bytes) noexcept
      : segment_bytes_(segment_bytes), bytes_(2 * segment_bytes) {}
  bool map(int fd) noexcept;

  std::uint64_t segment_bytes_;
  std::uint64_t bytes_;
  std::byte* ring_ = nullptr;
  Head* head_ = nullptr;  // of a file: the page before the ring
};

/// Writes to the journal what waits in the ring that a killed process left. Fails as
/// JournalFile::write.
Status write_left_records(JournalFile& journal);

/// Removes the file of the journal's ring, if there is one of this user.
void remove_ring(const JournalFile& journal);

}  // namespace flugs::pmem
