// Calls that read a row and write what follows from it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/exact_value.h"
#include "base/long_call.h"
#include "base/names.h"
#include "base/types.h"
#include "engine/database/database_core.h"
#include "flugs/transaction.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/row_writer.h"

namespace flugs {

namespace {

// Whether `amount` may be added to the column at all.
Status check_addend(const engine::Table& table, ColumnId column, const Value& amount) {
  if (!table.has_column(column)) return table.no_column(column);
  const columns::Column& target = *table.columns()[column.value()];
  const Type type = target.type();
  const auto refused = [&](std::string why) {
    return Status(StatusCode::kInvalidArgument, SchemaPart::column(table.name(), target.name()),
                  why);
  };
  if (!is_integer_type(type) && type != Type::kDecimal)
    return refused(
        fmt::format("expected an integer or a decimal to add to, found {}", to_string(type)));
  if (amount.is_null()) return refused("expected a number to add, found NULL");
  if (!exact_value(amount, type, target.scale()).has_value())
    return target.misfit(StatusCode::kInvalidArgument, amount, type, " to add");
  return {};
}

Result<Value> sum_of(const engine::Table& table, ColumnId column, const Value& held,
                     const Value& given) {
  const columns::Column& target = *table.columns()[column.value()];
  if (!table.has_column(column)) return table.no_column(column);  // dropped meanwhile
  if (held.is_null())
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(table.name(), target.name()),
                  "the value is NULL: nothing can be added to it");
  const Value amount = target.fitted(given);
  std::int64_t sum = 0;
  bool fits = !__builtin_add_overflow(held.raw(), amount.raw(), &sum);
  if (is_narrow_type(target.type()))
    fits = sum >= std::numeric_limits<std::int32_t>::min() &&
           sum <= std::numeric_limits<std::int32_t>::max();
  if (!fits)
    return Status(
        StatusCode::kOverflow, SchemaPart::column(table.name(), target.name()),
        fmt::format("{} + {} does not fit {}", held.raw(), amount.raw(), to_string(target.type())));
  return Value::from_raw(target.type(), sum).with_scale(target.scale());
}

Status check_expected(const engine::Table& table, std::span<const ColumnValue> expected) {
  for (const ColumnValue& one : expected) {
    if (!table.has_column(one.column)) return table.no_column(one.column);
    const columns::Column& column = *table.columns()[one.column.value()];
    if (!exact_value(one.value, column.type(), column.scale()).has_value())
      return column.misfit(StatusCode::kInvalidArgument, one.value, column.type(),
                           " to compare with");
  }
  return {};
}

bool holds(const engine::Table& table, const Row& row, const ColumnValue& expected) {
  FLUGS_DCHECK(expected.column.value() < table.columns().size());
  const columns::Column& column = *table.columns()[expected.column.value()];
  return row.get_unchecked(expected.column) == column.fitted(expected.value);
}

// The key's columns of a whole row; false: one of them is NULL, so that no row has the same key.
bool take_key(const engine::KeyIndex& key, std::span<const Value> row,
              std::span<Value> values) noexcept {
  FLUGS_DCHECK(values.size() == key.columns().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = row[key.columns()[i]];
  return std::none_of(values.begin(), values.end(), [](const Value& v) { return v.is_null(); });
}

// The values of a whole row for the columns that are not in the key. An existing row keeps its
// number; only a new row would get one.
std::vector<ColumnValue> all_but_key(const engine::TableDefinition& now,
                                     const engine::KeyIndex& key, std::span<const Value> row) {
  std::vector<ColumnValue> rest;
  for (std::size_t i = 0; i < std::min(row.size(), now.columns.size()); ++i) {
    const bool is_left_out = now.columns[i].is_dropped || now.schema().columns[i].auto_increment;
    if ((is_left_out && row[i].is_null()) || key.has_column(i)) continue;
    rest.push_back({ColumnId(static_cast<std::uint16_t>(i)), row[i]});
  }
  return rest;
}

}  // namespace

// Checks that come before any read: returns the table, or the reason why not.
Result<engine::Table*> Transaction::table_to_write(KeyId key) {
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (!target->keys().can_find(key.index)) return target->data().no_key(key.index);
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  return target;
}

Result<engine::Table*> Transaction::table_to_write(TableId table) {
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_write(); !s.ok()) return s;
  return target;
}

