#include "pmem/kinds/pool_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace flugs::pmem {

namespace {

constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, which older headers do not have
/// What is sent to the device at a time: a commit waits for that, a few milliseconds.
constexpr std::size_t kSentBytes = std::size_t{2} << 20;
static_assert(kSentBytes % kPageBytes == 0);
constexpr std::uint64_t kStatBlockBytes = 512;  // the unit of st_blocks, whatever the file system

/// A system call would take the text before the zero as the path.
Status check_path(const std::string& path) {
  const std::size_t zero = path.find('\0');
  if (zero == std::string::npos) return {};
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("{}: the path contains a zero byte, at position {}", path.substr(0, zero), zero));
}

/// Measurements of the journal's processor time need no device. A pool with a journal keeps more
/// than one without, so this harms no data.
bool takes_memory_for_disk() noexcept {
  const char* wanted = std::getenv("FLUGS_MEDIUM");
  if (wanted == nullptr || *wanted == 0) return false;
  if (std::string_view(wanted) == "file") return true;
  std::fprintf(stderr, "flugs: FLUGS_MEDIUM=%s is ignored: expected file\n", wanted);
  return false;
}

}  // namespace

Status PoolFile::failed(const char* what, int error) const {
  return file_error(path_, what, error);
}

Result<PoolFile> PoolFile::create(const std::string& path) {
  if (Status s = check_path(path); !s.ok()) return s;
  const ForkPause pause;
  PoolFile file(path, -1);
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return file.failed("cannot create", EEXIST);
  if (errno != ENOENT) return file.failed("cannot create", errno);
  file.handle_->replace(
      ::open(folder_of(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR));
  file.is_at_path_ = false;
  file.was_created_ = true;
  // publish() needs /proc, which may be missing.
  const bool can_wait = file.fd() >= 0 && ::access(file.path_to_open().c_str(), F_OK) == 0;
  Status status = can_wait ? Status() : file.create_at_path();
  if (status.ok()) status = file.lock(F_WRLCK);
  if (!status.ok()) return status;
  return file;
}

Status PoolFile::create_at_path() {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  handle_->replace(::open(path_.c_str(), flags, S_IRUSR | S_IWUSR));
  is_at_path_ = fd() >= 0;
  return fd() < 0 ? failed("cannot create", errno) : Status();
}

std::string PoolFile::path_to_open() const {
  return is_at_path_ ? path_ : fmt::format("/proc/self/fd/{}", fd());
}

Status PoolFile::publish() {
  FLUGS_CHECK(was_created_);
  if (!is_at_path_ &&
      ::linkat(AT_FDCWD, path_to_open().c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return failed("cannot create", errno);
  is_at_path_ = true;
  return sync_folder_of(path_);
}

Result<PoolFile> PoolFile::open(const std::string& path) {
  return open_regular(path, Lock::kWrite);
}

Result<PoolFile> PoolFile::open_to_read(const std::string& path) {
  return open_regular(path, Lock::kRead);
}

Result<PoolFile> PoolFile::open_to_peek(const std::string& path) {
  return open_regular(path, Lock::kNone);
}

Result<PoolFile> PoolFile::open_regular(const std::string& path, Lock lock) {
  if (Status s = check_path(path); !s.ok()) return s;
  const bool writes = lock == Lock::kWrite;
  const int access = writes ? O_RDWR : O_RDONLY;
  const ForkPause pause;
  // O_NONBLOCK, so that opening a named pipe does not wait for its other end.
  PoolFile file(path, ::open(path.c_str(), access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0)
    return file.failed(writes ? "cannot open for writing" : "cannot open for reading", errno);
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) return file.failed("fstat", errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
  }
  if (lock == Lock::kNone) return file;
  Status status = file.lock(writes ? F_WRLCK : F_RDLCK);
  if (!status.ok()) return status;
  return file;
}

/// Our own lock, of another kind than the flock of libpmemobj and its tools, which creation leaves
/// to the library and map() takes. It is held from before the first byte is read or written, so no
/// other process sees a half-created pool.
Status PoolFile::lock(short kind) const {
  if (Status s = handle_->enter_fork_rule(); !s.ok()) return s;
  const Result<bool> locked = handle_->lock(kind, path_);
  if (!locked.ok()) return locked.status();
  if (*locked) return {};
  return Status(
      StatusCode::kBusy,
      fmt::format("{}: the pool is already open, in another process or in this one", path_));
}

Result<std::uint64_t> PoolFile::size() const {
  struct stat info{};
  if (::fstat(fd(), &info) != 0) return failed("fstat", errno);
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::uint64_t> PoolFile::occupied_bytes() const {
  struct stat info{};
  if (::fstat(fd(), &info) != 0) return failed("fstat", errno);
  return static_cast<std::uint64_t>(info.st_blocks) * kStatBlockBytes;
}

Status PoolFile::resize(std::uint64_t bytes) const {
  // Beyond the limit the kernel would send SIGXFSZ, which ends the process.
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
    return failed(fmt::format("cannot give it a size of {} bytes, the process's limit for files is "
                              "{}",
                              bytes, limit.rlim_cur)
                      .c_str(),
                  EFBIG);
  if (::ftruncate(fd(), static_cast<off_t>(bytes)) == 0) return {};
  return failed(fmt::format("cannot give it a size of {} bytes", bytes).c_str(), errno);
}

Status PoolFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return Status(StatusCode::kCorrupt, fmt::format("{}: ends at {}, expected at least {} bytes",
                                                      path_, offset + done, offset + out.size()));
    } else if (errno != EINTR) {
      return failed("cannot read", errno);
    }
  }
  return {};
}

Result<FileView> PoolFile::view() const {
  const Result<std::uint64_t> bytes = size();
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) return FileView(nullptr, 0);
  void* const memory =
      ::mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd(), 0);
  if (memory == MAP_FAILED) return failed("cannot map", errno);
  return FileView(static_cast<std::byte*>(memory), *bytes);
}

