#include "query/scan/delta_scan_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "columns/cells/row_layout.h"
#include "columns/main/main_blocks.h"
#include "query/vectors/failure.h"

namespace flugs::query {

// Whole parts of a chunk in columns are looked up in what earlier scans have found.
std::size_t DeltaScanUnit::visible(std::uint32_t first, std::size_t count,
                                   std::uint64_t* mask) const noexcept {
  FLUGS_DCHECK(first % 64 == 0);
  FLUGS_DCHECK(count <= chunk_.row_count && first <= chunk_.row_count - count);
  if (count != 0 && chunk_.is_unused(first, static_cast<std::uint32_t>(count))) {
    std::fill_n(mask, (count + 63) / 64, 0);
    return 0;
  }
  if (chunk_.seen == nullptr) return visible_by_stamps(first, count, mask, nullptr);
  std::size_t seen = 0;
  for (std::size_t done = 0; done < count;) {
    const auto row = static_cast<std::uint32_t>(first + done);
    const std::size_t in_part = SeenParts::kRows - row % SeenParts::kRows;
    const std::size_t n = std::min(count - done, in_part);
    seen += n == SeenParts::kRows ? visible_in_part(row / SeenParts::kRows, mask + done / 64)
                                  : visible_by_stamps(row, n, mask + done / 64, nullptr);
    done += n;
  }
  return seen;
}

std::size_t DeltaScanUnit::visible_in_part(std::uint32_t part, std::uint64_t* mask) const noexcept {
  if (chunk_.seen->find(part, visibility_.snapshot(), mask))
    return columns::count_bits(mask, 0, SeenParts::kRows);
  const std::uint64_t ticket = chunk_.seen->ticket(part);
  bool is_final = ticket != SeenParts::kNone;
  const std::size_t seen =
      visible_by_stamps(part * SeenParts::kRows, SeenParts::kRows, mask, &is_final);
  if (is_final) chunk_.seen->keep(part, ticket, visibility_.snapshot(), mask);
  return seen;
}

// Whether this snapshot and all later ones agree about the row, unless a tag comes.
bool DeltaScanUnit::stays_as_it_is(const mvcc::VersionLayout& version) const noexcept {
  const mvcc::Stamp created = mvcc::load_stamp(version.created);
  const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
  return created <= visibility_.snapshot() && deleted <= visibility_.snapshot();
}

// In most blocks of 64, every row was committed before the snapshot and is not deleted. Stamps of
// other rows are resolved one by one. Makes `is_final` false if a later snapshot may see other
// rows.
std::size_t DeltaScanUnit::visible_by_stamps(std::uint32_t first, std::size_t count,
                                             std::uint64_t* mask, bool* is_final) const noexcept {
  const DeltaKernels& kernels = delta_kernels();
  const std::size_t stride = chunk_.layout->stride();
  std::size_t seen = 0;
  for (std::size_t begin = 0; begin < count; begin += 64, ++mask) {
    const std::size_t n = std::min<std::size_t>(64, count - begin);
    const std::byte* row = chunk_.row(first + static_cast<std::uint32_t>(begin));
    if (chunk_.layout->is_in_columns()) prefetch_stamps(row + kBlocksAhead * block_bytes());
    std::uint64_t bits = kernels.settled(row, stride, n, visibility_.snapshot());
    for (std::uint64_t rest = ~bits & columns::low_bits(static_cast<unsigned>(n)); rest != 0;
         rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      const auto& version = *reinterpret_cast<const mvcc::VersionLayout*>(row + i * stride);
      if (is_final != nullptr && *is_final) *is_final = stays_as_it_is(version);
      bits |= std::uint64_t{visibility_.sees(version)} << i;
    }
    *mask = bits;
    seen += static_cast<std::size_t>(std::popcount(bits));
  }
  return seen;
}

void DeltaScanUnit::wrong_code(std::uint32_t column, const RowSelection& rows,
                               std::uint32_t limit) const {
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::uint32_t row = rows.first + (rows.positions == nullptr ? i : rows.positions[i]);
    const std::uint64_t code = RowLayout::load(chunk_.row(row), access(column));
    if (code >= limit)
      fail(StatusCode::kCorrupt,
           fmt::format("table {}, column {}, row {}: expected a ValueID below {}, found {}",
                       table_.name(), schema_[column].name, chunk_.first_row + row, limit, code));
  }
  fail(StatusCode::kCorrupt,
       fmt::format("table {}, column {}: expected ValueIDs below {}, found a greater one",
                   table_.name(), schema_[column].name, limit));
}

const CodeDomain* DeltaScanUnit::former_domain(std::uint32_t column) const noexcept {
  const std::uint16_t edition = chunk_.layout->edition(column);
  for (const ColumnInfo::Former& former : schema_[column].formers)
    if (former.edition == edition) return former.domain.get();
  return nullptr;
}

