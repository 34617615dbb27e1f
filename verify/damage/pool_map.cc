#include "verify/damage/pool_map.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "columns/cells/chunk_geometry.h"
#include "columns/cells/column_layout.h"
#include "columns/cells/row_layout.h"
#include "columns/index/hint_index_layout.h"
#include "columns/main/main_column_layout.h"
#include "columns/main/main_records.h"
#include "flugs/schema.h"
#include "mvcc/transaction_slots_layout.h"
#include "pmem/pool/pool_format.h"
#include "tables/catalog/added_column_layout.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/keys/index_run_layout.h"

namespace flugs::damage {

namespace {

using columns::ChunkGeometry;
using columns::ColumnLayout;
using columns::HintIndexLayout;
using engine::AddedColumnLayout;
using engine::CatalogLayout;
using engine::ChangedColumnLayout;
using engine::DatabaseLayout;
using engine::IndexRunKeyLayout;
using engine::IndexRunLayout;
using engine::IndexRunListLayout;
using engine::RowChunkLayout;
using engine::RowGroupLayout;
using engine::TableLayout;
using pmem::ChunkListLayout;

/// Bytes of the offsets of added columns, and of later editions.
std::uint64_t words_behind(const engine::SchemaBlockLayout& block) {
  return block.added_columns * sizeof(std::uint64_t) +
         block.changed_columns * sizeof(ChangedColumnLayout);
}

constexpr ChunkGeometry kDictionaryGeometry{8, 18};
constexpr ChunkGeometry kHintSlabGeometry{0, 9};
constexpr std::size_t kRowsMapped = 4096;  // per chunk; enough to hit, and bounded

std::uint64_t rounded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

std::uint32_t entry_bytes_of(std::uint8_t type) noexcept {
  switch (static_cast<Type>(type)) {
    case Type::kBool:
    case Type::kInt32:
    case Type::kDate:
      return 8;
    case Type::kString:
    case Type::kBytes:
      return 32;
    default:
      return 16;
  }
}

std::uint64_t bytes_of(const IndexRunListLayout& list) noexcept {
  const std::uint64_t words = (std::uint64_t{list.chunk_count} + 63) / 64;
  return sizeof list + list.run_count * (8 + words * 8);
}

class Mapper {
 public:
  Mapper(std::span<const std::byte> pool, std::uint64_t root) : pool_(pool), root_(root) {}

  std::vector<Region> run() {
    const auto& head = at<pmem::PoolRoot>(root_);
    const std::uint32_t arenas = head.headers[0].arena_count;
    for (std::uint64_t copy = 0; copy < 2; ++copy)
      add(Part::kPoolHeader, true, root_ + copy * sizeof(pmem::PoolHeader),
          sizeof(pmem::PoolHeader));
    for (std::uint32_t i = 0; i < arenas; ++i) {
      const std::uint64_t arena = root_ + sizeof(pmem::PoolRoot) + i * sizeof(pmem::ArenaRecord);
      add(Part::kArenas, true, arena, 16);
      add(Part::kArenaLimits, false, arena + 16, 16);
    }
    const std::uint64_t database = root_ + offsetof(pmem::PoolRoot, application_root);
    add(Part::kDatabaseRoot, false, database, 24);
    const auto& layout = at<DatabaseLayout>(database);
    add(Part::kCatalog, false, layout.catalog, sizeof(CatalogLayout));
    for (const std::uint64_t table : at<CatalogLayout>(layout.catalog).tables)
      if (table != 0) map_table(table);
    map_slots(layout.slot_array);
    return std::move(regions_);
  }

 private:
  template <typename T>
  const T& at(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<const T*>(pool_.data() + offset);
  }
  void add(Part part, bool is_vouched, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes != 0) regions_.push_back({part, is_vouched, offset, bytes});
  }

