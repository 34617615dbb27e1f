// Constraints on rows besides types, NULL and unique keys. Tables without such constraints do not
// come here, except for defaults.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/long_call.h"
#include "base/names.h"
#include "tables/data/definition_of_now.h"
#include "tables/table/cascade.h"
#include "tables/table/row_writer.h"
#include "tables/table/table_columns.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

Status RowWriter::check_width(const TableDefinition& now, std::size_t width) const {
  if (data_.takes_width(now, width)) return {};
  return Status(
      StatusCode::kInvalidArgument, SchemaPart::of(data_.name()),
      fmt::format("{} for {}", counted(width, "value"), counted(now.columns.size(), "column")));
}

// The number of values of each row. Without row ids it is the number of all columns.
std::size_t RowWriter::width_of(const TableDefinition& now, std::span<const Value> values,
                                std::span<const RowId> ids) const noexcept {
  const std::size_t count = now.columns.size();
  if (ids.empty() || values.size() % ids.size() != 0) return count;
  const std::size_t width = values.size() / ids.size();
  return data_.takes_width(now, width) ? width : count;
}

// Checks a value that DefinedColumn::takes has refused, and makes it one of the column's type.
Status RowWriter::fit_value(const TableDefinition& now, std::size_t column, Value& value) const {
  FLUGS_DCHECK(column < now.columns.size());
  const DefinedColumn& defined = now.columns[column];
  if (defined.is_dropped) {
    if (value.is_null()) return {};
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, column {} was dropped", data_.name(), column))
        .with_part(SchemaPart::of(data_.name()));
  }
  if (value.is_null()) {
    if (defined.nullable) return {};
    return Status(StatusCode::kConstraintViolated,
                  SchemaPart::column(data_.name(), now.schema().columns[column].name),
                  "NULL is not allowed");
  }
  if (Status s = data_.columns[column]->check(value, defined.type); !s.ok()) return s;
  value = exact_value(value, defined.type, defined.scale).value_or(value);
  return {};
}

Status RowWriter::check_unused(std::span<const Value> row) const {
  const TableDefinition& now = data_.definition();
  for (std::size_t i = 0; i < std::min(row.size(), now.columns.size()); ++i) {
    Value value = row[i];
    if (value.is_null() || now.columns[i].takes(value)) continue;
    if (Status s = fit_value(now, i, value); !s.ok()) return s;
  }
  return {};
}

Status RowWriter::check_unused(std::span<const ColumnValue> changes) const {
  std::vector<ColumnValue> fitted;
  return fit_changes(data_.definition(), changes, fitted);
}

// The value of a row in a column for which no value is given. An auto-increment column gets its
// number later.
Status RowWriter::default_of(const TableDefinition& now, std::size_t column, Value& value) const {
  FLUGS_DCHECK(column < now.columns.size());
  const ColumnSchema& schema = now.schema().columns[column];
  value = schema.default_value.has_value() ? schema.default_value->value() : Value::null();
  if (!value.is_null() || now.columns[column].nullable || schema.dropped || schema.auto_increment)
    return {};
  return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), schema.name),
                "no value is given, it has no default, and NULL is not allowed");
}

// Completes rows with fewer columns, from before columns were added, with the defaults of the
// missing columns.
Status RowWriter::complete(const TableDefinition& now, std::span<const Value>& values,
                           std::size_t& width) const {
  const std::size_t count = now.columns.size();
  if (width == count) return {};
  if (Status s = check_width(now, width); !s.ok()) return s;
  FLUGS_CHECK(width != 0 && values.size() % width == 0);
  std::vector<Value> defaults(count);
  for (std::size_t i = width; i < count; ++i)
    if (Status s = default_of(now, i, defaults[i]); !s.ok()) return s;
  std::vector<Value> completed;
  completed.reserve(values.size() / width * count);
  for (std::size_t first = 0; first < values.size(); first += width) {
    const std::span<const Value> row = values.subspan(first, width);
    completed.insert(completed.end(), row.begin(), row.end());
    completed.insert(completed.end(), defaults.begin() + static_cast<std::ptrdiff_t>(width),
                     defaults.end());
  }
  context_.scratch.numbered = std::move(completed);
  values = context_.scratch.numbered;
  width = count;
  return {};
}

