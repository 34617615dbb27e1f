#pragma once

#include <cstdint>
#include <string_view>

#include "flugs/database.h"

namespace flugs::bench {

/// Layout of the tables that a benchmark makes, in the delta.
enum class TableLayout : std::uint8_t {
  kRows,
  kColumns,  ///< each column apart
  kGroups,   ///< all columns of a table in one group
};
/// "rows", "columns" or "groups".
std::string_view to_string(TableLayout layout) noexcept;

/// Gives the table, or all tables of the database, the layout. Fails as
/// Database::set_delta_layout.
Status lay_out_table(Database& database, TableId table, TableLayout layout);
Status lay_out_tables(Database& database, TableLayout layout);

}  // namespace flugs::bench