  template <typename Visit>
  void map_list(std::uint64_t offset, Visit&& visit) {
    add(Part::kChunkList, false, offset, 56);
    const auto& list = at<ChunkListLayout>(offset);
    std::size_t index = 0;
    const auto visit_chunk = [&](std::uint64_t chunk) {
      const std::uint64_t offset_of_chunk = chunk & ChunkListLayout::kOffsetMask;
      if (offset_of_chunk != ChunkListLayout::kNoExtent) visit(index, offset_of_chunk);
      ++index;
    };
    for (const std::uint64_t chunk : list.inline_chunks)
      if (chunk != 0) visit_chunk(chunk);
    if (list.root_page == 0) return;
    add(Part::kListPage, false, list.root_page, ChunkListLayout::kPageBytes);
    const auto* leaves = &at<std::uint64_t>(list.root_page);
    for (std::size_t leaf = 0; leaf < ChunkListLayout::kPagePointers && leaves[leaf] != 0; ++leaf) {
      add(Part::kListPage, false, leaves[leaf], ChunkListLayout::kPageBytes);
      const auto* chunks = &at<std::uint64_t>(leaves[leaf]);
      for (std::size_t i = 0; i < ChunkListLayout::kPagePointers && chunks[i] != 0; ++i)
        visit_chunk(chunks[i]);
    }
  }

  void map_table(std::uint64_t offset) {
    const auto& table = at<TableLayout>(offset);
    add(Part::kTable, true, offset, 56);
    add(Part::kTable, false, offset + offsetof(TableLayout, index_runs), 8);
    add(Part::kTable, true, offset + table.schema_offset, table.schema_bytes);
    add(Part::kTable, false, offset + offsetof(TableLayout, schema_block), 8);
    const std::set<std::uint64_t> changed = map_later_columns(table);
    for (std::uint64_t i = 0; i < table.column_count; ++i)
      if (!changed.contains(i)) map_column(offset + sizeof(TableLayout) + i * sizeof(ColumnLayout));
    map_list(offset + offsetof(TableLayout, row_chunks), [&](std::size_t, std::uint64_t chunk) {
      if (at<std::uint64_t>(chunk) == RowGroupLayout::kMagic) {
        map_row_group(chunk);
      } else {
        map_row_chunk(chunk);
      }
    });
    if (table.index_runs != 0) map_index_runs(table.index_runs);
    const std::uint64_t hints_end = table.hints_offset == 0 ? 0 : offset + table.bytes;
    for (std::uint64_t i = 0;; ++i) {
      const std::uint64_t hints = offset + table.hints_offset + i * sizeof(HintIndexLayout);
      if (hints + sizeof(HintIndexLayout) > hints_end) break;
      if (!changed.contains(i)) map_hints(hints);
    }
  }

  // Maps added columns, and later editions. Returns the columns with later editions: the space that
  // their first editions owned may belong to others by now.
  std::set<std::uint64_t> map_later_columns(const TableLayout& table) {
    std::set<std::uint64_t> changed;
    if (table.schema_block == 0) return changed;
    const auto& block = at<engine::SchemaBlockLayout>(table.schema_block);
    const std::uint64_t changes =
        table.schema_block + sizeof block + block.added_columns * sizeof(std::uint64_t);
    add(Part::kTable, true, table.schema_block,
        sizeof block + words_behind(block) + block.schema_bytes);
    for (std::uint64_t i = block.changed_columns; i > 0; --i) {
      const auto& change = at<ChangedColumnLayout>(changes + (i - 1) * sizeof(ChangedColumnLayout));
      map_added(change.layout, changed.insert(change.column).second);
    }
    for (std::uint64_t i = 0; i < block.added_columns; ++i)
      map_added(at<std::uint64_t>(table.schema_block + sizeof block + i * 8),
                !changed.contains(table.column_count + i));
    return changed;
  }

  void map_added(std::uint64_t added, bool is_newest) {
    add(Part::kAddedColumn, true, added, sizeof(AddedColumnLayout));
    if (!is_newest) return;
    map_column(added + sizeof(AddedColumnLayout));
    if (const auto hints = at<AddedColumnLayout>(added).hints_offset; hints != 0)
      map_hints(added + hints);
  }

