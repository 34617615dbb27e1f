#include <algorithm>

#include "base/check.h"
#include "base/types.h"
#include "flugs/transaction.h"
#include "tables/data/table_data.h"

namespace flugs {

namespace engine {

namespace {

// Decodes the common kinds of cells, from pointers that the caller keeps in registers: the compiler
// would otherwise assume that storing a result changes them. False: not a common kind.
inline bool decode_common(const columns::RowLayout::Access& access, const columns::Decoder& decoder,
                          const std::byte* row, Value& out) noexcept {
  const std::uint64_t bits = columns::RowLayout::load(row, access);
  const columns::DecodeKind kind = decoder.kind.load(std::memory_order_acquire);
  switch (kind) {
    case columns::DecodeKind::kCode8:
    case columns::DecodeKind::kCode16: {
      const std::byte* first = decoder.first_entries.load(std::memory_order_relaxed);
      if (bits >= columns::Decoder::kFirstEntries || first == nullptr) return false;
      if (bits == decoder.null_code.load(std::memory_order_relaxed)) {
        out = Value::null();
        return true;
      }
      const bool narrow = kind == columns::DecodeKind::kCode8;
      const std::byte* entry = first + bits * (narrow ? 8 : 16);
      out = Value::from_raw(decoder.type.load(std::memory_order_relaxed),
                            narrow ? *reinterpret_cast<const std::int32_t*>(entry)
                                   : *reinterpret_cast<const std::int64_t*>(entry));
      return true;
    }
    case columns::DecodeKind::kNarrow:
    case columns::DecodeKind::kWide: {
      const bool narrow = kind == columns::DecodeKind::kNarrow;
      if (columns::RowLayout::load_null(row, access)) {
        out = Value::null();
      } else {
        out = Value::from_raw(
            decoder.type.load(std::memory_order_relaxed),
            narrow ? static_cast<std::int32_t>(bits) : static_cast<std::int64_t>(bits));
      }
      return true;
    }
    case columns::DecodeKind::kCodeText:
    case columns::DecodeKind::kText:
    case columns::DecodeKind::kDropped:
    case columns::DecodeKind::kChanged:
      break;
  }
  return false;
}

}  // namespace

Value TableData::decode(const columns::RowLayout& cells, const std::byte* row,
                        std::size_t i) const noexcept {
  Value value;
  if (decode_common(cells.access()[i], decoders[i], row, value)) return value;
  return columns[i]->value(cells, row, i);
}

void TableData::decode_all(const columns::RowLayout& cells, const std::byte* row,
                           std::span<Value> out) const noexcept {
  FLUGS_DCHECK(out.size() <= columns.size());
  const columns::RowLayout::Access* access = cells.access();
  const columns::Decoder* decoder = &decoders[0];
  const std::size_t count = out.size();
  Value* target = out.data();
  for (std::size_t i = 0; i < count; ++i)
    if (!decode_common(access[i], decoder[i], row, target[i]))
      target[i] = columns[i]->value(cells, row, i);
}

}  // namespace engine

Value Row::get(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  if (__builtin_expect(layout_ != nullptr, 1)) return table_->decode(*layout_, cells_, i);
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return Value::null();
  return engine::RowView::of(*this).value(*table_->columns[i], i);
}

bool Row::is_null(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return true;
  return engine::RowView::of(*this).is_null(*table_->columns[i], i);
}

std::int64_t Row::get_int64(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(!table_->columns[i]->is_text());
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return 0;
  return engine::RowView::of(*this).integer(*table_->columns[i], i);
}

double Row::get_double(ColumnId column) const noexcept {
  FLUGS_DCHECK(table_->columns[column.value()]->type() == Type::kDouble);
  const Value value = get(column);
  return value.is_null() ? 0 : value.as_double();
}

std::string_view Row::get_string(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(table_->columns[i]->is_text());
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return {};
  return engine::RowView::of(*this).text(*table_->columns[i], i);
}

void Row::get(std::span<const ColumnId> columns, std::span<Value> out) const noexcept {
  for (std::size_t i = 0; i < columns.size(); ++i) out[i] = get(columns[i]);
}

void Row::get_all(std::span<Value> out) const noexcept {
  // `out` may be from before a column was added.
  const std::span<Value> values = out.first(std::min(out.size(), table_->columns.size()));
  if (__builtin_expect(layout_ != nullptr, 1)) {
    table_->decode_all(*layout_, cells_, values);
    return;
  }
  const engine::RowView view = engine::RowView::of(*this);
  view.group->decode_all(view.place, values);
  if (__builtin_expect(table_->has_dropped_columns(), 0))
    for (std::size_t i = 0; i < values.size(); ++i)
      if (table_->columns[i]->is_dropped()) values[i] = Value::null();
}

Value ScanBatch::value(std::size_t index, std::size_t row) const noexcept {
  const Column& column = columns_[index];
  if (column.has_nulls && column.nulls[row] != 0) return Value::null();
  switch (lane_of(column.type)) {
    case Lane::kReal:
      return Value::real(column.doubles[row]);
    case Lane::kText:
      return Value::from_bytes(column.type, column.strings[row]);
    case Lane::kInt:
      break;
  }
  return Value::from_raw(column.type, column.integers[row]);
}

}  // namespace flugs
