#pragma once

#include <cstddef>
#include <span>

#include "columns/column/column_array.h"
#include "flugs/scan.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// Makes room for `rows` rows of the columns, which exist.
void prepare_batch(ScanBatch& batch, const columns::ColumnArray& columns,
                   std::span<const ColumnId> wanted, std::size_t rows);
/// Fills the columns of the rows that the batch names. The rows stay meanwhile.
void decode_batch(ScanBatch& batch, const columns::ColumnArray& columns,
                  std::span<const ColumnId> wanted, const RowStore& rows);

}  // namespace flugs::engine
