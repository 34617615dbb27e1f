#include "engine/database/constraint_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/long_call.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/catalog/schema_checks.h"
#include "tables/table/row_validation.h"

namespace flugs::engine {

namespace {

Status refused(const Table& table, ColumnId column, const std::string& why) {
  return Status(StatusCode::kConstraintViolated,
                SchemaPart::column(table.name(), table.schema().columns[column.value()].name), why);
}

Status no_column(const Table& table, ColumnId column) {
  return table.no_column(column).with_code(StatusCode::kNotFound);
}

template <typename Named>
auto find_named(std::vector<Named>& all, std::string_view name) {
  return std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
}

bool is_in_primary_key(const TableSchema& schema, const std::string& column) {
  return schema.has_primary_key && names(schema.keys[0].columns, column);
}

}  // namespace

// Protocol add_constraint: add_check, set_not_null and add_foreign_key. All but the last step are
// in DRAM.
//   step  what                                         power cut just after it: recovery
//   1     writers obey the constraint                  the old schema holds
//   2     transactions that began before have ended    the same
//   3     all rows of a later snapshot fulfil it       the same
//   4     no older snapshot is left                    the same
//   5     alter_table, with the constraint             the new schema holds
// Must hold:  1 before 2 before 3, else a row that breaks the constraint could come unseen.
//             3 before 5, else the schema could promise what rows do not keep. 4 before 5, else a
//             transaction that knows the schema could see a row that breaks it.
Status ConstraintChanges::validate(Table& table, const std::string& what,
                                   const CallOptions& options,
                                   FunctionRef<Status(const RowValidation& rows)> rows_hold) {
  if (!transactions_.wait_for_all(options.stop))
    return transactions_.waited_too_long(what, options.stop);
  const Result<TransactionContext*> context =
      transactions_.begin(AccessMode::kReadOnly, Isolation::kSnapshot);
  if (!context.ok()) return context.status();
  const std::uint64_t snapshot = (*context)->visibility.snapshot();
  Status held;
  {
    const Visit visiting(**context);
    LongCall call(options, "constraint");
    held = rows_hold(RowValidation(table.data(), table.references(), (*context)->visibility,
                                   catalog_.is_closing(), call));
  }
  transactions_.abort(**context);
  if (!held.ok()) return held;
  if (!transactions_.wait_for_snapshots(snapshot, TransactionManager::kPatience, options.stop))
    return transactions_.waited_too_long(what, options.stop);
  return {};
}

// Under catalog_.ddl_mutex(). Writers no longer obey the pending constraint.
void ConstraintChanges::take_back(Table& table) {
  table.data().pending = {};
  table.data().define(table.definition().stored);
}

Status ConstraintChanges::add_check(TableId id, const CheckSchema& wanted,
                                    const CallOptions& options) {
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  const TableDefinition* definition = nullptr;
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (altered->is_dropped()) return no_table();
    TableSchema next = altered->schema();
    if (find_named(next.checks, wanted.name) != next.checks.end())
      return Status(StatusCode::kAlreadyExists, SchemaPart::of(next.name),
                    fmt::format("check '{}' exists", wanted.name));
    next.checks.push_back(wanted);
    Result<TableSchema> completed = complete_schema(std::move(next));
    if (!completed.ok()) return std::move(completed).status();
    altered->data().pending.check = std::move(completed->checks.back());
    altered->data().define(altered->definition().stored);
    definition = &altered->definition();  // stays as long as the table
  }
  Status added =
      validate(*altered, fmt::format("table {}, check {}", altered->name(), wanted.name), options,
               [&](const RowValidation& rows) { return rows.check(definition->checks.back()); });
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (added.ok() && altered->is_dropped()) added = no_table();
  if (added.ok()) {
    StoredSchema next = altered->table_columns().stored();
    FLUGS_CHECK(altered->data().pending.check.has_value());  // no other call has been here
    next.schema.checks.push_back(*std::exchange(altered->data().pending.check, std::nullopt));
    added = altered->table_columns().alter(std::move(next));
  }
  if (!added.ok()) take_back(*altered);
  return added;
}

