// Rows that are inserted: how their values become cells. Many rows in one call: column by column,
// so that the cache misses of the dictionaries' indexes overlap; then row by row.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "tables/table/definition_of_now.h"
#include "tables/table/table.h"

namespace flugs::engine {

namespace {

// Rows encoded at a time: their cells stay in the second-level cache.
constexpr std::size_t kRowsPerBatch = 64;

bool is_long_text(const Value& value) noexcept {
  return value.as_string().size() > columns::text_cell::kInlineBytesMax;
}

}  // namespace

// Takes back what a call that failed in the middle has inserted.
void Table::undo_inserts(TransactionContext& context, std::size_t writes, std::size_t changes) {
  undo_index_changes(context, changes);
  while (context.writes.size() > writes) {
    const mvcc::Write& write = context.writes.back();
    mvcc::store_stamp(write.version->created, mvcc::kNoStamp);
    give_back(context, write.row);
    context.writes.pop();
  }
}

// A long text that was stored stays where it is, even if its row is refused; rows that are refused
// again and again must not fill the pool. So most texts are stored when the row is in all indexes,
// which refuse it no more. Those that the indexes need before, and those of dictionaries, whose
// codes decide how wide the row's cells are, are stored when the keys have been found to be free.
bool Table::is_stored_last(std::size_t column, KeyMask kept) const noexcept {
  if (data_.columns[column]->is_dictionary()) return false;
  const KeyPlaces keys(kept);
  return std::none_of(keys.begin(), keys.end(),
                      [&](std::size_t key) { return data_.keys[key]->has_column(column); });
}

// Of texts that are stored last: a cell of an empty one. `kept`: the keys that are going to have
// it.
Status Table::encode_new_row(TransactionContext& context, std::span<const Value> values,
                             KeyMask kept, bool& has_texts_left) {
  bool is_checked = false;
  context.scratch.cells.clear();
  context.scratch.bits.clear();
  context.scratch.editions = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    columns::Column& column = *data_.columns[i];
    context.scratch.editions += column.mark();
    if (is_long_text(values[i])) {
      if (is_stored_last(i, kept)) {
        has_texts_left = true;
        context.scratch.cells.push_back(columns::text_cell::make_inline({}));
        context.scratch.bits.push_back(column.bits_for(context.scratch.cells.back()));
        continue;
      }
      if (!std::exchange(is_checked, true))
        if (Status s = check_keys_free(context, values); !s.ok()) return s;
    }
    Result<columns::Cell> cell = column.encode(columns::normalised(values[i], column.type()),
                                               context.unflushed, context.slot->persister());
    if (!cell.ok()) return std::move(cell).status();
    context.scratch.cells.push_back(*cell);
    context.scratch.bits.push_back(column.bits_for(*cell));
  }
  return {};
}

// Nobody else reads these cells of a row that is not committed.
Status Table::store_texts_left(TransactionContext& context, std::uint32_t row,
                               std::span<const Value> values, KeyMask kept) {
  const columns::RowLayout& layout = data_.rows.layout(row);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_long_text(values[i]) || !is_stored_last(i, kept)) continue;
    if (layout.bits(i) == 0) continue;  // dropped meanwhile
    columns::Column* column = data_.columns[i];
    while (column != nullptr && column->edition() != layout.edition(i)) column = column->former();
    FLUGS_CHECK(column != nullptr);
    Result<columns::Cell> cell =
        column->encode(values[i], context.unflushed, context.slot->persister());
    if (!cell.ok()) return std::move(cell).status();
    layout.store(data_.rows.address(row), i, *cell);
  }
  return {};
}

Status Table::check_keys_free(TransactionContext& context, std::span<const Value> values) const {
  std::array<Value, kKeyColumnsMax> wanted;
  for (const KeyIndex* key : data_.keys) {
    const std::size_t count = key->columns().size();
    // One of a column that has come since the call began is asked when the row is there.
    if (*std::max_element(key->columns().begin(), key->columns().end()) >= values.size()) continue;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t column = key->columns()[i];
      wanted[i] = columns::normalised(values[column], data_.columns[column]->type());
    }
    if (Status s = key->check_free(std::span(wanted.data(), count), context.visibility,
                                   context.scratch.candidates);
        !s.ok()) {
      if (s.code() == StatusCode::kConflict) context.conflicts.add();
      return Status(s.code(), s.code() == StatusCode::kAlreadyExists
                                  ? fmt::format("table {}, key {}: {} exists", name(), key->name(),
                                                key->describe(std::span(wanted.data(), count)))
                                  : fmt::format("table {}, key {}", name(), key->name()));
    }
  }
  return {};
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
  if (data_.constraints.any()) return insert_constrained_rows(now, context, values, width, ids);
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
  context.scratch.inserted = values;
  context.scratch.inserted_width = width;
  for (std::size_t i = 0; i < values.size(); i += width) {
    const std::span<const Value> row = values.subspan(i, width);
    if (std::any_of(row.begin(), row.end(), is_long_text))
      if (Status s = check_keys_free(context, row); !s.ok()) return s;
  }

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
  context.scratch.bits.assign(width, 0);
  context.scratch.editions = 0;
  for (std::size_t i = 0; i < width; ++i) {
    columns::Column& column = *data_.columns[i];
    if (Status s = column.encode_many(values, i, width, cells, context.unflushed,
                                      context.slot->persister());
        !s.ok())
      return s;
    for (std::size_t at = i; at < values.size(); at += width)
      context.scratch.bits[i] = std::max(context.scratch.bits[i], column.bits_for(cells[at]));
    context.scratch.editions += column.mark();
  }
  const KeyMask kept = data_.keys.kept();
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
    mvcc::store_stamp(data_.rows.version(row).created, mvcc::kNoStamp);
    give_back(context, row);
  }
}

}  // namespace flugs::engine
