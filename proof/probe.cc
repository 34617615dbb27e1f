#include "proof/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "pmem/extent_allocator.h"

namespace flugs::proof {

namespace {

constexpr std::int32_t kProbeIdMin = 90000;

Value probe_value(const ColumnSchema& column, std::int32_t id, std::uint32_t salt) {
  if (column.nullable && salt % 5 == 4) return Value::null();
  const std::int32_t number = static_cast<std::int32_t>(salt) * 100000 + id;
  switch (column.type) {
    case Type::kBool:
      return Value::boolean(salt % 2 == 0);
    case Type::kInt32:
      return Value::int32(number);
    case Type::kDate:
      return Value::date(number);
    case Type::kInt64:
      return Value::int64(number);
    case Type::kDouble:
      return Value::real(number + 0.5);
    case Type::kDecimal:
      return Value::decimal(number);
    case Type::kTimestamp:
      return Value::timestamp(number);
    case Type::kString:
    case Type::kBytes:
      break;
  }
  const std::string text = salt % 2 == 0
                               ? fmt::format("p{}", number)
                               : fmt::format("a text of some length as a probe, {:08}", number);
  return Value::from_bytes(column.type, keep(text));
}

/// Where rows of tables without a key on `id` lie, by one scan per transaction and table.
class RowIds {
 public:
  RowIds(engine::DatabaseCore& core, Transaction& transaction)
      : core_(core), transaction_(transaction) {}

  Result<RowId> find(TableId table, std::int32_t id) {
    const TableSchema& schema = core_.table(table)->schema();
    const Value key = Value::int32(id);
    if (schema.has_primary_key && schema.keys[0].columns == std::vector{schema.columns[0].name}) {
      Result<Row> row = transaction_.find(KeyId{table, 0}, {key});
      if (!row.ok()) return std::move(row).status();
      return row->id();
    }
    const auto [rows, is_new] = tables_.try_emplace(table.value());
    if (is_new)
      if (Status s = scan(table, schema, rows->second); !s.ok()) return s;
    const auto row = rows->second.find(id);
    if (row == rows->second.end())
      return Status(StatusCode::kNotFound,
                    fmt::format("table {}: no row with id {}", schema.name, id));
    return row->second;
  }
  /// The row with the id lies there now.
  void put(TableId table, std::int32_t id, RowId row) {
    if (const auto rows = tables_.find(table.value()); rows != tables_.end())
      rows->second.insert_or_assign(id, row);
  }

 private:
  Status scan(TableId table, const TableSchema& schema, std::map<std::int32_t, RowId>& rows) {
    bool is_repeated = false;
    const ColumnId column(0);
    Status s = transaction_.scan(
        table, std::span(&column, 1), Predicate::all(), [&](const ScanBatch& batch) {
          for (std::size_t r = 0; r < batch.row_count(); ++r)
            is_repeated |= !rows.emplace(batch.value(0, r).as_int32(), batch.row_ids()[r]).second;
          return true;
        });
    if (!s.ok()) return s;
    if (!is_repeated) return {};
    return Status(StatusCode::kCorrupt, fmt::format("table {}: an id twice", schema.name));
  }

