#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "flugs/ids.h"
#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs {

/// A table found by name (Database::table), with the ids of its columns and keys by name. It is as
/// it was when it was found: later renames do not show, while ids stay valid.
///
/// Thread-safety: a plain value type; copies share the schema.
class Table {
 public:
  /// Names no table.
  Table() noexcept = default;
  Table(TableId id, TableSchema schema)
      : id_(id), schema_(std::make_shared<const TableSchema>(std::move(schema))) {}

  TableId id() const noexcept { return id_; }
  operator TableId() const noexcept { return id_; }  // NOLINT(google-explicit-constructor)
  /// Empty for a default Table. For a Table that is kept: `table(...)->schema()` would refer to a
  /// schema that is destroyed.
  const TableSchema& schema() const& noexcept {
    static const TableSchema none;
    return schema_ == nullptr ? none : *schema_;
  }
  const TableSchema& schema() const&& = delete;
  const std::string& name() const& noexcept { return schema().name; }
  const std::string& name() const&& = delete;

  /// Fails with: kNotFound (the message names the table and the columns that it has).
  Result<ColumnId> column(std::string_view name) const;
  /// Several at once: const auto [state, total] = *table.columns("state", "total");
  template <typename... Names>
  Result<std::array<ColumnId, sizeof...(Names)>> columns(const Names&... names) const {
    std::array<ColumnId, sizeof...(Names)> found;
    Status failed;
    std::size_t i = 0;
    const auto find = [&](std::string_view name) {
      Result<ColumnId> id = column(name);
      if (id.ok())
        found[i++] = *id;
      else if (failed.ok())
        failed = std::move(id).status();
    };
    (find(names), ...);
    if (!failed.ok()) return failed;
    return found;
  }
  /// Fails with: kNotFound (the message names the table and the keys that it has).
  Result<KeyId> key(std::string_view name) const;
  /// Fails with: kNotFound (the table has none).
  Result<KeyId> primary_key() const;

 private:
  TableId id_;
  std::shared_ptr<const TableSchema> schema_;
};

static_assert(std::is_nothrow_move_constructible_v<Table> && std::is_convertible_v<Table, TableId>);

}  // namespace flugs
