#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/fork.h"
#include "flugs/status.h"
#include "pmem/journal/journal_format.h"

namespace flugs::pmem {

/// The name of the journal of the pool at `pool_path`.
std::string journal_path(const std::string& pool_path);

/// The file of a journal. The lock of the pool's file keeps other processes out. Thread-safety: one
/// thread at a time calls write; another one may call head and write_head meanwhile. The rest is
/// for the thread that opens the pool.
class JournalFile {
 public:
  /// Makes the file, or begins it anew if it is that of a journal, with zeros in a ring of
  /// `shape`. A ring of this shape that exists is used again as it is. kAlreadyExists: another file
  /// has its name; kOutOfSpace, kReadOnly, kIoError.
  static Result<JournalFile> create(const std::string& path, std::uint64_t pool_uuid,
                                    std::uint64_t journal_id, JournalShape shape);
  enum class Use : std::uint8_t { kRead, kWrite };
  /// Opens the journal that the pool needs. kNotFound; kCorrupt; kIncompatible; kReadOnly;
  /// kIoError.
  static Result<JournalFile> open(const std::string& path, std::uint64_t pool_uuid,
                                  std::uint64_t journal_id, Use use);
  ~JournalFile();
  JournalFile(JournalFile&& other) noexcept = default;
  JournalFile& operator=(JournalFile&&) = delete;

  const std::string& path() const noexcept { return path_; }
  const JournalHead& head() const noexcept { return head_; }

  /// Makes `next` the head, durably, as the next in sequence.
  Status write_head(JournalHead next);
  /// Makes the bytes from `place` on durable. Both are whole pages inside one segment; `bytes` must
  /// lie at a page of memory.
  Status write(JournalPlace place, std::span<const std::byte> bytes);
  /// Reads whole pages from `place` on, which lie inside one segment, into pages of memory.
  Status read(JournalPlace place, std::span<std::byte> bytes) const;

 private:
  /// Closed at once in a forked child.
  struct Descriptor {
    explicit Descriptor(int number) noexcept : fd(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();
    int fd;
    std::atomic<bool> has_dsync{true};  // until the kernel says that it has none; relaxed
    AtFork at_fork = {};
  };

  JournalFile(std::string path, int fd)
      : path_(std::move(path)), descriptor_(std::make_unique<Descriptor>(fd)) {}
  int fd() const noexcept { return descriptor_->fd; }
  static Result<JournalFile> open_file(const std::string& path, int flags);
  Status begin(std::uint64_t pool_uuid, std::uint64_t journal_id, JournalShape shape);
  Status read_head();
  Status write_zeros(std::uint64_t bytes);
  Status write_durably(std::uint64_t offset, std::span<const std::byte> bytes);
  Status sync_directory() const;
  void use_direct_io() noexcept;
  bool leave_direct_io() const noexcept;
  Status failed(const char* what, int error) const;

  std::string path_;
  std::unique_ptr<Descriptor> descriptor_;
  JournalHead head_{};
  JournalShape shape_{};  // of head_; never changes
};

}  // namespace flugs::pmem