// The caller takes them for codes of the column's domain. Later editions hold values directly, so a
// column with a domain has no former edition.
ColumnView DeltaScanUnit::codes(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  FLUGS_CHECK(schema_[column].domain != nullptr && !is_former(column));
  return codes_in(*domain_of(column), column, rows, out);
}

ColumnView DeltaScanUnit::codes_in(const DictionaryDomain& domain, std::uint32_t column,
                                   const RowSelection& rows, Vec& out) const {
  std::uint32_t* codes = out.codes(rows.count);
  const std::uint32_t greatest = read_codes(rows, access(column), codes);
  if (rows.count != 0 && greatest >= domain.count()) wrong_code(column, rows, domain.count());
  const std::uint32_t null_code = domain.null_code();
  if (null_code == CodeDomain::kNone) return out.view(false);
  std::uint8_t* nulls = out.nulls(rows.count);
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < rows.count; ++i) {
    nulls[i] = codes[i] == null_code ? 1 : 0;
    any |= nulls[i];
  }
  return out.view(any != 0);
}

void DeltaScanUnit::payloads(const DictionaryDomain& domain, const std::uint32_t* codes,
                             std::size_t count, std::int64_t* out) {
  if (const std::int64_t* all = domain.integers(); all != nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = all[codes[i]];
  } else if (const DictionaryEntries entries = domain.entries(); !entries.bases.empty()) {
    delta_kernels().look_up(entries, codes, count, out);
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = domain.dictionary().integer(codes[i]);
  }
}

ColumnView DeltaScanUnit::decoded(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  thread_local Vec scratch;
  const DictionaryDomain& domain = *domain_of(column);
  const ColumnView coded = codes_in(domain, column, rows, scratch);
  const std::uint32_t* codes = coded.codes();
  if (coded.nulls != nullptr) std::copy_n(coded.nulls, rows.count, out.nulls(rows.count));
  if (lane_of(schema_[column].type) == Lane::kText) {
    std::string_view* texts = out.texts(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) texts[i] = domain.text(codes[i]);
  } else {
    std::int64_t* ints = out.ints(rows.count);
    payloads(domain, codes, rows.count, ints);
    if (coded.nulls != nullptr)
      for (std::size_t i = 0; i < rows.count; ++i)
        if (coded.nulls[i] != 0) ints[i] = 0;
  }
  return out.view(coded.nulls != nullptr);
}

// Records of a block lie as rows do: kernels of rows read a block at a time. Chosen rows are in any
// block, and are read one by one.
template <typename Read>
void DeltaScanUnit::for_records(const RowSelection& rows, const RowLayout::Access& access,
                                const Read& read) const {
  FLUGS_DCHECK(is_inside(rows) && access.is_in_record());
  const RowPart part = access.part();
  RowCells cells;
  cells.row_bytes = part.bytes;
  cells.access.mask = access.mask;
  cells.access.word = static_cast<std::uint16_t>((access.word - part.offset) / 8);
  cells.access.shift = static_cast<std::uint8_t>(access.record().shift);
  for (std::size_t i = 0; i < rows.count;) {
    const auto row = static_cast<std::uint32_t>(rows.place(i));
    const std::size_t in_block = RowBlock::kRows - row % RowBlock::kRows;
    const std::size_t count =
        rows.positions == nullptr ? std::min(rows.count - i, in_block) : std::size_t{1};
    cells.rows = part.in_row(chunk_.row(row));
    for (std::size_t at = 0; count > 1 && at < count * part.bytes; at += 64)
      __builtin_prefetch(cells.rows + kBlocksAhead * block_bytes() + at, 0, 3);
    read(cells, i, count);
    i += count;
  }
}

// Kernels read cells; if the chunk has none for the column, all rows have the same code.
std::uint32_t DeltaScanUnit::read_codes(const RowSelection& rows, const RowLayout::Access& access,
                                        std::uint32_t* out) const noexcept {
  if (access.is_in_record()) {
    std::uint32_t greatest = 0;
    for_records(rows, access, [&](const RowCells& cells, std::size_t i, std::size_t count) {
      greatest = std::max(greatest, delta_kernels().codes(cells, count, out + i));
    });
    return greatest;
  }
  if (access.is_in_column())
    return delta_kernels().part_codes(parts_of(rows, access), rows.count, out);
  if (__builtin_expect(access.has_cell(), 1))
    return delta_kernels().codes(cells_of(rows, access), rows.count, out);
  std::fill_n(out, rows.count, static_cast<std::uint32_t>(access.constant));
  return rows.count == 0 ? 0 : static_cast<std::uint32_t>(access.constant);
}