Status ConstraintChanges::drop_check(TableId id, std::string_view name) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  StoredSchema next = altered->table_columns().stored();
  const auto dropped = find_named(next.schema.checks, name);
  if (dropped == next.schema.checks.end())
    return Status(StatusCode::kNotFound, SchemaPart::of(altered->name()),
                  fmt::format("no check '{}'", name));
  next.schema.checks.erase(dropped);
  return altered->table_columns().alter(std::move(next));
}

Status ConstraintChanges::set_not_null(TableId id, ColumnId column, bool not_null,
                                       const CallOptions& options) {
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  return not_null ? demand_values(*altered, column, options) : admit_null(*altered, column);
}

Status ConstraintChanges::demand_values(Table& table, ColumnId column, const CallOptions& options) {
  const std::size_t number = column.value();
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (table.is_dropped()) return no_table();
    if (!table.has_column(column)) return no_column(table, column);
    TableSchema next = table.schema();
    if (!next.columns[number].nullable) return {};
    next.columns[number].nullable = false;
    if (const auto completed = complete_schema(std::move(next)); !completed.ok())
      return completed.status();
    table.data().pending.not_null = static_cast<std::uint16_t>(number);
    table.data().define(table.definition().stored);
  }
  Status demanded = validate(
      table, fmt::format("table {}, column {}", table.name(), table.schema().columns[number].name),
      options, [&](const RowValidation& rows) { return rows.not_null(number); });
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (demanded.ok() && table.is_dropped()) demanded = no_table();
  if (demanded.ok() && !table.has_column(column)) demanded = no_column(table, column);
  if (demanded.ok()) {
    table.data().pending = {};
    demanded = table.table_columns().set_nullable(number, false);
  }
  if (!demanded.ok()) take_back(table);
  return demanded;
}

// As change_type: rows that may be NULL are of another edition, if none was before.
Status ConstraintChanges::admit_null(Table& table, ColumnId column) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (table.is_dropped()) return no_table();
  if (!table.has_column(column)) return no_column(table, column);
  const ColumnSchema& schema = table.schema().columns[column.value()];
  if (schema.nullable) return {};
  if (schema.auto_increment) return refused(table, column, "it gives rows numbers");
  if (is_in_primary_key(table.schema(), schema.name))
    return refused(table, column, "the primary key uses it");
  Status admitted = table.table_columns().set_nullable(column.value(), true);
  // Calls that found the column before may still write what belongs to its former edition.
  table.note_readers_of_replaced(transactions_.slots().advance());
  return admitted;
}

Status ConstraintChanges::set_default(TableId id, ColumnId column,
                                      const std::optional<Value>& value) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  if (!altered->has_column(column)) return no_column(*altered, column);
  StoredSchema next = altered->table_columns().stored();
  std::optional<Constant>& held = next.schema.columns[column.value()].default_value;
  held.reset();
  if (value.has_value()) held = Constant(*value);
  return altered->table_columns().alter(std::move(next));
}

/// A foreign key on its way, and the key that is made for it.
struct ConstraintChanges::NewForeignKey {
  ForeignKey* foreign = nullptr;
  std::optional<KeySchema> key;  ///< none: the table has a suitable key
  std::size_t place = 0;         ///< of the key
};