Status RowWriter::complete_row(const TableDefinition& now, std::span<const ColumnValue> given,
                               std::vector<Value>& values) const {
  const std::size_t count = now.columns.size();
  std::vector<bool> is_given(count);
  values.assign(count, Value::null());
  for (const ColumnValue& column_value : given) {
    const std::size_t column = column_value.column.value();
    if (!now.has_column(column)) return data_.no_column(now, column_value.column);
    values[column] = column_value.value;
    is_given[column] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_given[i]) continue;
    if (Status s = default_of(now, i, values[i]); !s.ok()) return s;
  }
  return {};
}

// Gives numbers to rows without one, in a copy, unless the numbered column has been dropped.
Status RowWriter::number_rows(const TableDefinition& now, std::span<const Value>& values,
                              std::size_t width) {
  AutoIncrement* const source = columns_.number_source();
  const std::size_t numbered = columns_.numbered_column();
  if (source == nullptr || now.columns[numbered].is_dropped) return {};
  FLUGS_DCHECK(numbered < width);
  bool has_all = true;
  for (std::size_t i = numbered; i < values.size(); i += width) has_all &= !values[i].is_null();
  if (has_all) return {};
  if (values.data() != context_.scratch.numbered.data())
    context_.scratch.numbered.assign(values.begin(), values.end());
  ValueBlock& block = context_.local_rows.of(table_).numbers;
  const Type type = now.columns[numbered].type;
  for (std::size_t i = numbered; i < values.size(); i += width) {
    if (!values[i].is_null()) continue;
    const Result<std::int64_t> number = source->next(block, context_.slot->persister());
    if (!number.ok()) return number.status();
    // The column has just become an int64, and has numbers above those of an int32.
    if (type == Type::kInt32 && *number > std::numeric_limits<std::int32_t>::max())
      return changed_meanwhile();
    context_.scratch.numbered[i] = Value::from_raw(type, *number);
  }
  values = context_.scratch.numbered;
  return {};
}

// The values have been checked.
Status RowWriter::check_new_row(const TableDefinition& now, std::span<const Value> values) const {
  FLUGS_DCHECK(values.size() == now.columns.size());
  const auto value = [&](std::size_t column) {
    return columns::normalised(values[column], now.columns[column].type);
  };
  for (const CheckConstraint& check : now.checks)
    if (!check.holds(value)) return check.violated_by(value);
  return {};
}

// The changes have been checked. Evaluates the checks of changed columns on the row as it will be.
Status RowWriter::check_changed_row(const TableDefinition& now, std::uint32_t row,
                                    std::span<const ColumnValue> changes) const {
  const RowView view = data_.rows.view(row);
  const auto value = [&](std::size_t column) {
    const auto change = std::find_if(changes.rbegin(), changes.rend(), [&](const ColumnValue& c) {
      return c.column.value() == column;
    });
    return change == changes.rend() ? view.value(*data_.columns[column], column)
                                    : columns::normalised(change->value, now.columns[column].type);
  };
  for (const CheckConstraint& check : now.checks) {
    const bool is_asked = std::any_of(changes.begin(), changes.end(), [&](const ColumnValue& c) {
      return check.looks_at(c.column.value());
    });
    if (is_asked && !check.holds(value)) return check.violated_by(value);
  }
  return {};
}

