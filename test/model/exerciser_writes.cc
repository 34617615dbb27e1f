// Steps that write.
#include <algorithm>
#include <functional>
#include <stop_token>

#include "test/model/exerciser.h"
#include "verify/crash/rig/column_rows.h"

namespace flugs::test {

namespace {

/// A column's value if none is given. nullopt: that is not allowed.
std::optional<ModelValue> value_without(const ColumnSchema& column) {
  ModelValue none;
  none.type = column.type;
  if (column.dropped) return ModelValue();
  if (column.default_value) return ModelValue::of(column.type, column.default_value->value());
  if (column.nullable || column.auto_increment) return none;
  return {};
}

// The database numbers rows without a number: until the number is known, a value that no row has
// stands for it.
void number(const ModelTable& table, std::vector<ModelRow>& rows, std::int64_t& next) {
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i) {
    if (!table.schema.columns[i].auto_increment) continue;
    for (ModelRow& row : rows)
      if (row[i].null)
        row[i] = ModelValue::of(
            table.schema.columns[i].type,
            Value::from_raw(table.schema.columns[i].type, -(std::int64_t{1} << 30) - next++));
  }
}

}  // namespace

// ----------------------------------------------------------------------------------------
// inserting

void Exerciser::settle_numbers(Open& open, ModelTable& table, std::span<const RowId> ids) {
  const auto column = numbered(table);
  const std::vector<std::pair<ModelTable*, ModelRecord*>> unsettled = model_.unsettled();
  for (std::size_t i = 0; i < ids.size() && i < unsettled.size(); ++i) {
    ModelRecord& record = *unsettled[i].second;
    model_.settle(table, record, ids[i]);
    if (!column || record.own.row[*column].raw > -(std::int64_t{1} << 30)) continue;
    const Result<Row> row = open.real->get(table.id, ids[i]);
    expect(row.ok(), "a row that was just inserted cannot be read");
    if (!row.ok()) return;
    const std::int64_t given = row->get_unchecked<std::int64_t>(column_id(*column));
    expect(given > 0, "the number " + std::to_string(given) + " was given");
    expect(table.numbers.insert(given).second,
           "the number " + std::to_string(given) + " was given twice");
    model_.settle_number(table, record, *column, given);
  }
  if (ids.size() < unsettled.size()) return settle_cascades(open);
  model_.all_settled();
}

void Exerciser::insert(Open& open, ModelTable& table) {
  // Inserts and deletes balance around the wanted number of records.
  if (table.records.size() > world_.records * 3 / 2 && !random_.chance(30))
    return remove(open, table);
  ModelRow row = random_row(open, table);
  const auto column = numbered(table);
  if (column && random_.chance(70)) row[*column].null = true;
  std::vector<Value> values = views(table, row);
  std::vector<ModelRow> rows = {row};
  // As programs do that do not know added columns.
  const std::size_t count = table.schema.columns.size();
  bool lacks = false;
  if (table.columns_created < count && random_.chance(50)) {
    values.resize(table.columns_created + random_.below(count - table.columns_created));
    for (std::size_t i = values.size(); i < count; ++i) {
      const auto without = value_without(table.schema.columns[i]);
      lacks |= !without;
      rows[0][i] = without.value_or(ModelValue());
    }
  }
  calls_.add(values.size() == count ? Call::kInsert : Call::kInsertShort);
  number(table, rows, next_pending_);
  Outcomes expected = lacks ? Outcomes(StatusCode::kConstraintViolated)
                            : model_.insert(*open.model, table, std::move(rows));
  if (open.model->is_read_only()) expected = StatusCode::kReadOnly;
  const Result<RowId> id = open.real->insert(table.id, values);
  expect_code(expected, id.status(), "insert into " + table.schema.name);
  look_at_conflict(open, id.code());
  if (id.ok() && expected.ok()) settle_numbers(open, table, {{*id}});
}

