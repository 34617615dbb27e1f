#include "test/model/exerciser.h"

#include <algorithm>
#include <map>

namespace flugs::test {

Exerciser::Exerciser(std::uint64_t seed, ExerciserOptions options)
    : random_(seed), options_(options) {
  make_table(wide_schema("wide"));
  make_table(pair_schema("pair"));
  make_table(triple_schema("triple"));
  make_table(keyless_schema("keyless"));
}

void Exerciser::make_table(const TableSchema& schema) {
  const TableId id = must(database_->create_table(schema));
  model_.add_table(must(database_->schema(id)), id);
  ++tables_made_;
}

std::string Exerciser::summary() const {
  std::string text;
  for (std::size_t i = 0; i < outcomes_.size(); ++i)
    if (outcomes_[i] != 0)
      text += std::string(to_string(static_cast<StatusCode>(i))) + " " +
              std::to_string(outcomes_[i]) + "; ";
  for (const TableId id : const_cast<Exerciser*>(this)->database_->tables()) {
    const auto s = must(const_cast<Exerciser*>(this)->database_->table_statistics(id));
    text += s.name + ": " + std::to_string(s.rows_reserved) + " rows reserved; ";
  }
  return text + std::to_string(merged_chunks_) + " chunks merged";
}

void Exerciser::expect(bool condition, const std::string& what) {
  if (!condition && complaint_.empty())
    complaint_ = "operation " + std::to_string(steps_) + ": " + what;
}

void Exerciser::expect_code(StatusCode expected, StatusCode found, const std::string& what) {
  ++outcomes_[static_cast<std::size_t>(found)];
  expect(expected == found, what + ": expected " + std::string(to_string(expected)) + ", found " +
                                std::string(to_string(found)));
}

void Exerciser::expect_row(const SeenRow& expected, const Row& found, const std::string& what) {
  expect(expected.id == found.id(), what + ": expected row " + std::to_string(expected.id.value()) +
                                        ", found " + std::to_string(found.id().value()));
  std::vector<Value> values(expected.row->size());
  found.get_all(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value wanted = (*expected.row)[i].view();
    expect(wanted == values[i], what + ": column " + std::to_string(i) + ": expected " +
                                    wanted.to_string() + ", found " + values[i].to_string());
  }
}

void Exerciser::expect_rows(const ModelTable& table, std::vector<SeenRow> expected,
                            const std::vector<Row>& found, const ModelKey* order,
                            const std::string& what) {
  const std::string where = what + " in " + table.schema.name;
  std::map<std::uint32_t, const SeenRow*> by_id;
  for (const SeenRow& row : expected) by_id[row.id.value()] = &row;
  const ModelRow* previous = nullptr;
  for (const Row& row : found) {
    const auto wanted = by_id.find(row.id().value());
    expect(wanted != by_id.end(), where + ": row " + std::to_string(row.id().value()) +
                                      " is one too many, or comes twice");
    if (wanted == by_id.end()) return;
    expect_row(*wanted->second, row, where);
    if (order != nullptr && previous != nullptr)
      for (const std::size_t column : order->columns) {
        const int sign = compare((*previous)[column], (*wanted->second->row)[column]);
        expect(sign <= 0, where + ": not in the order of the key");
        if (sign != 0) break;
      }
    previous = wanted->second->row;
    by_id.erase(wanted);
  }
  expect(by_id.empty(), where + ": " + std::to_string(by_id.size()) + " rows are missing of " +
                            std::to_string(expected.size()));
}

ModelRow Exerciser::random_row(const ModelTable& table) {
  ModelRow row;
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i) {
    // Enough keys for all records, but so few that they meet.
    std::uint64_t domain = options_.domain;
    if (i == 0 && table.schema.columns[i].name == "id") domain = options_.records * 2;
    if (i < 3 && table.schema.columns.size() < 10) domain = options_.domain / 4 + 2;
    row.push_back(random_value(table.schema.columns[i], domain, random_));
  }
  return row;
}

std::vector<Value> Exerciser::views(const ModelTable& table, const ModelRow& row) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < row.size(); ++i) {
    Value value = row[i].view();
    const bool is_small = row[i].raw == static_cast<std::int32_t>(row[i].raw);
    if (table.schema.columns[i].type == Type::kInt64 && !row[i].null && is_small &&
        random_.chance(20))
      value = Value::int32(static_cast<std::int32_t>(row[i].raw));  // is widened
    values.push_back(value);
  }
  return values;
}

