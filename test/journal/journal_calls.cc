#include "test/journal/journal_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <string_view>

#include "pmem/journal/record_images.h"

namespace flugs::test {
namespace {

JournalDisk* disk_in_use = nullptr;

/// The C library's function of this name.
template <typename Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_ring(const char* path) {
  const std::string_view name(path);
  return name.starts_with("/dev/shm/flugs-") && name.ends_with(".ring");
}

}  // namespace

JournalDiskInUse::JournalDiskInUse(JournalDisk& disk) noexcept : former_(disk_in_use) {
  disk_in_use = &disk;
}

JournalDiskInUse::~JournalDiskInUse() { disk_in_use = former_; }

#ifdef FLUGS_COPY_WORDS

// The linker's option --wrap (CMakeLists.txt) sends the checkpoint's calls of pmem::copy_words
// here, where the library's sources are objects of their own.
void really_copy_words(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept
    __asm__("__real_" FLUGS_COPY_WORDS);
void copy_words_and_others(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept
    __asm__("__wrap_" FLUGS_COPY_WORDS);

void copy_words_and_others(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  const std::uint64_t half = bytes / 2;
  disk_in_use->meanwhile();
  really_copy_words(to, from, half);
  disk_in_use->meanwhile();
  really_copy_words(to + half, from + half, bytes - half);
  disk_in_use->meanwhile();
}

// The same for pmem::write_record, which appending calls.
void really_write_record(std::byte* to, std::span<const pmem::LineRun> runs,
                         const std::byte* base) noexcept __asm__("__real_" FLUGS_WRITE_RECORD);
void write_record_and_die(std::byte* to, std::span<const pmem::LineRun> runs,
                          const std::byte* base) noexcept __asm__("__wrap_" FLUGS_WRITE_RECORD);

void write_record_and_die(std::byte* to, std::span<const pmem::LineRun> runs,
                          const std::byte* base) noexcept {
  disk_in_use->copy_record({to, pmem::record_bytes(runs)},
                           [&] { really_write_record(to, runs, base); });
}

#endif

}  // namespace flugs::test

extern "C" {

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  if (flugs::test::disk_in_use == nullptr)
    return flugs::test::behind<ssize_t(int, void*, size_t, off_t)>("pread")(fd, to, bytes, offset);
  flugs::test::disk_in_use->read_journal(static_cast<std::uint64_t>(offset),
                                         {static_cast<std::byte*>(to), bytes});
  return static_cast<ssize_t>(bytes);
}

ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (flugs::test::disk_in_use == nullptr)
    return flugs::test::behind<ssize_t(int, const iovec*, int, off_t, int)>("pwritev2")(
        fd, parts, count, offset, flags);
  const iovec& part = parts[0];
  if (count != 1 || (flags & RWF_DSYNC) == 0) {
    errno = ENOSYS;  // the disk knows durable writes only
    return -1;
  }
  const int error = flugs::test::disk_in_use->write_journal(
      static_cast<std::uint64_t>(offset),
      {static_cast<const std::byte*>(part.iov_base), part.iov_len});
  if (error == 0) return static_cast<ssize_t>(part.iov_len);
  errno = error;
  return -1;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) == 0 ? 0 : va_arg(arguments, mode_t);
  va_end(arguments);
  if (flugs::test::disk_in_use != nullptr && flugs::test::is_ring(path))
    return flugs::test::disk_in_use->open_ring((flags & O_CREAT) != 0);
  static auto* const real = flugs::test::behind<int(const char*, int, ...)>("open");
  return real(path, flags, mode);
}

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  static auto* const real = flugs::test::behind<int(int, off_t, off_t)>("posix_fallocate");
  const int error = real(fd, offset, bytes);
  if (flugs::test::disk_in_use != nullptr && error == 0) flugs::test::disk_in_use->allocated_ring();
  return error;
}

int unlink(const char* path) noexcept {
  if (flugs::test::disk_in_use != nullptr && flugs::test::is_ring(path)) {
    flugs::test::disk_in_use->remove_ring();
    return 0;
  }
  static auto* const real = flugs::test::behind<int(const char*)>("unlink");
  return real(path);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  // The name has an older version, which a search without one may find.
  static auto* const real = reinterpret_cast<int (*)(pthread_cond_t*, pthread_mutex_t*)>(
      ::dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2"));
  if (flugs::test::disk_in_use == nullptr) return real(condition, mutex);
  pthread_mutex_unlock(mutex);
  flugs::test::disk_in_use->wait_for_others();
  pthread_mutex_lock(mutex);
  return 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  if (flugs::test::disk_in_use != nullptr) return EAGAIN;
  return flugs::test::behind<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
      "pthread_create")(thread, attributes, start, argument);
}

}  // extern "C"