void Exerciser::insert_named(Open& open, ModelTable& table) {
  calls_.add(Call::kInsertNamed);
  const ModelRow drawn = random_row(open, table);
  std::vector<ModelRow> rows(1);
  std::vector<ColumnValue> given;
  bool lacks = false;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const ColumnSchema& column = table.schema.columns[i];
    const auto without = value_without(column);
    const bool is_named =
        !column.dropped && random_.chance(without ? 60 : 97) && !column.auto_increment;
    lacks |= !is_named && !without;
    rows[0].push_back(is_named ? drawn[i] : without.value_or(ModelValue()));
    if (!is_named) continue;
    // Given twice, the later value counts.
    if (random_.chance(5)) given.push_back({column_id(i), Value::null()});
    given.push_back({column_id(i), drawn[i].view()});
  }
  if (random_.chance(3)) std::reverse(given.begin(), given.end());
  for (std::size_t i = 0; i < given.size(); ++i)
    rows[0][given[i].column.value()] =
        ModelValue::of(table.schema.columns[given[i].column.value()].type, given[i].value);
  number(table, rows, next_pending_);
  Outcomes expected = lacks ? Outcomes(StatusCode::kConstraintViolated)
                            : model_.insert(*open.model, table, std::move(rows));
  if (open.model->is_read_only()) expected = StatusCode::kReadOnly;
  const Result<RowId> id = open.real->insert(table.id, given);
  expect_code(expected, id.status(), "insert of named columns into " + table.schema.name);
  if (id.ok() && expected.ok()) settle_numbers(open, table, {{*id}});
}

Status Exerciser::insert_columns(Open& open, const ModelTable& table,
                                 const std::vector<ModelRow>& rows, std::span<RowId> ids) {
  std::vector<std::vector<Value>> views;
  for (const ModelRow& row : rows) {
    std::vector<Value>& values = views.emplace_back();
    for (const ModelValue& value : row) values.push_back(value.view());
  }
  crash::ColumnRows arrays(views, table.schema.columns.size(), random_.next());
  std::erase_if(arrays.columns(), [&](const BatchColumn& column) {
    return table.schema.columns[column.column.value()].dropped;
  });
  return open.real->insert_columns(table.id, arrays.batch(), ids);
}

void Exerciser::insert_rows(Open& open, ModelTable& table) {
  if (table.records.size() > world_.records * 2) return;
  const bool by_column = random_.chance(40);
  calls_.add(by_column ? Call::kInsertColumns : Call::kInsertRows);
  std::vector<ModelRow> rows;
  const auto column = numbered(table);
  for (std::uint64_t i = random_.below(5); i > 0; --i) {
    rows.push_back(random_row(open, table));
    if (column && random_.chance(70)) rows.back()[*column].null = true;
  }
  std::vector<Value> values;
  for (const ModelRow& row : rows)
    for (const ModelValue& value : row) values.push_back(value.view());
  // The row ids of a call without rows take no room.
  const bool takes_ids = !rows.empty();
  std::vector<RowId> ids(takes_ids ? rows.size() : 0);
  std::vector<ModelRow> numbered_rows = rows;
  number(table, numbered_rows, next_pending_);
  const Outcomes expected =
      by_column ? model_.insert_by_column(*open.model, table, std::move(numbered_rows))
                : model_.insert(*open.model, table, std::move(numbered_rows));
  if (expected.ok() && !column && !rows.empty() && random_.chance(10)) {
    std::stop_source source;
    source.request_stop();
    expect_code(StatusCode::kCancelled,
                open.real->insert_rows(table.id, values, ids, {.stop = source.get_token()}),
                "insert_rows that is stopped");
  }
  const Status status = by_column ? insert_columns(open, table, rows, ids)
                                  : open.real->insert_rows(table.id, values, ids);
  expect_code(expected, status, "insert of rows into " + table.schema.name);
  if (status.ok() && expected.ok()) settle_numbers(open, table, ids);
}

// -----------------------------------------------------------------------------------------
// changing

// `otherwise`: outcomes that come before the row is examined.
void Exerciser::look_at_conflict(const Open& open, StatusCode found) {
  if (found != StatusCode::kConflict) return;
  calls_.add(Call::kConflict);
  const std::optional<Conflict> met = open.real->conflict();
  if (!met) return;  // the conflict was with a foreign key
  expect(!met->message.empty() && met->other != open.real->id(), "conflict: with itself");
  const auto same = [&](const Open& other) {
    return other.real->is_open() && other.real->id() == met->other;
  };
  expect(met->other == TransactionId() ||
             std::any_of(open_.begin(), open_.end(), [&](const auto& o) { return same(*o); }),
         "conflict: with a transaction that is not open");
}