  void map_hints(std::uint64_t offset) {
    const auto& hints = at<HintIndexLayout>(offset);
    std::uint64_t left = hints.segments_used;
    map_list(offset + offsetof(HintIndexLayout, slabs), [&](std::size_t index, std::uint64_t slab) {
      const std::uint64_t segments = kHintSlabGeometry.elements_in(index);
      for (std::uint64_t i = 0; i < segments && left != 0; ++i, --left)
        add(Part::kHintSegment, false, slab + i * sizeof(columns::HintSegmentLayout),
            sizeof(columns::HintSegmentLayout));
    });
    if (hints.directory == 0) return;
    add(Part::kHintIndex, false, offset, 40);
    add(Part::kHintDirectory, false, hints.directory / 64 * 64,
        std::uint64_t{8} << (hints.directory % 64));
    // An incomplete change does not count: what it would have replaced has stayed where it was.
    if (hints.change.checksum != 0)
      add(Part::kHintChange, false, offset + offsetof(HintIndexLayout, change),
          sizeof hints.change);
  }

  void map_column(std::uint64_t column) {
    add(Part::kColumn, false, column, 8);
    map_dictionary(column);
    map_list(column + offsetof(ColumnLayout, heap), [&](std::size_t, std::uint64_t chunk) {
      const auto& header = at<columns::StringHeapChunkLayout>(chunk);
      add(Part::kHeapChunk, true, chunk, 24);
      add(Part::kText, false, chunk + sizeof header, header.bytes - sizeof header);
    });
    add(Part::kColumn, false, column + offsetof(ColumnLayout, heap) + 64, 8);
  }

  void map_index_runs(std::uint64_t offset) {
    const auto& list = at<IndexRunListLayout>(offset);
    add(Part::kIndexList, true, offset, bytes_of(list));
    for (std::uint64_t i = 0; i < list.run_count; ++i)
      map_index_run(at<std::uint64_t>(offset + sizeof list + i * 8));
  }

  void map_index_run(std::uint64_t offset) {
    const auto& run = at<IndexRunLayout>(offset);
    add(Part::kIndexRun, true, offset, sizeof run + run.key_count * sizeof(IndexRunKeyLayout));
    for (std::uint64_t i = 0; i < run.key_count; ++i) {
      const auto& key = at<IndexRunKeyLayout>(offset + sizeof run + i * sizeof(IndexRunKeyLayout));
      if (key.slots_offset != 0)
        add(Part::kIndexEntries, true, offset + key.slots_offset, key.slot_count * 8);
      if (key.prefixes_offset == 0) continue;
      add(Part::kIndexEntries, true, offset + key.prefixes_offset, key.ordered_entries * 8);
      add(Part::kIndexEntries, true, offset + key.rows_offset, key.ordered_entries * 4);
      add(Part::kIndexEntries, true, offset + key.fences_offset,
          (key.ordered_entries + 63) / 64 * 8);
    }
  }

  void map_dictionary(std::uint64_t column) {
    const std::uint32_t bytes = entry_bytes_of(at<ColumnLayout>(column).type);
    map_list(column + offsetof(ColumnLayout, dictionary),
             [&](std::size_t index, std::uint64_t chunk) {
               const std::uint64_t entries = kDictionaryGeometry.elements_in(index);
               static constexpr std::array<std::byte, 32> kAbsent{};
               for (std::uint64_t i = 0; i < entries; ++i) {
                 const std::uint64_t entry = chunk + i * bytes;
                 if (std::memcmp(pool_.data() + entry, kAbsent.data(), bytes) == 0) continue;
                 add(Part::kDictionaryEntry, true, entry, bytes == 32 ? 24 : bytes);
                 if (bytes != 32 || at<std::uint8_t>(entry + 15) != 0xFF) continue;
                 add(Part::kText, true, at<std::uint64_t>(entry), at<std::uint32_t>(entry + 8));
               }
             });
  }

  void map_row_chunk(std::uint64_t offset) {
    const auto& chunk = at<RowChunkLayout>(offset);
    const std::uint64_t cells = std::uint64_t{chunk.column_count} * sizeof(columns::CellLayout);
    add(Part::kRowChunk, true, offset, sizeof chunk + cells);
    if (chunk.row_shape != 0) return map_rows_in_columns(offset);
    const std::uint64_t rows = offset + rounded(sizeof chunk + cells);
    for (std::uint64_t i = 0; i < chunk.row_count && i < kRowsMapped; ++i) {
      const std::uint64_t row = rows + i * chunk.row_bytes;
      if (at<std::uint64_t>(row) != 0) add(Part::kRow, false, row, chunk.row_bytes);
    }
  }

