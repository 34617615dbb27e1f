#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "flugs/status.h"
#include "pmem/file_view.h"
#include "pmem/medium.h"

namespace flugs::pmem {

/// An open file that holds, or is to hold, a pool, locked against other openers. What the operating
/// system refuses comes back as a Status that names the path and its words.
class PoolFile {
 public:
  /// A new empty file of mode 0600. kAlreadyExists when the path exists, also as a symbolic link.
  static Result<PoolFile> create(const std::string& path);
  /// An existing regular file, for reading and writing; no symbolic link. kNotFound, kBusy,
  /// kReadOnly, kInvalidArgument, kIoError.
  static Result<PoolFile> open(const std::string& path);
  /// The same for reading only; others may have it open so, too, nobody for writing.
  static Result<PoolFile> open_to_read(const std::string& path);

  PoolFile(PoolFile&& other) noexcept : path_(std::move(other.path_)), fd_(other.fd_) {
    other.fd_ = -1;
  }
  PoolFile& operator=(PoolFile&&) = delete;
  ~PoolFile();

  const std::string& path() const noexcept { return path_; }
  Result<std::uint64_t> size() const;
  Status resize(std::uint64_t bytes) const;
  /// Space taken from the file system, which for a sparse file is less than its size.
  Result<std::uint64_t> occupied_bytes() const;
  /// Fills `out` from `offset`; fewer bytes than asked for are kCorrupt.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;
  /// All of it mapped, as private memory of this process: a store changes nothing in the file.
  Result<FileView> view() const;
  /// All of it mapped, shared, at an address that is a multiple of `alignment`; with MAP_SYNC on
  /// DAX. Also takes the lock that PMDK's own tools respect. Whoever asked unmaps it. kBusy,
  /// kIoError.
  Result<std::byte*> map(MediumKind kind, std::uint64_t bytes, std::uint64_t alignment) const;
  /// Takes the blocks of the range from the file system. Contents stay. kOutOfSpace, kIoError.
  Status allocate(std::uint64_t offset, std::uint64_t bytes) const;
  /// Writes zeros over the range. kOutOfSpace, kIoError.
  Status write_zeros(std::uint64_t offset, std::uint64_t bytes) const;
  /// Makes size and allocation durable.
  Status sync() const;
  /// Makes durable that the path leads here, which sync() alone need not.
  Status sync_directory() const;
  /// Removes the path; for a creation that failed.
  void remove() const noexcept;
  /// Finds out what the file lies on. Nothing in the environment promotes a file to what it is not.
  Result<MediumKind> detect_medium() const;

 private:
  PoolFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static Result<PoolFile> open_regular(const std::string& path, int access);
  Status lock(short kind) const;
  Status failed(const char* what, int error) const;

  std::string path_;
  int fd_;
};

}  // namespace flugs::pmem
