#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/sqlite/columns.h"
#include "bindings/sqlite/sqlite_api.h"
#include "bindings/sqlite/values.h"

namespace flugs::sqlite {

inline constexpr std::uint16_t kRowIdColumn = 0xFFFF;

/// A condition of SQL that a plan has taken over, in whole or as a help for SQLite.
struct Term {
  enum class Kind : std::uint8_t { kCompare, kIn, kIsNull, kIsNotNull, kPrefix };
  Kind kind = Kind::kCompare;
  Compare op = Compare::kEq;
  std::uint16_t column = 0;  ///< a number of TableShape::columns, or kRowIdColumn
  std::uint16_t argument = 0;
  bool is_literal = false;  ///< what the column is compared with
  bool operator==(const Term&) const = default;
};

struct SortColumn {
  std::uint16_t column = 0;
  bool down = false;
  bool operator==(const SortColumn&) const = default;
};

/// How a cursor finds its rows. A cursor that cannot go by the key, because a value is unclear,
/// scans with the terms that are clear and sorts: the rows are the same.
struct Plan {
  enum class Way : std::uint8_t {
    kScan,   ///< all rows that meet the terms
    kGet,    ///< the row of a unique key
    kWalk,   ///< rows of a key: a prefix, and perhaps a range of the column behind it
    kRowId,  ///< the row with an id
  };
  static constexpr std::uint16_t kNone = 0xFFFF;

  Way way = Way::kScan;
  std::uint16_t key = 0;        ///< a number of TableShape::keys
  std::uint16_t equal = 0;      ///< number of leading columns of the key that the first terms fix
  std::uint16_t lower = kNone;  ///< numbers of terms
  std::uint16_t upper = kNone;
  bool down = false;
  bool has_limit = false;          ///< SQLite wants few rows, most likely
  std::uint64_t columns_used = 0;  ///< as sqlite3_index_info::colUsed
  std::vector<Term> terms;
  std::vector<SortColumn> sort;  ///< the order that SQLite relies on
  bool operator==(const Plan&) const = default;
};

/// What SQLite asks xBestIndex, answered: `info` has all but idxNum. `rows` is the number of rows
/// of the table, about.
Plan choose_plan(const TableShape& shape, double rows, sqlite3_index_info* info);
/// For EXPLAIN QUERY PLAN: "primary (id=?)".
std::string describe(const TableShape& shape, const Plan& plan);

}  // namespace flugs::sqlite
