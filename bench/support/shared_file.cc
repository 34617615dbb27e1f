#include "bench/support/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace flugs::bench {

namespace {

Status io_error(const char* what, const std::string& path) {
  return Status(errno == EEXIST ? StatusCode::kAlreadyExists : StatusCode::kIoError,
                std::string(what) + " " + path + ": " + std::strerror(errno));
}

}  // namespace

Result<SharedFile> SharedFile::create(const std::string& path, std::uint64_t bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return io_error("cannot create", path);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    Status status = io_error("cannot size", path);
    ::close(file);
    ::unlink(path.c_str());
    return status;
  }
  return map(file, path, bytes);
}

Result<SharedFile> SharedFile::open(const std::string& path, std::uint64_t bytes_min) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return io_error("cannot open", path);
  struct stat info{};
  if (fstat(file, &info) != 0) {
    Status status = io_error("cannot read the size of", path);
    ::close(file);
    return status;
  }
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (bytes < bytes_min) {
    ::close(file);
    return Status(StatusCode::kIncompatible, path + " is too small");
  }
  return map(file, path, bytes);
}

Result<SharedFile> SharedFile::map(int file, const std::string& path, std::uint64_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Status status = address == MAP_FAILED ? io_error("cannot map", path) : Status();
  ::close(file);
  if (!status.ok()) return status;
  SharedFile shared;
  shared.data_ = static_cast<std::byte*>(address);
  shared.bytes_ = bytes;
  return shared;
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

SharedFile& SharedFile::operator=(SharedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedFile::~SharedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace flugs::bench