int PoolFile::open_by_path() const noexcept {
  const int other = ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat there{};
  struct stat ours{};
  if (other < 0) return other;
  if (::fstat(other, &there) == 0 && ::fstat(fd(), &ours) == 0 && there.st_ino == ours.st_ino &&
      there.st_dev == ours.st_dev)
    return other;
  ::close(other);
  return -1;
}

Status PoolFile::map(int flags, std::span<std::byte> memory, std::uint64_t offset) const {
  FLUGS_CHECK(memory.data() != nullptr);  // MAP_FIXED would map there
  if (::flock(fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("cannot lock", errno);
    return Status(StatusCode::kBusy, fmt::format("{}: another process has the pool open", path_));
  }
  const int other = was_created_ && is_at_path_ ? open_by_path() : -1;
  Status status;
  if (::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE, flags | MAP_FIXED,
             other >= 0 ? other : fd(), static_cast<off_t>(offset)) == MAP_FAILED)
    status = failed("cannot map", errno);
  if (other >= 0) ::close(other);
  return status;
}

FileView::~FileView() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

Status PoolFile::allocate(std::uint64_t offset, std::uint64_t bytes) const {
  FLUGS_CHECK(bytes != 0);
  const std::uint64_t begin = offset / kPageBytes * kPageBytes;
  const std::uint64_t end = offset + bytes;
  int error = EINTR;
  while (error == EINTR) {
    // Keeps the file's size, so the last page may extend beyond it.
    const int result = ::fallocate(fd(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                                   static_cast<off_t>(end - begin));
    error = result == 0 ? 0 : errno;
  }
  if (error == 0) return {};
  return failed(fmt::format("cannot get {} bytes from the file system", bytes).c_str(), error);
}

Status PoolFile::punch(std::uint64_t offset, std::uint64_t bytes) const {
  FLUGS_CHECK(offset % kPageBytes == 0 && bytes % kPageBytes == 0);
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  int error = EINTR;
  while (error == EINTR)
    error = ::fallocate(fd(), mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                ? 0
                : errno;
  return error == 0 ? Status() : failed("cannot make a hole", error);
}

Status PoolFile::write_zeros(std::uint64_t offset, std::uint64_t bytes) const {
  static constexpr std::array<std::byte, 16 * kPageBytes> kZeros{};
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(end - offset, kZeros.size()));
    const ssize_t written = ::pwrite(fd(), kZeros.data(), step, static_cast<off_t>(offset));
    if (written >= 0) {
      offset += static_cast<std::uint64_t>(written);
    } else if (errno != EINTR) {
      return failed(fmt::format("cannot write {} zeros", bytes).c_str(), errno);
    }
  }
  return {};
}

