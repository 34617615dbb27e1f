#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "columns/cells/cell.h"
#include "columns/cells/column_layout.h"
#include "columns/cells/free_places.h"
#include "columns/cells/text_marks.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

/// Persistent bytes of strings too long for a cell. Texts that no row needs any more give their
/// places back, if this process wrote them and only rows side by side ever had them (decision
/// 0038), or a merge of a full pool has found that no row has them. All others, and unused
/// dictionary entries, stay until the column begins anew (0026).
/// Thread-safety: any thread.
class StringHeap {
 public:
  StringHeap(pmem::Pool& pool, StringHeapLayout& layout, const std::string& owner);

  /// Opening: claims the chunks. Fails with kCorrupt.
  Status load();

  /// Copies `text` into the pool and returns its cell; the caller flushes the bytes before the cell
  /// is referred to durably. Fails with kOutOfSpace.
  Result<Cell> append(std::string_view text, pmem::Persister& persister);

  /// No other heap of the process has or had this number.
  std::uint64_t number() const noexcept { return number_; }
  /// A text of this heap is in no row any more (`since` is 0), or only in rows that were deleted at
  /// `since` or before, and that no snapshot sees. Later strings may take its place at once, unless
  /// it is kept.
  void give_back(std::uint64_t offset, std::uint32_t bytes, std::uint64_t since) noexcept;
  /// From now on the long texts among these are never given back: not only rows side by side will
  /// have them. If one of them was given back before, its rows were deleted at given_back_until or
  /// before.
  void keep(std::span<const Cell> texts);
  std::uint64_t given_back_until() const;

  /// The texts that no row needs any more leave their places to later strings, whichever
  /// transaction wrote them (protocol reuse_text). The caller marks every text that a row has, and
  /// then ends the sweep.
  TextMarks begin_sweep();
  /// `since`: a snapshot by which the rows were found, from when all transactions had ended that
  /// began before begin_sweep. No transaction with an older snapshot is left.
  void end_sweep(TextMarks& marks, std::uint64_t since);
  void give_up_sweep() noexcept;

  std::uint64_t bytes_in_pool() const;
  /// The part of bytes_in_pool that lies in places that were given back.
  std::uint64_t bytes_reusable() const;
  /// Whether a string that existed at opening may lie there: in a chunk, below the end. A string
  /// elsewhere would be overwritten by the next one that is appended.
  bool held_at_opening(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  /// Dropping: gives all chunks back.
  void release_all();
  /// Opening: adds the pages of its chunks, the newest first.
  void add_pages(pmem::WarmList& pages) const;

 private:
  /// A chunk into which this process writes.
  struct Written {
    std::uint64_t from;  // where the first string of this process may lie
    std::uint64_t end;
    std::vector<std::uint64_t> kept;  // bit per 16 bytes of the chunk in which a kept text begins
  };

  Written* written_with(std::uint64_t offset, std::uint64_t& chunk) noexcept;
  void note_strings(std::uint64_t index, std::uint64_t offset, std::uint64_t bytes);
  Status grow(std::uint64_t text_bytes, pmem::Persister& persister);
  Status add_chunk(std::uint64_t bytes, pmem::Persister& persister);
  void begin_chunk(std::uint64_t index);
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
  std::map<std::uint64_t, Written> written_;  // by the offset of the chunk
  FreePlaces free_;
  std::uint64_t given_back_until_ = 0;
  std::uint64_t swept_until_ = 0;    // texts of rows that died until then are not given back again
  bool is_swept_ = false;            // between begin_sweep and its end
  std::vector<pmem::Extent> taken_;  // meanwhile
  const std::uint64_t number_;
  std::vector<pmem::Extent> strings_at_opening_;  // by offset; constant after load
};

}  // namespace flugs::columns
