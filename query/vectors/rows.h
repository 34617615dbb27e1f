#pragma once

#include <vector>

#include "query/vectors/run_context.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// Held rows: of an intermediate or final result, or of a side of a join.
struct Rows {
  struct Part {
    std::size_t rows = 0;
    std::vector<Vec> columns;
    std::vector<bool> has_nulls;

    ColumnView view(std::size_t column) const noexcept {
      return columns[column].view(has_nulls[column]);
    }
  };

  Schema schema;
  std::vector<Part> parts;
  std::size_t row_count = 0;
  bool is_ordered = false;  ///< parts and rows are in the requested order
  std::vector<Charge> charges;

  /// Appends a copy of a batch, whose columns are those of the schema.
  void append(const Batch& batch, Charge& charge);
  /// Appends all of `other`, without copying.
  void take(Rows&& other);
  /// Joins all parts to one.
  void flatten(Charge charge);
};

/// Copies `count` values one behind the other.
void copy_column(ColumnView from, Form form, std::size_t count, Vec& to, std::size_t at,
                 std::size_t capacity, bool with_nulls);

}  // namespace flugs::query
