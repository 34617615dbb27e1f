// Steps that change schemas, with transactions open or without.
#include <algorithm>
#include <stop_token>

#include "bench/random/random_schema.h"
#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

constexpr std::size_t kColumnsMax = 40;  // with those that were dropped
constexpr std::size_t kKeysMax = 8;

bool names(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

/// Whether a key, foreign key or check needs the column.
bool is_used(const TableSchema& schema, std::size_t column) {
  const std::string& name = schema.columns[column].name;
  return std::any_of(schema.keys.begin(), schema.keys.end(),
                     [&](const KeySchema& key) { return names(key.columns, name); }) ||
         std::any_of(schema.foreign_keys.begin(), schema.foreign_keys.end(),
                     [&](const ForeignKeySchema& key) { return names(key.columns, name); }) ||
         std::any_of(schema.checks.begin(), schema.checks.end(), [&](const CheckSchema& check) {
           return looks_at(schema, check.condition, column);
         });
}

/// Whether a check compares the column with another that would no longer compare with it.
bool parts_compared(const TableSchema& schema, std::size_t column, Type type) {
  const std::string& name = schema.columns[column].name;
  for (const CheckSchema& check : schema.checks)
    for (const Condition::Node& node : check.condition.nodes()) {
      if (node.other.empty() || (node.column != name && node.other != name)) continue;
      const std::string& other = node.column == name ? node.other : node.column;
      const Type than = schema.columns[position_of(schema, other)].type;
      if (than != type && !(is_integer(than) && is_integer(type))) return true;
    }
  return false;
}

}  // namespace

void Exerciser::change_schema(Open&, ModelTable& table) {
  const std::uint64_t what = random_.below(100);
  if (what < 20) return add_column(table);
  if (what < 38) return drop_column(table);
  if (what < 55) return change_type(table);
  if (what < 60) return set_delta_layout(table);
  if (what < 77) return rename(table);
  if (what < 81) return skip_numbers(table);
  if (what < 95) return loosen(table);
  // The next one waits for open transactions.
  if (what < 97) return drop_key(table);
  if (model_.tables().size() < world_.tables + 3) make_table(false);
}

// Changes that need that no transaction is open.
void Exerciser::change_schema_alone() {
  const std::uint64_t what = random_.below(100);
  ModelTable& table = pick_table();
  // Without open transactions a merge moves rows.
  if (random_.chance(20)) return merge_table(table);
  if (what < 18) return add_key(table, false);
  if (what < 48) return tighten(table);
  if (what < 60) return drop_key(table);
  if (what < 70 && model_.tables().size() < world_.tables + 3) return make_table(true);
  if (what < 75 && model_.tables().size() < world_.tables + 2) return make_two_tables();
  if (what < 90 && model_.tables().size() > world_.tables) return drop_table(table);
  if (what < 94) return add_column(table);
  if (what < 97) return change_type(table);
  drop_column(table);
}

void Exerciser::note_change(ModelTable& table, StatusCode code) {
  if (code != StatusCode::kOk) return;
  ++figures_.schema_changes;
  model_.note_schema_change(table);
  compare_schema(table);
}

std::string Exerciser::fresh_name(const char* prefix) {
  return prefix + std::to_string(names_made_++);
}

// A name: mostly a new one, now and then one that is refused.
std::string Exerciser::odd_name(const std::string& fresh, Outcomes& expected,
                                const std::string& taken) {
  const std::uint64_t what = random_.below(100);
  if (what < 8) {
    expected = StatusCode::kInvalidArgument;
    return what < 4 ? std::string() : std::string(64, 'n');
  }
  if (what < 16 && !taken.empty()) {
    expected = StatusCode::kAlreadyExists;
    return taken;
  }
  return fresh;
}

void Exerciser::make_table(bool refers) {
  bench::SchemaWishes wishes;
  wishes.refers = refers;
  for (const auto& table : model_.tables()) wishes.parents.push_back(&table->schema);
  const TableSchema schema = bench::draw_schema(fresh_name("table "), wishes, schema_random_);
  calls_.add(Call::kCreateTable);
  const Result<TableId> id = database_->create_table(schema);
  expect_code({}, id.status(), "create_table");
  if (!id.ok()) return;
  ++figures_.schemas;
  calls_.add(Call::kSchema);
  const Result<TableSchema> complete = database_->schema(*id);
  expect_code({}, complete.status(), "schema");
  if (!complete.ok()) return;
  model_.add_table(*complete, *id);
  // A second table with the name.
  if (random_.chance(20))
    expect_code(StatusCode::kAlreadyExists, database_->create_table(schema).status(),
                "create_table of a name that is taken");
}

