#include "engine/table.h"
#include "flugs/transaction.h"

namespace flugs {

namespace engine {

inline Value Table::decode(const columns::RowLayout& layout, const std::byte* row,
                           std::size_t i) const noexcept {
  const columns::Decoder& decoder = decoders_[i];
  const std::uint64_t bits = layout.load(row, i);
  switch (decoder.kind) {
    case columns::DecodeKind::kCode8:
    case columns::DecodeKind::kCode16: {
      if (bits == decoder.null_code.load(std::memory_order_relaxed)) return Value::null();
      const std::byte* first = decoder.first_entries.load(std::memory_order_relaxed);
      if (bits >= columns::Decoder::kFirstEntries || first == nullptr) break;
      // Small dictionaries are in the caches: no latency of emulated SCM to charge.
      if (decoder.kind == columns::DecodeKind::kCode8)
        return Value::from_raw(decoder.type,
                               *reinterpret_cast<const std::int32_t*>(first + bits * 8));
      return Value::from_raw(decoder.type,
                             *reinterpret_cast<const std::int64_t*>(first + bits * 16));
    }
    case columns::DecodeKind::kNarrow:
      if (layout.load_null(row, i)) return Value::null();
      return Value::from_raw(decoder.type, static_cast<std::int32_t>(bits));
    case columns::DecodeKind::kWide:
      if (layout.load_null(row, i)) return Value::null();
      return Value::from_raw(decoder.type, static_cast<std::int64_t>(bits));
    case columns::DecodeKind::kCodeText:
    case columns::DecodeKind::kText: break;
  }
  return columns_[i]->value(layout, row, i);
}

}  // namespace engine

Value Row::get(ColumnId column) const noexcept {
  return table_->decode(*layout_, cells_, column.value());
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
  const std::size_t columns = table_->columns().size();
  for (std::size_t i = 0; i < columns; ++i) out[i] = table_->decode(*layout_, cells_, i);
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
