#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "flugs/ids.h"
#include "flugs/reads.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs {

namespace engine {
struct TableData;
struct RowView;
}  // namespace engine
namespace columns {
class RowLayout;
}  // namespace columns

/// One visible version of a row, read in place: getting a value copies at most its eight bytes,
/// strings are views into the pool. Valid until the transaction that returned it ends, writes to
/// this row, or undoes a write of it (rollback_to).
///
/// Thread-safety: as the transaction's.
class Row {
 public:
  Row() noexcept = default;

  RowId id() const noexcept { return id_; }
  TableId table() const noexcept;

  /// The value of a column, as a C++ type that fits the column's (Readable):
  ///     const Result<std::string_view> state = row.get<std::string_view>(kState);
  /// A dropped column is NULL.
  /// Fails with: kInvalidArgument (no such column; its type does not fit T; it holds NULL, and T is
  /// neither a std::optional nor Value). The message names table, column and both types.
  template <Readable T = Value>
  Result<T> get(ColumnId column) const {
    Value value;
    if (!read(column, detail::Wanted::of<T>(), value))
      return misread(column, detail::Wanted::of<T>());
    return detail::Reads<T>::of(value);
  }
  /// The same by the column's name, which is looked for: some ten nanoseconds more. Fails with: as
  /// above; kNotFound (the table has no column of this name; the message names those that it has).
  template <Readable T = Value>
  Result<T> get(std::string_view column) const {
    const Result<ColumnId> id = find_column(column);
    if (!id.ok()) return id.status();
    return get<T>(*id);
  }
  /// Fails with: kInvalidArgument (no such column).
  Result<bool> is_null(ColumnId column) const {
    const Result<Value> value = get(column);
    if (!value.ok()) return value.status();
    return value->is_null();
  }

  // For loops over rows of a table whose schema the caller knows. The column must exist, and its
  // type must fit T as above, but that bool, int32, int64, decimal (units), date (days) and
  // timestamp (microseconds) may all be read as std::int64_t. Any other use ends the process in
  // debug builds, and reads unspecified memory in release builds. No function allocates or fails.

  /// NULL is 0, or an empty text; a NULL Value.
  template <typename T = Value>
  T get_unchecked(ColumnId column) const noexcept;
  bool is_null_unchecked(ColumnId column) const noexcept;
  /// Several columns at once, faster than one by one. `out` has the size of `columns`.
  void get_unchecked(std::span<const ColumnId> columns, std::span<Value> out) const noexcept;

  /// All columns in schema order; `out` has the size of the schema. Columns that do not fit `out`
  /// are left out.
  void get_all(std::span<Value> out) const noexcept;

 private:
  bool read(ColumnId column, detail::Wanted wanted, Value& out) const noexcept;
  Status misread(ColumnId column, detail::Wanted wanted) const;
  Result<ColumnId> find_column(std::string_view name) const;

  friend struct engine::TableData;
  const engine::TableData* table_ = nullptr;
  friend struct engine::RowView;
  const columns::RowLayout* layout_ = nullptr;  // null: the row is in a row group
  const std::byte* cells_ = nullptr;            // of the row, or of its group
  RowId id_;
  std::uint32_t place_ = 0;  // in the group
};
static_assert(sizeof(Row) == 32 && std::is_trivially_copyable_v<Row>);

template <>
Value Row::get_unchecked<Value>(ColumnId column) const noexcept;
template <>
std::int64_t Row::get_unchecked<std::int64_t>(ColumnId column) const noexcept;
template <>
double Row::get_unchecked<double>(ColumnId column) const noexcept;
template <>
std::string_view Row::get_unchecked<std::string_view>(ColumnId column) const noexcept;
template <>
inline bool Row::get_unchecked<bool>(ColumnId column) const noexcept {
  return get_unchecked<std::int64_t>(column) != 0;
}
template <>
inline std::int32_t Row::get_unchecked<std::int32_t>(ColumnId column) const noexcept {
  return static_cast<std::int32_t>(get_unchecked<std::int64_t>(column));
}

}  // namespace flugs
