#pragma once

#include <cstddef>

namespace flugs {

/// Indexes of at least this size ask the kernel for huge pages.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// DRAM for an index, all zero. The kernel provides each page when it is touched. The memory
/// consists of whole pages that no other piece shares. For small pieces, address space is taken
/// from the kernel for many at a time.
void* take_zeroed(std::size_t bytes);
/// As take_zeroed, but returns null when the kernel refuses.
void* try_take_zeroed(std::size_t bytes) noexcept;
/// Gives memory back. Only the first `touched_bytes` of it may be other than zero.
void give_back_zeroed(void* memory, std::size_t bytes, std::size_t touched_bytes) noexcept;

/// As take_zeroed, but with whole huge pages if the kernel has some, which saves a look-up most of
/// its TLB misses; `bytes` is rounded up to a multiple of kHugePageBytes.
void* take_huge_pages(std::size_t bytes);
void give_back_huge_pages(void* memory, std::size_t bytes) noexcept;

/// For memory of take_huge_pages. touch_small_pages makes the kernel use small pages for what is
/// touched from now on, because zeroing a huge page takes milliseconds on some machines. join_pages
/// returns to huge pages, at once if possible.
void touch_small_pages(void* memory, std::size_t bytes) noexcept;
void join_pages(void* memory, std::size_t bytes) noexcept;

/// From now on, keeps up to `pieces_max` returned pieces of each size for the next request of that
/// size. For programs that open and close small databases all the time, where mapping and page
/// faults are most of the cost. By default nothing is kept.
void keep_zeroed_memory(std::size_t pieces_max);

}  // namespace flugs
