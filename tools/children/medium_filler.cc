#include "tools/children/medium_filler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace flugs::tools {

namespace {

constexpr std::uint64_t kFileSystemBytesMax = std::uint64_t{1} << 30;
constexpr off_t kLargestStep = off_t{16} << 20;
constexpr off_t kSmallestStep = 4096;

Status failed(const std::string& path, const char* call, int error) {
  return Status(StatusCode::kIoError, fmt::format("{}: {} failed: {}", path, call,
                                                  std::generic_category().message(error)));
}

}  // namespace

Result<MediumFiller> MediumFiller::beside(const std::string& pool) {
  std::filesystem::path directory = std::filesystem::path(pool).parent_path();
  if (directory.empty()) directory = ".";
  struct statvfs system{};
  if (statvfs(directory.c_str(), &system) != 0) return failed(directory, "statvfs", errno);
  const std::uint64_t bytes = std::uint64_t{system.f_frsize} * system.f_blocks;
  if (bytes > kFileSystemBytesMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the file system of {} has {} bytes, and would be filled: name a "
                              "--pool on one with at most {} bytes, for example a tmpfs mounted "
                              "with size=128m",
                              directory.string(), bytes, kFileSystemBytesMax));
  return MediumFiller(pool + ".filler");
}

Status MediumFiller::fill() {
  const int file = open(file_.path().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return failed(file_.path(), "open", errno);
  off_t end = 0;
  int error = 0;
  for (off_t step = kLargestStep; step >= kSmallestStep;) {
    error = posix_fallocate(file, end, step);
    if (error == 0)
      end += step;
    else if (error == ENOSPC)
      step /= 2;
    else if (error != EINTR)
      break;
  }
  close(file);
  return error == ENOSPC ? Status() : failed(file_.path(), "posix_fallocate", error);
}

void MediumFiller::free() { unlink(file_.path().c_str()); }

}  // namespace flugs::tools
