#include "pmem/journal/dirty_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

Result<DirtyPages> DirtyPages::reserve(std::uint64_t bytes, const std::string& where) {
  FLUGS_CHECK(bytes != 0);
  const std::uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  void* const marks = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (marks == MAP_FAILED)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: cannot get {} bytes of address space for the map of its pages: "
                              "{}",
                              where, pages, std::strerror(errno)));
  return DirtyPages(static_cast<std::uint8_t*>(marks), pages);
}

DirtyPages::DirtyPages(DirtyPages&& other) noexcept
    : marks_(std::exchange(other.marks_, nullptr)),
      pages_(other.pages_),
      end_(other.end_.load(std::memory_order_relaxed)),
      count_(other.count_.load(std::memory_order_relaxed)) {}

DirtyPages::~DirtyPages() {
  if (marks_ != nullptr) ::munmap(marks_, pages_);
}

// The mark is always stored: a test that finds it set could pass the caller's earlier stores, and
// the page would be cleaned without them. Exchanged, so that the count stays right.
void DirtyPages::mark(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::uint64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes;
  FLUGS_DCHECK(end <= pages_);
  if (end > end_.load(std::memory_order_relaxed)) end_.store(end, std::memory_order_relaxed);
  std::int64_t added = 0;
  for (std::uint64_t page = offset / kPageBytes; page < end; ++page) {
    const std::atomic_ref<std::uint8_t> mark(marks_[page]);
    added += mark.exchange(1, std::memory_order_acq_rel) == 0 ? 1 : 0;
  }
  if (added != 0) count_.fetch_add(added, std::memory_order_relaxed);
}

bool DirtyPages::clear(std::uint64_t page) noexcept {
  FLUGS_DCHECK(page < pages_);
  if (std::atomic_ref<std::uint8_t>(marks_[page]).exchange(0, std::memory_order_acq_rel) == 0)
    return false;
  count_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void DirtyPages::clear_all(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::uint64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes;
  for (std::uint64_t page = next(offset / kPageBytes, end); page < end; page = next(page, end))
    clear(page);
}

std::uint64_t DirtyPages::next(std::uint64_t page, std::uint64_t end) const noexcept {
  FLUGS_DCHECK(end <= pages_);
  constexpr std::uint64_t kStep = sizeof(std::uint64_t);
  const std::uint64_t marked_end = std::min(end, end_.load(std::memory_order_relaxed));
  while (page < marked_end) {
    if (page % kStep == 0 && page + kStep <= marked_end &&
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(marks_ + page), __ATOMIC_RELAXED) ==
            0) {
      page += kStep;
    } else if (__atomic_load_n(marks_ + page, __ATOMIC_RELAXED) != 0) {
      return page;
    } else {
      ++page;
    }
  }
  return end;
}

std::uint64_t DirtyPages::count() const noexcept {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(count_.load(std::memory_order_relaxed), 0));
}

}  // namespace flugs::pmem
