#include "verify/crash/rig/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "verify/crash/rig/column_rows.h"

namespace flugs::crash {

namespace {

constexpr std::int32_t kProbeIdMin = 90000;

/// The text of a number, made once: its salt tells whether it is long.
std::string_view probe_text(std::int32_t number, bool is_long) {
  static std::unordered_map<std::int32_t, std::string_view> texts;
  const auto [text, is_new] = texts.try_emplace(number);
  if (is_new)
    text->second = keep(is_long ? fmt::format("a text of some length as a probe, {:08}", number)
                                : fmt::format("p{}", number));
  return text->second;
}

Value probe_value(const ColumnSchema& column, std::int32_t id, std::uint32_t salt) {
  if (column.auto_increment || (column.nullable && salt % 5 == 4)) return Value::null();
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
      return Value::decimal_units(number);
    case Type::kTimestamp:
      return Value::timestamp(number);
    case Type::kString:
    case Type::kBytes:
      break;
  }
  return Value::from_bytes(column.type, probe_text(number, salt % 2 != 0));
}

/// Whether a foreign key has the column: probes refer to nothing.
bool refers(const TableSchema& schema, std::size_t column) {
  const std::string& name = schema.columns[column].name;
  return std::any_of(schema.foreign_keys.begin(), schema.foreign_keys.end(),
                     [&](const ForeignKeySchema& foreign) {
                       return std::find(foreign.columns.begin(), foreign.columns.end(), name) !=
                              foreign.columns.end();
                     });
}

Status write_one(engine::DatabaseCore& core, Transaction& transaction, const RowWrite& write,
                 RowIds& row_ids) {
  const Result<TableId> table = core.find_table(write.table);
  if (!table.ok()) return table.status();
  if (write.kind == RowWrite::Kind::kInsert) {
    const Result<RowId> row = transaction.insert(*table, write.row);
    if (row.ok()) row_ids.put(*table, write.id, *row);
    return row.status();
  }
  const Result<RowId> row = row_ids.find(*table, write.id, transaction);
  if (!row.ok()) return row.status();
  if (write.kind == RowWrite::Kind::kRemove) {
    row_ids.remove(*table, write.id);
    return transaction.remove(*table, *row);
  }
  const Result<RowId> updated = transaction.update(*table, *row, write.changes);
  if (updated.ok()) row_ids.put(*table, write.id, *updated);
  return updated.status();
}

}  // namespace

Result<RowId> RowIds::find(TableId table, std::int32_t id, Transaction& transaction) {
  const TableSchema& schema = core_.table(table)->schema();
  const Value key = Value::int32(id);
  if (schema.has_primary_key && schema.keys[0].columns.size() == 1 &&
      schema.keys[0].columns[0] == schema.columns[0].name) {
    Result<Row> row = transaction.get(KeyId{table, 0}, {key});
    if (!row.ok()) return std::move(row).status();
    return row->id();
  }
  const auto [rows, is_new] = tables_.try_emplace(table.value());
  if (is_new)
    if (Status s = scan(table, schema, transaction, rows->second); !s.ok()) return s;
  const auto row = rows->second.find(id);
  if (row == rows->second.end())
    return Status(StatusCode::kNotFound,
                  fmt::format("table {}: no row with id {}", schema.name, id));
  return row->second;
}

void RowIds::put(TableId table, std::int32_t id, RowId row) {
  if (const auto rows = tables_.find(table.value()); rows != tables_.end())
    rows->second.insert_or_assign(id, row);
}

void RowIds::remove(TableId table, std::int32_t id) {
  if (const auto rows = tables_.find(table.value()); rows != tables_.end()) rows->second.erase(id);
}

Status RowIds::scan(TableId table, const TableSchema& schema, Transaction& transaction,
                    std::unordered_map<std::int32_t, RowId>& rows) {
  bool is_repeated = false;
  const ColumnId column(0);
  Status s =
      transaction.scan(table, std::span(&column, 1), Predicate::all(), [&](const ScanBatch& batch) {
        for (std::size_t r = 0; r < batch.row_count(); ++r)
          is_repeated |=
              !rows.emplace(batch.get_unchecked(0, r).as_int32(), batch.row_ids()[r]).second;
        return true;
      });
  if (!s.ok()) return s;
  if (!is_repeated) return {};
  return Status(StatusCode::kCorrupt, fmt::format("table {}: an id twice", schema.name));
}

std::vector<Value> probe_row(const TableSchema& schema, std::int32_t id, std::uint32_t salt) {
  std::vector<Value> row = {Value::int32(id)};
  for (std::size_t i = 1; i < schema.columns.size(); ++i)
    row.push_back(schema.columns[i].dropped || refers(schema, i)
                      ? Value::null()
                      : probe_value(schema.columns[i], id, salt));
  return row;
}

std::vector<ColumnValue> probe_changes(const TableSchema& schema, std::int32_t id,
                                       std::uint32_t salt) {
  std::vector<ColumnValue> changes;
  for (std::size_t i = 1; i < schema.columns.size(); ++i)
    if (!schema.columns[i].auto_increment && !schema.columns[i].dropped && !refers(schema, i))
      changes.push_back(
          {ColumnId(static_cast<std::uint16_t>(i)), probe_value(schema.columns[i], id, salt)});
  return changes;
}

