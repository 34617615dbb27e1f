#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmem/kinds/mapped_pool.h"
#include "pmem/medium/file_view.h"

namespace flugs::pmem {

/// A part of a pool, and its damage; a status that is ok means none.
struct ImageFinding {
  std::string part;
  Status status;
};

/// A pool in a file or a buffer, for reading only. Stores into it stay in this process, or in the
/// buffer. Where the pool is damaged, it goes on as if it were whole: if headers or arenas are
/// damaged, all space behind the root is one arena.
class PoolImage final : public MappedPool {
 public:
  /// Reports on every part that this layer knows, damaged or not. Fails when nothing can be
  /// examined: no file, another opener (kBusy), no flugs pool (kIncompatible). `kOpening`: checks
  /// only the parts that opening relies on, as fast as opening does. `kHead`: the same, of a pool
  /// that another process may have open: only the header, the arenas and the root may be used.
  enum class Depth : std::uint8_t { kAudit, kOpening, kHead };
  static Result<std::unique_ptr<PoolImage>> of_file(const std::string& path,
                                                    std::vector<ImageFinding>& findings,
                                                    Depth depth = Depth::kAudit);
  /// `pool` must be aligned to 64. Rows in columns can be examined only if it is aligned to
  /// RowBlock::kAlignment.
  static Result<std::unique_ptr<PoolImage>> of_buffer(std::span<std::byte> pool,
                                                      std::vector<ImageFinding>& findings);
  ~PoolImage() override { detach(); }

  Status provide(std::uint64_t offset, std::uint64_t bytes) override;
  Status punch(std::uint64_t offset, std::uint64_t bytes) override;
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  PoolImage(std::string path, std::optional<FileView> view, Depth depth)
      : MappedPool(std::move(path)), view_(std::move(view)), depth_(depth) {}

  Status inspect(std::span<std::byte> file, std::uint64_t root,
                 std::vector<ImageFinding>& findings);
  Status inspect_header(std::uint64_t bytes, std::uint64_t root_offset, PoolHeader& header,
                        std::vector<ImageFinding>& findings);
  Status check_untouched(std::span<const std::byte> pool,
                         std::span<const ArenaRecord> arenas) const;

  std::optional<FileView> view_;
  Depth depth_;
  ArenaRecord whole_{};  // used when the pool's own arenas are damaged
};

}  // namespace flugs::pmem