// With read committed each call has a snapshot of its own: if a newer version was committed between
// the look and the change, the next look finds it.
template <typename Change>
Status Transaction::change_found(KeyId key, std::span<const Value> values, Change&& change) {
  for (;;) {
    const Result<Row> row = get(key, values);
    if (!row.ok()) return row.status();
    Status changed = change(*row);
    if (changed.code() != StatusCode::kNotFound || !context_->reads_anew()) return changed;
  }
}

Result<RowId> Transaction::update(KeyId key, std::span<const Value> values,
                                  std::span<const ColumnValue> changes) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  RowId version;
  const Status done = change_found(key, values, [&](const Row& row) {
    const Result<RowId> made = update(key.table, row.id(), changes);
    if (made.ok()) version = *made;
    return made.status();
  });
  if (!done.ok()) return done;
  return version;
}

Status Transaction::remove(KeyId key, std::span<const Value> values) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  return change_found(key, values, [&](const Row& row) { return remove(key.table, row.id()); });
}

Result<Value> Transaction::add(KeyId key, std::span<const Value> values, ColumnId column,
                               Value amount) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  if (Status s = check_addend(**target, column, amount); !s.ok()) return s;
  Value now;
  const Status done = change_found(key, values, [&](const Row& row) {
    const Result<Value> sum = sum_of(**target, column, row.get_unchecked(column), amount);
    if (!sum.ok()) return sum.status();
    now = *sum;
    return update(key.table, row.id(), {{column, now}}).status();
  });
  if (!done.ok()) return done;
  return now;
}

Result<bool> Transaction::compare_and_set(KeyId key, std::span<const Value> values,
                                          std::span<const ColumnValue> expected,
                                          std::span<const ColumnValue> changes) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  if (Status s = check_expected(**target, expected); !s.ok()) return s;
  bool is_same = false;
  const Status done = change_found(key, values, [&](const Row& row) -> Status {
    is_same = std::all_of(expected.begin(), expected.end(),
                          [&](const ColumnValue& one) { return holds(**target, row, one); });
    // A column that was dropped meanwhile may have been read as NULL.
    if (Status s = check_expected(**target, expected); !s.ok()) return s;
    if (!is_same) return engine::RowWriter(**target, *context_).check_unused(changes);
    return update(key.table, row.id(), changes).status();
  });
  if (!done.ok()) return done;
  return is_same;
}

Result<Upserted> Transaction::insert_or(KeyId key, std::span<const Value> row,
                                        std::span<const ColumnValue> changes) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  const engine::KeyIndex& index = *(*target)->keys()[key.index];
  if (!index.is_unique())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key((*target)->name(), index.name()),
                  "not unique");
  const std::span<const std::uint16_t> key_columns = index.columns();
  const engine::TableDefinition& now = (*target)->definition();
  if (!(*target)->data().takes_width(now, row.size()) ||
      *std::max_element(key_columns.begin(), key_columns.end()) >= row.size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::of((*target)->name()),
                  fmt::format("{} for {}", counted(row.size(), "value"),
                              counted(now.columns.size(), "column")));
  std::array<Value, engine::kKeyColumnsMax> wanted;
  const std::span<Value> values(wanted.data(), index.columns().size());
  if (!take_key(index, row, values)) {
    const Result<Inserted> made = insert(key.table, row);
    if (!made.ok()) return made.status();
    return Upserted{made->row, true, made->number};
  }
  for (;;) {
    const Result<Row> found = get(key, values);
    if (found.ok()) {
      if (Status s = engine::RowWriter(**target, *context_).check_unused(row); !s.ok()) return s;
      if (changes.empty()) return Upserted{found->id(), false};
      const Result<RowId> version = update(key.table, found->id(), changes);
      if (version.ok()) return Upserted{*version, false};
      if (version.code() == StatusCode::kNotFound && context_->reads_anew()) continue;
      return version.status();
    }
    if (found.code() != StatusCode::kNotFound) return found.status();
    if (Status s = engine::RowWriter(**target, *context_).check_unused(changes); !s.ok()) return s;
    const Result<Inserted> id = insert(key.table, row);
    if (id.ok()) return Upserted{id->row, true, id->number};
    // The row may have come after the look; if another key refused the insert, that key would
    // again.
    const bool may_have_come = id.code() == StatusCode::kAlreadyExists && context_->reads_anew();
    if (!may_have_come || !get(key, values).ok()) return id.status();
  }
}

