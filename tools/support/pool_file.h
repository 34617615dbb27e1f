#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "flugs/database.h"
#include "flugs/open_options.h"
#include "flugs/status.h"
#include "tools/support/cleanup.h"

namespace flugs::tools {

/// Says at its end that a file is kept, if it is there by then.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(std::string path) : path_(std::move(path)) {}
  KeptFile(KeptFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  KeptFile& operator=(KeptFile&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }
  ~KeptFile();

 private:
  std::string path_;
};

/// The path of a command's pool, and whether the pool stays. A pool that was there before is
/// never removed; one that we made is removed unless the user asked to keep it, and then its owner
/// prints where it is.
class PoolFile {
 public:
  /// `path` empty: a fresh name on /dev/shm, or in the temporary directory when /dev/shm has not
  /// `bytes_wanted` to give. Fails with kOutOfSpace, kIoError.
  static Result<PoolFile> choose(const std::string& path, bool keep, std::uint64_t bytes_wanted);

  const std::string& path() const noexcept { return path_; }
  bool existed() const noexcept { return existed_; }
  /// Something about the choice that the user should know; empty: nothing.
  const std::string& remark() const noexcept { return remark_; }

 private:
  std::string path_;
  bool existed_ = false;
  std::string remark_;
  TemporaryFile temporary_;
  KeptFile kept_;
};

/// The pool of a command, open.
struct PoolOfCommand {
  PoolFile file;
  Database database;  // destroyed first
};
/// Chooses a pool as PoolFile::choose does, prints its remark, and opens it with `options`, whose
/// path it sets. Fails as the two do.
Result<PoolOfCommand> open_pool(const std::string& path, bool keep, std::uint64_t bytes_wanted,
                                OpenOptions options);

/// Bytes that a file in a directory can grow to; 0 when we may not write there.
std::uint64_t directory_free_bytes(const std::string& directory);
/// The same of /dev/shm.
std::uint64_t shared_memory_free_bytes();

/// An unused name for a file of ours, on /dev/shm if that has `bytes_wanted` left, else in the
/// temporary directory.
std::string fresh_shared_path(const std::string& suffix, std::uint64_t bytes_wanted);

}  // namespace flugs::tools
