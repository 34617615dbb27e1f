#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flugs/function_ref.h"

namespace flugs::test {

/// A disk on which the journal of this program lies, in memory. journal_calls.cc stands between
/// the program and the C library.
class JournalDisk {
 public:
  virtual ~JournalDisk() = default;
  virtual void read_journal(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  /// Returns when the bytes are durable. 0, or what errno is to be.
  virtual int write_journal(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// A checkpoint is copying a page: other threads may do something.
  virtual void meanwhile() = 0;
  /// A thread waits for another one, which must do something.
  virtual void wait_for_others() = 0;

  /// Opens the crash ring, or makes it: a descriptor, or -1 and errno.
  virtual int open_ring(bool makes) = 0;
  /// The ring was made, and has its size now.
  virtual void allocated_ring() = 0;
  virtual void remove_ring() = 0;
  /// `copy` writes all of a record to `record` but its checksum.
  virtual void copy_record(std::span<std::byte> record, FunctionRef<void()> copy) = 0;
};

/// While this lives, every `pread` and `pwritev2` of the program, whatever its file, goes to the
/// disk, and so do the calls that make, open and remove a crash ring; the system refuses threads,
/// and a thread that waits on a condition does what others would do. These may nest.
class JournalDiskInUse {
 public:
  explicit JournalDiskInUse(JournalDisk& disk) noexcept;
  ~JournalDiskInUse();
  JournalDiskInUse(const JournalDiskInUse&) = delete;
  JournalDiskInUse& operator=(const JournalDiskInUse&) = delete;

 private:
  JournalDisk* const former_;
};

}  // namespace flugs::test
