#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmem/file_view.h"
#include "pmem/mapped_pool.h"

namespace flugs::pmem {

/// A part of a pool, and what is wrong with it; empty words: nothing.
struct ImageFinding {
  std::string part;
  Status status;
};

/// A pool as it is in a file or a buffer, for those who look at it only. Stores into it stay in
/// this process, or in the buffer. Goes on as if the pool were whole where it is not: where headers
/// or arenas are damaged, all space behind the root is one arena.
class PoolImage final : public MappedPool {
 public:
  /// Reports on every part that this layer knows, damaged or not. Fails when there is nothing to
  /// look at: no file, another opener (kBusy), no pool of ours (kIncompatible).
  /// `kOpening`: only on what opening goes by, as fast as it does.
  enum class Depth : std::uint8_t { kAudit, kOpening };
  static Result<std::unique_ptr<PoolImage>> of_file(const std::string& path,
                                                    std::vector<ImageFinding>& findings,
                                                    Depth depth = Depth::kAudit);
  /// `pool` is aligned to 64.
  static Result<std::unique_ptr<PoolImage>> of_buffer(std::span<std::byte> pool,
                                                      std::vector<ImageFinding>& findings);
  ~PoolImage() override { detach(); }

  Status provide(std::uint64_t offset, std::uint64_t bytes) override;
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  PoolImage(std::string path, std::optional<FileView> view, Depth depth)
      : MappedPool(std::move(path)), view_(std::move(view)), depth_(depth) {}

  Status inspect(std::span<std::byte> pool, std::uint64_t root,
                 std::vector<ImageFinding>& findings);
  Status inspect_header(std::uint64_t bytes, std::uint64_t root_offset, PoolHeader& header,
                        std::vector<ImageFinding>& findings);
  Status check_untouched(std::span<const std::byte> pool,
                         std::span<const ArenaRecord> arenas) const;

  std::optional<FileView> view_;
  Depth depth_;
  ArenaRecord whole_{};  // when the pool's own arenas cannot be used
};

}  // namespace flugs::pmem
