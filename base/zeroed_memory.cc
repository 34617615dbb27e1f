#include "base/zeroed_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace flugs {

namespace {

constexpr std::size_t kPageBytes = 4096;
// Pieces of up to a 16th of a reserve are cut from it. To map a reserve costs one system call. But
// while one thread maps memory, the page faults of all others wait.
constexpr std::size_t kSmallReserveBytes = std::size_t{2} << 20;
constexpr std::size_t kLargeReserveBytes = std::size_t{64} << 20;
constexpr std::size_t kPiecesMin = 16;
// For more bytes, fresh zero pages of the kernel are cheaper.
constexpr std::size_t kTouchedBytesKept = std::size_t{64} << 10;

struct Kept {
  std::mutex mutex;  // protects the pieces; a leaf
  std::unordered_map<std::size_t, std::vector<void*>> pieces;
};
Kept& kept() noexcept {
  static auto* kept = new Kept;  // to the end of the process: threads may outlive statics
  return *kept;
}
std::atomic<std::size_t> pieces_kept_max{0};

constexpr std::size_t whole_huge_pages(std::size_t bytes) noexcept {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

void* map_zeroed(std::size_t bytes) noexcept {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Untouched address space of one thread. It uses no lock, so a forked child never waits for a
// thread that it does not have. Each piece is unmapped separately.
class Reserve {
 public:
  explicit Reserve(std::size_t bytes) noexcept : bytes_(bytes) {}
  ~Reserve() { drop(); }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  bool has_pieces_of(std::size_t bytes) const noexcept { return bytes <= bytes_ / kPiecesMin; }
  /// `bytes` must be whole pages. Null when the kernel refuses.
  void* cut(std::size_t bytes) noexcept {
    FLUGS_CHECK(bytes != 0 && bytes % kPageBytes == 0 && has_pieces_of(bytes));
    if (left_ < bytes) {
      void* fresh = map_zeroed(bytes_);
      if (fresh == nullptr) return map_zeroed(bytes);
      drop();
      next_ = static_cast<std::byte*>(fresh);
      left_ = bytes_;
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  void drop() noexcept {
    if (left_ != 0) ::munmap(next_, left_);
  }

  const std::size_t bytes_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};
thread_local Reserve small_reserve(kSmallReserveBytes);
thread_local Reserve large_reserve(kLargeReserveBytes);

constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void* take_kept(std::size_t bytes) noexcept {
  const std::lock_guard guard(kept().mutex);
  const auto found = kept().pieces.find(bytes);
  if (found == kept().pieces.end() || found->second.empty()) return nullptr;
  void* memory = found->second.back();
  found->second.pop_back();
  return memory;
}

}  // namespace

void* try_take_zeroed(std::size_t bytes) noexcept {
  if (pieces_kept_max.load(std::memory_order_relaxed) != 0)
    if (void* memory = take_kept(bytes); memory != nullptr) return memory;
  const std::size_t whole = whole_pages(bytes);
  if (small_reserve.has_pieces_of(whole)) return small_reserve.cut(whole);
  return large_reserve.has_pieces_of(whole) ? large_reserve.cut(whole) : map_zeroed(whole);
}

void* take_zeroed(std::size_t bytes) {
  void* memory = try_take_zeroed(bytes);
  FLUGS_CHECK(memory != nullptr);  // address space, not memory: only a bug exhausts it
  return memory;
}

void give_back_zeroed(void* memory, std::size_t bytes, std::size_t touched_bytes) noexcept {
  FLUGS_CHECK(touched_bytes <= bytes);
  const std::size_t pieces_max = pieces_kept_max.load(std::memory_order_relaxed);
  if (pieces_max != 0 && touched_bytes <= kTouchedBytesKept) {
    std::memset(memory, 0, touched_bytes);
    const std::lock_guard guard(kept().mutex);
    std::vector<void*>& pieces = kept().pieces[bytes];
    if (pieces.size() < pieces_max) {
      pieces.push_back(memory);
      return;
    }
  }
  ::munmap(memory, whole_pages(bytes));
}

void* take_huge_pages(std::size_t bytes) {
  const std::size_t whole = whole_huge_pages(bytes);
  const std::size_t mapped = whole + kHugePageBytes;
  void* memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FLUGS_CHECK(memory != MAP_FAILED);
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = whole_huge_pages(start);
  if (aligned != start) ::munmap(memory, aligned - start);
  const std::uintptr_t end = start + mapped;
  if (aligned + whole != end)
    ::munmap(reinterpret_cast<void*>(aligned + whole), end - (aligned + whole));
  ::madvise(reinterpret_cast<void*>(aligned), whole, MADV_HUGEPAGE);  // the kernel may ignore it
  return reinterpret_cast<void*>(aligned);
}

void give_back_huge_pages(void* memory, std::size_t bytes) noexcept {
  ::munmap(memory, whole_huge_pages(bytes));
}

void touch_small_pages(void* memory, std::size_t bytes) noexcept {
  ::madvise(memory, whole_huge_pages(bytes), MADV_NOHUGEPAGE);
}

void join_pages(void* memory, std::size_t bytes) noexcept {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1; older kernels ignore it, which loses
                                 // nothing
  ::madvise(memory, whole_huge_pages(bytes), MADV_HUGEPAGE);
  ::madvise(memory, whole_huge_pages(bytes), kCollapse);
}

void keep_zeroed_memory(std::size_t pieces_max) {
  pieces_kept_max.store(pieces_max, std::memory_order_relaxed);
}

}  // namespace flugs
