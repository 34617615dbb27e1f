#include "bench/random/random_user.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

std::array<Value, kRandomKeyColumns> key_of(std::uint32_t user, std::int64_t id) {
  return {Value::int32(static_cast<std::int32_t>(user)), Value::int64(id)};
}

TableSchema shared_schema(std::uint64_t seed) {
  return random_schema(random_table_name(0, 0), mix64(seed));
}

/// Names of its columns, in order, and of its keys; empty where a column was dropped.
std::vector<std::string> names_of(const TableSchema& schema) {
  std::vector<std::string> names;
  names.reserve(schema.columns.size() + schema.keys.size());
  for (const ColumnSchema& column : schema.columns)
    names.push_back(column.dropped ? "" : column.name);
  const auto keys_begin = static_cast<std::ptrdiff_t>(names.size());
  for (const KeySchema& key : schema.keys)
    if (!key.dropped) names.push_back("key " + key.name);
  std::sort(names.begin() + keys_begin, names.end());
  return names;
}

}  // namespace

Status create_random_tables(Database& database, std::uint64_t seed) {
  const Result<TableId> made = database.create_table(shared_schema(seed));
  return made.ok() ? Status() : made.status();
}

Status RandomUser::execute(std::uint64_t number) {
  const RandomStep step = random_step(seed_, user_, number);
  if (step.kind == RandomStep::Kind::kToggle) return toggle(step);
  if (step.kind == RandomStep::Kind::kMerge) return merge(step);
  if (step.kind == RandomStep::Kind::kAlter) return alter(step);
  Result<Transaction> transaction = database_.begin();
  if (!transaction.ok()) return std::move(transaction).status();
  for (const RandomWrite& w : step.writes) {
    // Now and then it is done twice, and taken back once.
    const Result<Savepoint> before = transaction->savepoint();
    if (!before.ok()) return before.status();
    const bool is_twice = random_way(w.seed, 16) == 0;
    for (int i = 0; i < (is_twice ? 2 : 1); ++i) {
      if (Status s = write(*transaction, w); !s.ok()) return s;
      if (is_twice && i == 0)
        if (Status s = transaction->rollback_to(*before); !s.ok()) return s;
    }
    if (Status s = transaction->release(*before); !s.ok()) return s;
  }
  if (step.kind == RandomStep::Kind::kCommit) return transaction->commit();
  transaction->abort();
  return {};
}

Status RandomUser::toggle(const RandomStep& step) {
  const std::string name = random_table_name(user_, step.table);
  const Result<TableId> table = database_.find_table(name);
  if (!table.ok()) {
    const Result<TableId> made = database_.create_table(random_schema(name, step.schema_seed));
    return made.ok() ? Status() : made.status();
  }
  for (;;) {
    Status dropped = database_.drop_table(*table);
    if (dropped.code() != StatusCode::kBusy) return dropped;
  }
}

// Another user may be merging the shared table, or hold a row in it for longer than we wait.
Status RandomUser::merge(const RandomStep& step) {
  const Result<TableId> table = database_.find_table(random_table_name(user_, step.table));
  if (!table.ok()) return {};
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 1;
  options.patience = std::chrono::milliseconds(20);
  const Result<MergeReport> merged = database_.merge(*table, options);
  return merged.ok() || merged.code() == StatusCode::kBusy ? Status() : merged.status();
}

// A key is added when the transactions of other users that began before it have ended.
Status RandomUser::alter(const RandomStep& step) {
  using Kind = RandomAlteration::Kind;
  const Result<TableId> table = database_.find_table(random_table_name(user_, step.table));
  if (!table.ok()) return {};
  const Result<TableSchema> schema = database_.schema(*table);
  if (!schema.ok()) return schema.status();
  const RandomAlteration made = random_alteration(*schema, step.schema_seed);
  switch (made.kind) {
    case Kind::kNone:
      return {};
    case Kind::kAddColumn:
      return database_.add_column(*table, made.column).status();
    case Kind::kDropColumn:
      return database_.drop_column(*table, ColumnId(made.place));
    case Kind::kChangeType:
      return database_.change_type(*table, ColumnId(made.place), made.type);
    case Kind::kRenameColumn:
      return database_.rename_column(*table, ColumnId(made.place), made.name);
    case Kind::kRenameKey:
      return database_.rename_key({*table, made.place}, made.name);
    default:
      break;
  }
  for (;;) {
    const Status done = made.kind == Kind::kAddKey ? database_.add_key(*table, made.key).status()
                                                   : database_.drop_key({*table, made.place});
    if (done.code() != StatusCode::kBusy) return done;
  }
}