void DeltaScanUnit::read_integers(std::uint32_t column, const RowSelection& rows,
                                  std::int64_t* out) const noexcept {
  const RowLayout::Access& cell = access(column);
  const bool narrow = is_narrow_type(schema_[column].type.type);
  if (cell.is_in_record())
    return for_records(rows, cell, [&](const RowCells& cells, std::size_t i, std::size_t count) {
      delta_kernels().integers(cells, count, narrow, out + i);
    });
  if (cell.is_in_column())
    return delta_kernels().part_integers(parts_of(rows, cell), rows.count, narrow, out);
  if (__builtin_expect(cell.has_cell(), 1))
    return delta_kernels().integers(cells_of(rows, cell), rows.count, narrow, out);
  std::fill_n(
      out, rows.count,
      narrow ? static_cast<std::int32_t>(cell.constant) : static_cast<std::int64_t>(cell.constant));
}

columns::RowLayout::Access DeltaScanUnit::null_access(std::uint32_t column) const noexcept {
  RowLayout::Access bit{};
  if (access(column).null_word == RowLayout::kAlwaysNull) {
    bit.constant = 1;
    bit.word = RowLayout::kAlwaysNull;  // not 0: a NULL bit exists
    return bit;
  }
  bit.mask = 1;
  bit.word = access(column).null_word;
  bit.shift = access(column).null_shift;
  if (access(column).is_in_record()) {
    bit.shift = access(column).shift;
    bit.constant = std::bit_cast<std::uint64_t>(RowLayout::Access::RecordPlace{
        access(column).part(), std::uint32_t{access(column).null_shift}});
  } else if (access(column).is_in_column()) {
    bit.shift = RowLayout::Access::kInColumn;  // a part of one byte
    bit.null_shift = access(column).null_shift;
  }
  return bit;
}

// `access` is that of a column, or of its NULL bit (null_access).
PartCells DeltaScanUnit::parts_of(const RowSelection& rows,
                                  const RowLayout::Access& access) const noexcept {
  FLUGS_DCHECK(is_inside(rows) && access.is_in_column());
  PartCells cells;
  cells.blocks = RowBlock::begin_of(chunk_.row(rows.first));
  cells.block_bytes = block_bytes();
  cells.first = rows.first % RowBlock::kRows;
  cells.part = access.part();
  cells.mask = access.mask;
  if (access.bits == 0) cells.shift = access.null_shift;
  cells.positions = rows.positions;
  return cells;
}

bool DeltaScanUnit::null_flags(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  const RowLayout::Access bit = null_access(column);
  if (bit.word == 0) return false;
  thread_local Vec scratch;
  std::uint32_t* bits = scratch.codes(rows.count);
  const bool any = read_codes(rows, bit, bits) != 0;
  std::uint8_t* nulls = out.nulls(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) nulls[i] = static_cast<std::uint8_t>(bits[i]);
  return any;
}

ColumnView DeltaScanUnit::direct_texts(std::uint32_t column, const RowSelection& rows,
                                       Vec& out) const {
  FLUGS_DCHECK(is_inside(rows));
  const bool has_nulls = null_flags(column, rows, out);
  const columns::Column& source = *table_.columns[column];
  std::string_view* texts = out.texts(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::size_t row = rows.first + (rows.positions == nullptr ? i : rows.positions[i]);
    texts[i] = source.text(*chunk_.layout, chunk_.row(static_cast<std::uint32_t>(row)), column);
  }
  return out.view(has_nulls);
}

ColumnView DeltaScanUnit::direct(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  FLUGS_DCHECK(lane_of(schema_[column].type) != Lane::kText);
  const bool has_nulls = null_flags(column, rows, out);
  read_integers(column, rows, out.ints(rows.count));
  return out.view(has_nulls);
}

ColumnView DeltaScanUnit::row_by_row(std::uint32_t column, const RowSelection& rows,
                                     Vec& out) const {
  FLUGS_DCHECK(is_inside(rows));
  const columns::Column& source = *table_.columns[column];
  const RowLayout& layout = *chunk_.layout;
  const bool is_text = lane_of(schema_[column].type) == Lane::kText;
  std::uint8_t* nulls = out.nulls(rows.count);
  bool any_null = false;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::size_t row = rows.first + (rows.positions == nullptr ? i : rows.positions[i]);
    const std::byte* cells = chunk_.row(static_cast<std::uint32_t>(row));
    nulls[i] = source.nullable() && source.is_null(layout, cells, column) ? 1 : 0;
    any_null |= nulls[i] != 0;
    if (is_text)
      out.texts(rows.count)[i] = source.text(layout, cells, column);
    else
      out.ints(rows.count)[i] = nulls[i] != 0 ? 0 : source.integer(layout, cells, column);
  }
  return out.view(any_null);
}

ColumnView DeltaScanUnit::values(std::uint32_t column, const RowSelection& rows, Vec& out,
                                 columns::TextScratch* /*scratch*/) const {
  if (is_read_by_row(column)) return row_by_row(column, rows, out);
  if (domain_of(column) != nullptr) return decoded(column, rows, out);
  if (lane_of(schema_[column].type) == Lane::kText) return direct_texts(column, rows, out);
  return direct(column, rows, out);
}

}  // namespace flugs::query
