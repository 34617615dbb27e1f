#include "test/faults/system_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <utility>

namespace flugs::test {
namespace {

struct Plan {
  std::atomic<bool> armed{false};
  SystemCall call = SystemCall::kAllocate;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  int error = 0;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint64_t> failed{0};
};
Plan plan;
std::atomic<bool> clocks_go_back{false};
std::atomic<std::int64_t> clock_reads{0};

MsyncObserver msync_observer;
std::uint64_t observed_bytes_min = 0;
std::array<std::uintptr_t, 64> observed_bases{};  // of the mappings of that size, a ring
std::size_t observed_mappings = 0;

bool fails(SystemCall call) {
  if (!plan.armed.load(std::memory_order_acquire) || plan.call != call) return false;
  const std::uint64_t number = ++plan.seen;
  if (number < plan.first || number > plan.last) return false;
  ++plan.failed;
  errno = plan.error;
  return true;
}

/// The C library's function of this name.
template <typename Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void fail_system_call(SystemCall call, std::uint64_t n, int error, std::uint64_t more) {
  plan.call = call;
  plan.first = n;
  plan.last = n + more;
  plan.error = error;
  plan.seen = 0;
  plan.failed = 0;
  plan.armed.store(true, std::memory_order_release);
}
void let_system_calls_work() { plan.armed.store(false, std::memory_order_release); }
std::uint64_t failed_system_calls() { return plan.failed; }
void observe_msync(std::uint64_t bytes_min, MsyncObserver observer) {
  observed_bytes_min = bytes_min;
  observed_bases = {};
  observed_mappings = 0;
  msync_observer = std::move(observer);
}
int sync_observed(int (*real)(void*, size_t, int), void* address, size_t bytes, int flags) {
  if (!msync_observer) return real(address, bytes, flags);
  // The offset in the mapping that begins closest below the address.
  std::uint64_t offset = ~std::uint64_t{0};
  for (const std::uintptr_t base : observed_bases)
    if (base != 0) offset = std::min(offset, reinterpret_cast<std::uintptr_t>(address) - base);
  msync_observer(offset, bytes, false);
  const int result = real(address, bytes, flags);
  msync_observer(offset, bytes, true);
  return result;
}
void note_mapping(void* address, size_t bytes) {
  if (observed_bytes_min == 0 || bytes < observed_bytes_min) return;
  observed_bases[observed_mappings++ % observed_bases.size()] =
      reinterpret_cast<std::uintptr_t>(address);
}
void forget_mapping(void* address) {
  std::replace(observed_bases.begin(), observed_bases.end(),
               reinterpret_cast<std::uintptr_t>(address), std::uintptr_t{0});
}
void turn_clocks_back(bool on) { clocks_go_back = on; }

}  // namespace flugs::test

// The names of the C library, twice where it has two names for one function.
using flugs::test::fails;
using flugs::test::original;
using flugs::test::SystemCall;

extern "C" {

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static auto* const real = original<int(int, int, off_t, off_t)>("fallocate");
  return fails(SystemCall::kAllocate) ? -1 : real(fd, mode, offset, bytes);
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  static auto* const real = original<int(int, off_t, off_t)>("posix_fallocate");
  return fails(SystemCall::kAllocate) ? errno : real(fd, offset, bytes);
}
int ftruncate(int fd, off_t bytes) noexcept {
  static auto* const real = original<int(int, off_t)>("ftruncate");
  return fails(SystemCall::kResize) ? -1 : real(fd, bytes);
}
int fsync(int fd) {
  static auto* const real = original<int(int)>("fsync");
  return fails(SystemCall::kSync) ? -1 : real(fd);
}
int fdatasync(int fd) {
  static auto* const real = original<int(int)>("fdatasync");
  return fails(SystemCall::kSync) ? -1 : real(fd);
}
int msync(void* address, size_t bytes, int flags) {
  static auto* const real = original<int(void*, size_t, int)>("msync");
  return fails(SystemCall::kMsync) ? -1 : flugs::test::sync_observed(real, address, bytes, flags);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* const real = original<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (fd >= 0 && fails(SystemCall::kMap)) return reinterpret_cast<void*>(-1);
  void* const mapped = real(address, bytes, protection, flags, fd, offset);
  if (fd >= 0 && mapped != reinterpret_cast<void*>(-1)) flugs::test::note_mapping(mapped, bytes);
  return mapped;
}
int munmap(void* address, size_t bytes) noexcept {
  static auto* const real = original<int(void*, size_t)>("munmap");
  flugs::test::forget_mapping(address);
  return real(address, bytes);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static auto* const real =
      original<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return fails(SystemCall::kThread) ? errno : real(thread, attributes, start, argument);
}
int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  static auto* const real = original<int(clockid_t, struct timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (flugs::test::clocks_go_back) time->tv_sec -= ++flugs::test::clock_reads;
  return result;
}

}  // extern "C"
