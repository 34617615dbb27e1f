#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "columns/cells/delta_shape.h"
#include "columns/cells/row_layout.h"
#include "columns/column/column_array.h"
#include "flugs/status.h"

namespace flugs::engine {

/// The layouts of the rows in a table's chunks, and the planning of the next one.
///
/// Invariant: chunks whose rows look alike share one layout, which stays until the table goes. Each
/// layout has a cell, or a constant, for every column that the table has.
/// Thread-safety: `fits`, `roomy`, `widths_after` and `shape`: any thread; `set_shape`: the DDL
/// mutex; the others: RowStore's grow mutex.
class RowLayouts final {
 public:
  /// The table's; used until the object is gone.
  explicit RowLayouts(const columns::ColumnArray& columns) : columns_(columns) { set_shape({}); }

  /// The one that all chunks with such rows share.
  const columns::RowLayout* shared(columns::RowLayout layout);
  /// A column is added to the table: rows that lack it have its constant.
  void add_constant(const columns::Column& column);

  /// The shape of rows in new chunks. It stays until the table goes.
  const columns::DeltaShape& shape() const noexcept {
    return *shape_.load(std::memory_order_acquire);
  }
  void set_shape(columns::DeltaShape shape) {
    shapes_.push_back(std::make_unique<const columns::DeltaShape>(std::move(shape)));
    shape_.store(shapes_.back().get(), std::memory_order_release);
  }
  /// Whether rows with cells of these widths may go to a chunk of that layout.
  bool fits(const columns::RowLayout& layout, std::span<const std::uint8_t> bits) const noexcept;
  /// A layout for a new chunk, with cells of at least these widths.
  Result<columns::RowLayout> roomy(std::span<const std::uint8_t> least) const;
  /// Widths for a chunk behind one with layout `last`, if there is one: rows with cells of widths
  /// `bits` fit in, and so does what fits into the chunk before.
  std::vector<std::uint8_t> widths_after(const columns::RowLayout* last,
                                         std::span<const std::uint8_t> bits) const;

 private:
  const columns::ColumnArray& columns_;
  std::vector<std::unique_ptr<const columns::DeltaShape>> shapes_;  // that the table has had
  std::atomic<const columns::DeltaShape*> shape_{nullptr};
  std::vector<std::unique_ptr<columns::RowLayout>> layouts_;
};

}  // namespace flugs::engine