Status RandomUser::write(Transaction& transaction, const RandomWrite& write) {
  const Result<TableId> table = database_.find_table(random_table_name(user_, write.table));
  if (!table.ok()) return {};
  const Result<TableSchema> schema = database_.schema(*table);
  if (!schema.ok()) return schema.status();
  const Result<Row> found = transaction.get({*table, 0}, key_of(user_, write.id));
  if (found.ok())
    return write.deletes ? remove(transaction, *found, *table, *schema, write)
                         : change(transaction, *found, *table, *schema, write);
  if (found.code() != StatusCode::kNotFound) return found.status();
  return insert(transaction, *table, *schema, write);
}

Status RandomUser::remove(Transaction& transaction, const Row& row, TableId table,
                          const TableSchema& schema, const RandomWrite& write) const {
  if (!schema.keys[0].ordered || random_way(write.seed, 2) == 0)
    return transaction.remove(table, row.id());
  const auto key = key_of(user_, write.id);
  return transaction.remove_range({table, 0}, {key, true}, {key, true}).status();
}

Status RandomUser::change(Transaction& transaction, const Row& row, TableId table,
                          const TableSchema& schema, const RandomWrite& write) const {
  std::deque<std::string> texts;
  std::vector<ColumnValue> changes;
  for (const std::uint16_t c : random_changes(write.seed, schema))
    changes.push_back(
        {ColumnId(c), random_value(schema.columns[c], column_seed(write.seed, c), texts)});
  const auto key = key_of(user_, write.id);
  switch (random_way(write.seed, 3)) {
    case 0:
      return transaction.update(table, row.id(), changes).status();
    case 1: {
      const ColumnValue is{changes[0].column, row.get_unchecked(changes[0].column)};
      const Result<bool> set = transaction.compare_and_set({table, 0}, key, {&is, 1}, changes);
      if (set.ok() && !*set)
        return Status(StatusCode::kCorrupt,
                      "compare_and_set: the value differs from the value just read");
      return set.ok() ? Status() : set.status();
    }
    default: {
      std::vector<Value> values(schema.columns.size());
      row.get_all(values);
      return transaction.upsert({table, 0}, values, changes).status();
    }
  }
}

Status RandomUser::insert(Transaction& transaction, TableId table, const TableSchema& schema,
                          const RandomWrite& write) const {
  const RandomRow row = random_row(write.seed, schema);
  const auto key = key_of(user_, write.id);
  std::vector<Value> values(key.begin(), key.end());
  std::vector<ColumnValue> given = {{ColumnId(0), key[0]}, {ColumnId(1), key[1]}};
  for (std::size_t c = kRandomKeyColumns; c < row.values.size(); ++c) {
    values.push_back(row.values[c].value());
    if (row.named[c]) given.push_back({ColumnId(static_cast<std::uint16_t>(c)), values.back()});
  }
  switch (random_way(write.seed, 4)) {
    case 0:
      return transaction.insert(table, values).status();
    case 1:
      return transaction.insert_rows(table, values);
    case 2:
      return transaction.upsert({table, 0}, values).status();
    default:
      return transaction.insert(table, given).status();
  }
}

RandomModel::RandomModel(std::uint64_t seed, std::uint32_t user) : seed_(seed), user_(user) {
  tables_[0] = Table{shared_schema(seed), {}};
}

