#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "flugs/status.h"
#include "pmem/journal/checkpointer.h"
#include "pmem/medium/file_handle.h"
#include "pmem/medium/file_view.h"
#include "pmem/medium/medium.h"
#include "pmem/medium/nvdimms.h"

namespace flugs::pmem {

/// An open file that holds a pool or will hold one, locked against other openers. When the
/// operating system refuses, the Status names the path and the system's message.
class PoolFile final : public PageFile {
 public:
  /// A new empty file of mode 0600. It gets its path with publish(): until then no process finds
  /// it, and it disappears with the process that makes it. Where the file system does not support
  /// this (O_TMPFILE), it has the path at once. kAlreadyExists when the path exists, also as a
  /// symbolic link.
  static Result<PoolFile> create(const std::string& path);
  /// An existing regular file, for reading and writing; no symbolic link. kNotFound, kBusy,
  /// kReadOnly, kInvalidArgument, kIoError.
  static Result<PoolFile> open(const std::string& path);
  /// The same for reading only; others may have it open for reading, too, but none for writing.
  static Result<PoolFile> open_to_read(const std::string& path);
  /// The same without a lock: another process may write to the file meanwhile. Does not fail with
  /// kBusy.
  static Result<PoolFile> open_to_peek(const std::string& path);

  PoolFile(PoolFile&&) noexcept = default;
  PoolFile& operator=(PoolFile&&) = delete;
  ~PoolFile() override = default;

  const std::string& path() const noexcept { return path_; }
  /// A path that leads to the file in this process, whether the file has its own path or not.
  std::string path_to_open() const;
  Result<std::uint64_t> size() const;
  /// kOutOfSpace: neither the file system nor a limit of the process (RLIMIT_FSIZE) allows it.
  Status resize(std::uint64_t bytes) const;
  /// Space taken from the file system, which for a sparse file is less than its size.
  Result<std::uint64_t> occupied_bytes() const;
  /// Fills `out` from `offset`; kCorrupt if the file has fewer bytes.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;
  /// Maps the whole file as private memory of this process: a store changes nothing in the file.
  Result<FileView> view() const;
  /// Maps the bytes of the file from `offset` on, in the place of `memory`, with these flags of
  /// mmap and MAP_FIXED. Also takes the lock that PMDK's own tools respect. A created file that has
  /// its path is mapped by that path, because tools look for it there, and /proc shows it. The
  /// caller unmaps it. kBusy, kIoError; then nothing may be mapped there any more.
  Status map(int flags, std::span<std::byte> memory, std::uint64_t offset) const;
  /// Takes the blocks of the range from the file system. Contents stay. kOutOfSpace, kIoError.
  Status allocate(std::uint64_t offset, std::uint64_t bytes) const;
  /// Gives the blocks of the range, which consists of whole pages, back to the file system.
  /// kIoError: it cannot.
  Status punch(std::uint64_t offset, std::uint64_t bytes) const;
  /// Writes zeros over the range. kOutOfSpace, kIoError.
  Status write_zeros(std::uint64_t offset, std::uint64_t bytes) const;
  /// Makes size, allocation and what was stored in a shared mapping durable.
  Status sync() const;
  /// kOutOfSpace, kIoError.
  Status write(std::uint64_t offset, std::span<const std::byte> pages) override;
  Status send(std::uint64_t offset, std::uint64_t bytes) override;
  Status sync_data() override;
  /// It uses another opening of the file, because the kernel tells each opening of every failure.
  Status write_through(std::uint64_t offset, std::span<const std::byte> pages) override;
  /// For a private mapping. kIoError, kCorrupt (the file is too short).
  Status show_again(std::uint64_t offset, std::span<std::byte> pages) const override;
  /// Gives a created file its path, and makes it durable that the path leads here, which sync()
  /// alone need not do. kAlreadyExists when another process was faster.
  Status publish();
  /// For a failed creation: removes the file from its path.
  void discard() const noexcept;
  /// Finds out which medium the file lies on. No setting in the environment can change the result.
  Result<MediumKind> detect_medium() const;
  /// The devices below the file, as find_nvdimms finds them.
  Nvdimms nvdimms(const std::string& sysfs) const;

 private:
  PoolFile(std::string path, int fd)
      : path_(std::move(path)), handle_(std::make_unique<FileHandle>(fd)) {}
  int fd() const noexcept { return handle_->fd(); }
  Status create_at_path();
  /// Another descriptor of a file that was created without its path; -1: the path does not lead to
  /// it.
  int open_by_path() const noexcept;
  enum class Lock : std::uint8_t { kNone, kRead, kWrite };
  Status write_to(int fd, std::uint64_t offset, std::span<const std::byte> pages) const;
  Status send_from(int fd, std::uint64_t offset, std::uint64_t bytes) const;
  Status open_through();
  static Result<PoolFile> open_regular(const std::string& path, Lock lock);
  Status lock(short kind) const;
  Status failed(const char* what, int error) const;

  std::string path_;
  std::unique_ptr<FileHandle> handle_;
  std::unique_ptr<FileHandle> through_;  // for write_through; null: not used yet
  bool is_at_path_ = true;
  bool was_created_ = false;  // by this object, perhaps without its path
};

}  // namespace flugs::pmem