// Under catalog_.ddl_mutex(). From here on no thread drops what the foreign key refers to, and
// writers of both tables obey it. They may miss rows as long as the key lacks them: all rows are
// checked when it has them.
Status ConstraintChanges::begin(Table& table, const ForeignKeySchema& wanted, NewForeignKey& made) {
  if (table.is_dropped()) return no_table();
  TableSchema next = table.schema();
  if (find_named(next.foreign_keys, wanted.name) != next.foreign_keys.end())
    return Status(StatusCode::kAlreadyExists, SchemaPart::of(next.name),
                  fmt::format("foreign key '{}' exists", wanted.name));
  ForeignKeySchema foreign = wanted;
  if (Status s = check_foreign_key(next, foreign); !s.ok()) return s;
  if (Status s = catalog_.resolve(next, table.id(), foreign); !s.ok()) return s;
  std::size_t child_key = key_for(next, foreign.columns);
  const bool has_key = child_key < next.keys.size();
  next.foreign_keys.push_back(foreign);
  if (has_key) {
    if (const auto completed = complete_schema(std::move(next)); !completed.ok())
      return completed.status();
  } else {
    if (next.foreign_keys.size() > kForeignKeysMax)
      return complete_schema(std::move(next)).status();
    Result<KeySchema> key = new_key_for(next, foreign);
    if (!key.ok()) return std::move(key).status();
    const Result<std::size_t> place = keys_.begin_key(table, *key);
    if (!place.ok()) return place.status();
    made.key = *std::move(key);
    made.place = child_key = *place;
  }
  Table* parent = catalog_.table(foreign.referenced.table);
  FLUGS_CHECK(parent != nullptr);
  const KeyIndex* const key = table.keys()[child_key];
  FLUGS_CHECK(key != nullptr && key->columns().size() >= foreign.columns.size());
  const auto leading = key->columns().first(foreign.columns.size());
  made.foreign = &table.references().begin(
      foreign, std::vector<std::uint16_t>(leading.begin(), leading.end()), child_key, *parent);
  return {};
}

// Under catalog_.ddl_mutex().
Status ConstraintChanges::finish(Table& table, const NewForeignKey& made) {
  FLUGS_CHECK(made.foreign != nullptr && made.foreign->is_pending());
  if (table.is_dropped()) return no_table();
  StoredSchema next = table.table_columns().stored();
  next.schema.foreign_keys.push_back(made.foreign->schema());  // with its names of now
  const Status done = made.key.has_value()
                          ? KeyChanges::finish_key(table, made.place, *made.key, std::move(next))
                          : table.table_columns().alter(std::move(next));
  if (done.ok()) made.foreign->finish();
  return done;
}

Status ConstraintChanges::add_foreign_key(TableId id, const ForeignKeySchema& wanted,
                                          const CallOptions& options) {
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  if (Status s = KeyChanges::prepare(*altered, options); !s.ok()) return s;
  NewForeignKey made;
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (Status s = begin(*altered, wanted, made); !s.ok()) return s;
  }
  Status added = made.key.has_value() ? keys_.make_key(*altered, made.place, options) : Status();
  Table& parent = made.foreign->parent;
  if (added.ok() && parent.index_build().is_deferred())
    added = parent.index_build().prepare_lookup(made.foreign->parent_key);
  if (added.ok())
    added = validate(*altered, to_string(part_of(*made.foreign)), options,
                     [&](const RowValidation& rows) { return rows.foreign_key(*made.foreign); });
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (added.ok()) added = finish(*altered, made);
    if (!added.ok()) altered->references().remove(*made.foreign);
  }
  if (!added.ok() && made.key.has_value()) keys_.give_up_key(*altered, made.place, added.code());
  return added;
}

// The key that finds the rows stays.
Status ConstraintChanges::drop_foreign_key(TableId id, std::string_view name) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  StoredSchema next = altered->table_columns().stored();
  const auto dropped = find_named(next.schema.foreign_keys, name);
  if (dropped == next.schema.foreign_keys.end())
    return Status(StatusCode::kNotFound, SchemaPart::of(altered->name()),
                  fmt::format("no foreign key '{}'", name));
  const ForeignKey* foreign = altered->references().with_name(name);
  FLUGS_CHECK(foreign != nullptr);
  next.schema.foreign_keys.erase(dropped);
  if (Status s = altered->table_columns().alter(std::move(next)); !s.ok()) return s;
  altered->references().remove(*foreign);
  return {};
}

}  // namespace flugs::engine
