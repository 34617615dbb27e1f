#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "columns/cells/column_layout.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list_layout.h"

namespace flugs::engine {

/// In the pool: the application root.
struct DatabaseLayout {
  static constexpr std::uint64_t kMagic = 0x31304244534c4746u;  // "FGLSDB01"
  std::uint64_t magic;       ///< stored last when a database is created
  std::uint64_t catalog;     ///< offset of a CatalogLayout
  std::uint64_t slot_array;  ///< offset of an mvcc::SlotArrayLayout
  std::uint64_t
      index_place;  ///< flugs::IndexPlace of tables that are created; durable with `magic`
  std::uint64_t reserved[4];
};
static_assert(sizeof(DatabaseLayout) == 64 &&
              sizeof(DatabaseLayout) <= pmem::kApplicationRootBytes);
static_assert(offsetof(DatabaseLayout, magic) == 0);  // what every opening looks at first

/// In the pool: the tables, each by the offset of its TableLayout; 0 is a free place.
struct CatalogLayout {
  static constexpr std::size_t kTablesMax = 511;
  std::uint64_t tables[kTablesMax];
  std::uint64_t reserved;
};
static_assert(sizeof(CatalogLayout) == 4096);

/// In the pool: a table, in one extent: this header, `column_count` ColumnLayouts, the schema; with
/// IndexPlace::kPool, from the next line on, a columns::HintIndexLayout per column and per key.
struct TableLayout {
  static constexpr std::uint64_t kMagic = 0x454c424154474c46u;  // "FLGTABLE"
  std::uint64_t magic;
  std::uint64_t bytes;     ///< of the extent
  std::uint64_t checksum;  ///< XXH3-64 of the two words above, the 32 bytes below and the schema,
                           ///< chained by seed
  std::uint32_t table_id;
  std::uint16_t column_count;
  std::uint8_t first_chunk_rows_log2;    ///< rows of the first chunk, as a power of two
  std::uint8_t largest_chunk_rows_log2;  ///< chunks double up to that
  std::uint64_t schema_offset;           ///< from the beginning of this structure
  std::uint64_t schema_bytes;
  std::uint64_t hints_offset;  ///< likewise; 0: none
  std::uint64_t index_runs;    ///< offset of an IndexRunListLayout; 0: none
  pmem::ChunkListLayout row_chunks;
  std::uint64_t schema_block;  ///< offset of a SchemaBlockLayout; 0: the schema here holds
  std::uint64_t reserved[7];
};
static_assert(sizeof(TableLayout) == 192);

// The checksum is of the 32 bytes from table_id on. Behind them are words that change later.
static_assert(offsetof(TableLayout, table_id) == 24 && offsetof(TableLayout, index_runs) == 56);

/// In the pool: the complete schema of a table that was changed (decision 0022). One extent: this
/// header, the offsets of added columns, ChangedColumnLayouts, the schema. A schema block never
/// changes: a new one replaces it.
struct SchemaBlockLayout {
  static constexpr std::uint64_t kMagic = 0x414d454843534c46u;  // "FLSCHEMA"
  std::uint64_t magic;
  std::uint64_t bytes;     ///< of the extent
  std::uint64_t checksum;  ///< XXH3-64 of the two words above, the 40 bytes below, the offsets,
                           ///< the changed columns and the schema, chained by seed
  std::uint32_t table_id;
  std::uint16_t
      added_columns;         ///< behind those of the TableLayout: as many words follow the header
  std::uint16_t added_keys;  ///< bit per key: not from the table's creation
  std::uint64_t schema_bytes;
  std::uint32_t key_additions;    ///< how many keys were added so far
  std::uint16_t changed_columns;  ///< as many ChangedColumnLayouts follow the offsets
  std::uint16_t reserved0;
  std::uint64_t reserved1[2];
};
static_assert(sizeof(SchemaBlockLayout) == 64);
// The checksum is of the two words before it, and of all that is behind it.
static_assert(offsetof(SchemaBlockLayout, checksum) == 16 &&
              offsetof(SchemaBlockLayout, table_id) == 24);

/// In the pool, in a schema block: one edition of a column after its first, in the order in which
/// they were made. An edition that no row has any more leaves the list, unless it is the newest.
struct ChangedColumnLayout {
  std::uint64_t layout;  ///< offset of the edition's AddedColumnLayout
  std::uint16_t column;
  std::uint8_t type;      ///< flugs::Type of the edition before in the list, or of the first
  std::uint8_t encoding;  ///< flugs::Encoding likewise
  std::uint16_t edition;  ///< its number, 1 to kEditionsMax - 1
  std::uint16_t reserved;
};
static_assert(sizeof(ChangedColumnLayout) == 16);

/// In the pool, at the beginning of every row chunk: this header, `column_count` CellLayouts,
/// padding to a line, then `row_count` rows; in the shape kColumns padding to RowBlock::kAlignment,
/// then blocks of rows.
struct RowChunkLayout {
  static constexpr std::uint64_t kMagic = 0x4b4e484357524c46u;  // "FLRWCHNK"
  std::uint64_t magic;
  std::uint64_t checksum;  ///< XXH3-64 of everything below and the CellLayouts
  std::uint32_t table_id;
  std::uint32_t chunk_index;
  std::uint32_t row_bytes;
  std::uint32_t row_count;
  std::uint16_t column_count;
  std::uint8_t row_shape;  ///< columns::RowShape
  std::uint8_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t reserved2[3];
};
static_assert(sizeof(RowChunkLayout) == 64);
static_assert(offsetof(RowChunkLayout, table_id) == 16);  // the checksum is of all from there on

/// In the pool, in the place of a row chunk: the same row ids, read-optimised (decision 0012). One
/// extent: this header, `column_count` columns::MainColumnLayouts, the words of `places`, the block
/// pointers, then the data of the columns.
struct RowGroupLayout {
  static constexpr std::uint64_t kMagic = 0x50554f5247574c46u;  // "FLWGROUP"
  /// Row ids that share a version block. The first deletion among them makes the block of
  /// mvcc::VersionLayouts.
  static constexpr std::uint32_t kBlockRows = 1024;
  std::uint64_t magic;
  std::uint64_t checksum;  ///< XXH3-64 of the rest of this header, the MainColumnLayouts and places
  std::uint64_t bytes;     ///< of the extent
  std::uint32_t table_id;
  std::uint32_t chunk_index;
  std::uint32_t row_count;    ///< row ids
  std::uint32_t stored_rows;  ///< of these, with a place in the columns; row_count at most
  std::uint16_t column_count;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t places_offset;   ///< from the beginning of this structure; 0: every id has a place
  std::uint64_t blocks_offset;   ///< words: offset of a version block in the pool, 0: none
  std::uint64_t records_offset;  ///< of the rows' codes once more (columns::MainRecords); 0: none
  std::uint64_t records_checksum;  ///< XXH3-64
  std::uint64_t reserved2[6];
};
static_assert(sizeof(RowGroupLayout) == 128);
static_assert(offsetof(RowGroupLayout, bytes) == 16);  // likewise
// Bits of an offset, and whole words of masks.
static_assert(std::has_single_bit(RowGroupLayout::kBlockRows) &&
              RowGroupLayout::kBlockRows % 64 == 0);

/// In the pool, for 64 row ids: which of them have a place in the group's columns.
struct RowPlacesLayout {
  std::uint64_t stored;         ///< a bit per row id
  std::uint32_t stored_before;  ///< ids with a place in all words before
  std::uint32_t reserved;
};
static_assert(sizeof(RowPlacesLayout) == 16);
static_assert(std::is_trivially_copyable_v<SchemaBlockLayout> &&
              std::is_trivially_copyable_v<TableLayout> && std::is_standard_layout_v<TableLayout> &&
              std::is_trivially_copyable_v<RowChunkLayout> &&
              std::is_trivially_copyable_v<RowGroupLayout>);

}  // namespace flugs::engine
