#include "query/vectors/delta_kernels.h"

#include <algorithm>

#include "base/check.h"
#include "columns/dictionary/dictionary.h"
#include "columns/main/main_kernels.h"
#include "mvcc/stamps.h"

namespace flugs::query {

namespace {

using columns::RowLayout;

void prefetch_block(const std::byte* rows, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(rows + DeltaKernels::kAheadBytes + line, 0, 3);
}

std::uint64_t settled(const std::byte* rows, std::size_t row_bytes, std::size_t count,
                      std::uint64_t snapshot) {
  FLUGS_DCHECK(count <= 64);
  FLUGS_DCHECK(row_bytes >= sizeof(mvcc::VersionLayout) && row_bytes % 8 == 0);
  if (row_bytes != sizeof(mvcc::VersionLayout)) prefetch_block(rows, row_bytes * count);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& version = *reinterpret_cast<const mvcc::VersionLayout*>(rows + i * row_bytes);
    // 0 wraps to the greatest number, and a tag is greater than any time-stamp.
    const bool is_old = mvcc::load_stamp(version.created) - 1 < snapshot;
    const bool is_alive = mvcc::load_stamp(version.deleted) == mvcc::kNoStamp;
    found |= std::uint64_t{is_old && is_alive} << i;
  }
  return found;
}

// Calls `put(i, cell)` for each row, with all constants in registers.
template <typename Put>
void for_cells(const RowCells& cells, std::size_t count, Put&& put) {
  const RowLayout::Access access = cells.access;
  FLUGS_DCHECK(access.has_cell() && std::size_t{access.word} * 8 < cells.row_bytes);
  const std::byte* rows = cells.rows;
  const std::size_t stride = cells.row_bytes;
  if (cells.positions == nullptr) {
    for (std::size_t i = 0; i < count; ++i) put(i, RowLayout::load(rows + i * stride, access));
  } else {
    const std::uint32_t* positions = cells.positions;
    for (std::size_t i = 0; i < count; ++i)
      put(i, RowLayout::load(rows + positions[i] * stride, access));
  }
}

// Calls `put(i, cell)` for each row. T has as many bytes as the part.
template <typename T, typename Put>
void for_parts_of(const PartCells& cells, std::size_t count, Put&& put) {
  FLUGS_DCHECK(cells.part.bytes == sizeof(T) && cells.first < RowBlock::kRows);
  const auto load = [&](const std::byte* array, std::size_t row) {
    const T* part = reinterpret_cast<const T*>(array) + row;
    return (std::uint64_t{__atomic_load_n(part, __ATOMIC_RELAXED)} >> cells.shift) & cells.mask;
  };
  if (cells.positions != nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = cells.first + std::size_t{cells.positions[i]};
      put(i, load(cells.array(number), number % RowBlock::kRows));
    }
    return;
  }
  for (std::size_t i = 0; i < count;) {
    const std::size_t number = cells.first + i;
    const std::byte* array = cells.array(number);
    const std::size_t end = std::min(count, i + RowBlock::kRows - number % RowBlock::kRows);
    for (std::size_t row = number % RowBlock::kRows; i < end; ++i, ++row) put(i, load(array, row));
  }
}

template <typename Put>
void for_parts(const PartCells& cells, std::size_t count, Put&& put) {
  switch (cells.part.bytes) {
    case 1:
      return for_parts_of<std::uint8_t>(cells, count, put);
    case 2:
      return for_parts_of<std::uint16_t>(cells, count, put);
    case 4:
      return for_parts_of<std::uint32_t>(cells, count, put);
    default:
      return for_parts_of<std::uint64_t>(cells, count, put);
  }
}

std::uint32_t part_codes(const PartCells& cells, std::size_t count, std::uint32_t* out) {
  FLUGS_DCHECK(cells.mask <= 0xFFFFFFFFu);
  std::uint32_t greatest = 0;
  for_parts(cells, count, [&](std::size_t i, std::uint64_t cell) {
    out[i] = static_cast<std::uint32_t>(cell);
    greatest = std::max(greatest, out[i]);
  });
  return greatest;
}

void part_integers(const PartCells& cells, std::size_t count, bool is_narrow, std::int64_t* out) {
  for_parts(cells, count, [&](std::size_t i, std::uint64_t cell) {
    out[i] = is_narrow ? static_cast<std::int32_t>(cell) : static_cast<std::int64_t>(cell);
  });
}

std::uint32_t codes(const RowCells& cells, std::size_t count, std::uint32_t* out) {
  FLUGS_DCHECK(cells.access.mask <= 0xFFFFFFFFu);
  std::uint32_t greatest = 0;
  for_cells(cells, count, [&](std::size_t i, std::uint64_t cell) {
    out[i] = static_cast<std::uint32_t>(cell);
    greatest = std::max(greatest, out[i]);
  });
  return greatest;
}

void integers(const RowCells& cells, std::size_t count, bool is_narrow, std::int64_t* out) {
  if (is_narrow)
    for_cells(cells, count,
              [&](std::size_t i, std::uint64_t cell) { out[i] = static_cast<std::int32_t>(cell); });
  else
    for_cells(cells, count,
              [&](std::size_t i, std::uint64_t cell) { out[i] = static_cast<std::int64_t>(cell); });
}

void look_up(const DictionaryEntries& entries, const std::uint32_t* codes, std::size_t count,
             std::int64_t* out) {
  const std::uint64_t* bases = entries.bases.data();
  FLUGS_DCHECK(entries.entry_bytes == 8 || entries.entry_bytes == 16);
  const bool is_narrow = entries.entry_bytes == 8;
  for (std::size_t i = 0; i < count; ++i) {
    FLUGS_DCHECK(columns::Dictionary::chunk_of(codes[i]) < entries.bases.size());
    const std::uint64_t at = bases[columns::Dictionary::chunk_of(codes[i])] +
                             std::uint64_t{codes[i]} * entries.entry_bytes;
    const std::uint64_t word =
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
    out[i] = is_narrow ? static_cast<std::int32_t>(word) : static_cast<std::int64_t>(word);
  }
}

constexpr DeltaKernels kKernels = {"plain",    settled,       codes,  integers,
                                   part_codes, part_integers, look_up};

}  // namespace

const DeltaKernels& plain_delta_kernels() noexcept { return kKernels; }

const DeltaKernels& delta_kernels() noexcept {
#if defined(__SANITIZE_THREAD__)
  // The thread sanitizer does not know that vector loads are atomic and ordered.
  return plain_delta_kernels();
#else
  return columns::kernel_route() == columns::KernelRoute::kAvx512 ? avx512_delta_kernels()
                                                                  : plain_delta_kernels();
#endif
}

}  // namespace flugs::query
