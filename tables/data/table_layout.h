#pragma once

#include <cstdint>

#include "columns/cells/delta_shape.h"
#include "flugs/index_place.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/schema_block.h"

namespace flugs::engine {

// A table's own extent in the pool: TableLayout, the layouts of the columns it was created with,
// its schema, and its hint indexes. It never changes its size: what comes later lies elsewhere.

/// The shape of the rows in chunks that are begun for a table of this schema.
columns::DeltaShape delta_shape_of(const TableSchema& schema);
/// Bytes of a row whose columns are all as wide as they can get. Fails with kInvalidArgument when a
/// row could get too large.
Result<std::uint32_t> widest_row(const TableSchema& schema);
/// Makes a new table's extent, flushed but not fenced. Fails with kInvalidArgument, kOutOfSpace.
Result<pmem::Extent> make_table_layout(pmem::Pool& pool, const TableSchema& schema,
                                       std::uint32_t table_id, IndexPlace index_place,
                                       std::uint64_t segment_bytes, pmem::Persister& persister);
/// Checks a table's extent and what it leads to, and reads the schema. Trusts nothing: fails with
/// kCorrupt.
Result<StoredSchema> check_table_layout(pmem::Pool& pool, std::uint64_t offset);

}  // namespace flugs::engine
