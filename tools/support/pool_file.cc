#include "tools/support/pool_file.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "flugs/try.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr const char* kSharedMemory = "/dev/shm";

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

std::string temporary_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : path.string();
}

std::string fresh_path(const std::string& directory, const std::string& suffix) {
  for (unsigned number = 0;; ++number) {
    std::string path = fmt::format("{}/flugs-{}-{}{}", directory, getpid(), number, suffix);
    if (!exists(path)) return path;
  }
}

}  // namespace

KeptFile::~KeptFile() {
  if (!path_.empty() && exists(path_)) fmt::print("the pool {} is kept\n", path_);
}

std::uint64_t directory_free_bytes(const std::string& directory) {
  struct statvfs info{};
  if (access(directory.c_str(), W_OK) != 0 || statvfs(directory.c_str(), &info) != 0) return 0;
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

Result<PoolFile> PoolFile::choose(const std::string& path, bool keep, std::uint64_t bytes_wanted) {
  PoolFile pool;
  if (!path.empty()) {
    pool.path_ = path;
    pool.existed_ = exists(path);
  } else {
    const std::uint64_t shared_free = directory_free_bytes(kSharedMemory);
    std::string directory = kSharedMemory;
    if (shared_free < bytes_wanted) {
      directory = temporary_directory();
      const std::uint64_t other_free = directory_free_bytes(directory);
      pool.remark_ =
          fmt::format("{} has {} free, about {} are needed: the pool is in {}", kSharedMemory,
                      format_bytes(shared_free), format_bytes(bytes_wanted), directory);
      if (other_free < bytes_wanted)
        return Status(StatusCode::kOutOfSpace,
                      fmt::format("about {} are needed for the pool; {} has {} free, {} has {}",
                                  format_bytes(bytes_wanted), kSharedMemory,
                                  format_bytes(shared_free), directory, format_bytes(other_free)));
    }
    pool.path_ = fresh_path(directory, ".pool");
  }
  if (!pool.existed_ && !keep) pool.temporary_ = TemporaryFile(pool.path_);
  if (!pool.existed_ && keep) pool.kept_ = KeptFile(pool.path_);
  return pool;
}

Result<PoolOfCommand> open_pool(const std::string& path, bool keep, std::uint64_t bytes_wanted,
                                OpenOptions options) {
  FLUGS_ASSIGN(PoolFile file, PoolFile::choose(path, keep, bytes_wanted));
  if (!file.remark().empty()) fmt::print("{}\n", file.remark());
  options.path = file.path();
  FLUGS_ASSIGN(Database database, Database::open(options));
  return PoolOfCommand{std::move(file), std::move(database)};
}

std::uint64_t shared_memory_free_bytes() { return directory_free_bytes(kSharedMemory); }

std::string fresh_shared_path(const std::string& suffix, std::uint64_t bytes_wanted) {
  const bool shared = directory_free_bytes(kSharedMemory) >= bytes_wanted;
  return fresh_path(shared ? kSharedMemory : temporary_directory(), suffix);
}

}  // namespace flugs::tools