  // The pool is at a multiple of RowBlock::kAlignment in memory.
  void map_rows_in_columns(std::uint64_t offset) {
    const auto& chunk = at<RowChunkLayout>(offset);
    const std::uint64_t header =
        rounded(sizeof chunk + std::uint64_t{chunk.column_count} * sizeof(columns::CellLayout));
    const std::uint64_t first =
        (offset + header + RowBlock::kAlignment - 1) / RowBlock::kAlignment * RowBlock::kAlignment;
    const std::span cells(reinterpret_cast<const columns::CellLayout*>(&chunk + 1),
                          chunk.column_count);
    const auto layout =
        columns::RowLayout::from_pool(cells, chunk.row_bytes, columns::RowShape::kColumns);
    FLUGS_CHECK(layout.ok());  // the pool is sound
    for (std::uint64_t i = 0; i < chunk.row_count && i < kRowsMapped; ++i) {
      const std::uint64_t in_block = i % RowBlock::kRows;
      const std::uint64_t block = first + (i - in_block) * chunk.row_bytes;
      const std::uint64_t stamps = block + in_block * RowBlock::kStampBytes;
      if (at<std::uint64_t>(stamps) == 0) continue;
      add(Part::kRow, false, stamps, RowBlock::kStampBytes);
      for (const RowPart& part : layout->parts())
        add(Part::kRow, false, block + part.offset * RowBlock::kRows + in_block * part.bytes,
            part.bytes);
    }
  }

  void map_row_group(std::uint64_t offset) {
    const auto& group = at<RowGroupLayout>(offset);
    const auto* columns = &at<columns::MainColumnLayout>(offset + sizeof group);
    add(Part::kRowGroup, true, offset, sizeof group + group.column_count * sizeof *columns);
    for (std::size_t i = 0; i < group.column_count; ++i)
      add(Part::kGroupColumn, true, offset + columns[i].parts_offset, columns[i].parts_bytes);
    if (group.records_offset != 0)
      add(Part::kGroupRecords, true, offset + group.records_offset,
          columns::MainRecords({columns, group.column_count}).bytes(group.stored_rows));
    if (group.places_offset != 0)
      add(Part::kGroupPlaces, true, offset + group.places_offset,
          (group.row_count + 63) / 64 * sizeof(engine::RowPlacesLayout));
    const std::uint64_t blocks = (std::uint64_t{group.row_count} + 1023) / 1024;
    add(Part::kBlockPointers, false, offset + group.blocks_offset, blocks * 8);
    for (std::uint64_t i = 0; i < blocks; ++i)
      if (const auto block = at<std::uint64_t>(offset + group.blocks_offset + i * 8); block != 0)
        add(Part::kVersions, false, block, std::uint64_t{std::min(group.row_count, 1024U)} * 16);
  }

  void map_slots(std::uint64_t offset) {
    const auto& array = at<mvcc::SlotArrayLayout>(offset);
    add(Part::kSlotArray, true, offset, 32);
    add(Part::kGenerationLimit, false, offset + sizeof array, array.slot_count * 8);
    const std::uint64_t slots = offset + sizeof array + rounded(array.slot_count * 8);
    for (std::uint64_t i = 0; i < array.slot_count * 2; ++i) {
      const std::uint64_t half = slots + i * sizeof(mvcc::SlotHalfLayout);
      const auto& layout = at<mvcc::SlotHalfLayout>(half);
      const std::array<std::uint64_t, 3> words = {i / 2, layout.commit_generation,
                                                  layout.commit_timestamp};
      const bool is_committed = layout.commit_timestamp != 0 &&
                                layout.commit_check == XXH3_64bits(words.data(), sizeof words);
      add(Part::kCommitRecord, is_committed, half, 24);
      add(Part::kIntents, false, half + 24, 40);
      for (std::uint64_t begin = layout.overflow; begin != 0;) {
        const auto& block = at<mvcc::IntentBlockLayout>(begin);
        add(Part::kIntentBlock, true, begin, 32);
        add(Part::kIntents, false, begin + sizeof block, block.bytes - sizeof block);
        begin = block.next;
      }
    }
  }

