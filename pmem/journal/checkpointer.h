#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/journal/dirty_pages.h"
#include "pmem/journal/journal.h"

namespace flugs::pmem {

/// The file of a pool, as checkpoints see it.
class PageFile {
 public:
  virtual ~PageFile() = default;
  virtual Status write(std::uint64_t offset, std::span<const std::byte> pages) = 0;
  /// Sends what was written into the range on to the device, and waits until it is there, if the
  /// file system can do that for a range. It is not durable then.
  virtual Status send(std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Makes all that was written durable.
  virtual Status sync_data() = 0;
  /// Writes pages and makes them durable. What went wrong with other writes, sync_data still tells.
  virtual Status write_through(std::uint64_t offset, std::span<const std::byte> pages) = 0;
  /// Whole pages of memory that shows the file from `offset` on, with stores of its own, show the
  /// file again.
  virtual Status show_again(std::uint64_t offset, std::span<std::byte> pages) const = 0;
};

/// Writes the pages that the journal has images of to the pool's file, so that the journal's space
/// can be used again and a restart has little to replay.
class Checkpointer {
 public:
  Checkpointer(PageFile& pool_file, JournalFile& journal_file, Journal& journal, DirtyPages& dirty,
               const std::byte* base, std::uint64_t pages_max);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Starts the thread that makes checkpoints. kIoError: there is none.
  Status start();
  void stop();

  /// The file has all that the journal had when this was called. On failure the journal keeps it.
  /// Thread-safety: any thread. Fails with kOutOfSpace, kIoError.
  Status run();
  /// Writes just these pages, durably: nothing is recycled.
  Status write_now(std::uint64_t offset, std::uint64_t bytes);
  /// These whole pages are no longer dirty, and no copy of them is on its way to the file.
  void forget_pages(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Calls `work`, which may change the file of these whole pages, when everything appended so far
  /// is durable and no checkpoint writes. The pages are no longer dirty.
  Status without_pages(std::uint64_t offset, std::uint64_t bytes, FunctionRef<Status()> work);

 private:
  Status write_pages(std::uint64_t first, std::uint64_t end, JournalPlace& needed);
  Status write_batch(std::uint64_t& page, std::uint64_t end, JournalPlace& needed);
  Status write_copies();
  void mark_all_again() noexcept;
  void clear_marks(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void run_until(const std::stop_token& stop);

  PageFile& pool_file_;
  JournalFile& journal_file_;
  Journal& journal_;
  DirtyPages& dirty_;
  const std::byte* const base_;
  const std::uint64_t pages_max_;
  std::mutex mutex_;        // a checkpoint runs; then batch_mutex_
  std::mutex batch_mutex_;  // copies of pages are on their way to the file; then the journal's
  std::vector<std::uint64_t> written_;  // pages that this checkpoint has cleaned
  std::vector<std::uint64_t> batch_;    // pages in copies_, ascending
  std::vector<std::byte> copies_;
  std::jthread thread_;
};

}  // namespace flugs::pmem
