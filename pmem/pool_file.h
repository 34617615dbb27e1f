#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/fork.h"
#include "flugs/status.h"
#include "pmem/file_view.h"
#include "pmem/medium.h"

namespace flugs::pmem {

/// An open file that holds, or is to hold, a pool, locked against other openers. What the operating
/// system refuses comes back as a Status that names the path and its words.
class PoolFile {
 public:
  /// A new empty file of mode 0600 that gets its path with publish(): until then nobody finds it,
  /// and it goes with whoever makes it. Where the file system cannot do that (O_TMPFILE) it has the
  /// path at once. kAlreadyExists when the path exists, also as a symbolic link.
  static Result<PoolFile> create(const std::string& path);
  /// An existing regular file, for reading and writing; no symbolic link. kNotFound, kBusy,
  /// kReadOnly, kInvalidArgument, kIoError.
  static Result<PoolFile> open(const std::string& path);
  /// The same for reading only; others may have it open so, too, nobody for writing.
  static Result<PoolFile> open_to_read(const std::string& path);

  PoolFile(PoolFile&&) noexcept = default;
  PoolFile& operator=(PoolFile&&) = delete;
  ~PoolFile() = default;

  const std::string& path() const noexcept { return path_; }
  /// Leads to the file in this process, whether it has its path or not.
  std::string path_to_open() const;
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
  /// Gives a created file its path, and makes durable that it leads here, which sync() alone need
  /// not. kAlreadyExists when somebody else was faster.
  Status publish();
  /// Maps a published file again where it is mapped, now by its path: under that it is looked for,
  /// by tools and in /proc. kIoError; then nothing may be mapped any more.
  Status map_by_path(MediumKind kind, std::span<std::byte> mapping) const;
  /// For a creation that failed: nothing is at the path.
  void discard() const noexcept;
  /// Finds out what the file lies on. Nothing in the environment promotes a file to what it is not.
  Result<MediumKind> detect_medium() const;

 private:
  /// What a forked child closes at once: it would keep the file locked when the parent has closed
  /// it. From then on every call in the child fails.
  struct Descriptor {
    explicit Descriptor(int number) noexcept : fd(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();
    static void close_in_child(void* descriptor) noexcept;
    int fd;
    AtFork at_fork = {};
  };

  PoolFile(std::string path, int fd)
      : path_(std::move(path)), descriptor_(std::make_unique<Descriptor>(fd)) {}
  int fd() const noexcept { return descriptor_->fd; }
  Status create_at_path();
  Status sync_directory() const;
  static Result<PoolFile> open_regular(const std::string& path, int access);
  Status lock(short kind) const;
  Status failed(const char* what, int error) const;

  std::string path_;
  std::unique_ptr<Descriptor> descriptor_;
  bool is_at_path_ = true;
};

}  // namespace flugs::pmem
