// Inserting rows: values become cells. Many rows in one call are encoded column by column, so that
// the cache misses of the dictionaries' indexes overlap, and then written row by row.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "tables/data/definition_of_now.h"
#include "tables/table/row_writer.h"

namespace flugs::engine {

namespace {

// Rows encoded at a time: their cells stay in the second-level cache.
constexpr std::size_t kRowsPerBatch = 64;
constexpr std::size_t kRowsPerTell = 4096;
static_assert(kRowsPerTell % kRowsPerBatch == 0);

bool is_long_text(const Value& value) noexcept {
  return value.as_string().size() > columns::text_cell::kInlineBytesMax;
}

}  // namespace

// Undoes the inserts of a call that failed in the middle.
void RowWriter::undo_inserts(std::size_t writes, std::size_t changes) {
  FLUGS_DCHECK(writes <= context_.writes.size());
  undo_index_changes(changes);
  while (context_.writes.size() > writes) {
    const mvcc::Write& write = context_.writes.back();
    FLUGS_DCHECK(!write.deletes && write.table == data_.layout.table_id);
    mvcc::store_stamp(write.version->created, mvcc::kNoStamp);
    give_back(write.row);
    context_.writes.pop();
  }
}

// A long text that was stored stays in the pool, even if its row is refused, and rows that are
// refused again and again must not fill the pool. So most texts are stored after the row has
// entered all indexes, which can no longer refuse it. Texts that the indexes need before, and texts
// of dictionaries, whose codes decide the cell widths, are stored once the keys have been found to
// be free.
bool RowWriter::is_stored_last(std::size_t column, KeyMask kept) const noexcept {
  if (data_.columns[column]->is_dictionary()) return false;
  const KeySet keys(kept);
  return std::none_of(keys.begin(), keys.end(),
                      [&](std::size_t key) { return data_.keys[key]->has_column(column); });
}

// Texts that are stored last get the cell of an empty text here. `kept`: the keys that the row will
// enter.
Status RowWriter::encode_new_row(std::span<const Value> values, KeyMask kept,
                                 bool& has_texts_left) {
  FLUGS_DCHECK(values.size() <= data_.columns.size());
  bool is_checked = false;
  context_.scratch.cells.resize(values.size());
  context_.scratch.bits.resize(values.size());
  columns::Cell* const cells = context_.scratch.cells.data();
  std::uint8_t* const bits = context_.scratch.bits.data();
  std::uint64_t editions = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    columns::Column& column = *data_.columns[i];
    editions += column.mark();
    if (column.encode_at_once(values[i], cells[i], bits[i])) continue;
    if (is_long_text(values[i])) {
      if (is_stored_last(i, kept)) {
        has_texts_left = true;
        cells[i] = columns::text_cell::make_inline({});
        bits[i] = column.bits_for(cells[i]);
        continue;
      }
      if (!std::exchange(is_checked, true))
        if (Status s = check_keys_free(values); !s.ok()) return s;
    }
    Result<columns::Cell> cell = column.encode(columns::normalised(values[i], column.type()),
                                               context_.unflushed, context_.slot->persister());
    if (!cell.ok()) return std::move(cell).status();
    cells[i] = *cell;
    bits[i] = column.bits_for(*cell);
  }
  context_.scratch.editions = editions;
  return {};
}

// No other thread reads these cells of a row that is not committed.
Status RowWriter::store_texts_left(std::uint32_t row, std::span<const Value> values, KeyMask kept) {
  const columns::RowLayout& layout = data_.rows.layout(row);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_long_text(values[i]) || !is_stored_last(i, kept)) continue;
    if (layout.bits(i) == 0) continue;  // dropped meanwhile
    columns::Column* column = data_.columns[i];
    while (column != nullptr && column->edition() != layout.edition(i)) column = column->former();
    FLUGS_CHECK(column != nullptr);
    Result<columns::Cell> cell =
        column->encode(values[i], context_.unflushed, context_.slot->persister());
    if (!cell.ok()) return no_cell(std::move(cell).status());
    if (column->is_long_text(*cell)) note_written(i, *column, *cell);
    layout.store(data_.rows.address(row), i, *cell);
  }
  return {};
}

