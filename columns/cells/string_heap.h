#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "columns/cells/cell.h"
#include "columns/cells/column_layout.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

/// Append-only persistent bytes of strings too long for a cell. Bytes of dead rows and unused
/// dictionary entries stay until the column begins anew (decision 0026).
/// Thread-safety: any thread.
class StringHeap {
 public:
  StringHeap(pmem::Pool& pool, StringHeapLayout& layout, const std::string& owner)
      : pool_(pool),
        layout_(layout),
        owner_(owner + ", strings"),
        chunks_(pool, layout.chunks, owner_) {}

  /// Opening: claims the chunks. Fails with kCorrupt.
  Status load();

  /// Copies `text` into the pool and returns its cell; the caller flushes the bytes before the cell
  /// is referred to durably. Fails with kOutOfSpace.
  Result<Cell> append(std::string_view text, pmem::Persister& persister);

  std::uint64_t bytes_in_pool() const;
  /// Whether a string that existed at opening may lie there: in a chunk, below the end. A string
  /// elsewhere would be overwritten by the next one that is appended.
  bool held_at_opening(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  /// Dropping: gives all chunks back.
  void release_all();
  /// Opening: adds the pages of its chunks, the newest first.
  void add_pages(pmem::WarmList& pages) const;

 private:
  void note_strings(std::uint64_t index, std::uint64_t offset, std::uint64_t bytes);
  Status grow(std::uint64_t text_bytes, pmem::Persister& persister);
  Status add_chunk(std::uint64_t bytes, pmem::Persister& persister);
  void begin_chunk(std::uint64_t index) noexcept;
  Status extend_reservation(std::uint64_t end, pmem::Persister& persister);

  pmem::Pool& pool_;
  StringHeapLayout& layout_;
  std::string owner_;
  mutable Mutex mutex_;  // protects everything below; rank: after a HashIndex bucket
  pmem::ChunkList chunks_;
  std::uint64_t current_offset_ = 0;  // of the chunk that is being filled; 0: none
  std::uint64_t current_index_ = 0;
  std::uint64_t current_bytes_ = 0;
  std::uint64_t used_ = 0;           // of the current chunk
  std::uint64_t reserved_used_ = 0;  // durable upper bound of used_
  std::uint64_t total_bytes_ = 0;
  std::vector<pmem::Extent> strings_at_opening_;  // by offset; constant after load
};

}  // namespace flugs::columns
