#pragma once

#include <cstdint>
#include <string>

namespace flugs::query {

/// A temporary file without a name, which is gone when this is. The process that writes it reads
/// it: its content never outlives the query.
///
/// Thread-safety: append: one thread; read: any thread, while no other appends.
class SpillFile {
 public:
  /// In the folder; empty: in the system's one for temporary files. Fails with kIoError.
  explicit SpillFile(const std::string& folder);
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  ~SpillFile();

  /// The offset at which the bytes lie. Fails with kIoError.
  std::uint64_t append(const void* data, std::size_t bytes);
  /// Fails with kIoError.
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::string folder_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace flugs::query
