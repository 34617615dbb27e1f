#pragma once

#include "engine/table.h"
#include "mvcc/visibility.h"
#include "query/segment.h"

namespace flugs::query {

/// A chunk of the delta: rows side by side, each with its stamps and its cells.
class DeltaSegment : public Segment {
 public:
  /// `schema` is that of the whole table, with a domain for each dictionary column.
  DeltaSegment(const engine::Table& table, const Schema& schema, const mvcc::Visibility& visibility,
               const engine::RowStore::ChunkView& chunk) noexcept
      : table_(table), schema_(schema), visibility_(visibility), chunk_(chunk) {}

  std::uint32_t row_count() const noexcept override { return chunk_.row_count; }
  std::size_t visible(std::uint32_t first, std::size_t count,
                      std::uint64_t* mask) const noexcept override;
  ColumnView values(std::uint32_t column, const RowSelection& rows, Vec& out) const override;
  ColumnView codes(std::uint32_t column, const RowSelection& rows, Vec& out) const override;

 private:
  bool null_flags(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView direct(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView direct_texts(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  ColumnView decoded(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  [[noreturn]] void wrong_code(std::uint32_t column, const RowSelection& rows,
                               std::uint32_t limit) const;

  const engine::Table& table_;
  const Schema& schema_;
  const mvcc::Visibility& visibility_;
  engine::RowStore::ChunkView chunk_;
};

}  // namespace flugs::query