void Exerciser::make_two_tables() {
  bench::SchemaWishes wishes;
  const TableSchema first = bench::draw_schema(fresh_name("table "), wishes, schema_random_);
  wishes.refers = true;
  wishes.parents = {&first};
  for (const auto& table : model_.tables()) wishes.parents.push_back(&table->schema);
  const TableSchema second = bench::draw_schema(fresh_name("table "), wishes, schema_random_);
  // If one name is taken, neither table is made.
  if (random_.chance(20)) {
    TableSchema taken = second;
    taken.name = model_.tables().front()->schema.name;
    expect_code(StatusCode::kAlreadyExists, database_->create_tables({first, taken}).status(),
                "create_tables with a name that is taken");
    expect_code(StatusCode::kNotFound, database_->find_table(first.name).status(),
                "find_table of a table that was not made");
  }
  std::vector<TableId> ids;
  if (random_.chance(50)) {
    calls_.add(Call::kCreateTables);
    const auto made = database_->create_tables({first, second});
    expect_code({}, made.status(), "create_tables");
    if (made.ok()) ids = *made;
  } else {
    calls_.add(Call::kEnsureTables);
    const auto made = database_->ensure_tables({first, second});
    expect_code({}, made.status(), "ensure_tables");
    if (made.ok()) ids = {(*made)[0].id(), (*made)[1].id()};
  }
  for (const TableId id : ids) {
    ++figures_.schemas;
    const Result<TableSchema> complete = database_->schema(id);
    expect_code({}, complete.status(), "schema");
    if (complete.ok()) model_.add_table(*complete, id);
  }
}

void Exerciser::drop_table(ModelTable& table) {
  const bool is_referred = std::any_of(table.referrers.begin(), table.referrers.end(),
                                       [&](const auto& r) { return r.first != &table; });
  calls_.add(Call::kDropTable);
  const Status dropped = database_->drop_table(table.id);
  expect_code(is_referred ? StatusCode::kConstraintViolated : StatusCode::kOk, dropped,
              "drop_table");
  if (!dropped.ok()) return;
  ++figures_.schema_changes;
  expect_code(StatusCode::kNotFound, database_->schema(table.id).status(),
              "schema of a table that was dropped");
  model_.drop_table(table);
}

void Exerciser::rename(ModelTable& table) {
  Outcomes expected;
  const std::uint64_t what = random_.below(3);
  Status done;
  if (what == 0) {
    const ModelTable& other = pick_table();
    const std::string name =
        odd_name(fresh_name("table "), expected, &other == &table ? "" : other.schema.name);
    calls_.add(Call::kRenameTable);
    done = database_->rename_table(table.id, name);
    if (done.ok()) model_.rename_table(table, name);
  } else if (what == 1) {
    const auto column = pick_column(table);
    const auto other = pick_column(table);
    if (!column || !other) return;
    const std::string name =
        odd_name(fresh_name("column "), expected,
                 *other == *column ? std::string() : table.schema.columns[*other].name);
    calls_.add(Call::kRenameColumn);
    done = database_->rename_column(table.id, column_id(*column), name);
    if (done.ok()) model_.rename_column(table, *column, name);
  } else {
    const auto key = pick_key(table, false, false);
    const auto other = pick_key(table, false, false);
    if (!key || !other) return;
    const std::string name =
        odd_name(fresh_name("key "), expected,
                 *other == *key ? std::string() : table.schema.keys[*other].name);
    calls_.add(Call::kRenameKey);
    done = database_->rename_key({table.id, static_cast<std::uint16_t>(*key)}, name);
    if (done.ok()) model_.rename_key(table, *key, name);
  }
  expect_code(expected, done, "rename");
  note_change(table, done.code());
}

void Exerciser::add_column(ModelTable& table) {
  if (table.schema.columns.size() >= kColumnsMax) return;
  ColumnSchema column = bench::draw_column(fresh_name("column "), schema_random_);
  Outcomes expected;
  const auto other = pick_column(table);
  column.name = odd_name(column.name, expected, other ? table.schema.columns[*other].name : "");
  if (expected.ok() && !column.nullable && !column.default_value && table.had_rows) {
    // It depends on whether the table has room for rows.
    const bool has_rows =
        std::any_of(table.records.begin(), table.records.end(),
                    [](const auto& r) { return !r->versions.empty() || r->writer != nullptr; });
    expected = StatusCode::kConstraintViolated;
    if (!has_rows) expected = expected | StatusCode::kOk;
  }
  calls_.add(Call::kAddColumn);
  const Result<ColumnId> id = database_->add_column(table.id, column);
  expect_code(expected, id.status(), "add_column");
  if (id.ok()) {
    expect(id->value() == table.schema.columns.size(), "add_column: another number");
    ModelValue value;
    value.type = column.type;
    if (column.default_value) value = ModelValue::of(column.type, column.default_value->value());
    model_.add_column(table, column, value);
  }
  note_change(table, id.code());
}

