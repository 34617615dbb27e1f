#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list_layout.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::pmem {

/// Writes and reads a ChunkListLayout. Thread-safety: one thread at a time; an owner that reads
/// chunks concurrently keeps their addresses in DRAM.
class ChunkList {
 public:
  /// kRows: pointers may have tags, and chunks may have no extent.
  enum class Chunks : std::uint8_t { kPlain, kRows };
  /// `owner` names the list in messages, e.g. "table orders, rows".
  ChunkList(Pool& pool, ChunkListLayout& layout, std::string owner, Chunks chunks = Chunks::kPlain)
      : pool_(pool), layout_(layout), owner_(std::move(owner)), chunks_(chunks) {}

  /// Opening: walks the list and claims every chunk and page. Calls `visit(index, offset)` in order
  /// for chunks whose first 64 bytes are inside the pool, and for those without an extent; `visit`
  /// checks what it can and returns the chunk's size in bytes. Fails with kCorrupt.
  Status load(FunctionRef<Result<std::uint64_t>(std::size_t index, std::uint64_t offset)> visit);

  /// Makes an initialised and durable extent the next chunk. Durable on return. A caller that gives
  /// a tag guarantees that the chunk looks like the one before it.
  /// Fails with kOutOfSpace (no room for a page, or the list is full); then nothing changed.
  Status append(Extent chunk, Persister& persister, std::uint16_t tag = 0);

  /// Replaces a chunk by `chunk`: an initialised extent whose contents were flushed through
  /// `persister`, or kNothing. Durable on return: either the old chunk or the new one is in the
  /// list. The caller releases the replaced chunk.
  /// `tag` is that of kNothing.
  void replace(std::size_t index, Extent chunk, Persister& persister,
               std::uint16_t tag = 0) noexcept;
  static constexpr Extent kNothing{ChunkListLayout::kNoExtent, 0};

  /// Gives every chunk and page back to the allocator; `bytes_of` as visit in load. The list
  /// itself must be durably unreachable.
  void release_all(FunctionRef<std::uint64_t(std::size_t index, std::uint64_t offset)> bytes_of);

  std::size_t count() const noexcept { return count_; }
  std::uint64_t offset(std::size_t index) const noexcept;
  /// Also callable in load's visit, for the chunk that it visits.
  std::uint16_t tag(std::size_t index) const noexcept;

 private:
  Result<std::uint64_t*> slot_for_append(std::size_t index, Persister& persister);
  Result<std::uint64_t> new_page(std::uint64_t& pointer, Persister& persister);
  Status check_page(std::uint64_t offset, const char* kind) const;
  Status check_end() const;
  std::uint64_t& pointer_to(std::size_t index) const noexcept;

  Pool& pool_;
  ChunkListLayout& layout_;
  std::string owner_;
  Chunks chunks_;
  std::size_t count_ = 0;
};

}  // namespace flugs::pmem
