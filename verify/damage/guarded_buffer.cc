#include "verify/damage/guarded_buffer.h"

#include <sys/mman.h>

#include "base/check.h"
#include "pmem/medium/medium.h"

namespace flugs::damage {

using pmem::kPageBytes;

GuardedBuffer::GuardedBuffer(std::size_t bytes)
    : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
  void* const all = ::mmap(nullptr, bytes_ + 2 * kPageBytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FLUGS_CHECK(all != MAP_FAILED);
  begin_ = static_cast<std::byte*>(all) + kPageBytes;
  FLUGS_CHECK(::mprotect(begin_, bytes_, PROT_READ | PROT_WRITE) == 0);
}

GuardedBuffer::~GuardedBuffer() { ::munmap(begin_ - kPageBytes, bytes_ + 2 * kPageBytes); }

}  // namespace flugs::damage