// Hashes keys of a row that will be made of these values, and starts fetching their places in the
// indexes. Returns the keys that also hash columns behind `values`: the caller hashes these when
// the row is written.
KeyMask RowWriter::hash_keys_of_new(std::span<const Value> values, KeyMask keys,
                                    KeyHashes& hashes) const noexcept {
  KeyMask left = 0;
  for (const std::size_t i : KeySet(keys)) {
    KeyIndex& key = *data_.keys[i];
    if (!key.is_unique()) continue;
    if (__builtin_expect(!key.hashes_among(values.size()), 0)) {
      left = static_cast<KeyMask>(left | 1u << i);
      continue;
    }
    hashes[i] = key.hash_of_new(values);
    key.entries().prefetch_for_edit(hashes[i]);
  }
  return left;
}

Status RowWriter::check_keys_free(std::span<const Value> values) {
  std::array<Value, kKeyColumnsMax> wanted;
  for (const std::size_t place : KeySet(data_.keys.kept())) {
    const KeyIndex* const key = data_.keys[place];
    const std::size_t count = key->columns().size();
    // A key with a column that was added since the call began is checked when the row is there.
    if (*std::max_element(key->columns().begin(), key->columns().end()) >= values.size()) continue;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t column = key->columns()[i];
      wanted[i] = columns::normalised(values[column], data_.columns[column]->type());
    }
    if (Status s = key->entries().check_free(std::span(wanted.data(), count), context_.visibility,
                                             context_.scratch.candidates);
        !s.ok())
      return key_taken(place, std::span(wanted.data(), count), s.code());
  }
  return {};
}

// check_free has refused these values of a key with `why`.
Status RowWriter::key_taken(std::size_t place, std::span<const Value> values, StatusCode why) {
  const KeyIndex& key = *data_.keys[place];
  if (why == StatusCode::kConflict) note_key_conflict(static_cast<std::uint16_t>(place), values);
  if (why != StatusCode::kAlreadyExists)
    return Status(why, SchemaPart::key(data_.name(), key.name()));
  return Status(why, SchemaPart::key(data_.name(), key.name()),
                fmt::format("{} exists", key.describe(values)));
}

Status RowWriter::insert_rows(std::span<const Value> values, std::span<RowId> ids,
                              const CallOptions& options) {
  LongCall call(options, "insert_rows");
  return with_definition_of_now(data_, context_, [&](const TableDefinition& now) {
    return insert_values(now, values, ids, call);
  });
}

Status RowWriter::insert_values(const TableDefinition& now, std::span<const Value> values,
                                std::span<RowId> ids, LongCall& call) {
  const std::size_t width = width_of(now, values, ids);
  if (Status s = check_shape(values, width, ids); !s.ok()) return s;
  if (data_.constraints.any()) return insert_constrained_rows(now, values, width, ids, call);
  if (Status s = fit_values(now, values, width); !s.ok()) return s;
  return insert_checked_rows(values, width, ids, call);
}

Status RowWriter::check_shape(std::span<const Value> values, std::size_t width,
                              std::span<const RowId> ids) const {
  if (values.size() % width != 0)
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(data_.name()),
                  fmt::format("{} values do not fill a whole number of rows of {} columns",
                              values.size(), width));
  if (!ids.empty() && ids.size() != values.size() / width)
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(data_.name()),
                  fmt::format("room for {} row ids, but there are {} rows", ids.size(),
                              values.size() / width));
  return {};
}