namespace {

/// Inserts the first writes, which are by column and of one table. Returns how many these are.
Result<std::size_t> write_columns(engine::DatabaseCore& core, Transaction& transaction,
                                  std::span<const RowWrite> writes, RowIds& row_ids) {
  const Result<TableId> table = core.find_table(writes.front().table);
  if (!table.ok()) return table.status();
  std::vector<std::vector<Value>> rows;
  for (const RowWrite& write : writes) {
    if (!write.by_column || write.table != writes.front().table) break;
    rows.push_back(write.row);
  }
  ColumnRows columns(rows, rows.front().size(), static_cast<std::uint64_t>(writes[0].id));
  const std::vector<ColumnSchema>& schema = core.table(*table)->schema().columns;
  std::erase_if(columns.columns(),
                [&](const BatchColumn& column) { return schema[column.column.value()].dropped; });
  std::vector<RowId> ids(rows.size());
  if (Status s = transaction.insert_columns(*table, columns.batch(), ids); !s.ok()) return s;
  for (std::size_t i = 0; i < ids.size(); ++i) row_ids.put(*table, writes[i].id, ids[i]);
  return ids.size();
}

/// Makes the first write, or all first ones that are by column. Returns how many these are.
Result<std::size_t> write_first(engine::DatabaseCore& core, Transaction& transaction,
                                std::span<const RowWrite> writes, RowIds& row_ids) {
  if (writes.front().by_column) return write_columns(core, transaction, writes, row_ids);
  if (Status s = write_one(core, transaction, writes.front(), row_ids); !s.ok()) return s;
  return std::size_t{1};
}

}  // namespace

Status write_all(engine::DatabaseCore& core, Transaction& transaction, const Writes& writes,
                 RowIds& row_ids) {
  for (std::size_t i = 0; i < writes.size();) {
    const Result<std::size_t> written =
        write_first(core, transaction, std::span(writes).subspan(i), row_ids);
    if (!written.ok())
      return Status(written.code(), fmt::format("write of table {}, id {}: {}", writes[i].table,
                                                writes[i].id, written.status().message()));
    i += *written;
  }
  return {};
}

Status commit_above(Transaction& transaction, std::uint64_t& timestamp) {
  const std::uint64_t before = timestamp;
  if (Status s = transaction.commit(); !s.ok()) return s;
  const std::uint64_t given = transaction.commit_timestamp();
  // A transaction that ended meanwhile may have a later time-stamp, but not the same.
  if (given <= before || given == timestamp)
    return Status(StatusCode::kCorrupt,
                  fmt::format("time-stamp {} was given out after {}", given, timestamp));
  timestamp = std::max(timestamp, given);
  return {};
}

Status run_writes(engine::DatabaseCore& core, const Writes& writes, RowIds& row_ids,
                  const DatabaseState* expected, std::uint64_t& timestamp) {
  Result<Transaction> transaction = core.begin(AccessMode::kReadWrite);
  if (!transaction.ok()) return std::move(transaction).status();
  if (Status s = write_all(core, *transaction, writes, row_ids); !s.ok()) return s;
  if (expected != nullptr)
    if (Status s = must_see(core, *transaction, *expected); !s.ok())
      return Status(s.code(), fmt::format("inside a transaction: {}", s.message()));
  return commit_above(*transaction, timestamp);
}

Status run_partly(engine::DatabaseCore& core, const Writes& before, const Writes& undone,
                  const Writes& after, std::uint64_t& timestamp) {
  Result<Transaction> transaction = core.begin(AccessMode::kReadWrite);
  if (!transaction.ok()) return std::move(transaction).status();
  const auto write = [&](const Writes& writes) {
    RowIds row_ids(core);  // as they are now
    return write_all(core, *transaction, writes, row_ids);
  };
  if (Status s = write(before); !s.ok()) return s;
  const Result<Savepoint> savepoint = transaction->savepoint();
  if (!savepoint.ok()) return savepoint.status();
  if (Status s = write(undone); !s.ok()) return s;
  if (Status s = transaction->rollback_to(*savepoint); !s.ok()) return s;
  if (Status s = write(after); !s.ok()) return s;
  return commit_above(*transaction, timestamp);
}