void RandomModel::apply(std::uint64_t number) {
  const RandomStep step = random_step(seed_, user_, number);
  if (step.kind == RandomStep::Kind::kAbort || step.kind == RandomStep::Kind::kMerge) return;
  if (step.kind == RandomStep::Kind::kToggle) {
    std::optional<Table>& table = tables_[step.table];
    if (table) {
      table.reset();
    } else {
      table = Table{random_schema(random_table_name(user_, step.table), step.schema_seed), {}};
    }
    return;
  }
  if (step.kind == RandomStep::Kind::kAlter) {
    if (std::optional<Table>& table = tables_[step.table]; table) alter(*table, step.schema_seed);
    return;
  }
  for (const RandomWrite& w : step.writes)
    if (std::optional<Table>& table = tables_[w.table]; table) write(*table, w);
}

void RandomModel::alter(Table& table, std::uint64_t seed) {
  using Kind = RandomAlteration::Kind;
  const RandomAlteration made = random_alteration(table.schema, seed);
  apply_alteration(made, table.schema);
  for (auto& [id, values] : table.rows) {
    if (made.kind == Kind::kAddColumn)
      values.push_back(made.column.default_value.value_or(Constant()));
    if (made.kind == Kind::kChangeType)
      values[made.place] = with_type(values[made.place], made.type);
  }
}

void RandomModel::write(Table& table, const RandomWrite& write) const {
  const auto row = table.rows.find(write.id);
  if (row == table.rows.end()) {
    table.rows[write.id] = random_row(write.seed, table.schema).values;
    return;
  }
  if (write.deletes) {
    table.rows.erase(row);
    return;
  }
  std::deque<std::string> texts;
  for (const std::uint16_t c : random_changes(write.seed, table.schema))
    row->second[c] =
        Constant(random_value(table.schema.columns[c], column_seed(write.seed, c), texts));
}

Status RandomModel::compare(Database& database) const {
  for (std::uint32_t i = 0; i < kRandomTables; ++i) {
    const std::string name = random_table_name(user_, i);
    const Result<TableId> id = database.find_table(name);
    if (id.ok() != tables_[i].has_value())
      return Status(StatusCode::kCorrupt,
                    fmt::format("user {}: table '{}': expected {}, found {}", user_, name,
                                tables_[i] ? "that it exists" : "none", id.ok() ? "one" : "none"));
    if (!id.ok()) continue;
    if (Status s = compare_table(database, *id, *tables_[i]); !s.ok()) return s;
  }
  return {};
}

Status RandomModel::compare_table(Database& database, TableId id, const Table& table) const {
  const auto differs = [&](std::int64_t row, const std::string& what) {
    return Status(StatusCode::kCorrupt, fmt::format("user {}: table '{}', row {}: {}", user_,
                                                    table.schema.name, row, what));
  };
  const Result<TableSchema> schema = database.schema(id);
  if (!schema.ok()) return schema.status();
  if (names_of(*schema) != names_of(table.schema)) return differs(-1, "the definition differs");
  Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return std::move(transaction).status();
  // By key each row that must be there; by scan how many there are.
  for (const auto& [row_id, values] : table.rows) {
    const Result<Row> row = transaction->get({id, 0}, key_of(user_, row_id));
    if (!row.ok()) return differs(row_id, "expected that it exists, " + row.status().to_string());
    for (std::size_t c = kRandomKeyColumns; c < values.size(); ++c) {
      if (table.schema.columns[c].dropped) continue;
      const Value expected = values[c].value();
      const Value found = row->get_unchecked(ColumnId(static_cast<std::uint16_t>(c)));
      if (!(found == expected))
        return differs(row_id,
                       fmt::format("column {}: expected {}, found {}", table.schema.columns[c].name,
                                   expected.to_string(), found.to_string()));
    }
  }
  std::size_t rows = 0;
  Status scanned = transaction->scan(id, {ColumnId(0)}, [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i)
      rows += batch.get_unchecked(0, i).as_int32() == static_cast<std::int32_t>(user_) ? 1 : 0;
    return true;
  });
  if (!scanned.ok()) return scanned;
  if (rows != table.rows.size())
    return differs(-1, fmt::format("expected {} rows, found {}", table.rows.size(), rows));
  return {};
}

}  // namespace flugs::bench
