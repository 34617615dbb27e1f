#include "test/faults/system_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
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
std::atomic<bool> are_writes_held{false};
std::atomic<int> writes_held{0};
std::atomic<bool> clocks_go_back{false};
std::atomic<std::int64_t> clock_reads{0};

FileObserver file_observer;
std::string observed_pool;
std::string observed_journal;
std::mutex observer_mutex;

enum class Observed : std::uint8_t { kNothing, kPool, kJournal };

Observed observed(int fd) {
  if (!file_observer) return Observed::kNothing;
  std::array<char, 512> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = ::readlink(link.c_str(), path.data(), path.size() - 1);
  if (bytes <= 0) return Observed::kNothing;
  const std::string_view name(path.data(), static_cast<std::size_t>(bytes));
  if (name == observed_pool) return Observed::kPool;
  return name == observed_journal ? Observed::kJournal : Observed::kNothing;
}

/// A call on a file that is observed, and what is told of it, are one step: else what another
/// thread writes in between would be told to be durable.
class FileStep {
 public:
  explicit FileStep(Observed file) {
    if (file != Observed::kNothing) lock_ = std::unique_lock(observer_mutex);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// In a FileStep.
void tell(FileEvent::Kind kind, Observed file, std::uint64_t offset, std::uint64_t bytes) {
  if (file == Observed::kNothing) return;
  file_observer({kind, file == Observed::kJournal, offset, bytes});
}

bool fails(SystemCall call) {
  if (!plan.armed.load(std::memory_order_acquire) || plan.call != call) return false;
  const std::uint64_t number = ++plan.seen;
  if (number < plan.first || number > plan.last) return false;
  ++plan.failed;
  errno = plan.error;
  return true;
}

void wait_while_held() {
  if (!are_writes_held) return;
  ++writes_held;
  are_writes_held.wait(true);
  --writes_held;
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
void hold_writes(bool on) {
  are_writes_held = on;
  are_writes_held.notify_all();
}
int held_writes() { return writes_held; }
void observe_files(const std::string& pool_path, FileObserver observer) {
  observed_pool = pool_path;
  observed_journal = pool_path + ".journal";
  file_observer = std::move(observer);
}
/// A call that makes a whole file durable.
int sync_file(int fd, int (*real)(int)) {
  const Observed file = observed(fd);
  const FileStep step(file);
  tell(FileEvent::Kind::kBeforeSync, file, 0, 0);
  const int result = real(fd);
  if (result == 0) tell(FileEvent::Kind::kSynced, file, 0, 0);
  return result;
}
void turn_clocks_back(bool on) { clocks_go_back = on; }

}  // namespace flugs::test

// The names of the C library, twice where it has two names for one function.
using flugs::test::fails;
using flugs::test::FileEvent;
using flugs::test::original;
using flugs::test::SystemCall;
using flugs::test::wait_while_held;

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
  return fails(SystemCall::kSync) ? -1 : flugs::test::sync_file(fd, real);
}
int fdatasync(int fd) {
  static auto* const real = original<int(int)>("fdatasync");
  return fails(SystemCall::kSync) ? -1 : flugs::test::sync_file(fd, real);
}
int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags) {
  static auto* const real = original<int(int, off_t, off_t, unsigned)>("sync_file_range");
  return fails(SystemCall::kSync) ? -1 : real(fd, offset, bytes, flags);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  static auto* const real = original<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  wait_while_held();
  if (fails(SystemCall::kWrite)) return -1;
  const auto file = flugs::test::observed(fd);
  const flugs::test::FileStep step(file);
  const ssize_t written = real(fd, data, bytes, offset);
  if (written > 0)
    flugs::test::tell(FileEvent::Kind::kWritten, file, static_cast<std::uint64_t>(offset),
                      static_cast<std::uint64_t>(written));
  return written;
}
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  static auto* const real =
      original<ssize_t(int, const struct iovec*, int, off_t, int)>("pwritev2");
  wait_while_held();
  if (fails(SystemCall::kWrite)) return -1;
  const auto file = flugs::test::observed(fd);
  const flugs::test::FileStep step(file);
  const ssize_t written = real(fd, parts, count, offset, flags);
  if (written <= 0) return written;
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto bytes = static_cast<std::uint64_t>(written);
  flugs::test::tell(FileEvent::Kind::kWritten, file, begin, bytes);
  if ((flags & RWF_DSYNC) != 0) flugs::test::tell(FileEvent::Kind::kSynced, file, begin, bytes);
  return written;
}
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* const real = original<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (fd >= 0 && fails(SystemCall::kMap)) return reinterpret_cast<void*>(-1);
  return real(address, bytes, protection, flags, fd, offset);
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
