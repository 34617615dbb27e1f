#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/schema.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

/// A table's schema as the pool has it, and what of the table does not lie in its own extent.
struct StoredSchema {
  TableSchema schema;
  /// Of the columns behind those that the table was created with, in order.
  std::vector<std::uint64_t> added_columns;
  /// Of columns that have more than one edition, those after the first, in order (decisions 0025,
  /// 0026).
  std::vector<ChangedColumnLayout> changed_columns;
  /// Bit per key: not from the table's creation, so that it has no hint index in its extent.
  std::uint16_t added_keys = 0;
  std::uint32_t key_additions = 0;  ///< how many there were: index runs say how many before them
  std::size_t created_keys = 0;  ///< as many keys the table was created with: so many hint indexes
};

/// What the first edition of a column looked like.
ColumnSchema first_edition(const StoredSchema& stored, std::size_t column);
/// What the edition looks like that the change with that number made.
ColumnSchema edition_made_by(const StoredSchema& stored, std::size_t change);

/// A number for the column's next edition; 0: all are taken.
std::uint16_t free_edition(const StoredSchema& stored, std::size_t column);
/// Takes the edition that the change with that number made out of the list. Not a column's newest.
void forget_edition(StoredSchema& stored, std::size_t change);

/// Writes a SchemaBlockLayout, flushed but not fenced. Fails with kOutOfSpace.
Result<pmem::Extent> write_schema_block(pmem::Pool& pool, std::uint32_t table_id,
                                        const StoredSchema& stored, pmem::Persister& persister);
/// The schema in the block that the table names, for a table whose own is `created`; that one, if
/// it names none. Trusts nothing: fails with kCorrupt.
Result<StoredSchema> read_schema(pmem::Pool& pool, const TableLayout& table, TableSchema created);
/// The extent of the block that the table names, which read_schema has passed; of 0 bytes: none.
pmem::Extent schema_block_of(pmem::Pool& pool, const TableLayout& table) noexcept;

}  // namespace flugs::engine