void Exerciser::do_update(Open& open, ModelTable& table, const SeenRow& seen,
                          const std::vector<std::size_t>& named, const ModelRow& row,
                          Outcomes otherwise, const std::function<Result<RowId>()>& call,
                          const char* what) {
  // Rows that others have deleted since are noticed now or at the commit, depending on the row's
  // room.
  const bool may_have_lost_parent = open.model->isolation() == Isolation::kReadCommitted &&
                                    seen.record->writer == open.model &&
                                    !table.foreign_keys.empty();
  if (may_have_lost_parent) return;
  const Outcomes expected =
      otherwise.ok() ? model_.update(*open.model, table, seen, named, row) : otherwise;
  if (expected.is_untold()) {
    // The model may have noted that the call reads the row.
    static_cast<void>(open.real->get(table.id, seen.id));
    return;
  }
  const Result<RowId> id = call();
  expect_code(expected, id.status(), std::string(what) + " of " + table.schema.name);
  look_at_conflict(open, id.code());
  if (id.ok() && expected.ok()) settle(open, *id, what);
}

void Exerciser::update(Open& open, ModelTable& table) {
  const auto seen = pick(open, table);
  if (!seen) return;
  calls_.add(Call::kUpdate);
  ModelRow row = *seen->row;
  const ModelRow fresh = random_row(open, table);
  std::vector<ColumnValue> changes;
  std::vector<std::size_t> named;
  // One column, several, or one twice: then the last value counts.
  for (std::uint64_t i = 0, n = random_.below(3) + 1; i < n; ++i) {
    const auto column = pick_column(table);
    if (!column) continue;
    row[*column] = fresh[*column];
    named.push_back(*column);
    changes.push_back({column_id(*column), fresh[*column].view()});
  }
  do_update(
      open, table, *seen, named, row, {},
      [&, id = seen->id] { return open.real->update(table.id, id, changes); }, "update");
}

void Exerciser::add(Open& open, ModelTable& table) {
  const auto key = pick_key(table, true, false);
  const auto column = pick_column(table);
  if (!key || !column) return;
  const ColumnSchema& schema = table.schema.columns[*column];
  const auto found = pick_by_key(open, table, *key);
  if (!is_number(schema.type) || schema.auto_increment || !found) return;
  calls_.add(Call::kAdd);
  const auto& [seen, values] = *found;
  const ModelValue amount = random_value(schema, world_.domain, random_);
  const ModelValue held = (*seen.row)[*column];
  Outcomes otherwise;
  std::int64_t sum = 0;
  bool fits = !__builtin_add_overflow(held.raw, amount.raw, &sum);
  if (schema.type == Type::kInt32) fits = fits && sum == static_cast<std::int32_t>(sum);
  if (!fits) otherwise = StatusCode::kOverflow;
  if (held.null) otherwise = StatusCode::kConstraintViolated;
  if (amount.null) otherwise = StatusCode::kInvalidArgument;
  if (open.model->is_read_only()) otherwise = StatusCode::kReadOnly;
  ModelRow row = *seen.row;
  row[*column] = ModelValue::of(schema.type, Value::from_raw(schema.type, sum));
  // An amount that cannot be added is refused before the row is looked up.
  if (!amount.null) model_.note_read(*open.model, table, seen.record);
  const std::vector<Value> wanted = values_of(values);
  do_update(
      open, table, seen, {*column}, row, otherwise,
      [&]() -> Result<RowId> {
        const Result<Value> now =
            open.real->add(key_id(table, *key), wanted, column_id(*column), amount.view());
        if (!now.ok()) return now.status();
        expect(*now == Value::from_raw(schema.type, sum), "add: another sum");
        const Result<Row> after = open.real->get(key_id(table, *key), wanted);
        // The sum may be a part of the key.
        if (after.ok() && after->get_unchecked(column_id(*column)) == *now) return after->id();
        return kUnknownRow;
      },
      "add");
}

