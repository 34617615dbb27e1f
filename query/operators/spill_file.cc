#include "query/operators/spill_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

[[noreturn]] void fail_at(const std::string& folder, const char* what, std::uint64_t offset,
                          int error) {
  fail(StatusCode::kIoError,
       fmt::format("the temporary file of a query in {}: {} at offset {} failed: {}", folder, what,
                   offset, std::system_category().message(error)));
}

std::string folder_or_default(const std::string& folder) {
  if (!folder.empty()) return folder;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  if (error)
    fail(StatusCode::kIoError, fmt::format("no folder for temporary files ({}): set TMPDIR, or "
                                           "RunOptions::temporary_folder",
                                           error.message()));
  return path.string();
}

// Not every file system has O_TMPFILE.
int open_named(const std::string& folder) {
  std::string name = folder + "/flugs-query-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(name.c_str());
  return file;
}

}  // namespace

SpillFile::SpillFile(const std::string& folder) : folder_(folder_or_default(folder)) {
  file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = open_named(folder_);
  if (file_ < 0) fail_at(folder_, "creating it", 0, errno);
}

SpillFile::~SpillFile() { ::close(file_); }

std::uint64_t SpillFile::append(const void* data, std::size_t bytes) {
  const std::uint64_t offset = bytes_;
  const char* from = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const ::ssize_t written =
        ::pwrite(file_, from + done, bytes - done, static_cast<::off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_at(folder_, "writing", offset + done, written < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(written);
  }
  bytes_ = offset + bytes;
  return offset;
}

void SpillFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  FLUGS_CHECK(offset + bytes <= bytes_);
  char* into = static_cast<char*>(to);
  for (std::size_t done = 0; done < bytes;) {
    const ::ssize_t count =
        ::pread(file_, into + done, bytes - done, static_cast<::off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_at(folder_, "reading", offset + done, count < 0 ? errno : EIO);
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace flugs::query