Result<Upserted> Transaction::insert_if_absent(KeyId key, std::span<const Value> row) {
  return insert_or(key, row, {});
}

Result<Upserted> Transaction::upsert(KeyId key, std::span<const Value> row,
                                     std::span<const ColumnValue> changes) {
  if (!changes.empty()) return insert_or(key, row, changes);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  for (;;) {
    const engine::TableDefinition& now = (*target)->definition();
    Result<Upserted> done =
        insert_or(key, row, all_but_key(now, *(*target)->keys()[key.index], row));
    // The changes of an existing row may name a column that was dropped meanwhile.
    const bool may_begin_again = done.code() == StatusCode::kInvalidArgument;
    if (!may_begin_again || &(*target)->definition() == &now) return done;
  }
}

Result<std::uint64_t> Transaction::remove_range(KeyId key, KeyBound lower, KeyBound upper) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  const auto find = [&](std::vector<RowId>& found) {
    return rows(key, lower, upper, [&](const Row& row) {
      found.push_back(row.id());
      return true;
    });
  };
  const std::string where = ", key " + std::string((*target)->keys()[key.index]->name());
  return remove_found(**target, where, {}, find);
}

// `find` gives the rows to delete; `where` names the place of them in a message. With read
// committed, rows that were changed since are found again.
Result<std::uint64_t> Transaction::remove_found(
    engine::Table& target, std::string_view where, const CallOptions& options,
    FunctionRef<Status(std::vector<RowId>& found)> find) {
  LongCall call(options, "remove_where");
  engine::ManyRows statement(*context_);
  std::uint64_t removed = 0;
  std::vector<RowId> found;
  for (bool is_anew = true; is_anew;) {
    found.clear();
    Status done = find(found);
    is_anew = false;
    for (std::size_t i = 0; done.ok() && i < found.size(); ++i) {
      if (!call.goes_on_at_row(i, found.size())) {
        done = stopped_by_caller("table " + target.name());
        break;
      }
      done = engine::RowWriter(target, *context_).remove_only(found[i]);
      removed += done.ok() ? 1 : 0;
      if (done.code() != StatusCode::kNotFound || !context_->reads_anew()) continue;
      is_anew = true;  // another version has been committed meanwhile, or the row is gone
      done = {};
    }
    if (done.ok()) continue;
    statement.undo();  // as finish_removal does
    database_->explain(done);
    if (!done.message().empty()) return done;
    return Status(done.code(), fmt::format("table {}{}", target.name(), where))
        .with_part(SchemaPart::of(target.name()));
  }
  // Rows that are deleted together may refer to each other: foreign keys are checked when all of
  // them are gone.
  if (Status s = engine::RowWriter(target, *context_).finish_removal(statement.before(), call);
      !s.ok()) {
    database_->explain(s);
    return s;
  }
  call.tell_end(removed);
  return removed;
}

}  // namespace flugs
