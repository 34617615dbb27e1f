#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/journal/journal_format.h"
#include "pmem/medium/file_handle.h"

namespace flugs::pmem {

/// The name of the journal of the pool at `pool_path`.
std::string journal_path(const std::string& pool_path);

/// The file of a journal, locked against other writers. (The lock of the pool's file would do, but
/// for pools that are moved away while they are open.) Thread-safety: one thread at a time calls
/// write; another one may call head and write_head meanwhile. The rest is for the thread that opens
/// the pool.
class JournalFile {
 public:
  /// Makes the file, or begins a closed journal anew, with zeros in a ring of `shape`; the head
  /// says that it is closed. A ring of this shape that exists is used again as it is. Calls
  /// `replaces` with the closed journal that is there, before it is gone.
  /// kInvalidArgument: another file has its name, or the journal of a pool that was not closed;
  /// kBusy; kOutOfSpace, kReadOnly, kIoError.
  static Result<JournalFile> create(const std::string& path, std::uint64_t pool_uuid,
                                    std::uint64_t journal_id, JournalShape shape,
                                    FunctionRef<void(const JournalFile&)> replaces);
  enum class Use : std::uint8_t { kRead, kWrite };
  /// Opens the journal that the pool needs. kNotFound; kCorrupt; kIncompatible; kBusy; kReadOnly;
  /// kIoError.
  static Result<JournalFile> open(const std::string& path, std::uint64_t pool_uuid,
                                  std::uint64_t journal_id, Use use);
  ~JournalFile();
  JournalFile(JournalFile&& other) noexcept = default;
  JournalFile& operator=(JournalFile&&) = delete;

  const std::string& path() const noexcept { return path_; }
  const JournalHead& head() const noexcept { return head_; }
  /// Tells the file from a copy of it, and whose it is.
  struct Id {
    std::uint64_t device;
    std::uint64_t inode;
    std::uint32_t owner;  // user
    std::uint32_t group;
  };
  Id id() const noexcept { return id_; }

  /// Makes `next` the head, durably, as the next in sequence.
  Status write_head(JournalHead next);
  /// Makes the bytes from `place` on durable. Both are whole pages inside one segment; `bytes` must
  /// lie at a page of memory.
  Status write(JournalPlace place, std::span<const std::byte> bytes);
  /// Reads whole pages from `place` on, which lie inside one segment, into pages of memory.
  Status read(JournalPlace place, std::span<std::byte> bytes) const;

 private:
  struct Opened {
    explicit Opened(int fd) noexcept : handle(fd) {}
    FileHandle handle;
    std::atomic<bool> has_dsync{true};  // until the kernel says that it has none; relaxed
  };

  JournalFile(std::string path, int fd)
      : path_(std::move(path)), opened_(std::make_unique<Opened>(fd)) {}
  int fd() const noexcept { return opened_->handle.fd(); }
  static Result<JournalFile> open_file(const std::string& path, int flags);
  Status lock() const;
  Result<bool> has_only_torn_head(std::uint64_t file_bytes) const;
  Status check_free(const Status& head_found) const;
  Status begin(std::uint64_t pool_uuid, std::uint64_t journal_id, JournalShape shape);
  Status read_head();
  Status write_zeros(std::uint64_t bytes);
  Status write_durably(std::uint64_t offset, std::span<const std::byte> bytes);
  void use_direct_io() noexcept;
  bool leave_direct_io() const noexcept;
  Status settle_cache() const;
  Result<std::array<JournalHead, 2>> read_heads() const;
  Status failed(const char* what, int error) const;

  std::string path_;
  std::unique_ptr<Opened> opened_;
  Id id_{};
  JournalHead head_{};
  JournalShape shape_{};  // of head_; never changes
};

}  // namespace flugs::pmem
