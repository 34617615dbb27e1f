#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "flugs/arrow_abi.h"
#include "flugs/column_batch.h"
#include "flugs/status.h"
#include "query/arrow/arrow_import_format.h"

namespace flugs::query {

/// The arrays of one Arrow array of type struct, as a ColumnBatch. It refers to the array, and owns
/// the few buffers whose values had to be changed.
///
/// Everything is checked that can be without reading all values: numbers of buffers and children,
/// lengths, null pointers, sizes. What is in the buffers, Transaction::insert_columns checks.
class ArrowBatch {
 public:
  /// Fails with kInvalidArgument; kConstraintViolated: a value cannot be changed exactly.
  static Result<ArrowBatch> make(const ArrowArray& array, const std::vector<ArrowField>& fields);

  ColumnBatch batch() const noexcept { return {rows_, columns_}; }

 private:
  ArrowBatch() = default;
  Result<ValueArray> values_of(const ArrowArray& array, const ArrowFormat& format,
                               std::int64_t first, std::int64_t size);
  Status set_texts(const ArrowArray& array, ValueArray& values);
  Status set_views(const ArrowArray& array, ValueArray& values);
  Status change(const ArrowFormat& format, ValueArray& values);

  std::size_t rows_ = 0;
  std::vector<flugs::BatchColumn> columns_;
  // Their addresses stay, also when the batch moves.
  std::deque<std::vector<std::int64_t>> changed_;
  std::deque<std::vector<std::string_view>> buffers_;
};

}  // namespace flugs::query