  std::span<const std::byte> pool_;
  std::uint64_t root_;
  std::vector<Region> regions_;
};

void reseal_header(pmem::PoolRoot& root, std::uint64_t pool_bytes) {
  for (pmem::PoolHeader& header : root.headers) {
    const std::uint64_t arenas = std::min<std::uint64_t>(header.arena_count, 64);
    std::uint64_t sum = arenas;
    if (pool_bytes > sizeof root + arenas * sizeof(pmem::ArenaRecord)) {
      for (std::uint64_t i = 0; i < arenas; ++i)
        sum = XXH3_64bits_withSeed(root.arenas() + i, 16, sum);
      header.arenas_checksum = sum;
    }
    header.checksum = pmem::checksum_of(header);
  }
}

template <typename T>
void reseal_first_words(T& layout, std::size_t bytes) {
  layout.checksum = XXH3_64bits(&layout, bytes);
}

void reseal_table(std::span<std::byte> pool, std::uint64_t offset) {
  auto& table = *reinterpret_cast<TableLayout*>(pool.data() + offset);
  if (table.schema_offset > pool.size() - offset ||
      table.schema_bytes > pool.size() - offset - table.schema_offset)
    return;
  std::uint64_t sum = XXH3_64bits(&table.magic, 16);
  sum = XXH3_64bits_withSeed(&table.table_id, 32, sum);
  table.checksum =
      XXH3_64bits_withSeed(pool.data() + offset + table.schema_offset, table.schema_bytes, sum);
}

void reseal_schema(std::span<std::byte> pool, std::uint64_t offset) {
  auto& block = *reinterpret_cast<engine::SchemaBlockLayout*>(pool.data() + offset);
  const std::uint64_t behind = words_behind(block);
  if (sizeof block + behind > pool.size() - offset ||
      block.schema_bytes > pool.size() - offset - sizeof block - behind)
    return;
  const std::uint64_t sum = XXH3_64bits(&block.magic, 16);
  block.checksum =
      XXH3_64bits_withSeed(&block.table_id, sizeof block - 24 + behind + block.schema_bytes, sum);
}

void reseal_added_column(AddedColumnLayout& added) {
  added.checksum =
      XXH3_64bits_withSeed(&added.table_id, sizeof added - 24, XXH3_64bits(&added.magic, 16));
}

void reseal_index_list(std::span<std::byte> pool, std::uint64_t offset) {
  auto& list = *reinterpret_cast<IndexRunListLayout*>(pool.data() + offset);
  const std::uint64_t bytes = bytes_of(list);
  if (bytes <= pool.size() - offset)
    list.checksum = XXH3_64bits(pool.data() + offset + 16, bytes - 16);
}

void reseal_index_run(std::span<std::byte> pool, std::uint64_t offset) {
  auto& run = *reinterpret_cast<IndexRunLayout*>(pool.data() + offset);
  const std::uint64_t bytes = sizeof run + run.key_count * sizeof(IndexRunKeyLayout);
  if (bytes <= pool.size() - offset)
    run.checksum = XXH3_64bits(pool.data() + offset + 16, bytes - 16);
}

void reseal_group(std::span<std::byte> pool, std::uint64_t offset) {
  auto& group = *reinterpret_cast<RowGroupLayout*>(pool.data() + offset);
  const std::uint64_t rest = pool.size() - offset;
  const std::uint64_t bytes =
      sizeof group + std::uint64_t{group.column_count} * sizeof(columns::MainColumnLayout);
  if (group.magic != RowGroupLayout::kMagic || bytes > rest) return;
  auto* columns = reinterpret_cast<columns::MainColumnLayout*>(&group + 1);
  for (std::size_t i = 0; i < group.column_count; ++i)
    columns[i].checksum = XXH3_64bits(columns + i, sizeof *columns - 8);
  group.checksum = XXH3_64bits(pool.data() + offset + 16, bytes - 16);
  const std::uint64_t places =
      (std::uint64_t{group.row_count} + 63) / 64 * sizeof(engine::RowPlacesLayout);
  if (group.places_offset != 0 && group.places_offset <= rest &&
      places <= rest - group.places_offset)
    group.checksum =
        XXH3_64bits_withSeed(pool.data() + offset + group.places_offset, places, group.checksum);
}

}  // namespace

