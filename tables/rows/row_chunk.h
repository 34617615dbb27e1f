#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "columns/cells/row_layout.h"
#include "mvcc/asymmetric_barrier.h"
#include "mvcc/stamps.h"
#include "tables/rows/row_group.h"
#include "tables/rows/row_view.h"
#include "tables/rows/thawed_chunks.h"

namespace flugs::engine {

/// What DRAM knows of one chunk of rows. RowStore has one per chunk, in an array by position.
///
/// Readers look at it without a lock, and the merge changes some words meanwhile. These words are
/// read and written with atomic operations only, through the functions here where there is one.
///
/// Invariant: while `group_now()` is not null, the rows are in that group, and `row_zero`,
/// `layout`, `row_bytes`, `is_in_columns` and `lead_lines` say nothing of them.
struct RowChunk {
  // Where row 0 would be if all chunks were like this one. If `is_in_columns`: where the first row
  // is.
  std::uintptr_t row_zero;
  const columns::RowLayout* layout;  // atomic where the merge may change it
  std::uint32_t* previous;           // atomic; made when a row of the chunk is updated
  RowGroup* group;                   // atomic
  std::uint16_t row_bytes;
  bool is_in_columns;       // shape of the layout
  std::uint8_t lead_lines;  // cache lines between the beginning of the chunk and its first row
  std::uint32_t first_row;
  bool frozen;                     // atomic
  bool moving;                     // atomic
  mutable bool is_header_checked;  // atomic
  bool was_thawed;                 // atomic; ThawedChunks says when
  std::uint64_t emptied_at;        // atomic
  /// Atomic: a bit for each of the chunk's parts of kPartRows rows, set before a row in it gets a
  /// stamp, and for rows from before opening.
  std::uint64_t used_parts;

  static constexpr std::uint32_t kPartRows = 1024;
  /// The bits of `count` rows, at least one, from `offset` in the chunk on. Further parts than 64
  /// share the last bit.
  static std::uint64_t parts(std::uint32_t offset, std::uint32_t count) noexcept {
    FLUGS_DCHECK(count != 0);
    const std::uint32_t first = std::min(offset / kPartRows, 63u);
    const std::uint32_t last = std::min((offset + count - 1) / kPartRows, 63u);
    return (~std::uint64_t{0} << first) & (~std::uint64_t{0} >> (63 - last));
  }
  void note_used(std::uint32_t row) noexcept {
    const std::uint64_t part = parts(row - first_row, 1);
    if (__builtin_expect((__atomic_load_n(&used_parts, __ATOMIC_RELAXED) & part) == 0, 0))
      __atomic_fetch_or(&used_parts, part, __ATOMIC_RELEASE);
  }

  RowGroup* group_now() const noexcept { return __atomic_load_n(&group, __ATOMIC_ACQUIRE); }
  const columns::RowLayout* layout_now() const noexcept {
    return __atomic_load_n(&layout, __ATOMIC_ACQUIRE);
  }
  bool is_frozen() const noexcept { return __atomic_load_n(&frozen, __ATOMIC_ACQUIRE); }
  bool is_checked() const noexcept { return __atomic_load_n(&is_header_checked, __ATOMIC_RELAXED); }
  void set_checked() const noexcept {
    __atomic_store_n(&is_header_checked, true, __ATOMIC_RELAXED);
  }
  /// For a row of the chunk. The chunk's rows must not lie in a row group.
  std::byte* address(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row >= first_row);
    if (__builtin_expect(is_in_columns, 0)) return address_in_columns(row - first_row);
    return reinterpret_cast<std::byte*>(row_zero + std::size_t{row} * row_bytes);
  }
  std::byte* first_address() const noexcept { return address(first_row); }
  /// Starts fetching a row. The chunk's rows must not lie in a row group, as group_now() said.
  [[gnu::always_inline]] void prefetch(std::uint32_t row) const noexcept {
    const std::byte* const at = address(row);
    __builtin_prefetch(at);
    if (__builtin_expect(is_in_columns, 0)) layout_now()->prefetch_parts(at);
  }

  std::byte* address_in_columns(std::uint32_t i) const noexcept {
    const std::uint32_t in_block = i % RowBlock::kRows;
    return reinterpret_cast<std::byte*>(row_zero + std::size_t{i - in_block} * row_bytes +
                                        in_block * RowBlock::kStampBytes);
  }

  // For a row of the chunk. Its rows may lie in a row group. RowStore has these for any row.
  [[gnu::always_inline]] const void* probe_address(std::uint32_t row) const noexcept {
    if (const RowGroup* found = group_now(); __builtin_expect(found != nullptr, 0))
      return found->probe_address(row - first_row);
    return address(row);
  }
  [[gnu::always_inline]] RowView view(std::uint32_t row) const noexcept {
    if (const RowGroup* found = group_now(); __builtin_expect(found != nullptr, 0))
      return {nullptr, nullptr, found, found->readable_place_of(row - first_row)};
    return {layout, address(row), nullptr, 0};
  }
  [[gnu::always_inline]] mvcc::VersionLayout& version(std::uint32_t row) const noexcept {
    if (const RowGroup* found = group_now(); __builtin_expect(found != nullptr, 0))
      return found->version(row - first_row);
    return *reinterpret_cast<mvcc::VersionLayout*>(address(row));
  }
  Result<mvcc::VersionLayout*> writable_version(std::uint32_t row,
                                                pmem::Persister& persister) const {
    if (RowGroup* found = group_now(); __builtin_expect(found != nullptr, 0))
      return found->writable_version(row - first_row, persister);
    return reinterpret_cast<mvcc::VersionLayout*>(address(row));
  }
  mvcc::VersionLayout* stamped_version(std::uint32_t row) const noexcept {
    if (const RowGroup* found = group_now(); found != nullptr)
      return found->stamped_version(row - first_row);
    return reinterpret_cast<mvcc::VersionLayout*>(address(row));
  }
  /// Whether an entry that was written to a moment ago is still the row's, and not about to move
  /// (RowStore::Move).
  bool is_still(std::uint32_t row, const mvcc::VersionLayout* version) const noexcept {
    mvcc::light_barrier();
    return !__atomic_load_n(&moving, __ATOMIC_ACQUIRE) && stamped_version(row) == version;
  }
};

static_assert(sizeof(RowChunk) == 64);  // looked up for each row

static_assert(columns::RowLayout::kRowBytesMax <= 0xFFFF);

}  // namespace flugs::engine
