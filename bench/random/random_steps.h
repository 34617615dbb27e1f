#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "flugs/schema.h"
#include "flugs/value.h"

namespace flugs::bench {

// A workload in which everything follows from numbers: table definitions, transactions, values. To
// know what a user's tables must hold it is enough to know how many of its steps were acknowledged.

/// All users share table 0, each with its own rows; each of the others belongs to one user.
inline constexpr std::uint32_t kRandomTables = 4;
/// Keys of a user in a table: few, so that rows are inserted, changed and deleted again and again.
inline constexpr std::uint32_t kRandomKeys = 40;

std::string random_table_name(std::uint32_t user, std::uint32_t table);
/// Columns owner and id, which are the primary key.
inline constexpr std::size_t kRandomKeyColumns = 2;
/// Columns owner and id, and one to eight columns of any type and encoding, with keys of any of
/// them. A unique key contains owner and id, so that no row is refused.
TableSchema random_schema(std::string name, std::uint64_t seed);

/// The value of `seed` in a column; `texts` owns the text.
Value random_value(const ColumnSchema& column, std::uint64_t seed, std::deque<std::string>& texts);

/// Deletes the row if it is there and the choice says so, changes it if it is there, else inserts.
struct RandomWrite {
  std::uint32_t table;
  std::int64_t id;
  bool deletes;
  std::uint64_t seed;  ///< of the values
};

struct RandomStep {
  enum class Kind : std::uint8_t {
    kCommit,
    kAbort,   ///< the same as kCommit, but taken back at the end
    kToggle,  ///< drops the table if it exists, else creates it
    kMerge,   ///< moves all that the table holds to main, where its rows go on being changed
    kAlter,   ///< `random_alteration` of the table, if it exists
  };
  Kind kind = Kind::kCommit;
  std::uint32_t table = 0;        ///< of kToggle, kMerge and kAlter
  std::uint64_t schema_seed = 0;  ///< of kToggle and kAlter
  std::vector<RandomWrite> writes;
};
RandomStep random_step(std::uint64_t seed, std::uint32_t user, std::uint64_t number);

/// A change of a table.
struct RandomAlteration {
  enum class Kind : std::uint8_t {
    kNone,
    kAddColumn,
    kDropColumn,
    kChangeType,
    kAddKey,
    kDropKey,
    kRenameColumn,
    kRenameKey,
  };
  Kind kind = Kind::kNone;
  std::uint16_t place = 0;   ///< of the column or key in its list
  std::string name = {};     ///< of kRenameColumn and kRenameKey
  ColumnSchema column = {};  ///< of kAddColumn
  Type type = Type::kInt64;  ///< of kChangeType: what random_value makes of a seed is the same
  KeySchema key = {};        ///< of kAddKey
};
/// The alteration of `seed` for a table with this schema.
RandomAlteration random_alteration(const TableSchema& schema, std::uint64_t seed);
/// Applies an alteration to a schema, except for the places of keys, which the engine chooses.
void apply_alteration(const RandomAlteration& alteration, TableSchema& schema);

/// The same under another type, as Database::change_type has it.
Constant with_type(const Constant& constant, Type type);

/// A row that is inserted. Columns that are not named get their default, or NULL.
struct RandomRow {
  std::vector<bool> named;
  std::vector<Constant> values;  ///< of all columns
};
/// The row of `seed` for a table with this schema, without owner and id.
RandomRow random_row(std::uint64_t seed, const TableSchema& schema);

/// Which columns of a row an update changes, one to three of those behind the key; some twice.
std::vector<std::uint16_t> random_changes(std::uint64_t seed, const TableSchema& schema);
/// One of `ways` that lead to the same.
constexpr std::uint64_t random_way(std::uint64_t seed, std::uint64_t ways) noexcept {
  return (seed * 0x94d049bb133111ebu >> 32) % ways;
}
/// The seed of one column's value.
constexpr std::uint64_t column_seed(std::uint64_t seed, std::size_t column) noexcept {
  return (seed ^ (column * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
}

}  // namespace flugs::bench
