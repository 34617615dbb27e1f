#include "verify/crash/rig/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/types.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::crash {

namespace {

std::string words_of(const std::vector<Value>& row) {
  std::string words;
  for (const Value& value : row) words += (words.empty() ? "" : ", ") + value.to_string();
  return "(" + words + ")";
}

Status id_twice(const TableSchema& schema) {
  return Status(StatusCode::kCorrupt, fmt::format("table {}: an id twice", schema.name));
}

// The columns that are not dropped.
std::vector<ColumnId> all_columns(const TableSchema& schema) {
  std::vector<ColumnId> columns;
  columns.reserve(schema.columns.size());
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (!schema.columns[i].dropped) columns.emplace_back(static_cast<std::uint16_t>(i));
  return columns;
}

/// Gives values the columns' types; returns whether a value had another type.
bool give_types(TableRows& rows, const std::vector<ColumnSchema>& schemas) {
  bool has_changed = false;
  for (auto& [id, row] : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Value value = columns::with_type(row[i], schemas[i].type);
      has_changed |= !(value == row[i]);
      row[i] = value;
    }
  return has_changed;
}

std::vector<Value> defaults_of(const TableSchema& schema) {
  std::vector<Value> defaults;
  for (const ColumnSchema& column : schema.columns) {
    Value value = column.default_value ? column.default_value->value() : Value::null();
    if (!value.is_null() && is_text_type(value.type()))
      value = Value::from_bytes(value.type(), keep(std::string(value.as_string())));
    defaults.push_back(columns::with_type(value, column.type));
  }
  return defaults;
}

/// Compares the rows of a table with those expected, batch by batch.
class RowComparison {
 public:
  RowComparison(const TableSchema& schema, const TableRows& expected)
      : expected_(expected), next_(expected.begin()) {
    ids_.reserve(expected.size());
    for (const ColumnSchema& column : schema.columns) numbered_.push_back(column.auto_increment);
  }

  void add(const ScanBatch& batch, std::span<const ColumnId> columns) {
    for (std::size_t r = 0; r < batch.row_count(); ++r) {
      const std::int32_t id = batch.get_unchecked(0, r).as_int32();
      ids_.push_back(id);
      // Most rows lie in the order of their ids.
      auto row = next_ != expected_.end() && next_->first == id ? next_ : expected_.find(id);
      if (row == expected_.end() || row->second.size() != numbered_.size()) {
        is_equal_ = false;
        continue;
      }
      for (std::size_t c = 0; c < columns.size() && is_equal_; ++c)
        is_equal_ = numbered_[columns[c].value()] ||
                    batch.get_unchecked(c, r) == row->second[columns[c].value()];
      next_ = std::next(row);
    }
  }
  bool has_id_twice() {
    std::sort(ids_.begin(), ids_.end());
    return std::adjacent_find(ids_.begin(), ids_.end()) != ids_.end();
  }
  bool is_equal() const { return is_equal_ && ids_.size() == expected_.size(); }

 private:
  const TableRows& expected_;
  TableRows::const_iterator next_;
  std::vector<bool> numbered_;     // by column: any number is right that its key allows
  std::vector<std::int32_t> ids_;  // found
  bool is_equal_ = true;
};

}  // namespace

std::string shape_of(const TableSchema& schema) {
  std::string shape = schema.delta_layout == DeltaLayout::kColumns ? "in columns " : "";
  for (const std::vector<std::string>& group : schema.column_groups)
    for (const std::string& column : group)
      shape += column + (&column == &group.back() ? "; " : "+");
  for (const ColumnSchema& column : schema.columns)
    shape += fmt::format("{} {}{}{} ", column.name, static_cast<int>(column.type),
                         column.nullable && !column.auto_increment ? "" : "!",
                         column.default_value ? "=" + column.default_value->to_string() : "");
  for (const KeySchema& key : schema.keys) {
    shape += "; " + key.name + ":";
    for (const std::string& column : key.columns) shape += " " + column;
  }
  for (const CheckSchema& check : schema.checks)
    shape += fmt::format("; {}: {}", check.name, check.condition.to_string());
  for (const ForeignKeySchema& foreign : schema.foreign_keys) {
    shape += fmt::format("; {}: {} {} {} {}:", foreign.name, foreign.table, foreign.key,
                         static_cast<int>(foreign.on_delete), static_cast<int>(foreign.on_update));
    for (const std::string& column : foreign.columns) shape += " " + column;
  }
  return shape;
}

