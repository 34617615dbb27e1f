#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "flugs/schema.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

/// A table's schema as the pool has it, and the parts of the table that are outside its own extent.
struct StoredSchema {
  TableSchema schema;
  /// Offsets of the columns that were added after the table's creation, in order.
  std::vector<std::uint64_t> added_columns;
  /// The editions after the first of each column that has more than one, in order (decisions 0025,
  /// 0026).
  std::vector<ChangedColumnLayout> changed_columns;
  /// Bit per key: added after the table's creation, and so without a hint index in the table's
  /// extent.
  std::uint16_t added_keys = 0;
  std::uint32_t key_additions = 0;  ///< keys added so far; an index run has this number, too
  std::size_t created_keys = 0;  ///< keys that the table was created with, each with a hint index
};

/// The first edition of a column.
ColumnSchema first_edition(const StoredSchema& stored, std::size_t column);
/// The edition that the change with that number made.
ColumnSchema edition_made_by(const StoredSchema& stored, std::size_t change);

/// Whether the column can get one more edition. kBusy says why not: a merge must forget some first.
Status check_room_for_edition(const StoredSchema& stored, std::size_t column);
/// A number for the column's next edition; 0: all are taken.
std::uint16_t free_edition(const StoredSchema& stored, std::size_t column);
/// Takes the edition that the change with that number made out of the list. It must not be the
/// newest edition of the column.
void forget_edition(StoredSchema& stored, std::size_t change);

/// Most editions after the first that the columns of a table have together.
inline constexpr std::size_t kChangesMax =
    std::numeric_limits<decltype(SchemaBlockLayout::changed_columns)>::max();

/// Writes a SchemaBlockLayout, flushed but not fenced. Fails with kOutOfSpace.
Result<pmem::Extent> write_schema_block(pmem::Pool& pool, std::uint32_t table_id,
                                        const StoredSchema& stored, pmem::Persister& persister);
/// Reads the schema in the block that the table names; `created` if it names none. `created` is the
/// table's own schema. Trusts nothing: fails with kCorrupt.
Result<StoredSchema> read_schema(pmem::Pool& pool, const TableLayout& table, TableSchema created);
/// The extent of the block that the table names; 0 bytes: none. read_schema must have checked the
/// block.
pmem::Extent schema_block_of(pmem::Pool& pool, const TableLayout& table) noexcept;

}  // namespace flugs::engine
