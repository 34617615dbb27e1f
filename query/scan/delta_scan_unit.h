#pragma once

#include <algorithm>

#include "base/check.h"
#include "mvcc/visibility.h"
#include "query/scan/scan_unit.h"
#include "query/vectors/delta_kernels.h"
#include "tables/data/table_data.h"

namespace flugs::query {

/// A chunk of the delta. If its rows are side by side, a scan reads every line of the rows,
/// whichever columns it wants, so all work on a row is done while its line is in a cache. If its
/// columns are apart, the scan reads the stamps and the columns that it wants. Rows that the
/// transaction does not see may change meanwhile.
class DeltaScanUnit : public ScanUnit {
 public:
  /// `schema` is that of the whole table, with a domain for each dictionary column.
  DeltaScanUnit(const engine::TableData& table, const Schema& schema,
                const mvcc::Visibility& visibility,
                const engine::RowStore::ChunkView& chunk) noexcept
      : table_(table), schema_(schema), visibility_(visibility), chunk_(chunk) {
    FLUGS_CHECK(chunk.layout != nullptr && chunk.rows != nullptr);
    FLUGS_CHECK(chunk.row_bytes >= columns::RowLayout::kStampBytes && chunk.row_bytes % 8 == 0);
  }

  std::uint32_t row_count() const noexcept override { return chunk_.row_count; }
  std::span<const std::byte> memory(std::uint32_t /*column*/) const noexcept override {
    return {chunk_.rows, chunk_.layout->bytes_of_rows(chunk_.row_count)};
  }
  /// Number of rows that stay in the first-level cache while several columns are read one after
  /// another.
  std::uint32_t block_rows() const noexcept override {
    if (chunk_.layout->is_in_columns()) return static_cast<std::uint32_t>(kBatchRows);
    return std::clamp(kBlockBytes / chunk_.row_bytes / 64 * 64, 64u,
                      static_cast<std::uint32_t>(kBatchRows));
  }
  std::size_t visible(std::uint32_t first, std::size_t count,
                      std::uint64_t* mask) const noexcept override;
  bool may_be_null(std::uint32_t column) const noexcept override {
    return table_.columns[column]->nullable();
  }
  ColumnView values(std::uint32_t column, const RowSelection& rows, Vec& out,
                    columns::TextScratch* scratch) const override;
  ColumnView codes(std::uint32_t column, const RowSelection& rows, Vec& out) const override;
  ColumnView row_ids(const RowSelection& rows, Vec& out) const override {
    std::int64_t* ids = out.ints(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ids[i] = chunk_.first_row + rows.place(i);
    return out.view(false);
  }

  // delta_scan_unit_blocks.cc
  bool likely_extremes(std::uint32_t column, Value& least, Value& greatest) const override;
  bool narrow(const ScanUnitRange& in_unit, std::uint32_t first, std::size_t count,
              std::uint64_t* mask) const override;
  bool add_up(std::uint32_t column, std::uint32_t first, std::size_t count,
              const std::uint64_t* mask, Totals& totals) const override;
  bool extremes(std::uint32_t column, std::uint32_t first, std::size_t count,
                const std::uint64_t* mask, Value& least, Value& greatest) const override;

 private:
  using RowLayout = columns::RowLayout;
  using SeenParts = engine::SeenParts;
  struct Step;

  std::size_t visible_by_stamps(std::uint32_t first, std::size_t count, std::uint64_t* mask,
                                bool* is_final) const noexcept;
  std::size_t visible_in_part(std::uint32_t part, std::uint64_t* mask) const noexcept;
  bool stays_as_it_is(const mvcc::VersionLayout& version) const noexcept;
  static constexpr std::uint32_t kBlockBytes = 32u << 10;  // two thirds of a first-level cache
  static constexpr std::size_t kBlocksAhead = 4;

  /// In columns: from a block of rows to the next.
  std::size_t block_bytes() const noexcept {
    return RowBlock::kRows * std::size_t{chunk_.row_bytes};
  }
  // The processor's own prefetching does not step from block to block.
  static void prefetch_stamps(const std::byte* stamps) noexcept {
    for (std::size_t line = 0; line < RowBlock::kAlignment; line += 64)
      __builtin_prefetch(stamps + line, 0, 3);
  }

  /// Whether the cells belong to an edition of the column with another type, or with a dictionary.
  bool is_former(std::uint32_t column) const noexcept {
    FLUGS_DCHECK(column < schema_.size());
    return __builtin_expect(chunk_.layout->edition(column) != schema_[column].edition, 0);
  }
  /// The domain of the cells, if they are codes that kernels can look up; else null.
  const DictionaryDomain* domain_of(std::uint32_t column) const noexcept {
    const CodeDomain* domain = schema_[column].domain.get();
    if (is_former(column)) domain = former_domain(column);
    return static_cast<const DictionaryDomain*>(domain);
  }
  const CodeDomain* former_domain(std::uint32_t column) const noexcept;
  /// Whether no kernel can read the cells.
  bool is_read_by_row(std::uint32_t column) const noexcept {
    return is_former(column) && former_domain(column) == nullptr;
  }
  const RowLayout::Access& access(std::uint32_t column) const noexcept {
    FLUGS_DCHECK(column < schema_.size());
    return chunk_.layout->access()[column];
  }
  /// Access to the bit that marks NULL; word 0 if there is none. In columns, or in a record: a code
  /// of one bit.
  RowLayout::Access null_access(std::uint32_t column) const noexcept;
  RowCells cells_of(const RowSelection& rows, const RowLayout::Access& access) const noexcept {
    FLUGS_DCHECK(is_inside(rows) && !access.is_in_column());
    return {chunk_.row(rows.first), chunk_.row_bytes, access, rows.positions};
  }
  PartCells parts_of(const RowSelection& rows, const RowLayout::Access& access) const noexcept;
  /// Reads cells in records by `read(cells, i, count)`, for `count` rows from the i-th one on.
  template <typename Read>
  void for_records(const RowSelection& rows, const RowLayout::Access& access,
                   const Read& read) const;
  bool is_inside(const RowSelection& rows) const noexcept {
    const std::size_t end = rows.positions == nullptr || rows.count == 0
                                ? rows.count
                                : rows.positions[rows.count - 1] + std::size_t{1};
    return end <= chunk_.row_count && rows.first <= chunk_.row_count - end;
  }
  ColumnView codes_in(const DictionaryDomain& domain, std::uint32_t column,
                      const RowSelection& rows, Vec& out) const;
  std::uint32_t read_codes(const RowSelection& rows, const RowLayout::Access& access,
                           std::uint32_t* out) const noexcept;
  void read_integers(std::uint32_t column, const RowSelection& rows,
                     std::int64_t* out) const noexcept;
  static void payloads(const DictionaryDomain& domain, const std::uint32_t* codes,
                       std::size_t count, std::int64_t* out);
  bool null_flags(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView direct(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView direct_texts(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView row_by_row(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView decoded(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  [[noreturn]] void wrong_code(std::uint32_t column, const RowSelection& rows,
                               std::uint32_t limit) const;

  void load_codes(std::uint32_t column, Step& step) const;
  void load_values(std::uint32_t column, Step& step) const;
  void keep_nulls(std::uint32_t column, bool others, Step& step) const;
  static std::uint32_t code_of(const DictionaryDomain& domain, const Value& value);

  const engine::TableData& table_;
  const Schema& schema_;
  const mvcc::Visibility& visibility_;
  engine::RowStore::ChunkView chunk_;
};

}  // namespace flugs::query