std::string_view keep(std::string text) {
  static std::set<std::string, std::less<>> kept;
  return *kept.insert(std::move(text)).first;
}

RowWrite insert(std::string table, std::vector<Value> row) {
  const std::int32_t id = row[0].as_int32();
  return {RowWrite::Kind::kInsert, std::move(table), id, std::move(row), {}};
}
Writes insert_columns(const std::string& table, const std::vector<std::vector<Value>>& rows) {
  Writes writes;
  for (const std::vector<Value>& row : rows) {
    writes.push_back(insert(table, row));
    writes.back().by_column = true;
  }
  return writes;
}
RowWrite update(std::string table, std::int32_t id, std::vector<ColumnValue> changes) {
  return {RowWrite::Kind::kUpdate, std::move(table), id, {}, std::move(changes)};
}
RowWrite remove(std::string table, std::int32_t id) {
  return {RowWrite::Kind::kRemove, std::move(table), id, {}, {}};
}

// --------------------------------------------------------------------------------------- the model

bool ModelSteps::run(const Step& step) {
  if (!step.created.empty()) return run(step.created);
  if (step.altered) return run(*step.altered);
  if (step.dropped.empty()) return run(step.writes);
  DatabaseState::node_type table = state_.extract(step.dropped);
  if (table.empty()) return false;
  changes_.push_back({.kind = Change::Kind::kDropped, .dropped = std::move(table)});
  return true;
}

bool ModelSteps::run(const std::vector<TableSchema>& created) {
  const std::size_t before = changes_.size();
  for (const TableSchema& schema : created) {
    const auto [table, is_new] = state_.try_emplace(schema.name);
    if (!is_new) {
      take_back(before);
      return false;
    }
    table->second.shape = shape_of(schema);
    table->second.defaults = defaults_of(schema);
    changes_.push_back({.kind = Change::Kind::kCreated, .created = schema.name});
  }
  return true;
}

namespace {

// Rows from before a column was added get its default; those of a dropped column lose its value.
void complete(TableRows& rows, std::span<const ColumnSchema> columns) {
  for (auto& [id, row] : rows) {
    for (std::size_t i = row.size(); i < columns.size(); ++i) row.push_back(rows.defaults[i]);
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].dropped) row[i] = Value::null();
  }
}

}  // namespace

bool ModelSteps::run(const Alteration& alteration) {
  const std::string& name = alteration.to.name;
  if (name != alteration.table && state_.contains(name)) return false;
  DatabaseState::node_type table = state_.extract(alteration.table);
  if (table.empty()) return false;
  TableRows& rows = table.mapped();
  changes_.push_back({.kind = Change::Kind::kAltered,
                      .created = name,
                      .table = alteration.table,
                      .shape = rows.shape,
                      .defaults = rows.defaults});
  const std::vector<ColumnSchema>& columns = alteration.to.columns;
  const bool has_dropped = std::any_of(columns.begin(), columns.end(),
                                       [](const ColumnSchema& column) { return column.dropped; });
  if (columns.size() != rows.defaults.size() || has_dropped) changes_.back().rows_before = rows;
  TableRows retyped = rows;
  if (give_types(retyped, columns)) changes_.back().rows_before = std::exchange(rows, retyped);
  table.key() = name;
  rows.shape = shape_of(alteration.to);
  rows.defaults = defaults_of(alteration.to);
  complete(rows, columns);
  state_.insert(std::move(table));
  return true;
}

bool ModelSteps::run(const Writes& writes) {
  const std::size_t before = changes_.size();
  for (const RowWrite& write : writes) {
    if (run(write)) continue;
    take_back(before);
    return false;
  }
  return true;
}

bool ModelSteps::run(const RowWrite& write) {
  const auto table = state_.find(write.table);
  if (table == state_.end()) return false;
  TableRows& rows = table->second;
  if (write.kind == RowWrite::Kind::kInsert) {
    const auto [row, is_new] = rows.try_emplace(write.id, write.row);
    if (!is_new) return false;
    for (std::size_t i = write.row.size(); i < rows.defaults.size(); ++i)
      row->second.push_back(rows.defaults[i]);
    changes_.push_back({.kind = Change::Kind::kInserted, .rows = &rows, .inserted = write.id});
    return true;
  }
  const auto row = rows.find(write.id);
  if (row == rows.end()) return false;
  if (write.kind == RowWrite::Kind::kRemove) {
    changes_.push_back(
        {.kind = Change::Kind::kRemoved, .rows = &rows, .removed = rows.extract(row)});
    return true;
  }
  changes_.push_back({.kind = Change::Kind::kUpdated, .row = &row->second, .before = row->second});
  for (const ColumnValue& change : write.changes) row->second[change.column.value()] = change.value;
  return true;
}

