#include "mvcc/asymmetric_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace flugs::mvcc {

bool has_membarrier() noexcept {
  static const bool registered =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered;
}

void full_barrier() noexcept {
  // A locked instruction is a full barrier for the processor, on whatever word. The thread
  // sanitizer orders threads by the word, and does not model std::atomic_thread_fence.
#ifdef __SANITIZE_THREAD__
  static std::atomic<int> word{0};
#else
  std::atomic<int> word{0};
#endif
  word.exchange(1, std::memory_order_seq_cst);
}

void heavy_barrier() noexcept {
  if (has_membarrier()) {
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  } else {
    full_barrier();
  }
}

}  // namespace flugs::mvcc