const SeenRow* Exerciser::pick(Open& open, const ModelTable& table) {
  const std::vector<SeenRow> rows = open.model->see_all(table);
  if (rows.empty()) return nullptr;
  picked_ = rows[random_.below(rows.size())];
  return &picked_;
}

// Values for a look-up: mostly those of a row that is there.
ModelRow Exerciser::key_values(Open& open, const ModelTable& table, const ModelKey& key,
                               std::size_t count) {
  ModelRow row = random_row(table);
  if (random_.chance(70))
    if (const SeenRow* seen = pick(open, table)) row = *seen->row;
  ModelRow values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(row[key.columns[i]]);
  return values;
}

// ------------------------------------------------------------------------------------- operations

void Exerciser::begin() {
  const bool read_only = random_.chance(25);
  Transaction real =
      must(database_->begin(read_only ? AccessMode::kReadOnly : AccessMode::kReadWrite));
  expect(real.snapshot() >= last_commit_, "a snapshot is older than an acknowledged commit");
  ModelTransaction* model = model_.begin(real.snapshot());
  open_.push_back({std::move(real), model, read_only});
}

void Exerciser::finish(std::size_t index, bool commits) {
  Open& open = open_[index];
  if (commits) {
    const Status status = open.real.commit();
    expect_code(StatusCode::kOk, status.code(), "commit");
    const std::uint64_t timestamp = open.real.commit_timestamp();
    if (open.model->has_written()) {
      expect(timestamp > last_commit_, "a commit time-stamp is not above the former one");
      last_commit_ = std::max(last_commit_, timestamp);
    }
    model_.commit(open.model, timestamp);
  } else {
    open.real.abort();
    model_.abort(open.model);
  }
  if (!open.savepoints.empty()) gone_.push_back(open.savepoints.front().real);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Exerciser::insert(Open& open, ModelTable& table) {
  ModelRow row = random_row(table);
  const StatusCode expected =
      open.read_only ? StatusCode::kReadOnly : model_.foretell_insert(table, *open.model, row);
  const Result<RowId> id = open.real.insert(table.id, views(table, row));
  expect_code(expected, id.code(), "insert into " + table.schema.name);
  if (id.ok()) model_.note_insert(table, *open.model, *id, std::move(row));
}

void Exerciser::update(Open& open, ModelTable& table) {
  const SeenRow* seen = pick(open, table);
  if (seen == nullptr) return;
  const SeenRow old = *seen;
  ModelRow row = *old.row;
  const ModelRow fresh = random_row(table);
  std::vector<ColumnValue> changes;
  // One column, several, or one twice: then the last value counts.
  for (std::uint64_t i = 0, n = random_.below(3) + 1; i < n; ++i) {
    const std::size_t column = random_.below(row.size());
    row[column] = fresh[column];
    changes.push_back({ColumnId(static_cast<std::uint16_t>(column)), fresh[column].view()});
  }
  StatusCode expected = model_.foretell_change(table, *open.model, old.record);
  if (expected == StatusCode::kOk) expected = model_.foretell_keys(table, *open.model, old, row);
  if (open.read_only) expected = StatusCode::kReadOnly;
  const Result<RowId> id = open.real.update(table.id, old.id, changes);
  expect_code(expected, id.code(), "update of " + table.schema.name);
  if (id.ok()) model_.note_update(table, *open.model, old.record, *id, std::move(row));
}

void Exerciser::remove(Open& open, ModelTable& table) {
  const SeenRow* seen = pick(open, table);
  if (seen == nullptr) return;
  const SeenRow old = *seen;
  StatusCode expected = model_.foretell_change(table, *open.model, old.record);
  if (open.read_only) expected = StatusCode::kReadOnly;
  const Status status = open.real.remove(table.id, old.id);
  expect_code(expected, status.code(), "remove from " + table.schema.name);
  if (status.ok()) model_.note_remove(table, *open.model, old.record);
}

void Exerciser::break_rules(Open& open, ModelTable& table) {
  if (open.read_only) return;
  ModelRow row = random_row(table);
  std::vector<Value> values = views(table, row);
  StatusCode expected = StatusCode::kConstraintViolated;
  switch (random_.below(3)) {
    case 0:
      values.pop_back();
      expected = StatusCode::kInvalidArgument;
      break;
    case 1:
      values.back() = Value::decimal(1);
      break;
    default:
      if (table.schema.columns[0].nullable) return;
      values[0] = Value::null();
  }
  expect_code(expected, open.real.insert(table.id, values).code(), "a bad insert");
  if (const SeenRow* seen = pick(open, table)) {
    const auto column = ColumnId(static_cast<std::uint16_t>(row.size() - 1));
    expect_code(StatusCode::kConstraintViolated,
                open.real.update(table.id, seen->id, {{column, Value::date(1)}}).code(),
                "a bad update");
  }
}

void Exerciser::savepoint(Open& open) {
  const std::uint64_t what = random_.below(100);
  if (what < 50 || open.savepoints.empty()) {
    const Result<Savepoint> made = open.real.savepoint();
    expect_code(StatusCode::kOk, made.code(), "savepoint");
    if (made.ok()) open.savepoints.push_back({*made, open.model->own()});
    return;
  }
  const std::size_t place = random_.below(open.savepoints.size());
  const Open::Mark& mark = open.savepoints[place];
  const bool releases = what < 60;
  if (releases) {
    expect_code(StatusCode::kOk, open.real.release(mark.real).code(), "release");
  } else {
    expect_code(StatusCode::kOk, open.real.rollback_to(mark.real).code(), "rollback_to");
    model_.roll_back(*open.model, mark.model);
  }
  while (open.savepoints.size() > place + (releases ? 0 : 1)) {
    gone_.push_back(open.savepoints.back().real);
    open.savepoints.pop_back();
  }
  if (gone_.size() > 100) gone_.erase(gone_.begin(), gone_.begin() + 50);
}

void Exerciser::misuse_savepoint(Open& open) {
  const Open& other = open_[random_.below(open_.size())];
  Savepoint wrong = gone_.empty() ? Savepoint() : gone_[random_.below(gone_.size())];
  if (&other != &open && !other.savepoints.empty()) wrong = other.savepoints.back().real;
  const Status status =
      random_.chance(50) ? open.real.rollback_to(wrong) : open.real.release(wrong);
  expect_code(StatusCode::kInvalidArgument, status.code(), "a savepoint that is not there");
}

void Exerciser::read(Open& open, ModelTable& table) {
  // Any row that somebody sees: its id must lead to it, or to nothing.
  Open& other = open_[random_.below(open_.size())];
  const SeenRow* seen = pick(other, table);
  if (seen == nullptr) return;
  const auto mine = open.model->see(table, seen->record);
  const Result<Row> found = open.real.read(table.id, seen->id);
  const bool visible = mine && mine->id == seen->id;
  expect_code(visible ? StatusCode::kOk : StatusCode::kNotFound, found.code(),
              "read of " + table.schema.name);
  if (visible && found.ok()) expect_row(*mine, *found, "read");
}

void Exerciser::find(Open& open, ModelTable& table) {
  if (table.keys.empty()) return;
  const std::size_t index = random_.below(table.keys.size());
  const ModelKey& key = table.keys[index];
  const KeyId id{table.id, static_cast<std::uint16_t>(index)};
  const ModelRow wanted = key_values(open, table, key, key.columns.size());
  std::vector<Value> values;
  for (const ModelValue& value : wanted) values.push_back(value.view());
  open.real.prefetch(id, values);
  const Result<Row> found = open.real.find(id, values);
  if (!key.unique) {
    expect_code(StatusCode::kInvalidArgument, found.code(), "find by a key that is not unique");
    return;
  }
  // Several rows may bear a key with a NULL in it.
  std::vector<SeenRow> matching;
  for (const SeenRow& row : open.model->see_all(table))
    if (compare_key(key, *row.row, wanted) == 0) matching.push_back(row);
  expect_code(matching.empty() ? StatusCode::kNotFound : StatusCode::kOk, found.code(),
              "find in " + table.schema.name + " by key " + std::to_string(index));
  if (!found.ok()) return;
  const auto same = std::find_if(matching.begin(), matching.end(),
                                 [&](const SeenRow& row) { return row.id == found->id(); });
  expect(same != matching.end(), "find in " + table.schema.name + ": another row");
  if (same != matching.end()) expect_row(*same, *found, "find");
}

void Exerciser::find_all(Open& open, ModelTable& table) {
  if (table.keys.empty()) return;
  const std::size_t index = random_.below(table.keys.size());
  const ModelKey& key = table.keys[index];
  const std::size_t least = key.ordered ? 0 : key.hashed;
  const std::size_t count = least + random_.below(key.columns.size() - least + 1);
  const ModelRow wanted = key_values(open, table, key, count);
  std::vector<Value> values;
  for (const ModelValue& value : wanted) values.push_back(value.view());
  std::vector<SeenRow> expected;
  for (const SeenRow& row : open.model->see_all(table))
    if (compare_key(key, *row.row, wanted) == 0) expected.push_back(row);
  std::vector<Row> found;
  const KeyId id{table.id, static_cast<std::uint16_t>(index)};
  const Status status = open.real.find_all(id, values, [&](const Row& row) {
    found.push_back(row);
    return true;
  });
  expect_code(StatusCode::kOk, status.code(), "find_all");
  expect_rows(table, std::move(expected), found, key.ordered ? &key : nullptr,
              "find_all by key " + std::to_string(index));
}

void Exerciser::range(Open& open, ModelTable& table) {
  if (table.keys.empty()) return;
  const std::size_t index = random_.below(table.keys.size());
  const ModelKey& key = table.keys[index];
  if (!key.ordered) return;
  const ModelRow low = key_values(open, table, key, random_.below(key.columns.size() + 1));
  const ModelRow high = key_values(open, table, key, random_.below(key.columns.size() + 1));
  std::vector<Value> low_values;
  for (const ModelValue& value : low) low_values.push_back(value.view());
  std::vector<Value> high_values;
  for (const ModelValue& value : high) high_values.push_back(value.view());
  const KeyBound lower{low_values, random_.chance(50)};
  const KeyBound upper{high_values, random_.chance(50)};
  std::vector<SeenRow> expected;
  for (const SeenRow& row : open.model->see_all(table)) {
    const int to_low = low.empty() ? 1 : compare_key(key, *row.row, low);
    const int to_high = high.empty() ? -1 : compare_key(key, *row.row, high);
    if (to_low < 0 || (to_low == 0 && !lower.inclusive)) continue;
    if (to_high > 0 || (to_high == 0 && !upper.inclusive)) continue;
    expected.push_back(row);
  }
  std::vector<Row> found;
  const KeyId id{table.id, static_cast<std::uint16_t>(index)};
  const Status status = open.real.range(id, lower, upper, [&](const Row& row) {
    found.push_back(row);
    return true;
  });
  expect_code(StatusCode::kOk, status.code(), "range");
  expect_rows(table, std::move(expected), found, &key, "range by key " + std::to_string(index));
}

void Exerciser::scan(Open& open, ModelTable& table) {
  const std::size_t column = random_.below(table.schema.columns.size());
  const ModelValue wanted = random_row(table)[column];
  const auto id = ColumnId(static_cast<std::uint16_t>(column));
  std::map<std::uint32_t, ModelValue> expected;
  for (const SeenRow& row : open.model->see_all(table))
    if ((*row.row)[column] == wanted) expected[row.id.value()] = (*row.row)[column];
  const std::vector<ColumnId> columns = {id, ColumnId(0)};
  const Status status = open.real.scan(
      table.id, columns, Predicate::equal(id, wanted.view()), [&](const ScanBatch& batch) {
        for (std::size_t i = 0; i < batch.row_count(); ++i) {
          const auto row = expected.find(batch.row_ids()[i].value());
          expect(row != expected.end(), "scan: a row too many");
          if (row == expected.end()) return false;
          expect(batch.value(0, i) == row->second.view(), "scan: another value");
          expected.erase(row);
        }
        return true;
      });
  expect_code(StatusCode::kOk, status.code(), "scan");
  expect(expected.empty() || !complaint_.empty(),
         "scan of " + table.schema.name + ": rows are missing");
}

void Exerciser::compare_all(Open& open, ModelTable& table) {
  std::vector<ColumnId> columns;
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i)
    columns.push_back(ColumnId(static_cast<std::uint16_t>(i)));
  std::vector<Row> found;
  const auto visit = [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      Result<Row> row = open.real.read(table.id, batch.row_ids()[i]);
      expect(row.ok(), "a scanned row cannot be read");
      if (!row.ok()) return false;
      for (std::size_t c = 0; c < columns.size(); ++c)
        expect(batch.value(c, i) == row->get(columns[c]), "scan and row differ");
      found.push_back(*row);
    }
    return true;
  };
  const Status status = open.real.scan(table.id, columns, Predicate::all(), visit);
  expect_code(StatusCode::kOk, status.code(), "full scan");
  expect_rows(table, open.model->see_all(table), found, nullptr, "full scan");
}

