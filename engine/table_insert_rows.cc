// Many rows in one call: column by column, so that the cache misses of the dictionaries' indexes
// overlap; then row by row.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/definition_of_now.h"
#include "engine/table.h"

namespace flugs::engine {

namespace {

// Rows encoded at a time: their cells stay in the second-level cache.
constexpr std::size_t kRowsPerBatch = 64;

}  // namespace

// Takes back what a call that failed in the middle has inserted.
void Table::undo_inserts(TransactionContext& context, std::size_t writes, std::size_t changes) {
  while (context.index_changes.size() > changes) {
    undo_index_change(context.index_changes.back());
    context.index_changes.pop_back();
  }
  while (context.writes.size() > writes) {
    const mvcc::Write& write = context.writes.back();
    mvcc::store_stamp(write.version->created, mvcc::kNoStamp);
    give_back(context, write.row);
    context.pop_write();
  }
}

Status Table::insert_rows(TransactionContext& context, std::span<const Value> values,
                          std::span<RowId> ids) {
  return with_definition_of_now(*this, context, [&](const TableDefinition& now) {
    return insert_values(now, context, values, ids);
  });
}

Status Table::insert_values(const TableDefinition& now, TransactionContext& context,
                            std::span<const Value> values, std::span<RowId> ids) {
  const std::size_t width = width_of(now, values, ids);
  if (Status s = check_shape(values, width, ids); !s.ok()) return s;
  if (is_constrained()) return insert_constrained_rows(now, context, values, width, ids);
  for (std::size_t i = 0; i < values.size(); i += width)
    if (Status s = check_values(now, values.subspan(i, width)); !s.ok()) return s;
  return insert_checked_rows(context, values, width, ids);
}

Status Table::check_shape(std::span<const Value> values, std::size_t width,
                          std::span<const RowId> ids) const {
  if (values.size() % width != 0)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: {} values are no whole number of rows of {} columns",
                              name(), values.size(), width));
  if (!ids.empty() && ids.size() != values.size() / width)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: room for {} row ids, but {} rows", name(), ids.size(),
                              values.size() / width));
  return {};
}

// Rows of all columns that the definition has by which they were checked. In batches: a column that
// begins anew meanwhile, as large calls make it do, lets only the batch begin again.
Status Table::insert_checked_rows(TransactionContext& context, std::span<const Value> values,
                                  std::size_t width, std::span<RowId> ids) {
  context.inserted = values;
  context.inserted_width = width;
  for (std::size_t i = 0; i < values.size(); i += width)
    if (Status s = check_keys_free(context, values.subspan(i, width)); !s.ok()) return s;

  const std::size_t writes = context.writes.size();
  const std::size_t changes = context.index_changes.size();
  std::vector<columns::Cell> cells(kRowsPerBatch * width);
  for (std::size_t first = 0; first < values.size(); first += kRowsPerBatch * width) {
    const std::span<const Value> batch =
        values.subspan(first, std::min(kRowsPerBatch * width, values.size() - first));
    const std::size_t row = first / width;
    const std::span<RowId> batch_ids = ids.empty() ? ids : ids.subspan(row, batch.size() / width);
    if (Status s = insert_batch(context, batch, width, cells, batch_ids); !s.ok()) {
      undo_inserts(context, writes, changes);
      return s;
    }
  }
  return {};
}

Status Table::insert_batch(TransactionContext& context, std::span<const Value> values,
                           std::size_t width, std::span<columns::Cell> cells,
                           std::span<RowId> ids) {
  return with_definition_of_now(*this, context, [&](const TableDefinition&) {
    return try_insert_batch(context, values, width, cells, ids);
  });
}

Status Table::try_insert_batch(TransactionContext& context, std::span<const Value> values,
                               std::size_t width, std::span<columns::Cell> cells,
                               std::span<RowId> ids) {
  const std::size_t rows = values.size() / width;
  context.bits.assign(width, 0);
  context.editions = 0;
  for (std::size_t i = 0; i < width; ++i) {
    columns::Column& column = *columns_[i];
    if (Status s = column.encode_many(values, i, width, cells, context.unflushed,
                                      context.slot->persister());
        !s.ok())
      return s;
    for (std::size_t at = i; at < values.size(); at += width)
      context.bits[i] = std::max(context.bits[i], column.bits_for(cells[at]));
    context.editions += column.mark();
  }
  const KeyMask kept = keys_.kept();
  std::array<std::uint32_t, kRowsPerBatch> written{};
  std::array<KeyHashes, kRowsPerBatch> hashes;
  for (std::size_t i = 0; i < rows; ++i) {
    if (Status s = write_new_row(context, cells.subspan(i * width, width), written[i]); !s.ok()) {
      withdraw(context, std::span(written).first(i));
      return s;
    }
    hash_keys(written[i], kept, hashes[i]);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    if (Status s = enter_indexes(context, written[i], kNoRow, kept, kept, hashes[i]); !s.ok()) {
      withdraw(context, std::span(written).subspan(i, rows - i));
      return s;
    }
    note_inserted(context, written[i]);
    if (!ids.empty()) ids[i] = RowId(written[i]);
  }
  return {};
}

void Table::withdraw(TransactionContext& context, std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : rows) {
    mvcc::store_stamp(rows_.version(row).created, mvcc::kNoStamp);
    give_back(context, row);
  }
}

}  // namespace flugs::engine
