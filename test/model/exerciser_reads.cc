// Steps that read.
#include <algorithm>
#include <map>

#include "test/model/exerciser.h"

namespace flugs::test {

// Reads each column by the function for its type.
// Whether the checked getters agree, and refuse NULL and other types.
bool Exerciser::is_same_checked(const Row& found, ColumnId id, const ColumnSchema& column,
                                const ModelValue& wanted) {
  calls_.add(Call::kRowGet);
  calls_.add(Call::kRowGetByName);
  calls_.add(Call::kRowIsNull);
  const Value view = wanted.view();
  const Result<Value> by_name = found.get(column.name);
  const Result<bool> is_null = found.is_null(id);
  bool is_same = by_name.ok() && *by_name == view && is_null.ok() && *is_null == wanted.null;
  const Result<std::int64_t> number = found.get<std::int64_t>(id);
  const bool is_integer = column.type == Type::kInt32 || column.type == Type::kInt64;
  is_same &= number.ok() == (is_integer && !wanted.null);
  if (number.ok()) is_same &= *number == wanted.raw;
  const Result<std::optional<std::string>> text = found.get<std::optional<std::string>>(id);
  is_same &= text.ok() == is_text(column.type);
  if (text.ok())
    is_same &= text->has_value() != wanted.null && text->value_or("") == view.as_string();
  return is_same;
}

void Exerciser::read_row(const ModelTable& table, const SeenRow& expected, const Row& found) {
  calls_.add(Call::kRowId);
  calls_.add(Call::kRowGetAll);
  expect_row(expected, found, "read");
  const auto column = pick_column(table);
  if (!column) return;
  const ColumnId id = column_id(*column);
  const ModelValue& wanted = (*expected.row)[*column];
  const Value view = wanted.view();
  calls_.add(Call::kRowTable);
  calls_.add(Call::kRowIsNullUnchecked);
  calls_.add(Call::kRowGetUnchecked);
  bool is_same = found.is_null_unchecked(id) == wanted.null && found.get_unchecked(id) == view &&
                 found.table() == table.id;
  const Type type = table.schema.columns[*column].type;
  is_same &= is_same_checked(found, id, table.schema.columns[*column], wanted);
  if (type == Type::kBool) {
    calls_.add(Call::kRowGetBool);
    is_same &= found.get_unchecked<bool>(id) == (!wanted.null && view.as_bool());
  } else if (type == Type::kInt32) {
    calls_.add(Call::kRowGetInt32);
    is_same &= found.get_unchecked<std::int32_t>(id) == (wanted.null ? 0 : view.as_int32());
  } else if (type == Type::kDouble) {
    calls_.add(Call::kRowGetDouble);
    is_same &=
        Value::real(found.get_unchecked<double>(id)) == (wanted.null ? Value::real(0) : view);
  } else if (is_text(type)) {
    calls_.add(Call::kRowGetString);
    is_same &= found.get_unchecked<std::string_view>(id) == view.as_string();
  } else {
    calls_.add(Call::kRowGetInt64);
    is_same &= found.get_unchecked<std::int64_t>(id) == (wanted.null ? 0 : wanted.raw);
  }
  const std::array<ColumnId, 2> both = {id, ColumnId(0)};
  std::array<Value, 2> values;
  found.get_unchecked(both, values);
  is_same &= values[0] == view;
  if (!is_same) expect(false, "read: another value of column " + std::to_string(*column));
}

// Any row that some transaction sees: its id must lead to it, or to nothing.
void Exerciser::read(Open& open, ModelTable& table) {
  Open& other = *open_[random_.below(open_.size())];
  const auto seen = pick(other, table);
  if (!seen) return;
  calls_.add(Call::kRead);
  const auto mine = model_.see(*open.model, *seen->record);
  model_.note_read(*open.model, table);
  const bool is_visible = mine && mine->id == seen->id;
  const Result<Row> found = open.real->get(table.id, seen->id);
  expect_code(is_visible ? StatusCode::kOk : StatusCode::kNotFound, found.status(),
              "read of " + table.schema.name);
  if (found.ok() && is_visible) read_row(table, *mine, *found);
}

Result<Row> Exerciser::get_prepared(Open& open, KeyId key, std::span<const Value> values) {
  const Result<Prepared> prepared = database_->prepare(key);
  return prepared.ok() ? prepared->get(*open.real, values) : prepared.status();
}

void Exerciser::find(Open& open, ModelTable& table) {
  const auto index = pick_key(table, false, false);
  if (!index) return;
  const ModelKey& key = table.keys[*index];
  if (random_.chance(15)) return find_many(open, table, *index);
  const ModelRow wanted = key_values(open, table, key, key.columns.size());
  const std::vector<Value> values = values_of(wanted);
  calls_.add(Call::kFind);
  if (random_.chance(20)) {
    calls_.add(Call::kPrefetch);
    open.real->prefetch(key_id(table, *index), values);
  }
  const bool is_prepared = random_.chance(30);
  if (is_prepared) calls_.add(Call::kPrepare);
  const Result<Row> found = is_prepared ? get_prepared(open, key_id(table, *index), values)
                                        : open.real->get(key_id(table, *index), values);
  if (!key.unique)
    return expect_code(StatusCode::kInvalidArgument, found.status(),
                       "find by a key that is not unique");
  expect_found(open, table, *index, wanted, found);
}

void Exerciser::expect_found(Open& open, ModelTable& table, std::size_t index,
                             const ModelRow& wanted, const Result<Row>& found) {
  // Several rows may bear a key with a NULL in it.
  const std::vector<SeenRow> matching = model_.find(*open.model, table, index, wanted);
  expect_code(matching.empty() ? StatusCode::kNotFound : StatusCode::kOk, found.status(),
              "find in " + table.schema.name + " by key " + std::to_string(index));
  model_.note_read(*open.model, table, matching.size() == 1 ? matching[0].record : nullptr);
  if (!found.ok()) return;
  const auto same = std::find_if(matching.begin(), matching.end(),
                                 [&](const SeenRow& row) { return row.id == found->id(); });
  expect(same != matching.end(), "find in " + table.schema.name + ": another row");
  if (same != matching.end()) expect_row(*same, *found, "find");
}

void Exerciser::find_many(Open& open, ModelTable& table, std::size_t index) {
  const ModelKey& key = table.keys[index];
  std::vector<ModelRow> wanted(1 + random_.below(40));
  std::vector<Value> values;
  for (ModelRow& row : wanted) {
    row = key_values(open, table, key, key.columns.size());
    for (const Value& value : values_of(row)) values.push_back(value);
  }
  calls_.add(Call::kFindMany);
  std::vector<std::optional<Row>> found(wanted.size());
  const Status status = open.real->get_many(key_id(table, index), values, found);
  expect_code(key.unique ? StatusCode::kOk : StatusCode::kInvalidArgument, status,
              "find of many by key " + std::to_string(index));
  if (!status.ok()) return;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    expect_found(open, table, index, wanted[i],
                 found[i] ? Result<Row>(*found[i]) : Result<Row>(Status(StatusCode::kNotFound)));
}

void Exerciser::visit_rows(Open& open, ModelTable& table) {
  const auto index = pick_key(table, false, false);
  if (!index) return;
  const ModelKey& key = table.keys[*index];
  const std::size_t least = key.ordered ? 0 : key.hashed;
  const std::size_t count = least + random_.below(key.columns.size() - least + 1);
  const ModelRow wanted = key_values(open, table, key, count);
  const std::vector<Value> values = values_of(wanted);
  model_.note_read(*open.model, table);
  std::vector<SeenRow> expected;
  for (const SeenRow& row : model_.see_all(*open.model, table))
    if (compare_key(key, *row.row, wanted) == 0) expected.push_back(row);
  calls_.add(Call::kFindAll);
  std::vector<Row> found;
  const Status status = open.real->rows(key_id(table, *index), values, [&](const Row& row) {
    found.push_back(row);
    return true;
  });
  expect_code({}, status, "rows");
  expect_rows(table, std::move(expected), found, key.ordered ? &key : nullptr,
              "rows by key " + std::to_string(*index));
}

void Exerciser::range(Open& open, ModelTable& table) {
  const auto index = pick_key(table, false, true);
  if (!index) return;
  const ModelKey& key = table.keys[*index];
  const ModelRow low = key_values(open, table, key, random_.below(key.columns.size() + 1));
  const ModelRow high = key_values(open, table, key, random_.below(key.columns.size() + 1));
  const std::vector<Value> low_values = values_of(low);
  const std::vector<Value> high_values = values_of(high);
  const KeyBound lower{low_values, random_.chance(50)};
  const KeyBound upper{high_values, random_.chance(50)};
  model_.note_read(*open.model, table);
  std::vector<SeenRow> expected;
  for (const SeenRow& row : model_.see_all(*open.model, table)) {
    const int to_low = low.empty() ? 1 : compare_key(key, *row.row, low);
    const int to_high = high.empty() ? -1 : compare_key(key, *row.row, high);
    if (to_low < 0 || (to_low == 0 && !lower.inclusive)) continue;
    if (to_high > 0 || (to_high == 0 && !upper.inclusive)) continue;
    expected.push_back(row);
  }
  calls_.add(Call::kRange);
  std::vector<Row> found;
  const Status status = open.real->rows(key_id(table, *index), lower, upper, [&](const Row& row) {
    found.push_back(row);
    return true;
  });
  expect_code({}, status, "range");
  expect_rows(table, std::move(expected), found, &key, "range by key " + std::to_string(*index));
}

// Reads the columns of a batch by the functions for their types.
void Exerciser::read_batch(const ModelTable& table, const ScanBatch& batch,
                           std::span<const ColumnId> of) {
  calls_.add(Call::kBatchRowCount);
  calls_.add(Call::kBatchRowIds);
  calls_.add(Call::kBatchNulls);
  calls_.add(Call::kBatchColumn);
  expect(batch.row_ids().size() == batch.row_count(), "scan: another number of row ids");
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Type type = table.schema.columns[of[i].value()].type;
    calls_.add(type == Type::kDouble ? Call::kBatchDoubles
               : is_text(type)       ? Call::kBatchStrings
                                     : Call::kBatchIntegers);
    expect(batch.column<double>(i).ok() == (type == Type::kDouble) &&
               batch.column<std::string_view>(i).ok() == is_text(type) &&
               batch.column<std::int64_t>(i).ok() == (type != Type::kDouble && !is_text(type)),
           "scan: a column in a form that does not fit its type, or not in the one that fits");
    const std::span<const std::uint8_t> nulls = batch.nulls(i);
    for (std::size_t row = 0; row < batch.row_count(); ++row) {
      calls_.add(Call::kBatchValue);
      const Value value = batch.get_unchecked(i, row);
      const bool is_null = !nulls.empty() && nulls[row] != 0;
      bool is_same = is_null == value.is_null();
      if (!is_null && is_text(type))
        is_same &= batch.column_unchecked<std::string_view>(i)[row] == value.as_string();
      if (!is_null && type == Type::kDouble)
        is_same &= Value::real(batch.column_unchecked<double>(i)[row]) == value;
      if (!is_null && !is_text(type) && type != Type::kDouble)
        is_same &= batch.column_unchecked<std::int64_t>(i)[row] == value.raw();
      if (!is_same) expect(false, "scan: one value in two forms differs");
    }
  }
}

