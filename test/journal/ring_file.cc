#include "test/journal/ring_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace flugs::test {

RingFile::RingFile(const Bytes& left) {
  if (left.empty()) return;
  file_ = ::memfd_create("ring", MFD_CLOEXEC);
  if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(left.size())) != 0) return;
  map();
  std::copy(left.begin(), left.end(), bytes_.begin());
}

RingFile::~RingFile() { remove(); }

int RingFile::open_again() const noexcept { return file_ < 0 ? -1 : ::dup(file_); }

int RingFile::make() noexcept {
  if (file_ >= 0) return -1;
  file_ = ::memfd_create("ring", MFD_CLOEXEC);
  return open_again();
}

void RingFile::map() noexcept {
  struct stat info{};
  if (file_ < 0 || ::fstat(file_, &info) != 0) return;
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped != MAP_FAILED) bytes_ = {static_cast<std::byte*>(mapped), bytes};
}

void RingFile::remove() noexcept {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (file_ >= 0) ::close(file_);
  bytes_ = {};
  file_ = -1;
}

}  // namespace flugs::test