void Exerciser::compare_and_set(Open& open, ModelTable& table) {
  const auto key = pick_key(table, true, false);
  if (!key) return;
  const auto found = pick_by_key(open, table, *key);
  const auto column = pick_column(table);
  const auto changed = pick_column(table);
  if (!found || !column || !changed) return;
  calls_.add(Call::kCompareAndSet);
  const auto& [seen, values] = *found;
  const ModelValue expected =
      random_.chance(70) ? (*seen.row)[*column] : random_cell(open, table, *column);
  const bool is_same = expected == (*seen.row)[*column];
  ModelRow row = *seen.row;
  row[*changed] = random_cell(open, table, *changed);
  const ColumnValue is{column_id(*column), expected.view()};
  const ColumnValue will_be{column_id(*changed), row[*changed].view()};
  model_.note_read(*open.model, table, seen.record);
  const std::vector<Value> wanted = values_of(values);
  const auto call = [&] {
    return open.real->compare_and_set(key_id(table, *key), wanted, {&is, 1}, {&will_be, 1});
  };
  if (!is_same) {
    const Result<bool> done = call();
    expect_code(open.model->is_read_only() ? StatusCode::kReadOnly : StatusCode::kOk, done.status(),
                "compare_and_set");
    if (done.ok()) expect(!*done, "compare_and_set: done, although another value is there");
    return;
  }
  do_update(
      open, table, seen, {*changed}, row, {},
      [&]() -> Result<RowId> {
        const Result<bool> done = call();
        if (!done.ok()) return done.status();
        expect(*done, "compare_and_set: not done");
        return kUnknownRow;
      },
      "compare_and_set");
}

// The effect of upsert without changes on an existing row: columns outside the key get the values
// of `row`. Returns those columns.
static std::vector<std::size_t> take_over(const ModelTable& table, const ModelKey& key,
                                          const ModelRow& row, ModelRow& next) {
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const ColumnSchema& column = table.schema.columns[i];
    const bool is_in_key =
        std::find(key.columns.begin(), key.columns.end(), i) != key.columns.end();
    if (column.dropped || is_in_key || (column.auto_increment && row[i].null)) continue;
    named.push_back(i);
    next[i] = row[i];
  }
  return named;
}

// insert_if_absent and upsert.
void Exerciser::insert_or_change(Open& open, ModelTable& table) {
  const auto key = pick_key(table, true, false);
  if (!key) return insert(open, table);
  const ModelKey& model_key = table.keys[*key];
  ModelRow row = random_row(open, table);
  const auto column = numbered(table);
  const bool wants_number = column && random_.chance(50) &&
                            std::find(model_key.columns.begin(), model_key.columns.end(),
                                      *column) == model_key.columns.end();
  if (wants_number) row[*column].null = true;
  if (random_.chance(60))
    if (const auto found = pick_by_key(open, table, *key))
      for (std::size_t i = 0; i < model_key.columns.size(); ++i)
        row[model_key.columns[i]] = found->second[i];
  const std::vector<Value> values = values_of(row);
  const std::uint64_t what = random_.below(3);
  calls_.add(what == 0 ? Call::kInsertIfAbsent : what == 1 ? Call::kUpsert : Call::kUpsertChanges);
  std::optional<SeenRow> there;
  const ModelRow wanted = key_of(model_key.columns, row);
  if (!key_has_null(model_key, row)) {
    const std::vector<SeenRow> rows = model_.find(*open.model, table, *key, wanted);
    if (!rows.empty()) there = rows[0];
  }
  const auto changed = pick_column(table);
  if (!changed) return;
  model_.note_read(*open.model, table, there ? there->record : nullptr);
  const ModelValue change = random_cell(open, table, *changed);
  const ColumnValue changes{column_id(*changed), change.view()};
  Upserted upserted;
  const auto call = [&]() -> Result<RowId> {
    const KeyId id = key_id(table, *key);
    const Result<Upserted> done =
        what == 0 ? open.real->insert_if_absent(id, values)
                  : open.real->upsert(id, values,
                                      what == 1 ? std::span<const ColumnValue>()
                                                : std::span<const ColumnValue>(&changes, 1));
    if (!done.ok()) return done.status();
    upserted = *done;
    expect(upserted.inserted == !there, "upsert: inserted, or not, against expectation");
    return upserted.row;
  };
  if (there) {
    ModelRow next = *there->row;
    const std::vector<std::size_t> named = what == 0   ? std::vector<std::size_t>()
                                           : what == 1 ? take_over(table, model_key, row, next)
                                                       : std::vector<std::size_t>{*changed};
    if (what == 2) next[*changed] = change;
    if (!named.empty()) return do_update(open, table, *there, named, next, {}, call, "upsert");
    const Result<RowId> done = call();
    expect_code(open.model->is_read_only() ? StatusCode::kReadOnly : StatusCode::kOk, done.status(),
                "insert_if_absent of a row that is there");
    return expect(!done.ok() || *done == there->id, "insert_if_absent: another row");
  }
  std::vector<ModelRow> rows = {row};
  number(table, rows, next_pending_);
  const Outcomes expected = model_.insert(*open.model, table, std::move(rows));
  const Result<RowId> id = call();
  expect_code(expected, id.status(), "insert_if_absent or upsert");
  if (id.ok() && expected.ok()) settle_numbers(open, table, {{*id}});
}

