#include "engine/table.h"
#include "flugs/transaction.h"

namespace flugs {

Value Row::get(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  return table_->columns()[i]->value(*layout_, cells_, i);
}

bool Row::is_null(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  return table_->columns()[i]->is_null(*layout_, cells_, i);
}

std::int64_t Row::get_int64(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(!table_->columns()[i]->is_text());
  return table_->columns()[i]->integer(*layout_, cells_, i);
}

double Row::get_double(ColumnId column) const noexcept {
  FLUGS_DCHECK(table_->columns()[column.value()]->type() == Type::kDouble);
  const Value value = get(column);
  return value.is_null() ? 0 : value.as_double();
}

std::string_view Row::get_string(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(table_->columns()[i]->is_text());
  return table_->columns()[i]->text(*layout_, cells_, i);
}

void Row::get(std::span<const ColumnId> columns, std::span<Value> out) const noexcept {
  for (std::size_t i = 0; i < columns.size(); ++i) out[i] = get(columns[i]);
}

void Row::get_all(std::span<Value> out) const noexcept {
  const auto columns = table_->columns();
  for (std::size_t i = 0; i < columns.size(); ++i) out[i] = columns[i]->value(*layout_, cells_, i);
}

Value ScanBatch::value(std::size_t index, std::size_t row) const noexcept {
  const Column& column = columns_[index];
  if (column.has_nulls && column.nulls[row] != 0) return Value::null();
  switch (column.type) {
    case Type::kDouble: return Value::real(column.doubles[row]);
    case Type::kString:
    case Type::kBytes: return Value::from_bytes(column.type, column.strings[row]);
    default: return Value::from_raw(column.type, column.integers[row]);
  }
}

}  // namespace flugs