Status PoolFile::write(std::uint64_t offset, std::span<const std::byte> pages) {
  return write_to(fd(), offset, pages);
}

Status PoolFile::write_to(int fd, std::uint64_t offset, std::span<const std::byte> pages) const {
  FLUGS_CHECK(offset % kPageBytes == 0 && pages.size() % kPageBytes == 0);
  while (!pages.empty()) {
    const ssize_t written = ::pwrite(fd, pages.data(), pages.size(), static_cast<off_t>(offset));
    if (written > 0) {
      offset += static_cast<std::uint64_t>(written);
      pages = pages.subspan(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      return failed(fmt::format("cannot write {} bytes", pages.size()).c_str(),
                    written == 0 ? EIO : errno);
    }
  }
  return {};
}

Status PoolFile::send(std::uint64_t offset, std::uint64_t bytes) {
  return send_from(fd(), offset, bytes);
}

Status PoolFile::send_from(int fd, std::uint64_t offset, std::uint64_t bytes) const {
  FLUGS_CHECK(bytes != 0);  // the kernel would take 0 for all up to the end of the file
  constexpr unsigned kWriteAndWait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), kWriteAndWait) ==
      0)
    return {};
  // Any other error may be of an earlier write, and the kernel tells it once.
  return errno == ENOSYS ? Status() : failed("sync_file_range", errno);
}

Status PoolFile::sync_data() {
  if (::fdatasync(fd()) == 0) return {};
  return failed("fdatasync", errno);
}

Status PoolFile::open_through() {
  const ForkPause pause;
  const int other = ::open(fmt::format("/proc/self/fd/{}", fd()).c_str(), O_RDWR | O_CLOEXEC);
  const int other_fd = other >= 0 ? other : open_by_path();
  if (other_fd < 0) return failed("cannot open it once more", errno);
  auto handle = std::make_unique<FileHandle>(other_fd);
  if (Status s = handle->enter_fork_rule(); !s.ok()) return s;
  through_ = std::move(handle);
  return {};
}

Status PoolFile::write_through(std::uint64_t offset, std::span<const std::byte> pages) {
  if (through_ == nullptr)
    if (Status s = open_through(); !s.ok()) return s;
  const int fd = through_->fd();
  while (!pages.empty()) {
    const auto part = pages.first(std::min(pages.size(), kSentBytes));
    if (Status s = write_to(fd, offset, part); !s.ok()) return s;
    if (Status s = send_from(fd, offset, part.size()); !s.ok()) return s;
    offset += part.size();
    pages = pages.subspan(part.size());
  }
  if (::fdatasync(fd) == 0) return {};
  return failed("fdatasync", errno);
}

Status PoolFile::show_again(std::uint64_t offset, std::span<std::byte> pages) const {
  FLUGS_CHECK(pages.size() % kPageBytes == 0);  // the kernel would forget the whole last page
  // The first is refused for memory that mlockall keeps, the second by kernels before 5.18.
  for (const int advice : {MADV_DONTNEED, kDontNeedLocked})
    if (::madvise(pages.data(), pages.size(), advice) == 0) return {};
  return read(offset, pages);
}

Status PoolFile::sync() const {
  if (::fsync(fd()) == 0) return {};
  return failed("fsync", errno);
}

Nvdimms PoolFile::nvdimms(const std::string& sysfs) const {
  struct stat info{};
  if (::fstat(fd(), &info) == 0) return find_nvdimms(info.st_dev, sysfs);
  Nvdimms none;
  none.why_unknown = failed("fstat", errno).message();
  return none;
}

void PoolFile::discard() const noexcept {
  FLUGS_CHECK(was_created_);  // never a pool that was there before
  if (is_at_path_) ::unlink(path_.c_str());
}

Result<MediumKind> PoolFile::detect_medium() const {
  struct statfs info{};
  if (::fstatfs(fd(), &info) != 0) return failed("fstatfs", errno);
  if (static_cast<std::uint64_t>(info.f_type) == TMPFS_MAGIC)
    return takes_memory_for_disk() ? MediumKind::kFile : MediumKind::kEmulated;
  // Flushes suffice only where the file system itself guarantees synchronous page faults.
  void* page = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd(), 0);
  if (page == MAP_FAILED) return MediumKind::kFile;
  ::munmap(page, kPageBytes);
  return MediumKind::kDax;
}

}  // namespace flugs::pmem
