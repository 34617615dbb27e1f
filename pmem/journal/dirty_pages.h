#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "flugs/status.h"

namespace flugs::pmem {

/// The pages of the pool that the file does not have as the journal has them. A byte for each page
/// of the largest pool.
class DirtyPages {
 public:
  /// For a pool of up to `bytes` bytes, at least one. kOutOfSpace: no address space.
  static Result<DirtyPages> reserve(std::uint64_t bytes, const std::string& where);
  DirtyPages(DirtyPages&& other) noexcept;
  DirtyPages& operator=(DirtyPages&&) = delete;
  ~DirtyPages();

  /// Marks the pages of [offset, offset + bytes). Thread-safety: one thread at a time; others may
  /// clear pages meanwhile. Release: a thread that clears a mark sees all stores before it.
  void mark(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Takes the mark of a page away; false: it had none. Thread-safety: one thread at a time; others
  /// may mark pages meanwhile.
  bool clear(std::uint64_t page) noexcept;
  /// The same for the pages of [offset, offset + bytes).
  void clear_all(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// The first marked page from `page` on, below `end`; or `end`. Reads nothing behind the last
  /// page that was ever marked: the largest pool has many more.
  std::uint64_t next(std::uint64_t page, std::uint64_t end) const noexcept;
  /// How many pages are marked. Thread-safety: any thread.
  std::uint64_t count() const noexcept;

 private:
  DirtyPages(std::uint8_t* marks, std::uint64_t pages) noexcept : marks_(marks), pages_(pages) {}

  std::uint8_t* marks_;
  std::uint64_t pages_;
  std::atomic<std::uint64_t> end_{0};  // no page from here on was ever marked; relaxed, as count_
  std::atomic<std::int64_t> count_{0};
};

}  // namespace flugs::pmem
