#pragma once

#include <compare>
#include <cstdint>

namespace flugs {

namespace detail {
/// An integer type of its own: conversions from and to other integers are explicit.
template <typename Tag, typename Integer>
class Id {
 public:
  constexpr Id() noexcept = default;
  constexpr explicit Id(Integer value) noexcept : value_(value) {}
  constexpr Integer value() const noexcept { return value_; }
  friend constexpr auto operator<=>(Id, Id) noexcept = default;

 private:
  Integer value_ = 0;
};
}  // namespace detail

/// A table of one database, valid until the table is dropped or the database is closed; look it up
/// by name after opening. Ids start at 1, so a default TableId names no table.
using TableId = detail::Id<struct TableIdTag, std::uint32_t>;

/// A column by its position in the schema, 0 first.
using ColumnId = detail::Id<struct ColumnIdTag, std::uint16_t>;

/// One version of a row, by its position in the table. Stable while a transaction that can see the
/// version is open; an update makes a new version with a new RowId. Once a version is dead and no
/// open transaction sees it, its RowId may become another row's: to find a row again in a later
/// transaction use a key, unless you know that no transaction updates or deletes it.
using RowId = detail::Id<struct RowIdTag, std::uint32_t>;

/// An open or ended transaction. No other transaction since the database was opened has the same
/// id; a default TransactionId names none.
using TransactionId = detail::Id<struct TransactionIdTag, std::uint64_t>;

/// A key of a table: the primary key or one of the secondary keys, by position in the schema.
/// Database::find_key gives it.
struct KeyId {
  TableId table;
  std::uint16_t index = 0;
  friend constexpr bool operator==(KeyId, KeyId) noexcept = default;
};

static_assert(sizeof(TableId) == 4);
static_assert(sizeof(ColumnId) == 2);
static_assert(sizeof(RowId) == 4);
static_assert(sizeof(TransactionId) == 8);
static_assert(sizeof(KeyId) == 8);
static_assert(TableId() < TableId(1));

}  // namespace flugs
