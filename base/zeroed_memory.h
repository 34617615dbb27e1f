#pragma once

#include <cstddef>

namespace flugs {

/// Indexes of that size and more ask the kernel for huge pages.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// DRAM for an index, all zero, page by page from the kernel when it is touched: whole pages, which
/// nobody else has. Address space for small pieces is taken from the kernel many at a time.
void* take_zeroed(std::size_t bytes);
/// The same; null when the kernel refuses.
void* try_take_zeroed(std::size_t bytes) noexcept;
/// Gives it back, of which only the first `touched_bytes` may be other than zero.
void give_back_zeroed(void* memory, std::size_t bytes, std::size_t touched_bytes) noexcept;

/// The same of whole huge pages, if the kernel has some, which spares a look-up most of its TLB
/// misses; `bytes` is rounded up to a multiple of kHugePageBytes.
void* take_huge_pages(std::size_t bytes);
void give_back_huge_pages(void* memory, std::size_t bytes) noexcept;

/// For such memory: small pages where it is touched from now on, as zeroing a huge one takes
/// milliseconds on some machines; and huge ones after all, at once if that can be.
void touch_small_pages(void* memory, std::size_t bytes) noexcept;
void join_pages(void* memory, std::size_t bytes) noexcept;

/// From now on pieces that are given back are kept for the next who takes as much, up to that many
/// of a size: for who opens and closes small databases all the time, to whom mapping and page
/// faults are most of the cost. Nothing is kept by default.
void keep_zeroed_memory(std::size_t pieces_max);

}  // namespace flugs
