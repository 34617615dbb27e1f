// What is asked of rows besides types, NULL and unique keys. Tables without such constraints do not
// come here, except for defaults.

#include <fmt/format.h>

#include <algorithm>

#include "engine/table.h"

namespace flugs::engine {

Status Table::no_column(ColumnId column) const {
  if (column.value() < columns_.size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: column {} was dropped", name(), column.value()));
  return Status(StatusCode::kInvalidArgument, fmt::format("table {}: no column {}, it has {}",
                                                          name(), column.value(), columns_.size()));
}

bool Table::takes_width(std::size_t width) const noexcept {
  const std::size_t count = columns_.size();
  return width == count || (is_any(kAltered) && width < count && width >= layout_.column_count);
}

Status Table::check_width(std::size_t width) const {
  if (takes_width(width)) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("table {}: {} values for {} columns", name(), width, columns_.size()));
}

// Of each row. Without a place for each row's id it is that of a row with all columns.
std::size_t Table::width_of(std::span<const Value> values,
                            std::span<const RowId> ids) const noexcept {
  const std::size_t count = columns_.size();
  if (ids.empty() || values.size() % ids.size() != 0) return count;
  const std::size_t width = values.size() / ids.size();
  return takes_width(width) ? width : count;
}

// Rows of before columns were added, with what these have by default, of all columns there are.
Status Table::complete(TransactionContext& context, std::span<const Value>& values,
                       std::size_t& width) const {
  const std::size_t count = columns_.size();
  if (width == count) return {};
  if (Status s = check_width(width); !s.ok()) return s;
  std::vector<Value> defaults(count);
  const std::vector<ColumnSchema>& columns = schema().columns;
  for (std::size_t i = width; i < count; ++i) {
    // One whose schema nobody has seen yet is as it was made.
    const bool is_known = i < columns.size();
    if (is_known ? columns[i].dropped : columns_[i]->is_dropped()) continue;
    if (is_known && columns[i].default_value.has_value()) {
      defaults[i] = columns[i].default_value->value();
    } else if (!is_known && columns_[i]->has_constant()) {
      defaults[i] = columns_[i]->constant_value();
    } else if (!columns_[i]->nullable()) {
      return Status(StatusCode::kConstraintViolated,
                    fmt::format("table {}, column {}: no value is given, it has no default, and "
                                "NULL is not allowed",
                                name(), columns_[i]->name()));
    }
  }
  std::vector<Value> completed;
  completed.reserve(values.size() / width * count);
  for (std::size_t first = 0; first < values.size(); first += width) {
    const std::span<const Value> row = values.subspan(first, width);
    completed.insert(completed.end(), row.begin(), row.end());
    completed.insert(completed.end(), defaults.begin() + static_cast<std::ptrdiff_t>(width),
                     defaults.end());
  }
  context.numbered = std::move(completed);
  values = context.numbered;
  width = count;
  return {};
}

Status Table::complete_row(std::span<const ColumnValue> given, std::vector<Value>& values) const {
  const TableSchema& now = schema();
  std::vector<bool> is_given(columns_.size());
  values.assign(columns_.size(), Value::null());
  for (const ColumnValue& column_value : given) {
    const std::size_t column = column_value.column.value();
    if (column >= values.size() || !has_column(column_value.column))
      return no_column(column_value.column);
    values[column] = column_value.value;
    is_given[column] = true;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ColumnSchema& column = now.columns[i];
    if (is_given[i]) continue;
    if (column.default_value.has_value()) {
      values[i] = column.default_value->value();
    } else if (!column.nullable && !column.auto_increment) {
      return Status(StatusCode::kConstraintViolated,
                    fmt::format("table {}, column {}: no value is given, it has no default, and "
                                "NULL is not allowed",
                                name(), column.name));
    }
  }
  return {};
}

// Rows without a number get theirs, in a copy.
Status Table::number_rows(TransactionContext& context, std::span<const Value>& values,
                          std::size_t width) {
  bool has_all = true;
  for (std::size_t i = numbered_; i < values.size(); i += width) has_all &= !values[i].is_null();
  if (has_all) return {};
  if (values.data() != context.numbered.data())
    context.numbered.assign(values.begin(), values.end());
  ValueBlock& block = context.local_rows_of(*this).numbers;
  for (std::size_t i = numbered_; i < values.size(); i += width) {
    if (!values[i].is_null()) continue;
    const Result<std::int64_t> number = numbers_->next(block, context.slot->persister());
    if (!number.ok()) return number.status();
    context.numbered[i] = Value::from_raw(columns_[numbered_]->type(), *number);
  }
  values = context.numbered;
  return {};
}

std::span<const Value> Table::as_inserted(const TransactionContext& context,
                                          std::span<const Value> values) const noexcept {
  return is_any(kNumbered | kAltered) && context.numbered.size() >= values.size() ? context.numbered
                                                                                  : values;
}

// The values have been checked.
Status Table::check_new_row(std::span<const Value> values) const {
  const auto value = [&](std::size_t column) {
    return columns::normalised(values[column], columns_[column]->type());
  };
  for (const CheckConstraint& check : definition().checks)
    if (!check.holds(value)) return Status(StatusCode::kConstraintViolated, check.describe(value));
  return {};
}

// The changes have been checked. Of the row as it will be, checks of columns that change.
Status Table::check_changed_row(std::uint32_t row, std::span<const ColumnValue> changes) const {
  const RowView view = rows_.view(row);
  const auto value = [&](std::size_t column) {
    const auto change = std::find_if(changes.rbegin(), changes.rend(), [&](const ColumnValue& c) {
      return c.column.value() == column;
    });
    return change == changes.rend() ? view.value(*columns_[column], column)
                                    : columns::normalised(change->value, columns_[column]->type());
  };
  for (const CheckConstraint& check : definition().checks) {
    const bool is_asked = std::any_of(changes.begin(), changes.end(), [&](const ColumnValue& c) {
      return check.looks_at(c.column.value());
    });
    if (is_asked && !check.holds(value))
      return Status(StatusCode::kConstraintViolated, check.describe(value));
  }
  return {};
}

Status Table::verify_checks(std::uint32_t row) const {
  const RowView view = rows_.view(row);
  const auto value = [&](std::size_t column) { return view.value(*columns_[column], column); };
  for (const CheckConstraint& check : definition().checks)
    if (!check.holds(value))
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: row {}: {}", pool_.path(), row, check.describe(value)));
  return {};
}

Result<RowId> Table::insert_constrained(TransactionContext& context,
                                        std::span<const Value> values) {
  context.numbered.clear();
  std::size_t width = values.size();
  if (Status s = complete(context, values, width); !s.ok()) return s;
  if (is_any(kNumbered))
    if (Status s = number_rows(context, values, width); !s.ok()) return s;
  if (Status s = check_values(values); !s.ok()) return s;
  if (Status s = check_new_row(values); !s.ok()) return s;
  if (!is_any(kReferring)) return insert_row(context, values);
  const TransactionMark mark = context.mark();
  Result<RowId> row = insert_row(context, values);
  if (row.ok())
    if (Status s = finish_statement(context, mark); !s.ok()) return s;
  return row;
}

Status Table::insert_constrained_rows(TransactionContext& context, std::span<const Value> values,
                                      std::span<RowId> ids) {
  context.numbered.clear();
  std::size_t width = width_of(values, ids);
  if (values.size() % width != 0) return insert_plain_rows(context, values, width, ids);  // refuses
  if (Status s = complete(context, values, width); !s.ok()) return s;
  if (is_any(kNumbered))
    if (Status s = number_rows(context, values, width); !s.ok()) return s;
  for (std::size_t i = 0; i < values.size(); i += width) {
    if (Status s = check_values(values.subspan(i, width)); !s.ok()) return s;
    if (Status s = check_new_row(values.subspan(i, width)); !s.ok()) return s;
  }
  const TransactionMark mark = context.mark();
  if (Status s = insert_plain_rows(context, values, width, ids); !s.ok()) return s;
  return is_any(kReferring) ? finish_statement(context, mark) : Status();
}

Result<RowId> Table::update_constrained(TransactionContext& context, RowId row,
                                        std::span<const ColumnValue> changes) {
  if (!rows_.exists(row.value()) || !context.visibility.sees(rows_.version(row.value())))
    return Status(StatusCode::kNotFound);
  if (Status s = check_changes(changes); !s.ok()) return s;
  if (Status s = check_changed_row(row.value(), changes); !s.ok()) return s;
  if (!is_any(kReferring | kReferenced)) return update_row(context, row, changes);
  const TransactionMark mark = context.mark();
  Result<RowId> version = update_row(context, row, changes);
  if (!version.ok()) return version;
  if (Status s = finish_statement(context, mark); !s.ok()) return s;
  return newest_since(context, mark, *version);
}

Status Table::remove_constrained(TransactionContext& context, RowId row) {
  if (!is_any(kReferenced)) return remove_row(context, row);
  const TransactionMark mark = context.mark();
  if (Status s = remove_row(context, row); !s.ok()) return s;
  return finish_statement(context, mark);
}

}  // namespace flugs::engine