// The rows have all columns of the definition by which they were checked. They are inserted in
// batches: if a column is rewritten meanwhile, which large calls cause, only the batch starts
// again.
Status RowWriter::insert_checked_rows(std::span<const Value> values, std::size_t width,
                                      std::span<RowId> ids, LongCall& call) {
  FLUGS_CHECK(width != 0 && values.size() % width == 0);
  FLUGS_CHECK(ids.empty() || ids.size() == values.size() / width);
  context_.scratch.inserted = values;
  context_.scratch.inserted_width = width;
  for (std::size_t i = 0; i < values.size(); i += width) {
    const std::span<const Value> row = values.subspan(i, width);
    if (std::any_of(row.begin(), row.end(), is_long_text))
      if (Status s = check_keys_free(row); !s.ok()) return s;
  }

  const std::size_t writes = context_.writes.size();
  const std::size_t changes = context_.index_changes.size();
  std::vector<columns::Cell> cells(kRowsPerBatch * width);
  for (std::size_t first = 0; first < values.size(); first += kRowsPerBatch * width) {
    const std::span<const Value> batch =
        values.subspan(first, std::min(kRowsPerBatch * width, values.size() - first));
    const std::size_t row = first / width;
    const std::span<RowId> batch_ids = ids.empty() ? ids : ids.subspan(row, batch.size() / width);
    Status s = may_go_on(row, values.size() / width, call);
    if (s.ok()) s = insert_batch(batch, width, cells, batch_ids);
    if (!s.ok()) {
      undo_inserts(writes, changes);
      return s;
    }
  }
  call.tell(values.size() / width, values.size() / width);
  return {};
}

Status RowWriter::may_go_on(std::uint64_t done, std::uint64_t total, LongCall& call) const {
  if (context_.ending.is_to_end()) return Status(StatusCode::kCancelled);
  const bool goes_on =
      done % kRowsPerTell == 0 ? call.goes_on(done, total) : !call.is_asked_to_stop();
  return goes_on ? Status() : stopped_by_caller("table " + data_.name());
}

Status RowWriter::insert_batch(std::span<const Value> values, std::size_t width,
                               std::span<columns::Cell> cells, std::span<RowId> ids) {
  return with_definition_of_now(data_, context_, [&](const TableDefinition&) {
    return try_insert_batch(values, width, cells, ids);
  });
}

Status RowWriter::try_insert_batch(std::span<const Value> values, std::size_t width,
                                   std::span<columns::Cell> cells, std::span<RowId> ids) {
  const std::size_t rows = values.size() / width;
  FLUGS_CHECK(rows <= kRowsPerBatch && values.size() <= cells.size());
  FLUGS_CHECK(width <= data_.columns.size());
  context_.scratch.bits.assign(width, 0);
  context_.scratch.editions = 0;
  for (std::size_t i = 0; i < width; ++i) {
    columns::Column& column = *data_.columns[i];
    if (Status s = column.encode_many(values, i, width, cells, context_.unflushed,
                                      context_.slot->persister());
        !s.ok())
      return no_cell(std::move(s));
    for (std::size_t at = i; at < values.size(); at += width)
      context_.scratch.bits[i] = std::max(context_.scratch.bits[i], column.bits_for(cells[at]));
    for (std::size_t at = i; column.has_texts_of_rows() && at < values.size(); at += width)
      if (column.is_long_text(cells[at])) note_written(i, column, cells[at]);
    context_.scratch.editions += column.mark();
  }
  const KeyMask kept = data_.keys.kept();
  std::array<std::uint32_t, kRowsPerBatch> written{};
  std::array<KeyHashes, kRowsPerBatch> hashes;
  for (std::size_t i = 0; i < rows; ++i) {
    if (Status s = write_new_row(cells.subspan(i * width, width), written[i]); !s.ok()) {
      withdraw(std::span(written).first(i));
      return s;
    }
    const KeyMask left = hash_keys_of_new(values.subspan(i * width, width), kept, hashes[i]);
    if (__builtin_expect(left != 0, 0)) hash_keys(written[i], left, hashes[i]);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    if (Status s = enter_indexes(written[i], kNoRow, kept, kept, hashes[i]); !s.ok()) {
      withdraw(std::span(written).subspan(i, rows - i));
      return s;
    }
    note_inserted(written[i]);
    if (!ids.empty()) ids[i] = RowId(written[i]);
  }
  return {};
}

void RowWriter::withdraw(std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : rows) {
    mvcc::store_stamp(data_.rows.version(row).created, mvcc::kNoStamp);
    give_back(row);
  }
}

}  // namespace flugs::engine
