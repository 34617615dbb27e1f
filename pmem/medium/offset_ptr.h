#pragma once

#include <cstdint>
#include <type_traits>

namespace flugs::pmem {

/// A persistent pointer: the distance in bytes from the base of the pool, 0 for none. It has eight
/// bytes, so that storing one is failure-atomic. It is no address, because the pool may be mapped
/// elsewhere next time.
///
/// Source: SOFORT (DaMoN 2014), section 3.2 (PMPtr), without the page id: a pool is one mapping.
template <typename T>
struct OffsetPtr {
  std::uint64_t offset;

  bool is_null() const noexcept { return offset == 0; }
};

static_assert(sizeof(OffsetPtr<int>) == 8 && alignof(OffsetPtr<int>) == 8);
static_assert(std::is_trivially_copyable_v<OffsetPtr<int>>);

}  // namespace flugs::pmem
