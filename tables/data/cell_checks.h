#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flugs/status.h"

namespace flugs::engine {

struct TableData;

// Whether the cells of rows in chunks can be what the table wrote: a code names an entry, a text
// lies inside the pool. Readers look up cells that pass, without another check. Groups are checked
// when they are loaded. Fail with kCorrupt, which names the first cell that is wrong.

/// Rows of the chunk with row `first`, by the addresses of their cells.
Status check_cells(const TableData& data, std::uint32_t first,
                   std::span<const std::byte* const> rows);
/// One row; here entries of dictionaries are looked at, too.
Status check_cells(const TableData& data, std::uint32_t row);

}  // namespace flugs::engine