void Exerciser::step() {
  ++steps_;
  const std::uint64_t what = random_.below(1000);
  if (open_.empty() || (open_.size() < options_.transactions && what < 60)) return begin();
  const std::size_t index = random_.below(open_.size());
  Open& open = open_[index];
  ModelTable& table = *model_.tables()[random_.below(model_.tables().size())];
  if (what < 100) return finish(index, !random_.chance(25));
  if (what < 270) {
    // Around the wished number of records inserts and deletes keep the balance.
    if (table.records.size() < options_.records || random_.chance(45)) return insert(open, table);
    return remove(open, table);
  }
  if (what < 480) return update(open, table);
  if (what < 560) return remove(open, table);
  if (what < 565) return break_rules(open, table);
  if (what < 605) return savepoint(open);
  if (what < 608) return misuse_savepoint(open);
  if (what < 700) return read(open, table);
  if (what < 850) return find(open, table);
  if (what < 930) return find_all(open, table);
  if (what < 970) return range(open, table);
  if (what < 996) return scan(open, table);
  if (what < 998) return merge();
  compare_all(open, table);
}

// Nobody ends a transaction while a merge waits: with one open it only freezes chunks.
void Exerciser::merge() {
  MergeOptions options;
  options.scope = random_.chance(70) ? MergeScope::kEverything : MergeScope::kFullChunks;
  options.dead_percent = static_cast<std::uint32_t>(1 + random_.below(40));
  options.threads = static_cast<std::uint32_t>(1 + random_.below(2));
  if (random_.chance(30)) options.waste_bytes = 1 + random_.below(1 << 14);
  options.waste_percent = static_cast<std::uint32_t>(1 + random_.below(100));
  options.patience = {};
  const ModelTable& table = *model_.tables()[random_.below(model_.tables().size())];
  const auto report = database_->merge(table.id, options);
  ++outcomes_[static_cast<std::size_t>(report.code())];
  expect(report.ok() || (report.code() == StatusCode::kBusy && !open_.empty()),
         "merge: " + report.status().to_string());
  if (report.ok()) merged_chunks_ += report->chunks_merged + report->groups_merged;
}

void Exerciser::rest(bool reopens) {
  while (!open_.empty()) finish(open_.size() - 1, random_.chance(80));
  if (!complaint_.empty()) return;
  if (random_.chance(70)) merge();
  if (model_.tables().size() > 4) {
    ModelTable& last = *model_.tables().back();
    expect_code(StatusCode::kOk, database_->drop_table(last.id).code(), "drop_table");
    model_.drop_table(last);
  } else {
    const std::string name = "passing" + std::to_string(tables_made_);
    make_table(tables_made_ % 2 == 0 ? pair_schema(name) : wide_schema(name));
  }
  const Status before = database_->verify();
  expect(before.ok(), before.to_string());
  if (reopens) {
    const std::uint64_t used = database_->statistics().pool_used_bytes;
    database_.reopen();
    const std::uint64_t again = database_->statistics().pool_used_bytes;
    expect(used == again, "used before: " + std::to_string(used) + " bytes, after reopening " +
                              std::to_string(again));
    const Status after = database_->verify();
    expect(after.ok(), "reopened: " + after.to_string());
  }
  begin();
  for (const auto& table : model_.tables()) compare_all(open_.back(), *table);
  finish(open_.size() - 1, false);
}

}  // namespace flugs::test
