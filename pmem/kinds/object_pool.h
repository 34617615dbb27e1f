#pragma once

#include <libpmemobj/pool_base.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pmem/journal/pool_journal.h"
#include "pmem/kinds/address_space.h"
#include "pmem/kinds/mapped_pool.h"
#include "pmem/kinds/pool_file.h"

namespace flugs::pmem {

/// Size of the smallest pool on a file: libpmemobj's own minimum, which leaves about 4 MB for
/// extents.
inline constexpr std::uint64_t kFilePoolBytesMin = PMEMOBJ_MIN_POOL;

/// A pool in a file that libpmemobj creates: identity, the root, and the arenas, which are large
/// objects that stay allocated. After creation nothing is allocated through libpmemobj. So its
/// metadata never changes again, and our allocations need none of its fences. Opening maps the file
/// itself, without the library (docs/decisions/0016).
class ObjectPool final : public MappedPool {
 public:
  static Result<std::unique_ptr<Pool>> create(const PoolOptions& options);
  static Result<std::unique_ptr<Pool>> open(const PoolOptions& options);
  ~ObjectPool() override;

  Status provide(std::uint64_t offset, std::uint64_t bytes) override;
  Status punch(std::uint64_t offset, std::uint64_t bytes) override;
  void populate(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  bool warm(Extent extent) noexcept override;
  void read_ahead(std::span<const std::byte> bytes) noexcept override;

 private:
  explicit ObjectPool(PoolFile file) : MappedPool(file.path()), file_(std::move(file)) {}

  Status make_file(const PoolOptions& options);
  Status provide_metadata(std::uint64_t max_bytes);
  Status write_once(std::uint64_t offset, std::uint64_t bytes);
  Status map(std::uint64_t bytes, std::uint64_t bytes_wanted, int flags);
  void read_single_pages() noexcept;
  void advise_single_pages(std::uint64_t begin) noexcept;
  int map_flags() const noexcept { return facts_of(kind_).map_flags; }
  void keep_from_children(std::uint64_t begin) noexcept;
  Status extend(std::uint64_t before, std::uint64_t bytes) override;
  Status drain() override { return file_.sync(); }
  static void cover_in_child(void* pool) noexcept;
  Status take_file(const PoolOptions& options);
  Result<PoolHeader> check_before_opening(std::span<const std::byte> file);
  Status check_space(std::span<const std::byte> file, std::uint64_t root, const PoolHeader& header);
  Status provide_all(const PoolHeader& header, std::span<const ArenaRecord> arenas);
  void gather_huge_pages(std::uint64_t offset, std::uint64_t bytes) noexcept;
  Status attach_root(const PoolOptions& options, std::uint64_t capacity);

  // With a journal (object_pool_journal.cc).
  bool has_journal() const noexcept { return facts_of(kind_).flush == FlushMethod::kJournal; }
  Result<PoolHeader> map_existing(std::uint64_t bytes, const PoolOptions& options);
  Result<PoolHeader> map_replayed(std::uint64_t bytes, const PoolOptions& options,
                                  std::span<std::byte> view, const NeededJournal& needed);
  Result<PoolHeader> map_with_journal(std::uint64_t bytes, const PoolOptions& options);
  Status unmap_from(std::uint64_t bytes);
  PoolJournal::Target journal_target(const PoolOptions& options) noexcept;
  Status begin_journal(std::uint64_t pool_uuid, std::uint64_t named, const PoolOptions& options);
  Status name_journal();
  void write_directly() noexcept;
  void end_journal();
  Status do_without_journal();
  Status punch_with_journal(std::uint64_t offset, std::uint64_t bytes);

  PoolFile file_;
  MediumKind kind_ = MediumKind::kFile;
  std::uint64_t memory_bytes_ = 0;               // with a journal: usable_memory_bytes
  bool is_open_ = false;                         // creating or opening it has succeeded
  bool accepts_lost_lines_ = false;              // PoolOptions; of an opening
  bool has_no_holes_ = false;                    // opening has provided all space
  std::atomic<bool> reads_single_pages_{false};  // says which advice the kernel has
  bool has_huge_pages_ = true;  // until the kernel says that it has none; under the growing mutex
  AddressSpace space_;
  std::uint64_t mapped_bytes_ = 0;  // of space_; changes under the growing mutex and a ForkPause
  AtFork at_fork_;
  std::uint64_t root_bytes_ = 0;          // of the object that holds the root
  std::uint64_t direct_write_bytes_ = 0;  // PoolOptions; of an opening
  std::unique_ptr<PoolJournal> journal_;  // last: its threads use what is above
};

}  // namespace flugs::pmem
