// Rows that are given column by column: from the batch to values that the table takes.

#include "tables/table/columns_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "tables/data/definition_of_now.h"
#include "tables/table/cascade.h"
#include "tables/table/table_columns.h"

namespace flugs::engine {

namespace {

// Rows whose keys are looked up at a time, so that the cache misses overlap.
constexpr std::size_t kRowsLookedUp = 32;

}  // namespace

Status RowWriter::insert_columns(const ColumnBatch& batch, std::span<RowId> ids,
                                 const CallOptions& options) {
  LongCall call(options, "insert_columns");
  return with_definition_of_now(data_, context_, [&](const TableDefinition& now) {
    return ColumnsWriter(*this, now, batch, ids, call).insert();
  });
}

ColumnsWriter::ColumnsWriter(RowWriter& writer, const TableDefinition& now,
                             const ColumnBatch& batch, std::span<RowId> ids, LongCall& call)
    : writer_(writer),
      data_(writer.data_),
      context_(writer.context_),
      now_(now),
      batch_(batch),
      ids_(ids),
      call_(call),
      values_(std::make_unique_for_overwrite<BlockColumn[]>(now.columns.size())),
      cells_(std::make_unique_for_overwrite<BlockCells[]>(now.columns.size())),
      block_(std::make_unique_for_overwrite<Block>()),
      numbered_(now.columns.size()) {
  const bool has_numbers = data_.constraints.any_of(RowConstraints::kNumbered);
  const std::size_t numbered = writer.columns_.numbered_column();
  if (has_numbers && now.has_column(numbered)) numbered_ = numbered;
}

SchemaPart ColumnsWriter::part_of(std::size_t column) const {
  return SchemaPart::column(data_.name(), now_.schema().columns[column].name);
}

Status ColumnsWriter::at_row(std::size_t row, const Status& why) {
  refused_row_ = row;
  return why.with_message(fmt::format("row {} of the batch: {}", row, why.message()));
}

Status ColumnsWriter::insert() {
  if (Status s = prepare(); !s.ok() || batch_.rows == 0) return s;
  const TransactionMark mark = context_.mark();
  if (Status s = insert_blocks(); !s.ok()) {
    if (s.code() == StatusCode::kAlreadyExists && context_.notes_reads()) note_refused();
    return s;
  }
  return data_.constraints.any_of(RowConstraints::kReferring) ? Cascade(context_, mark).finish()
                                                              : Status();
}

// -------------------------------------------------------------------------- before the first block

Status ColumnsWriter::prepare() {
  if (!ids_.empty() && ids_.size() != batch_.rows)
    return Status(
        StatusCode::kInvalidArgument, SchemaPart::of(data_.name()),
        fmt::format("room for {} row ids, but there are {} rows", ids_.size(), batch_.rows));
  const std::size_t count = now_.columns.size();
  std::vector<const BatchColumn*> given(count, nullptr);
  for (const BatchColumn& column : batch_.columns) {
    if (!now_.has_column(column.column.value())) return data_.no_column(now_, column.column);
    given[column.column.value()] = &column;
  }
  readers_.reserve(count);
  encoders_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    if (Status s = add_reader(i, given[i]); !s.ok()) return s;
  return {};
}

Status ColumnsWriter::add_reader(std::size_t column, const BatchColumn* given) {
  const DefinedColumn& defined = now_.columns[column];
  if (given != nullptr) {
    readers_.emplace_back(*given, defined);
    if (Status s = readers_.back().check(batch_.rows); !s.ok())
      return Status(s.code(), part_of(column), s.message());
  } else {
    Value value;
    if (Status s = writer_.default_of(now_, column, value); !s.ok() && batch_.rows != 0) return s;
    if (!value.is_null() && !defined.takes(value))
      if (Status s = writer_.fit_value(now_, column, value); !s.ok()) return s;
    readers_.emplace_back(value, defined);
    readers_.back().read(0, kBlockRows, values_[column]);
  }
  encoders_.emplace_back(readers_.back().entry_count(), batch_.rows);
  return {};
}

// ------------------------------------------------------------------------------ values of a block

Status ColumnsWriter::insert_blocks() {
  const std::size_t writes = context_.writes.size();
  const std::size_t changes = context_.index_changes.size();
  for (std::size_t first = 0; first < batch_.rows; first += kBlockRows) {
    block_->first = first;
    Status s = writer_.may_go_on(first, batch_.rows, call_);
    if (s.ok()) s = insert_block(std::min(kBlockRows, batch_.rows - first));
    if (!s.ok()) {
      writer_.undo_inserts(writes, changes);
      return s;
    }
  }
  call_.tell(batch_.rows, batch_.rows);
  return {};
}

// Rows before the first one that is refused are written, as they may be refused for other reasons.
Status ColumnsWriter::insert_block(std::size_t rows) {
  std::size_t stopped_by = 0;
  std::size_t good = read(rows, stopped_by);
  Status why;
  if (good < rows) why = why_refused(good, stopped_by);
  if (numbered_ < now_.columns.size())
    if (Status s = number(good); !s.ok()) return s;
  if (!now_.checks.empty()) good = check(good, why);
  block_->good = good;
  if (good != 0) {
    Status written = with_definition_of_now(
        data_, context_, [&](const TableDefinition&) { return write_block(good); });
    if (!written.ok()) return written;
  }
  return why.ok() ? Status() : at_row(block_->first + good, why);
}

// Returns the number of rows before the first that a column refuses. `stopped_by` is the first
// column that refuses that row.
std::size_t ColumnsWriter::read(std::size_t rows, std::size_t& stopped_by) {
  std::size_t good = rows;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    std::size_t taken = rows;
    if (!readers_[i].is_constant() || i == numbered_)
      taken = readers_[i].read(block_->first, rows, values_[i]);
    taken = takeable(i, taken);
    if (taken >= good) continue;
    good = taken;
    stopped_by = i;
  }
  return good;
}

