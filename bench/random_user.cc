#include "bench/random_user.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>

#include "bench/random.h"

namespace flugs::bench {

namespace {

std::array<Value, kRandomKeyColumns> key_of(std::uint32_t user, std::int64_t id) {
  return {Value::int32(static_cast<std::int32_t>(user)), Value::int64(id)};
}

TableSchema shared_schema(std::uint64_t seed) {
  return random_schema(random_table_name(0, 0), mix64(seed));
}

/// Of its columns, in order, and of its keys; empty where a column was dropped.
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
  for (const RandomWrite& w : step.writes)
    if (Status s = write(*transaction, w); !s.ok()) return s;
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
  if (made.kind == Kind::kAddColumn) return database_.add_column(*table, made.column).status();
  if (made.kind == Kind::kDropColumn) return database_.drop_column(*table, ColumnId(made.place));
  if (made.kind == Kind::kChangeType)
    return database_.change_type(*table, ColumnId(made.place), made.type);
  if (made.kind == Kind::kNone) return {};
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
  std::deque<std::string> texts;
  const Result<Row> found = transaction.find({*table, 0}, key_of(user_, write.id));
  if (found.ok() && write.deletes) return transaction.remove(*table, found->id());
  if (found.ok()) {
    std::vector<ColumnValue> changes;
    for (const std::uint16_t c : random_changes(write.seed, *schema))
      changes.push_back(
          {ColumnId(c), random_value(schema->columns[c], column_seed(write.seed, c), texts)});
    const Result<RowId> changed = transaction.update(*table, found->id(), changes);
    return changed.ok() ? Status() : changed.status();
  }
  if (found.code() != StatusCode::kNotFound) return found.status();
  const auto key = key_of(user_, write.id);
  std::vector<Value> values(key.begin(), key.end());
  for (std::size_t c = kRandomKeyColumns; c < schema->columns.size(); ++c) {
    const ColumnSchema& column = schema->columns[c];
    values.push_back(column.dropped ? Value::null()
                                    : random_value(column, column_seed(write.seed, c), texts));
  }
  const Result<RowId> inserted = transaction.insert(*table, values);
  return inserted.ok() ? Status() : inserted.status();
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
  const RandomAlteration made = random_alteration(table.schema, seed);
  apply_alteration(made, table.schema);
  if (made.kind == RandomAlteration::Kind::kAddColumn)
    for (auto& [id, seeds] : table.rows) seeds.push_back(made.seed);
}

void RandomModel::write(Table& table, const RandomWrite& write) const {
  const auto row = table.rows.find(write.id);
  if (row != table.rows.end() && write.deletes) {
    table.rows.erase(row);
    return;
  }
  const std::size_t columns = table.schema.columns.size();
  if (row != table.rows.end()) {
    for (const std::uint16_t c : random_changes(write.seed, table.schema))
      row->second[c] = column_seed(write.seed, c);
    return;
  }
  std::vector<std::uint64_t>& seeds = table.rows[write.id];
  seeds.resize(columns);
  for (std::size_t c = kRandomKeyColumns; c < columns; ++c) seeds[c] = column_seed(write.seed, c);
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
  if (names_of(*schema) != names_of(table.schema)) return differs(-1, "the definition is another");
  Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return std::move(transaction).status();
  // By key each row that must be there; by scan how many there are.
  for (const auto& [row_id, seeds] : table.rows) {
    const Result<Row> row = transaction->find({id, 0}, key_of(user_, row_id));
    if (!row.ok()) return differs(row_id, "expected that it exists, " + row.status().to_string());
    for (std::size_t c = kRandomKeyColumns; c < seeds.size(); ++c) {
      if (table.schema.columns[c].dropped) continue;
      std::deque<std::string> texts;
      const Value expected = random_value(table.schema.columns[c], seeds[c], texts);
      const Value found = row->get(ColumnId(static_cast<std::uint16_t>(c)));
      if (!(found == expected))
        return differs(row_id,
                       fmt::format("column {}: expected {}, found {}", table.schema.columns[c].name,
                                   expected.to_string(), found.to_string()));
    }
  }
  std::size_t rows = 0;
  Status scanned = transaction->scan(id, {ColumnId(0)}, [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i)
      rows += batch.value(0, i).as_int32() == static_cast<std::int32_t>(user_) ? 1 : 0;
    return true;
  });
  if (!scanned.ok()) return scanned;
  if (rows != table.rows.size())
    return differs(-1, fmt::format("expected {} rows, found {}", table.rows.size(), rows));
  return {};
}

}  // namespace flugs::bench
