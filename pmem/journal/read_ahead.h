#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>

#include "flugs/status.h"
#include "pmem/journal/journal_file.h"

namespace flugs::pmem {

/// Reads a journal from a place on, a little ahead of the thread that uses the bytes: a device
/// needs about as long to read them as that thread to store them. A thread of its own reads; if
/// there is none, the caller does. For one caller.
class ReadAhead {
 public:
  ReadAhead(const JournalFile& journal, JournalPlace begin);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The bytes from `place` on, at least `wanted` of them, or all up to the end of their segment.
  /// They stay until a place in another segment is asked for. Places must not go back. Fails as
  /// JournalFile::read.
  Result<std::span<std::byte>> from(JournalPlace place, std::uint64_t wanted);

 private:
  struct Memory {
    void operator()(std::byte* bytes) const noexcept;
  };
  std::byte* at(JournalPlace place) const noexcept {
    return memory_.get() + place % (2 * segment_bytes_);
  }
  JournalPlace segment_end(JournalPlace place) const noexcept {
    return pmem::segment_end(place, segment_bytes_);
  }
  void run(const std::stop_token& stop);
  void read_step(std::unique_lock<std::mutex>& lock);

  const JournalFile& journal_;
  const std::uint64_t segment_bytes_;
  std::unique_ptr<std::byte, Memory> memory_;  // of two segments: of `from`, and the next
  std::mutex mutex_;                           // protects what follows; a leaf
  std::condition_variable_any moved_;          // wanted_, read_ or status_ has changed
  JournalPlace wanted_;                        // read up to here
  JournalPlace read_;
  Status status_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::pmem