void ModelSteps::take_back(std::size_t count_left) {
  while (changes_.size() > count_left) {
    Change& change = changes_.back();
    switch (change.kind) {
      case Change::Kind::kCreated:
        state_.erase(change.created);
        break;
      case Change::Kind::kAltered: {
        DatabaseState::node_type table = state_.extract(change.created);
        table.key() = change.table;
        table.mapped().shape = change.shape;
        table.mapped().defaults = std::move(change.defaults);
        for (auto& [id, row] : change.rows_before) table.mapped().at(id) = std::move(row);
        state_.insert(std::move(table));
        break;
      }
      case Change::Kind::kDropped:
        state_.insert(std::move(change.dropped));
        break;
      case Change::Kind::kInserted:
        change.rows->erase(change.inserted);
        break;
      case Change::Kind::kUpdated:
        *change.row = std::move(change.before);
        break;
      case Change::Kind::kRemoved:
        change.rows->insert(std::move(change.removed));
        break;
    }
    changes_.pop_back();
  }
}

bool model_step(const Step& step, DatabaseState& state) {
  ModelSteps steps(state);
  if (!steps.run(step)) return false;
  steps.keep();
  return true;
}

// ------------------------------------------------------------------------------------ the database

Result<DatabaseState> read_state(engine::DatabaseCore& core, const Transaction& transaction) {
  DatabaseState state;
  for (const TableId id : core.tables()) {
    const engine::Table* table = core.table(id);
    if (table == nullptr) continue;  // dropped by another thread meanwhile
    const TableSchema& schema = table->schema();
    TableRows& rows = state[schema.name];
    rows.shape = shape_of(schema);
    const std::vector<ColumnId> columns = all_columns(schema);
    bool is_repeated = false;
    Status s = transaction.scan(id, columns, Predicate::all(), [&](const ScanBatch& batch) {
      for (std::size_t r = 0; r < batch.row_count(); ++r) {
        std::vector<Value> row(schema.columns.size());
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const std::size_t column = columns[c].value();
          if (!schema.columns[column].auto_increment) row[column] = batch.get_unchecked(c, r);
        }
        const std::int32_t key = row[0].as_int32();
        is_repeated |= !rows.emplace(key, std::move(row)).second;
      }
      return true;
    });
    if (!s.ok()) return s;
    if (is_repeated) return id_twice(schema);
  }
  return state;
}

Result<bool> sees(engine::DatabaseCore& core, const Transaction& transaction,
                  const DatabaseState& expected) {
  const std::vector<TableId> tables = core.tables();
  if (tables.size() != expected.size()) return false;
  for (const TableId id : tables) {
    const TableSchema& schema = core.table(id)->schema();
    const auto rows = expected.find(schema.name);
    if (rows == expected.end() || rows->second.shape != shape_of(schema)) return false;
    const std::vector<ColumnId> columns = all_columns(schema);
    RowComparison comparison(schema, rows->second);
    Status s = transaction.scan(id, columns, Predicate::all(), [&](const ScanBatch& batch) {
      comparison.add(batch, columns);
      return true;
    });
    if (!s.ok()) return s;
    if (comparison.has_id_twice()) return id_twice(schema);
    if (!comparison.is_equal()) return false;
  }
  return true;
}

Status must_see(engine::DatabaseCore& core, const Transaction& transaction,
                const DatabaseState& expected) {
  const Result<bool> is_seen = sees(core, transaction, expected);
  if (!is_seen.ok()) return is_seen.status();
  if (*is_seen) return {};
  const Result<DatabaseState> found = read_state(core, transaction);
  if (!found.ok()) return found.status();
  const std::string unlike = difference(expected, *found);
  return Status(StatusCode::kCorrupt, unlike.empty() ? "two scans see different rows" : unlike);
}

std::string difference(const DatabaseState& expected, const DatabaseState& found) {
  for (const auto& [name, rows] : expected) {
    const auto table = found.find(name);
    if (table == found.end()) return fmt::format("table {} is not there", name);
    if (table->second.shape != rows.shape)
      return fmt::format("table {}: expected {}, found {}", name, rows.shape, table->second.shape);
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

}  // namespace flugs::crash
