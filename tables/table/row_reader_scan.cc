#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/table/batch_decoding.h"
#include "tables/table/row_reader.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

namespace {

enum class Match : std::uint8_t { kEveryRow, kNoRow, kCode, kValue };

// A predicate made ready for the rows: on a dictionary column it is one comparison of codes.
struct Filter {
  Match match = Match::kEveryRow;
  std::size_t column = 0;
  std::uint64_t code = 0;
  std::uint16_t edition = 0;  // of the column, for the code
  Value value;

  bool admits(const columns::Column& on, const RowView& row) const noexcept {
    if (match == Match::kEveryRow) return true;
    if (match == Match::kCode && !row.is_in_group() && row.layout->edition(column) == edition)
      return row.layout->load(row.cells, column) == code;
    return row.equals(on, column, value);
  }
};

Filter make_filter(const columns::ColumnArray& columns, const Predicate& where) {
  Filter filter;
  if (!where.has_column) return filter;
  filter.column = where.column.value();
  FLUGS_DCHECK(filter.column < columns.size());  // RowReader::scan has looked
  const columns::Column& column = *columns[filter.column];
  filter.edition = column.edition();
  filter.value = column.fitted(where.equals);
  filter.match = Match::kValue;
  if (column.is_dictionary()) {
    filter.code = column.dictionary().find(filter.value);
    const bool is_nowhere = filter.code == columns::Dictionary::kNone;
    filter.match = is_nowhere ? Match::kNoRow : Match::kCode;
  }
  return filter;
}

}  // namespace

Status RowReader::scan(const TransactionContext& context, std::span<const ColumnId> wanted,
                       const Predicate& where, FunctionRef<bool(const ScanBatch&)> visit) const {
  if (Status s = data_.check_columns(wanted); !s.ok()) return s;
  if (where.has_column) {
    if (!data_.has_column(where.column)) return data_.no_column(where.column);
    const columns::Column& column = *data_.columns[where.column.value()];
    const Status type_fits = column.check(where.equals, column.type());
    if (!where.equals.is_null() && !type_fits.ok())
      return Status(StatusCode::kInvalidArgument, std::string(type_fits.message()));
  }
  const Filter filter = make_filter(data_.columns, where);
  if (filter.match == Match::kNoRow) return {};
  // Rows that a merge moved after a drop no longer have values of the column.
  const auto dropped_meanwhile = [&]() -> Status {
    if (__builtin_expect(!data_.has_dropped_columns(), 1)) return {};
    if (Status s = data_.check_columns(wanted); !s.ok()) return s;
    return where.has_column && !data_.has_column(where.column) ? data_.no_column(where.column)
                                                               : Status();
  };

  ScanBatch batch;
  const std::uint32_t end = data_.rows.rows_end();
  const std::size_t batch_rows = std::min<std::size_t>(ScanBatch::kRowsMax, end);
  prepare_batch(batch, data_.columns, wanted, batch_rows);
  std::size_t filled = 0;
  Status dropped;
  const auto deliver = [&] {
    batch.set_row_count(filled);
    filled = 0;
    decode_batch(batch, data_.columns, wanted, data_.rows);
    dropped = dropped_meanwhile();
    return dropped.ok() && visit(batch);
  };
  for (std::uint32_t row = 0; row < end; ++row) {
    if (row % ScanBatch::kRowsMax == 0 && context.ending.is_to_end())
      return context.ending.why_ended();
    if (!context.visibility.sees(data_.rows.version(row))) continue;
    if (const RowView view = data_.rows.view(row);
        !filter.admits(*data_.columns[filter.column], view))
      continue;
    FLUGS_DCHECK(filled < batch_rows);
    batch.row_id_buffer()[filled++] = RowId(row);
    if (filled == batch_rows && !deliver()) return dropped;
  }
  if (filled == 0) return dropped_meanwhile();
  deliver();
  return dropped;
}

}  // namespace flugs::engine