  engine::DatabaseCore& core_;
  Transaction& transaction_;
  std::map<std::uint32_t, std::map<std::int32_t, RowId>> tables_;
};

Status write_one(engine::DatabaseCore& core, Transaction& transaction, const RowWrite& write,
                 RowIds& row_ids) {
  const Result<TableId> table = core.find_table(write.table);
  if (!table.ok()) return table.status();
  if (write.kind == RowWrite::Kind::kInsert) {
    const Result<RowId> row = transaction.insert(*table, write.row);
    if (row.ok()) row_ids.put(*table, write.id, *row);
    return row.status();
  }
  const Result<RowId> row = row_ids.find(*table, write.id);
  if (!row.ok()) return row.status();
  if (write.kind == RowWrite::Kind::kRemove) return transaction.remove(*table, *row);
  const Result<RowId> updated = transaction.update(*table, *row, write.changes);
  if (updated.ok()) row_ids.put(*table, write.id, *updated);
  return updated.status();
}

bool model_write(const RowWrite& write, DatabaseState& state) {
  const auto table = state.find(write.table);
  if (table == state.end()) return false;
  TableRows& rows = table->second;
  if (write.kind == RowWrite::Kind::kInsert) return rows.emplace(write.id, write.row).second;
  const auto row = rows.find(write.id);
  if (row == rows.end()) return false;
  if (write.kind == RowWrite::Kind::kRemove) {
    rows.erase(row);
    return true;
  }
  for (const ColumnValue& change : write.changes) row->second[change.column.value()] = change.value;
  return true;
}

std::string words_of(const std::vector<Value>& row) {
  std::string words;
  for (const Value& value : row) words += (words.empty() ? "" : ", ") + value.to_string();
  return "(" + words + ")";
}

}  // namespace

std::vector<Value> probe_row(const TableSchema& schema, std::int32_t id, std::uint32_t salt) {
  std::vector<Value> row = {Value::int32(id)};
  for (std::size_t i = 1; i < schema.columns.size(); ++i)
    row.push_back(probe_value(schema.columns[i], id, salt));
  return row;
}

std::vector<ColumnValue> probe_changes(const TableSchema& schema, std::int32_t id,
                                       std::uint32_t salt) {
  std::vector<ColumnValue> changes;
  for (std::size_t i = 1; i < schema.columns.size(); ++i)
    changes.push_back(
        {ColumnId(static_cast<std::uint16_t>(i)), probe_value(schema.columns[i], id, salt)});
  return changes;
}

std::string_view keep(std::string text) {
  static std::set<std::string, std::less<>> kept;
  return *kept.insert(std::move(text)).first;
}

RowWrite insert(std::string table, std::vector<Value> row) {
  const std::int32_t id = row[0].as_int32();
  return {RowWrite::Kind::kInsert, std::move(table), id, std::move(row), {}};
}
RowWrite update(std::string table, std::int32_t id, std::vector<ColumnValue> changes) {
  return {RowWrite::Kind::kUpdate, std::move(table), id, {}, std::move(changes)};
}
RowWrite remove(std::string table, std::int32_t id) {
  return {RowWrite::Kind::kRemove, std::move(table), id, {}, {}};
}

Status write_all(engine::DatabaseCore& core, Transaction& transaction, const Writes& writes) {
  RowIds row_ids(core, transaction);
  for (const RowWrite& write : writes)
    if (Status s = write_one(core, transaction, write, row_ids); !s.ok())
      return Status(s.code(), fmt::format("write of table {}, id {}: {}", write.table, write.id,
                                          s.message()));
  return {};
}

Status commit_above(Transaction& transaction, std::uint64_t& timestamp) {
  const std::uint64_t before = timestamp;
  if (Status s = transaction.commit(); !s.ok()) return s;
  const std::uint64_t given = transaction.commit_timestamp();
  // One that ended meanwhile may have a later one, but not the same.
  if (given <= before || given == timestamp)
    return Status(StatusCode::kCorrupt,
                  fmt::format("time-stamp {} was given out after {}", given, timestamp));
  timestamp = std::max(timestamp, given);
  return {};
}

bool model_step(const Step& step, DatabaseState& state) {
  if (step.created) return state.emplace(step.created->name, TableRows()).second;
  if (!step.dropped.empty()) return state.erase(step.dropped) == 1;
  DatabaseState next = state;
  for (const RowWrite& write : step.writes)
    if (!model_write(write, next)) return false;
  state = std::move(next);
  return true;
}

namespace {

Status merge_all(engine::DatabaseCore& core, const std::string& name) {
  const Result<TableId> table = core.find_table(name);
  if (!table.ok()) return table.status();
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.dead_percent = 1;
  options.threads = 1;
  options.patience = {};  // nobody ends a transaction while we wait
  const Status merged = core.merge(*table, options).status();
  return merged.code() == StatusCode::kBusy ? Status() : merged;
}

}  // namespace

Status run_step(const Step& step, engine::DatabaseCore& core, const DatabaseState* expected,
                std::uint64_t& timestamp) {
  if (step.created) return core.create_table(*step.created).status();
  if (!step.dropped.empty()) {
    Result<TableId> table = core.find_table(step.dropped);
    return table.ok() ? core.drop_table(*table) : std::move(table).status();
  }
  if (!step.merged.empty()) return merge_all(core, step.merged);
  Result<Transaction> transaction = core.begin(AccessMode::kReadWrite);
  if (!transaction.ok()) return std::move(transaction).status();
  if (Status s = write_all(core, *transaction, step.writes); !s.ok()) return s;
  if (expected != nullptr) {
    Result<DatabaseState> seen = read_state(core, *transaction);
    if (!seen.ok()) return std::move(seen).status();
    if (const std::string unlike = difference(*expected, *seen); !unlike.empty())
      return Status(StatusCode::kCorrupt, "inside a transaction: " + unlike);
  }
  return commit_above(*transaction, timestamp);
}

Result<DatabaseState> read_state(engine::DatabaseCore& core, const Transaction& transaction) {
  DatabaseState state;
  for (const TableId id : core.tables()) {
    const TableSchema& schema = core.table(id)->schema();
    TableRows& rows = state[schema.name];
    std::vector<ColumnId> columns;
    columns.reserve(schema.columns.size());
    for (std::size_t i = 0; i < schema.columns.size(); ++i)
      columns.emplace_back(static_cast<std::uint16_t>(i));
    bool is_repeated = false;
    Status s = transaction.scan(id, columns, Predicate::all(), [&](const ScanBatch& batch) {
      for (std::size_t r = 0; r < batch.row_count(); ++r) {
        std::vector<Value> row;
        row.reserve(columns.size());
        for (std::size_t c = 0; c < columns.size(); ++c) row.push_back(batch.value(c, r));
        const std::int32_t key = row[0].as_int32();
        is_repeated |= !rows.emplace(key, std::move(row)).second;
      }
      return true;
    });
    if (!s.ok()) return s;
    if (is_repeated)
      return Status(StatusCode::kCorrupt, fmt::format("table {}: an id twice", schema.name));
  }
  return state;
}

std::string difference(const DatabaseState& expected, const DatabaseState& found) {
  for (const auto& [name, rows] : expected) {
    const auto table = found.find(name);
    if (table == found.end()) return fmt::format("table {} is not there", name);
    for (const auto& [id, row] : rows) {
      const auto other = table->second.find(id);
      if (other == table->second.end()) return fmt::format("table {}: no row {}", name, id);
      if (other->second != row)
        return fmt::format("table {}: expected {}, found {}", name, words_of(row),
                           words_of(other->second));
    }
    for (const auto& [id, row] : table->second)
      if (!rows.contains(id)) return fmt::format("table {}: row {} too many", name, words_of(row));
  }
  for (const auto& [name, rows] : found)
    if (!expected.contains(name)) return fmt::format("table {} too many", name);
  return {};
}

Status check_space(engine::DatabaseCore& core) {
  const pmem::SpaceReport space = core.pool().allocator().space();
  const std::uint64_t free = core.pool().allocator().free_bytes();
  if (space.used_bytes + free + space.overhead_bytes == space.allocated_bytes) return {};
  return Status(StatusCode::kCorrupt,
                fmt::format("{} bytes in use, {} free, {} overhead, but {} allocated",
                            space.used_bytes, free, space.overhead_bytes, space.allocated_bytes));
}

std::vector<Writes> probe_writes(engine::DatabaseCore& core, const DatabaseState& state,
                                 std::uint32_t slot) {
  std::vector<Writes> steps(2);
  for (const auto& [name, rows] : state) {
    const TableSchema& schema = core.table(*core.find_table(name))->schema();
    const auto id = kProbeIdMin + static_cast<std::int32_t>(slot) * 2;
    const std::uint32_t salt = 1 + slot * 8;
    steps[0].push_back(insert(name, probe_row(schema, id, salt)));
    steps[0].push_back(insert(name, probe_row(schema, id + 1, salt + 1)));
    steps[1].push_back(remove(name, id));
    if (rows.empty()) continue;
    const std::int32_t first = rows.begin()->first;
    const std::int32_t last = rows.rbegin()->first;
    const std::int32_t middle =
        std::next(rows.begin(), static_cast<std::ptrdiff_t>(rows.size() / 2))->first;
    steps[0].push_back(update(name, first, probe_changes(schema, first, salt + 2)));
    if (last != first)
      steps[0].push_back(update(name, last, probe_changes(schema, last, salt + 3)));
    steps[1].push_back(remove(name, middle));
    steps[1].push_back(insert(name, probe_row(schema, middle, salt + 4)));
  }
  return steps;
}

}  // namespace flugs::proof