void Exerciser::drop_column(ModelTable& table) {
  const std::size_t column = random_.below(table.schema.columns.size() + 1);
  Outcomes expected;
  if (column == table.schema.columns.size() || table.schema.columns[column].dropped)
    expected = StatusCode::kNotFound;
  else if (table.columns_there() == 1 || is_used(table.schema, column))
    expected = StatusCode::kConstraintViolated;
  calls_.add(Call::kDropColumn);
  const Status dropped = database_->drop_column(table.id, column_id(column));
  expect_code(expected, dropped, "drop_column");
  if (dropped.ok()) model_.drop_column(table, column);
  note_change(table, dropped.code());
}

void Exerciser::change_type(ModelTable& table) {
  const auto column = pick_column(table);
  if (!column) return;
  const Type from = table.schema.columns[*column].type;
  Type to = from;
  if (from == Type::kInt32) to = Type::kInt64;
  if (from == Type::kString) to = Type::kBytes;
  if (from == Type::kBytes) to = Type::kString;
  if (random_.chance(20)) to = from;
  Outcomes expected;
  if (random_.chance(5)) {
    to = from == Type::kDate ? Type::kTimestamp : Type::kDate;
    expected = StatusCode::kInvalidArgument;
  } else if (to != from) {
    const std::string& name = table.schema.columns[*column].name;
    bool is_referring =
        std::any_of(table.schema.foreign_keys.begin(), table.schema.foreign_keys.end(),
                    [&](const auto& foreign) { return names(foreign.columns, name); });
    for (const auto& [child, index] : table.referrers)
      is_referring |= names(table.schema.keys[child->foreign_keys[index].parent_key].columns, name);
    if (is_referring)
      expected = StatusCode::kConstraintViolated;
    else if (parts_compared(table.schema, *column, to))
      expected = StatusCode::kInvalidArgument;
  }
  calls_.add(Call::kChangeType);
  const Status changed = database_->change_type(table.id, column_id(*column), to);
  // After many changes without a merge, rows of all types exist.
  if (expected.ok()) expected = expected | StatusCode::kBusy;
  expect_code(expected, changed, "change_type");
  if (changed.ok()) model_.change_type(table, *column, to);
  note_change(table, changed.code());
}

void Exerciser::add_key(ModelTable& table, bool expects_busy) {
  const auto there = std::count_if(table.keys.begin(), table.keys.end(),
                                   [](const ModelKey& key) { return !key.dropped; });
  if (static_cast<std::size_t>(there) >= kKeysMax) return;
  KeySchema key = bench::draw_key(fresh_name("key "), table.schema, schema_random_);
  Outcomes expected;
  std::vector<std::size_t> columns;
  for (const std::string& name : key.columns) columns.push_back(position_of(table.schema, name));
  bool repeats = false;
  const std::uint64_t what = random_.below(100);
  if (what < 4) {
    key.columns.push_back("none of that name");
    expected = StatusCode::kInvalidArgument;
  } else if (what < 8 && there > 0) {
    const auto other = pick_key(table, false, false);
    key.name = table.schema.keys[*other].name;
    expected = StatusCode::kInvalidArgument;
  } else if (expects_busy) {
    expected = StatusCode::kBusy;
  } else if (key.unique && model_.has_duplicates(table, columns)) {
    expected = StatusCode::kConstraintViolated;
    repeats = true;
  }
  calls_.add(Call::kAddKey);
  const bool is_refused = !expected.ok() && !repeats;
  Result<KeyId> id = Status(StatusCode::kCancelled);
  if (random_.chance(20)) {
    // Stopped when it begins to enter rows. Without rows it succeeds.
    std::stop_source source;
    const CallOptions stops = {.progress = [&](const Progress&) { source.request_stop(); },
                               .stop = source.get_token()};
    id = database_->add_key(table.id, key, stops);
    if (!id.ok())
      expect_code(is_refused ? expected : Outcomes(StatusCode::kCancelled), id.status(),
                  "add_key that is stopped");
  }
  if (!id.ok()) id = database_->add_key(table.id, key);
  expect_code(expected, id.status(), "add_key");
  if (id.ok()) {
    const std::size_t place = id->index;
    expect(id->table == table.id && (place >= table.keys.size() || table.keys[place].dropped),
           "add_key: the place " + std::to_string(place) + " is taken");
    model_.add_key(table, place, key);
  }
  note_change(table, id.code());
}