std::string_view to_string(Part part) noexcept {
  constexpr std::array<std::string_view, kPartsCount> kNames = {"libpmemobj header",
                                                                "libpmemobj lanes",
                                                                "libpmemobj heap",
                                                                "pool header",
                                                                "arena",
                                                                "arena limits",
                                                                "database root",
                                                                "catalogue",
                                                                "table",
                                                                "column",
                                                                "added column",
                                                                "chunk list",
                                                                "chunk list page",
                                                                "row chunk header",
                                                                "row",
                                                                "row group header",
                                                                "row group places",
                                                                "row group column",
                                                                "row group records",
                                                                "version block pointers",
                                                                "version block",
                                                                "index run list",
                                                                "index run header",
                                                                "index run entries",
                                                                "dictionary entry",
                                                                "string chunk header",
                                                                "text",
                                                                "slot array",
                                                                "generation limit",
                                                                "commit record",
                                                                "intents",
                                                                "intent block",
                                                                "hint index",
                                                                "hint index change",
                                                                "hint directory",
                                                                "hint segment"};
  return kNames[static_cast<std::size_t>(part)];
}

std::vector<Region> map_pool(std::span<const std::byte> pool, std::uint64_t root) {
  return Mapper(pool, root).run();
}

void reseal(std::span<std::byte> pool, std::uint64_t root, const Region& region) {
  std::byte* const at = pool.data() + region.offset;
  switch (region.part) {
    case Part::kPoolHeader:
    case Part::kArenas:
      reseal_header(*reinterpret_cast<pmem::PoolRoot*>(pool.data() + root), pool.size() - root);
      break;
    case Part::kTable:
      if (reinterpret_cast<TableLayout*>(at)->magic == TableLayout::kMagic)
        reseal_table(pool, region.offset);
      if (reinterpret_cast<engine::SchemaBlockLayout*>(at)->magic ==
          engine::SchemaBlockLayout::kMagic)
        reseal_schema(pool, region.offset);
      break;
    case Part::kAddedColumn:
      reseal_added_column(*reinterpret_cast<AddedColumnLayout*>(at));
      break;
    case Part::kRowChunk: {
      auto& chunk = *reinterpret_cast<RowChunkLayout*>(at);
      const std::uint64_t cells = std::uint64_t{chunk.column_count} * sizeof(columns::CellLayout);
      if (cells <= pool.size() - region.offset - sizeof chunk)
        chunk.checksum = XXH3_64bits(at + 16, sizeof chunk - 16 + cells);
      break;
    }
    case Part::kRowGroup:
      reseal_group(pool, region.offset);
      break;
    case Part::kIndexList:
      reseal_index_list(pool, region.offset);
      break;
    case Part::kIndexRun:
      reseal_index_run(pool, region.offset);
      break;
    case Part::kHeapChunk:
      reseal_first_words(*reinterpret_cast<columns::StringHeapChunkLayout*>(at), 16);
      break;
    case Part::kIntentBlock:
      reseal_first_words(*reinterpret_cast<mvcc::IntentBlockLayout*>(at), 24);
      break;
    case Part::kSlotArray:
      reseal_first_words(*reinterpret_cast<mvcc::SlotArrayLayout*>(at), 24);
      break;
    case Part::kHintChange: {
      auto& change = *reinterpret_cast<HintIndexLayout::Change*>(at);
      change.checksum = XXH3_64bits(at, offsetof(HintIndexLayout::Change, checksum));
      break;
    }
    default:
      break;
  }
}

}  // namespace flugs::damage