void Exerciser::scan(Open& open, ModelTable& table) {
  const auto column = pick_column(table);
  const auto other = pick_column(table);
  if (!column || !other) return;
  const auto some = pick(open, table);
  const ModelValue wanted =
      some && random_.chance(70) ? (*some->row)[*column] : random_cell(open, table, *column);
  model_.note_read(*open.model, table);
  std::map<std::uint32_t, const ModelRow*> expected;
  for (const SeenRow& row : model_.see_all(*open.model, table))
    if ((*row.row)[*column] == wanted) expected[row.id.value()] = row.row;
  const std::vector<ColumnId> columns = {column_id(*column), column_id(*other)};
  calls_.add(Call::kScan);
  calls_.add(Call::kScanWhere);
  const Status status = open.real->scan(
      table.id, columns, Predicate::equal(columns[0], wanted.view()), [&](const ScanBatch& batch) {
        read_batch(table, batch, columns);
        for (std::size_t i = 0; i < batch.row_count(); ++i) {
          const auto row = expected.find(batch.row_ids()[i].value());
          expect(row != expected.end(), "scan: a row too many");
          if (row == expected.end()) return false;
          expect(batch.get_unchecked(0, i) == wanted.view(), "scan: another value");
          expect(batch.get_unchecked(1, i) == (*row->second)[*other].view(), "scan: another value");
          expected.erase(row);
        }
        return true;
      });
  expect_code({}, status, "scan");
  expect(expected.empty() || !complaint_.empty(),
         "scan of " + table.schema.name + ": rows are missing");
}

void Exerciser::compare_all(Open& open, ModelTable& table) {
  std::vector<ColumnId> columns;
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i)
    if (!table.schema.columns[i].dropped) columns.push_back(column_id(i));
  model_.note_read(*open.model, table);
  std::vector<Row> found;
  const auto visit = [&](const ScanBatch& batch) {
    read_batch(table, batch, columns);
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      Result<Row> row = open.real->get(table.id, batch.row_ids()[i]);
      expect(row.ok(), "a scanned row cannot be read");
      if (!row.ok()) return false;
      for (std::size_t c = 0; c < columns.size(); ++c)
        expect(batch.get_unchecked(c, i) == row->get_unchecked(columns[c]), "scan and row differ");
      found.push_back(*row);
    }
    return true;
  };
  calls_.add(Call::kScan);
  expect_code({}, open.real->scan(table.id, columns, Predicate::all(), visit), "full scan");
  expect_rows(table, model_.see_all(*open.model, table), found, nullptr, "full scan");
}

}  // namespace flugs::test