namespace {

// The writes of a merging step are committed when its first chunk has been merged.
Status merge_all(engine::DatabaseCore& core, const Step& step, std::uint64_t& timestamp) {
  const Result<TableId> table = core.find_table(step.merged);
  if (!table.ok()) return table.status();
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.dead_percent = 1;
  options.threads = 1;
  if (step.renews) {
    options.waste_bytes = 1;
    options.waste_percent = 1;
  }
  Status written;
  if (!step.writes.empty())
    options.progress = [&](const Progress& progress) {
      if (progress.done != 1) return;
      RowIds row_ids(core);
      written = run_writes(core, step.writes, row_ids, nullptr, timestamp);
    };
  options.patience = {};  // no transaction ends while we wait
  const Status merged = core.merge(*table, options).status();
  if (!written.ok()) return written;
  return merged.code() == StatusCode::kBusy ? Status() : merged;
}

/// What the first list has and the second has not, by name; null: nothing.
template <typename Named>
const Named* only_in(const std::vector<Named>& some, const std::vector<Named>& others) {
  const auto found = std::find_if(some.begin(), some.end(), [&](const Named& one) {
    return std::none_of(others.begin(), others.end(),
                        [&](const Named& other) { return other.name == one.name; });
  });
  return found == some.end() ? nullptr : &*found;
}

/// Whether constraints or defaults differ; then `status` is that of the call that changes them.
bool alters_constraints(engine::DatabaseCore& core, TableId table, const TableSchema& to,
                        Status& status) {
  const TableSchema& now = core.table(table)->schema();
  if (const CheckSchema* added = only_in(to.checks, now.checks); added != nullptr) {
    status = core.add_check(table, *added);
  } else if (const CheckSchema* gone = only_in(now.checks, to.checks); gone != nullptr) {
    status = core.drop_check(table, std::string(gone->name));
  } else if (const auto* foreign = only_in(to.foreign_keys, now.foreign_keys); foreign != nullptr) {
    status = core.add_foreign_key(table, *foreign);
  } else if (const auto* left = only_in(now.foreign_keys, to.foreign_keys); left != nullptr) {
    status = core.drop_foreign_key(table, std::string(left->name));
  } else {
    for (std::uint16_t i = 0; i < to.columns.size() && i < now.columns.size(); ++i) {
      const ColumnSchema& wanted = to.columns[i];
      const ColumnSchema& held = now.columns[i];
      if (wanted.dropped || held.dropped || wanted.auto_increment || wanted.type != held.type)
        continue;
      if (wanted.nullable != held.nullable) {
        status = core.set_not_null(table, ColumnId(i), !wanted.nullable);
        return true;
      }
      const auto text = [](const ColumnSchema& column) {
        return column.default_value ? column.default_value->to_string() : std::string("none");
      };
      if (text(wanted) == text(held)) continue;
      std::optional<Value> value;
      if (wanted.default_value) value = wanted.default_value->value();
      status = core.set_default(table, ColumnId(i), value);
      return true;
    }
    return false;
  }
  return true;
}

// Calls the one function that changes the table's schema into the wanted one.
Status alter(engine::DatabaseCore& core, const Alteration& alteration) {
  const Result<TableId> table = core.find_table(alteration.table);
  if (!table.ok()) return table.status();
  const TableSchema& now = core.table(*table)->schema();
  const TableSchema& to = alteration.to;
  if (now.name != to.name) return core.rename_table(*table, to.name);
  if (now.delta_layout != to.delta_layout || now.column_groups != to.column_groups)
    return core.set_delta_layout(*table, to.delta_layout, to.column_groups);
  if (Status changed; alters_constraints(core, *table, to, changed)) return changed;
  if (now.columns.size() < to.columns.size())
    return core.add_column(*table, to.columns.back()).status();
  for (std::uint16_t i = 0; i < to.columns.size(); ++i)
    if (now.columns[i].dropped != to.columns[i].dropped)
      return core.drop_column(*table, ColumnId(i));
  for (std::uint16_t i = 0; i < to.columns.size(); ++i) {
    const bool becomes_direct = now.columns[i].encoding == Encoding::kDictionary &&
                                to.columns[i].encoding == Encoding::kDirect;
    if (now.columns[i].type != to.columns[i].type || becomes_direct)
      return core.change_type(*table, ColumnId(i), to.columns[i].type);
  }
  for (std::uint16_t i = 0; i < to.columns.size(); ++i)
    if (now.columns[i].name != to.columns[i].name)
      return core.rename_column(*table, ColumnId(i), to.columns[i].name);
  for (std::uint16_t k = 0; k < to.keys.size(); ++k) {
    const KeyId key{*table, k};
    if (k >= now.keys.size() || (now.keys[k].dropped && !to.keys[k].dropped)) {
      const Result<KeyId> added = core.add_key(*table, to.keys[k]);
      return !added.ok() || *added == key ? added.status() : wrong("a key in another place");
    }
    if (!now.keys[k].dropped && to.keys[k].dropped) return core.drop_key(key);
    if (now.keys[k].name != to.keys[k].name) return core.rename_key(key, to.keys[k].name);
  }
  return wrong("an alteration that changes nothing");
}

}  // namespace

Status run_step(engine::DatabaseCore& core, const Step& step, std::uint64_t& timestamp) {
  if (!step.created.empty()) return core.create_tables(step.created).status();
  if (step.altered) return alter(core, *step.altered);
  if (!step.dropped.empty()) {
    Result<TableId> table = core.find_table(step.dropped);
    return table.ok() ? core.drop_table(*table) : std::move(table).status();
  }
  if (!step.merged.empty()) return merge_all(core, step, timestamp);
  RowIds row_ids(core);
  return run_writes(core, step.writes, row_ids, nullptr, timestamp);
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

}  // namespace flugs::crash