// ----------------------------------------------------------------------------- deleting and
// locking

void Exerciser::remove(Open& open, ModelTable& table) {
  const auto seen = pick(open, table);
  if (!seen) return;
  calls_.add(Call::kRemove);
  const RowId id = seen->id;
  const Outcomes expected = model_.remove(*open.model, table, {*seen});
  if (expected.is_untold()) return;
  const Status status = open.real->remove(table.id, id);
  expect_code(expected, status, "remove from " + table.schema.name);
  if (status.ok() && expected.ok()) settle_cascades(open);
}

void Exerciser::remove_range(Open& open, ModelTable& table) {
  const auto key = pick_key(table, false, true);
  if (!key) return;
  calls_.add(Call::kRemoveRange);
  const ModelKey& model_key = table.keys[*key];
  const ModelRow low =
      key_values(open, table, model_key, 1 + random_.below(model_key.columns.size()));
  const std::vector<Value> bound = values_of(low);
  std::vector<SeenRow> rows;
  for (const SeenRow& seen : model_.see_all(*open.model, table))
    if (compare_key(model_key, *seen.row, low) == 0) rows.push_back(seen);
  const std::size_t count = rows.size();
  const Outcomes expected = model_.remove(*open.model, table, rows);
  if (expected.is_untold()) return;
  const Result<std::uint64_t> removed =
      open.real->remove_range(key_id(table, *key), {bound, true}, {bound, true});
  expect_code(expected, removed.status(), "remove_range");
  if (!removed.ok() || !expected.ok()) return;
  expect(*removed == count,
         "remove_range: " + std::to_string(*removed) + " rows instead of " + std::to_string(count));
  settle_cascades(open);
}

void Exerciser::lock_row(Open& open, ModelTable& table) {
  const auto key = pick_key(table, true, false);
  if (!key) return;
  const auto found = pick_by_key(open, table, *key);
  if (!found) return;
  calls_.add(Call::kFindForUpdate);
  const auto& [seen, values] = *found;
  model_.note_read(*open.model, table, seen.record);
  const Outcomes expected =
      open.model->is_read_only() ? Outcomes(StatusCode::kReadOnly) : model_.lock(*open.model, seen);
  const Result<Row> row = open.real->lock(key_id(table, *key), values_of(values),
                                          LockWait{std::chrono::milliseconds(0)});
  expect_code(expected, row.status(), "lock");
  if (row.ok()) expect_row(seen, *row, "lock");
}

void Exerciser::break_rules(Open& open, ModelTable& table) {
  if (open.model->is_read_only()) return;
  const auto column = pick_column(table);
  if (!column) return;
  std::vector<Value> values = values_of(random_row(open, table));
  const ColumnSchema& schema = table.schema.columns[*column];
  Outcomes expected = StatusCode::kConstraintViolated;
  switch (random_.below(3)) {
    case 0:
      values.push_back(Value::null());
      expected = StatusCode::kInvalidArgument;
      break;
    case 1:
      values[*column] = schema.type == Type::kBool ? Value::date(1) : Value::boolean(true);
      break;
    default:
      if (schema.nullable || schema.auto_increment) return;
      values[*column] = Value::null();
  }
  expect_code(expected, open.real->insert(table.id, values).status(), "a bad insert");
  const auto seen = pick(open, table);
  if (!seen) return;
  // An update looks its row up before it checks the values: a refused one has read it.
  model_.note_read(*open.model, table, seen->record);
  const Value wrong = schema.type == Type::kBool ? Value::date(1) : Value::boolean(true);
  expect_code(StatusCode::kConstraintViolated,
              open.real->update(table.id, seen->id, {{column_id(*column), wrong}}).status(),
              "a bad update");
  const auto none = column_id(table.schema.columns.size() + 3);
  expect_code(StatusCode::kInvalidArgument,
              open.real->update(table.id, seen->id, {{none, Value::null()}}).status(),
              "an update of no column");
}

}  // namespace flugs::test