void Exerciser::drop_key(ModelTable& table) {
  const std::size_t place = random_.below(table.keys.size() + 1);
  Outcomes expected;
  if (place == table.keys.size() || table.keys[place].dropped) {
    expected = StatusCode::kNotFound;
  } else {
    bool is_needed = place == 0 && table.schema.has_primary_key;
    for (const ModelForeignKey& foreign : table.foreign_keys)
      is_needed |= foreign.child_key == place;
    for (const auto& [child, index] : table.referrers)
      is_needed |= child->foreign_keys[index].parent_key == place;
    if (is_needed) expected = StatusCode::kConstraintViolated;
  }
  calls_.add(Call::kDropKey);
  const Status dropped = database_->drop_key({table.id, static_cast<std::uint16_t>(place)});
  expect_code(expected, dropped, "drop_key");
  if (dropped.ok()) model_.drop_key(table, place);
  note_change(table, dropped.code());
}

void Exerciser::skip_numbers(ModelTable& table) {
  calls_.add(Call::kSkipNumbers);
  const auto column = numbered(table);
  const auto last = static_cast<std::int64_t>(random_.below(1000)) +
                    (table.numbers.empty() ? 0 : *table.numbers.rbegin());
  const Status done = database_->skip_numbers(table.id, last);
  expect_code(column ? StatusCode::kOk : StatusCode::kInvalidArgument, done, "skip_numbers");
}

void Exerciser::set_delta_layout(ModelTable& table) {
  const DeltaLayout layout = random_.chance(50) ? DeltaLayout::kColumns : DeltaLayout::kRows;
  calls_.add(Call::kSetDeltaLayout);
  std::vector<std::vector<std::string>> groups;
  if (layout == DeltaLayout::kColumns)
    for (const ColumnSchema& column : table.schema.columns) {
      if (column.dropped || random_.chance(50)) continue;
      if (groups.empty() || random_.chance(30)) groups.emplace_back();
      groups.back().push_back(column.name);
    }
  const Status changed = database_->set_delta_layout(table.id, layout, groups);
  expect_code({}, changed, "set_delta_layout");
  if (changed.ok()) table.schema.delta_layout = layout;
  if (changed.ok()) table.schema.column_groups = groups;
  note_change(table, changed.code());
}

// As the database reports it, except for encodings, which it chooses.
void Exerciser::compare_schema(const ModelTable& table) {
  calls_.add(Call::kSchema);
  const Result<TableSchema> found = database_->schema(table.id);
  expect_code({}, found.status(), "schema");
  if (!found.ok()) return;
  const TableSchema& wanted = table.schema;
  bool is_same = found->name == wanted.name && found->columns.size() == wanted.columns.size() &&
                 found->checks.size() == wanted.checks.size() &&
                 found->foreign_keys.size() == wanted.foreign_keys.size() &&
                 found->has_primary_key == wanted.has_primary_key &&
                 found->delta_layout == wanted.delta_layout &&
                 found->column_groups == wanted.column_groups;
  for (std::size_t i = 0; is_same && i < wanted.columns.size(); ++i) {
    const ColumnSchema& a = wanted.columns[i];
    const ColumnSchema& b = found->columns[i];
    is_same = a.name == b.name && a.dropped == b.dropped && a.type == b.type &&
              a.scale == b.scale && a.auto_increment == b.auto_increment &&
              (a.dropped || a.nullable == b.nullable) &&
              a.default_value.has_value() == b.default_value.has_value() &&
              (!a.default_value || a.default_value->value() == b.default_value->value());
  }
  for (std::size_t i = 0; is_same && i < std::max(wanted.keys.size(), found->keys.size()); ++i) {
    const KeySchema none{{}, {}, false, false, 0, true};
    const KeySchema& a = i < wanted.keys.size() ? wanted.keys[i] : none;
    const KeySchema& b = i < found->keys.size() ? found->keys[i] : none;
    is_same = a.dropped == b.dropped &&
              (a.dropped || (a.name == b.name && a.columns == b.columns && a.unique == b.unique &&
                             a.ordered == b.ordered && a.hashed_columns == b.hashed_columns));
  }
  for (std::size_t i = 0; is_same && i < wanted.checks.size(); ++i)
    is_same = wanted.checks[i].name == found->checks[i].name &&
              wanted.checks[i].condition.to_string() == found->checks[i].condition.to_string();
  for (std::size_t i = 0; is_same && i < wanted.foreign_keys.size(); ++i) {
    const ForeignKeySchema& a = wanted.foreign_keys[i];
    const ForeignKeySchema& b = found->foreign_keys[i];
    is_same = a.name == b.name && a.columns == b.columns && a.table == b.table && a.key == b.key &&
              a.on_delete == b.on_delete && a.on_update == b.on_update;
  }
  expect(is_same, "the schema of " + wanted.name + " is another");
}

}  // namespace flugs::test
