#pragma once

namespace flugs::mvcc {

/// A full barrier between two threads, for the case that one passes it millions of times a second
/// and the other rarely. The frequent side pays (almost) nothing; the rare side interrupts all
/// processors that run this process (membarrier(2), private expedited). Where the kernel does not
/// offer that, both sides pay a full barrier.
///
/// Guarantee, as with two sequentially consistent fences: of two threads that each store, pass
/// their side, and load what the other stored, at least one sees the other's store.

/// Whether the kernel does the work; asked once.
bool has_membarrier() noexcept;
void full_barrier() noexcept;

inline void light_barrier() noexcept {
  static const bool kernel_helps = has_membarrier();
  if (__builtin_expect(kernel_helps, 1)) {
    asm volatile("" ::: "memory");
  } else {
    full_barrier();
  }
}

void heavy_barrier() noexcept;

}  // namespace flugs::mvcc
