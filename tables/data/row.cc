#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/names.h"
#include "base/types.h"
#include "flugs/scan.h"
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
      out = Value::from_raw(decoder.value_kind(),
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
        out = Value::from_raw(decoder.value_kind(), narrow ? static_cast<std::int32_t>(bits)
                                                           : static_cast<std::int64_t>(bits));
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

// Gives a decimal the scale of its column, which users expect.
inline void give_own_scale(const columns::Column& column, Value& value) noexcept {
  if (__builtin_expect(value.scale() == Value::kScaleOfColumn, 0))
    value = value.with_scale(column.scale());
}

[[gnu::noinline]] Value decimal_value(const columns::Column& column,
                                      const columns::RowLayout& cells, const std::byte* row,
                                      std::size_t i) noexcept {
  Value value = column.value(cells, row, i);
  give_own_scale(column, value);
  return value;
}

}  // namespace

Value TableData::decode(const columns::RowLayout& cells, const std::byte* row,
                        std::size_t i) const noexcept {
  Value value;
  if (decode_common(cells.access()[i], decoders[i], row, value)) return value;
  const columns::Column& column = *columns[i];
  if (__builtin_expect(column.type() == Type::kDecimal, 0))
    return decimal_value(column, cells, row, i);
  switch (decoders[i].kind.load(std::memory_order_acquire)) {
    case columns::DecodeKind::kCode8:
    case columns::DecodeKind::kCode16:
    case columns::DecodeKind::kCodeText:  // as decode_common, behind the first entries
      return column.dictionary().value(
          static_cast<std::uint32_t>(columns::RowLayout::load(row, cells.access()[i])));
    default:
      return column.value(cells, row, i);
  }
}

void TableData::decode_all(const columns::RowLayout& cells, const std::byte* row,
                           std::span<Value> out) const noexcept {
  FLUGS_DCHECK(out.size() <= columns.size());
  const columns::RowLayout::Access* access = cells.access();
  const columns::Decoder* decoder = &decoders[0];
  const std::size_t count = out.size();
  Value* target = out.data();
  for (std::size_t i = 0; i < count; ++i)
    if (!decode_common(access[i], decoder[i], row, target[i])) {
      target[i] = columns[i]->value(cells, row, i);
      give_own_scale(*columns[i], target[i]);
    }
}

}  // namespace engine

TableId Row::table() const noexcept { return table_ == nullptr ? TableId() : table_->id(); }

bool Row::read(ColumnId column, detail::Wanted wanted, Value& out) const noexcept {
  if (table_ == nullptr || column.value() >= table_->columns.size()) return false;
  if (!wanted.admits(table_->columns[column.value()]->type())) return false;
  out = get_unchecked(column);
  return wanted.takes_null || !out.is_null();
}

Status Row::misread(ColumnId column, detail::Wanted wanted) const {
  const std::size_t i = column.value();
  if (table_ == nullptr)
    return Status(StatusCode::kInvalidArgument, "a Row that no call has returned holds no values");
  if (!table_->has_column(column)) return table_->no_column(column);
  const columns::Column& of = *table_->columns[i];
  const std::string where = fmt::format("table {}, column {} ({})", table_->name(), i, of.name());
  if (wanted.admits(of.type()))
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: holds NULL, read as {}: read it as std::optional or Value",
                              where, wanted.name))
        .with_part(SchemaPart::column(table_->name(), of.name()));
  return Status(StatusCode::kInvalidArgument, fmt::format("{}: is of type {}, read as {}", where,
                                                          to_string(of.type()), wanted.name))
      .with_part(SchemaPart::column(table_->name(), of.name()));
}

Result<ColumnId> Row::find_column(std::string_view name) const {
  if (table_ != nullptr) {
    const auto& columns = table_->schema().columns;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name && !columns[i].dropped)
        return ColumnId(static_cast<std::uint16_t>(i));
  }
  if (table_ == nullptr)
    return Status(StatusCode::kInvalidArgument, "a Row that no call has returned holds no values");
  return Status(StatusCode::kNotFound, SchemaPart::of(table_->name()),
                fmt::format("no column '{}', it has {}", name, names_of(table_->schema().columns)));
}

template <>
Value Row::get_unchecked<Value>(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  if (__builtin_expect(layout_ != nullptr, 1)) return table_->decode(*layout_, cells_, i);
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return Value::null();
  const columns::Column& of = *table_->columns[i];
  Value value = engine::RowView::of(*this).value(of, i);
  engine::give_own_scale(of, value);
  return value;
}

bool Row::is_null_unchecked(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return true;
  return engine::RowView::of(*this).is_null(*table_->columns[i], i);
}

template <>
std::int64_t Row::get_unchecked<std::int64_t>(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(!table_->columns[i]->is_text());
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return 0;
  return engine::RowView::of(*this).integer(*table_->columns[i], i);
}

template <>
double Row::get_unchecked<double>(ColumnId column) const noexcept {
  FLUGS_DCHECK(table_->columns[column.value()]->type() == Type::kDouble);
  const Value value = get_unchecked(column);
  return value.is_null() ? 0 : value.as_double();
}

template <>
std::string_view Row::get_unchecked<std::string_view>(ColumnId column) const noexcept {
  const std::size_t i = column.value();
  FLUGS_DCHECK(table_->columns[i]->is_text());
  if (__builtin_expect(table_->is_dropped_column(i), 0)) return {};
  return engine::RowView::of(*this).text(*table_->columns[i], i);
}

void Row::get_unchecked(std::span<const ColumnId> columns, std::span<Value> out) const noexcept {
  for (std::size_t i = 0; i < columns.size(); ++i) out[i] = get_unchecked(columns[i]);
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
  for (std::size_t i = 0; i < values.size(); ++i)
    engine::give_own_scale(*table_->columns[i], values[i]);
  if (__builtin_expect(table_->has_dropped_columns(), 0))
    for (std::size_t i = 0; i < values.size(); ++i)
      if (table_->columns[i]->is_dropped()) values[i] = Value::null();
}

Status ScanBatch::misread(std::size_t index, detail::Wanted wanted) const {
  return Status(
      StatusCode::kInvalidArgument,
      index >= columns_.size()
          ? fmt::format("requested column {} of a batch with {} columns", index, columns_.size())
          : fmt::format("requested column {}: is of type {}, read as {}", index,
                        to_string(columns_[index].type), wanted.name));
}

Value ScanBatch::get_unchecked(std::size_t index, std::size_t row) const noexcept {
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
  return Value::from_raw(column.type, column.integers[row]).with_scale(column.scale);
}

}  // namespace flugs