// A dropped column has NULL in each row. So has the numbered one, until rows get their numbers.
std::size_t ColumnsWriter::takeable(std::size_t column, std::size_t rows) const noexcept {
  const DefinedColumn& defined = now_.columns[column];
  const BlockColumn& values = values_[column];
  if (!values.has_nulls || defined.nullable || defined.is_dropped || column == numbered_)
    return rows;
  const auto* const begin = values.is_null.data();
  return static_cast<std::size_t>(std::find(begin, begin + rows, std::uint8_t{1}) - begin);
}

Status ColumnsWriter::why_refused(std::size_t row, std::size_t column) const {
  Value misfit;
  if (!readers_[column].is_constant())
    if (Status s = readers_[column].why_stopped(block_->first + row, misfit); !s.ok())
      return Status(s.code(), part_of(column), s.message());
  if (Status s = writer_.fit_value(now_, column, misfit); !s.ok()) return s;
  return Status(StatusCode::kConstraintViolated, part_of(column), "the value does not fit");
}

Status ColumnsWriter::number(std::size_t rows) {
  BlockColumn& values = values_[numbered_];
  if (!values.has_nulls) return {};
  AutoIncrement* const source = writer_.columns_.number_source();
  ValueBlock& numbers = context_.local_rows.of(writer_.table_).numbers;
  const bool is_narrow = now_.columns[numbered_].type == Type::kInt32;
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.is_null[i] == 0) continue;
    const Result<std::int64_t> number = source->next(numbers, context_.slot->persister());
    if (!number.ok()) return number.status();
    // The column has just become an int64, and has numbers above those of an int32.
    if (is_narrow && *number > std::numeric_limits<std::int32_t>::max())
      return writer_.changed_meanwhile();
    values.payloads[i] = *number;
    values.is_null[i] = 0;
  }
  values.has_nulls = false;
  return {};
}

// Returns the number of rows before the first for which a check does not hold.
std::size_t ColumnsWriter::check(std::size_t rows, Status& why) const {
  std::size_t row = 0;
  const auto value = [&](std::size_t column) {
    return values_[column].value(row, now_.columns[column].type);
  };
  for (; row < rows; ++row)
    for (const CheckConstraint& check : now_.checks) {
      if (check.holds(value)) continue;
      why = check.violated_by(value);
      return row;
    }
  return rows;
}

// --------------------------------------------------------------- keys of rows that are not written

// The value as it would be in the row. Numbers that a row would get are known in its block only.
Value ColumnsWriter::value(std::size_t row, std::size_t column) const {
  const Type type = now_.columns[column].type;
  const bool is_in_block = row >= block_->first && row < block_->first + block_->good;
  if (column == numbered_ && is_in_block) return values_[column].value(row - block_->first, type);
  return readers_[column].value(row);
}

// Before a text is stored that would stay in the pool if its row were refused (RowWriter::
// encode_new_row): looks up the keys of all rows that are not written yet. Rows that follow later
// in the batch may still take the same key twice.
Status ColumnsWriter::check_rest() {
  if (std::exchange(is_rest_checked_, true)) return {};
  for (std::size_t first = block_->first; first < batch_.rows; first += kRowsLookedUp) {
    const std::size_t rows = std::min(kRowsLookedUp, batch_.rows - first);
    std::size_t taken = rows;
    Status why;
    for (const std::size_t place : KeySet(data_.keys.kept()))
      taken = look_up_keys(place, first, taken, why);
    if (taken < rows) return at_row(first + taken, why);
  }
  return {};
}

// Returns the number of these rows before the first whose key is taken.
std::size_t ColumnsWriter::look_up_keys(std::size_t place, std::size_t first, std::size_t rows,
                                        Status& why) {
  const KeyIndex& key = *data_.keys[place];
  const std::span<const std::uint16_t> columns = key.columns();
  if (!key.is_unique() || *std::max_element(columns.begin(), columns.end()) >= readers_.size())
    return rows;
  std::array<std::array<Value, kKeyColumnsMax>, kRowsLookedUp> wanted;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c)
      wanted[i][c] =
          columns::normalised(value(first + i, columns[c]), data_.columns[columns[c]]->type());
    key.entries().prefetch(key.hash_of(std::span(wanted[i].data(), columns.size())));
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const Value> values(wanted[i].data(), columns.size());
    const Status free =
        key.entries().check_free(values, context_.visibility, context_.scratch.candidates);
    if (free.ok()) continue;
    why = writer_.key_taken(place, values, free.code());
    return i;
  }
  return rows;
}

// The status says that the keys of earlier rows were free: that has been read as well.
void ColumnsWriter::note_refused() {
  std::vector<Value> row(readers_.size());
  for (std::size_t i = 0; i <= refused_row_; ++i) {
    for (std::size_t column = 0; column < row.size(); ++column) row[column] = value(i, column);
    context_.reads.add_refused_insert(writer_.table_, row, row.size());
  }
}

}  // namespace flugs::engine