Result<RowId> RowWriter::insert_constrained(const TableDefinition& now,
                                            std::span<const Value> values) {
  std::size_t width = values.size();
  if (Status s = complete(now, values, width); !s.ok()) return s;
  if (Status s = number_rows(now, values, width); !s.ok()) return s;
  if (Status s = fit_values(now, values, width); !s.ok()) return s;
  if (Status s = check_new_row(now, values); !s.ok()) return s;
  if (!data_.constraints.any_of(RowConstraints::kReferring)) return insert_row(values);
  const TransactionMark mark = context_.mark();
  Result<RowId> row = insert_row(values);
  if (row.ok())
    if (Status s = Cascade(context_, mark).finish(); !s.ok()) return s;
  return row;
}

Status RowWriter::insert_constrained_rows(const TableDefinition& now, std::span<const Value> values,
                                          std::size_t width, std::span<RowId> ids, LongCall& call) {
  if (Status s = complete(now, values, width); !s.ok()) return s;
  if (Status s = number_rows(now, values, width); !s.ok()) return s;
  if (Status s = fit_values(now, values, width); !s.ok()) return s;
  for (std::size_t i = 0; i < values.size(); i += width)
    if (Status s = check_new_row(now, values.subspan(i, width)); !s.ok()) return s;
  const TransactionMark mark = context_.mark();
  if (Status s = insert_checked_rows(values, width, ids, call); !s.ok()) return s;
  return data_.constraints.any_of(RowConstraints::kReferring) ? Cascade(context_, mark).finish()
                                                              : Status();
}

Result<RowId> RowWriter::update_constrained(const TableDefinition& now, RowId row,
                                            std::span<const ColumnValue> changes) {
  if (!data_.rows.exists(row.value()) || !context_.visibility.sees(data_.rows.version(row.value())))
    return Status(StatusCode::kNotFound);
  std::vector<ColumnValue> fitted;
  if (Status s = fit_changes(now, changes, fitted); !s.ok()) return s;
  if (Status s = check_changed_row(now, row.value(), changes); !s.ok()) return s;
  if (!data_.constraints.any_of(RowConstraints::kReferring | RowConstraints::kReferenced))
    return update_row(now, row, changes);
  const TransactionMark mark = context_.mark();
  Result<RowId> version = update_row(now, row, changes);
  if (!version.ok()) return version;
  if (Status s = Cascade(context_, mark).finish(); !s.ok()) return s;
  return newest_since(mark, *version);
}

Status RowWriter::remove_constrained(RowId row) {
  if (!data_.constraints.any_of(RowConstraints::kReferenced)) return remove_only(row);
  const TransactionMark mark = context_.mark();
  if (Status s = remove_only(row); !s.ok()) return s;
  return Cascade(context_, mark).finish();
}

// The newest version that the statement and its own cascades have made of a row.
RowId RowWriter::newest_since(const TransactionMark& mark, RowId row) const noexcept {
  FLUGS_DCHECK(mark.writes <= context_.writes.size());
  std::uint32_t newest = row.value();
  for (std::size_t i = mark.writes; i < context_.writes.size(); ++i) {
    const mvcc::Write& write = context_.writes[i];
    if (!write.deletes && write.table == data_.layout.table_id &&
        data_.rows.previous(write.row) == newest)
      newest = write.row;
  }
  return RowId(newest);
}

Result<RowId> RowWriter::update_only(RowId row, std::span<const ColumnValue> changes) {
  return with_definition_of_now(data_, context_, [&](const TableDefinition& now) -> Result<RowId> {
    std::vector<ColumnValue> fitted;
    if (Status s = fit_changes(now, changes, fitted); !s.ok()) return s;
    if (Status s = check_changed_row(now, row.value(), changes); !s.ok()) return s;
    return update_row(now, row, changes);
  });
}

Status RowWriter::finish_removal(const TransactionMark& mark, LongCall& call) {
  if (!data_.constraints.any_of(RowConstraints::kReferenced)) return {};
  Cascade cascade(context_, mark, &call);
  Status s = cascade.finish();
  return cascade.is_stopped() ? stopped_by_caller("table " + std::string(data_.name())) : s;
}

}  // namespace flugs::engine
