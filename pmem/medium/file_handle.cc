#include "pmem/medium/file_handle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace flugs::pmem {

namespace {

StatusCode code_of_error(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY:
      return StatusCode::kReadOnly;
    case ELOOP:
    case EISDIR:
    case ENXIO:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return StatusCode::kOutOfSpace;
    case EAGAIN:
      return StatusCode::kBusy;
    default:
      return StatusCode::kIoError;
  }
}

}  // namespace

Status file_error(const std::string& path, const char* what, int error) {
  const char* hint = error == ELOOP ? " (a symbolic link is not followed)" : "";
  return Status(code_of_error(error),
                fmt::format("{}: {}: {}{}", path, what, std::strerror(error), hint));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

Status sync_folder_of(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return errno == EACCES ? Status() : file_error(path, "cannot open its directory", errno);
  Status status;
  if (::fsync(folder) != 0 && errno != EINVAL)
    status = file_error(path, "fsync of its directory", errno);
  ::close(folder);
  return status;
}

FileHandle::~FileHandle() {
  if (fd_ < 0) return;
  const ForkPause pause;  // a child has both the descriptor and its entry, or neither
  at_fork_.leave();
  // A child forked just now may not have closed its copy yet, and the copy would keep the locks.
  struct flock whole{};
  whole.l_type = F_UNLCK;
  whole.l_whence = SEEK_SET;
  ::fcntl(fd_, F_OFD_SETLK, &whole);
  ::flock(fd_, LOCK_UN);
  ::close(fd_);
}

void FileHandle::replace(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

// The locks belong to the open file description, which the parent shares: they stay with the
// parent.
Status FileHandle::enter_fork_rule() {
  return at_fork_.enter(
      [](void* handle) noexcept {
        ::close(std::exchange(static_cast<FileHandle*>(handle)->fd_, -1));
      },
      this);
}

Result<bool> FileHandle::lock(short kind, const std::string& path) const {
  FLUGS_CHECK(kind == F_RDLCK || kind == F_WRLCK);
  struct flock whole{};
  whole.l_type = kind;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd_, F_OFD_SETLK, &whole) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return file_error(path, "cannot lock", errno);
}

}  // namespace flugs::pmem
