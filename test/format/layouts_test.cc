// The pool byte by byte, as in docs/format.md: changing a number here changes the format.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "columns/cells/column_layout.h"
#include "columns/cells/row_layout.h"
#include "columns/index/hint_index_layout.h"
#include "columns/main/main_column_layout.h"
#include "mvcc/stamps.h"
#include "mvcc/transaction_slots_layout.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/chunk_list_layout.h"
#include "tables/catalog/added_column_layout.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/index_run_layout.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Offsets = std::initializer_list<std::size_t>;

void check_offsets(std::string_view layout, Offsets found, Offsets expected) {
  INFO(layout);
  CHECK(std::vector<std::size_t>(found) == std::vector<std::size_t>(expected));
}

std::string bytes_of(std::uint64_t word) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &word, 8);
  return bytes;
}

}  // namespace

TEST_CASE("offsets of the pool's own structures", "[format]") {
  using pmem::ArenaRecord, pmem::PoolHeader, pmem::PoolRoot, pmem::ChunkListLayout;
  check_offsets(
      "PoolHeader",
      {offsetof(PoolHeader, magic),
       offsetof(PoolHeader, format_version),
       offsetof(PoolHeader, header_bytes),
       offsetof(PoolHeader, compat_features),
       offsetof(PoolHeader, incompat_features),
       offsetof(PoolHeader, generation),
       offsetof(PoolHeader, uuid),
       offsetof(PoolHeader, max_bytes),
       offsetof(PoolHeader, segment_bytes),
       offsetof(PoolHeader, extent_unit_bytes),
       offsetof(PoolHeader, arena_count),
       offsetof(PoolHeader, arenas_checksum),
       offsetof(PoolHeader, created_bytes),
       offsetof(PoolHeader, hole_bytes),
       offsetof(PoolHeader, journal_id),
       offsetof(PoolHeader, used_devices),
       offsetof(PoolHeader, shutdown_count),
       offsetof(PoolHeader, reserved),
       offsetof(PoolHeader, checksum),
       sizeof(PoolHeader)},
      {0, 8, 12, 16, 24, 32, 40, 48, 56, 64, 68, 72, 80, 88, 96, 104, 112, 120, 248, 256});
  check_offsets("PoolRoot",
                {offsetof(PoolRoot, headers), offsetof(PoolRoot, application_root),
                 sizeof(PoolRoot), pmem::kApplicationRootBytes},
                {0, 512, 2560, 2048});
  check_offsets("ArenaRecord",
                {offsetof(ArenaRecord, offset), offsetof(ArenaRecord, bytes),
                 offsetof(ArenaRecord, allocated_limit), offsetof(ArenaRecord, touched_limit),
                 sizeof(ArenaRecord)},
                {0, 8, 16, 24, 32});
  check_offsets("ChunkListLayout",
                {offsetof(ChunkListLayout, inline_chunks), offsetof(ChunkListLayout, root_page),
                 offsetof(ChunkListLayout, reserved), sizeof(ChunkListLayout),
                 ChunkListLayout::kPageBytes, ChunkListLayout::kChunksMax},
                {0, 48, 56, 64, 4096, 262150});
}

TEST_CASE("offsets of the structures of main", "[format]") {
  using columns::MainColumnLayout;
  check_offsets("MainColumnLayout",
                {offsetof(MainColumnLayout, type), offsetof(MainColumnLayout, encoding),
                 offsetof(MainColumnLayout, code_bits), offsetof(MainColumnLayout, edition),
                 offsetof(MainColumnLayout, row_count), offsetof(MainColumnLayout, null_count),
                 offsetof(MainColumnLayout, entry_count), offsetof(MainColumnLayout, run_count),
                 offsetof(MainColumnLayout, symbol_count), offsetof(MainColumnLayout, text_bytes),
                 offsetof(MainColumnLayout, code_count), offsetof(MainColumnLayout, base),
                 offsetof(MainColumnLayout, min), offsetof(MainColumnLayout, max),
                 offsetof(MainColumnLayout, parts_offset), offsetof(MainColumnLayout, parts_bytes),
                 offsetof(MainColumnLayout, parts_checksum), offsetof(MainColumnLayout, checksum),
                 sizeof(MainColumnLayout)},
                {0, 1, 2, 3, 4, 8, 12, 16, 20, 88, 24, 32, 40, 56, 72, 80, 112, 120, 128});
}

TEST_CASE("offsets of the structures of hint indexes", "[format]") {
  using columns::HintIndexLayout, columns::HintSegmentLayout;
  check_offsets("HintIndexLayout",
                {offsetof(HintIndexLayout, directory), offsetof(HintIndexLayout, segments_used),
                 offsetof(HintIndexLayout, spare), offsetof(HintIndexLayout, durable_end),
                 offsetof(HintIndexLayout, null_code), offsetof(HintIndexLayout, slabs),
                 offsetof(HintIndexLayout, change), sizeof(HintIndexLayout)},
                {0, 8, 16, 24, 32, 64, 128, 192});
  check_offsets("HintSegmentLayout",
                {offsetof(HintSegmentLayout, slots), offsetof(HintSegmentLayout, next),
                 sizeof(HintSegmentLayout)},
                {0, 4032, 4096});
}

TEST_CASE("offsets of the structures of tables and columns", "[format]") {
  using columns::CellLayout, columns::ColumnLayout, columns::StringHeapChunkLayout,
      columns::StringHeapLayout, engine::CatalogLayout, engine::DatabaseLayout,
      engine::RowChunkLayout, engine::TableLayout;
  check_offsets("DatabaseLayout",
                {offsetof(DatabaseLayout, magic), offsetof(DatabaseLayout, catalog),
                 offsetof(DatabaseLayout, slot_array), offsetof(DatabaseLayout, index_place),
                 offsetof(DatabaseLayout, reserved), sizeof(DatabaseLayout)},
                {0, 8, 16, 24, 32, 64});
  check_offsets(
      "CatalogLayout",
      {offsetof(CatalogLayout, tables), offsetof(CatalogLayout, reserved), sizeof(CatalogLayout)},
      {0, 4088, 4096});
  check_offsets(
      "TableLayout",
      {offsetof(TableLayout, magic), offsetof(TableLayout, bytes), offsetof(TableLayout, checksum),
       offsetof(TableLayout, table_id), offsetof(TableLayout, column_count),
       offsetof(TableLayout, first_chunk_rows_log2), offsetof(TableLayout, largest_chunk_rows_log2),
       offsetof(TableLayout, schema_offset), offsetof(TableLayout, schema_bytes),
       offsetof(TableLayout, hints_offset), offsetof(TableLayout, index_runs),
       offsetof(TableLayout, row_chunks), offsetof(TableLayout, schema_block), sizeof(TableLayout)},
      {0, 8, 16, 24, 28, 30, 31, 32, 40, 48, 56, 64, 128, 192});
  using engine::SchemaBlockLayout;
  check_offsets(
      "SchemaBlockLayout",
      {offsetof(SchemaBlockLayout, magic), offsetof(SchemaBlockLayout, bytes),
       offsetof(SchemaBlockLayout, checksum), offsetof(SchemaBlockLayout, table_id),
       offsetof(SchemaBlockLayout, added_columns), offsetof(SchemaBlockLayout, added_keys),
       offsetof(SchemaBlockLayout, schema_bytes), offsetof(SchemaBlockLayout, key_additions),
       offsetof(SchemaBlockLayout, changed_columns), sizeof(SchemaBlockLayout)},
      {0, 8, 16, 24, 28, 30, 32, 40, 44, 64});
  check_offsets(
      "ColumnLayout",
      {offsetof(ColumnLayout, type), offsetof(ColumnLayout, encoding),
       offsetof(ColumnLayout, nullable), offsetof(ColumnLayout, scale),
       offsetof(ColumnLayout, expected_distinct), offsetof(ColumnLayout, last_taken),
       offsetof(ColumnLayout, reserved), offsetof(ColumnLayout, dictionary),
       offsetof(ColumnLayout, heap), sizeof(ColumnLayout), sizeof(columns::DictionaryLayout)},
      {0, 1, 2, 3, 4, 8, 16, 64, 192, 320, 128});
  check_offsets("StringHeapLayout",
                {offsetof(StringHeapLayout, chunks), offsetof(StringHeapLayout, reserved_end),
                 offsetof(StringHeapLayout, reserved), sizeof(StringHeapLayout)},
                {0, 64, 72, 128});
  check_offsets("StringHeapChunkLayout",
                {offsetof(StringHeapChunkLayout, magic), offsetof(StringHeapChunkLayout, bytes),
                 offsetof(StringHeapChunkLayout, checksum), sizeof(StringHeapChunkLayout)},
                {0, 8, 16, 64});
  check_offsets("RowChunkLayout",
                {offsetof(RowChunkLayout, magic), offsetof(RowChunkLayout, checksum),
                 offsetof(RowChunkLayout, table_id), offsetof(RowChunkLayout, chunk_index),
                 offsetof(RowChunkLayout, row_bytes), offsetof(RowChunkLayout, row_count),
                 offsetof(RowChunkLayout, column_count), offsetof(RowChunkLayout, row_shape),
                 offsetof(RowChunkLayout, reserved0), sizeof(RowChunkLayout)},
                {0, 8, 16, 20, 24, 28, 32, 34, 35, 64});
  check_offsets(
      "CellLayout",
      {offsetof(CellLayout, bit_offset), offsetof(CellLayout, kind), offsetof(CellLayout, bits),
       offsetof(CellLayout, null_bit_offset), offsetof(CellLayout, edition), sizeof(CellLayout)},
      {0, 2, 3, 4, 6, 8});
}

TEST_CASE("offsets of a column that was added, or changed", "[format]") {
  using engine::ChangedColumnLayout;
  check_offsets("ChangedColumnLayout",
                {offsetof(ChangedColumnLayout, layout), offsetof(ChangedColumnLayout, column),
                 offsetof(ChangedColumnLayout, type), offsetof(ChangedColumnLayout, encoding),
                 sizeof(ChangedColumnLayout)},
                {0, 8, 10, 11, 16});
  using engine::AddedColumnLayout;
  check_offsets("AddedColumnLayout",
                {offsetof(AddedColumnLayout, magic), offsetof(AddedColumnLayout, bytes),
                 offsetof(AddedColumnLayout, checksum), offsetof(AddedColumnLayout, table_id),
                 offsetof(AddedColumnLayout, column), offsetof(AddedColumnLayout, constant),
                 offsetof(AddedColumnLayout, reserved0), offsetof(AddedColumnLayout, cell),
                 offsetof(AddedColumnLayout, hints_offset), offsetof(AddedColumnLayout, reserved1),
                 sizeof(AddedColumnLayout)},
                {0, 8, 16, 24, 28, 30, 31, 32, 48, 56, 64});
}

TEST_CASE("offsets of the structures of index runs", "[format]") {
  using engine::IndexRunKeyLayout, engine::IndexRunLayout, engine::IndexRunListLayout;
  check_offsets("IndexRunLayout",
                {offsetof(IndexRunLayout, magic), offsetof(IndexRunLayout, checksum),
                 offsetof(IndexRunLayout, bytes), offsetof(IndexRunLayout, table_id),
                 offsetof(IndexRunLayout, key_count), offsetof(IndexRunLayout, key_additions),
                 sizeof(IndexRunLayout)},
                {0, 8, 16, 24, 28, 32, 64});
  check_offsets(
      "IndexRunKeyLayout",
      {offsetof(IndexRunKeyLayout, slots_offset), offsetof(IndexRunKeyLayout, home_lines),
       offsetof(IndexRunKeyLayout, slot_count), offsetof(IndexRunKeyLayout, hashed_entries),
       offsetof(IndexRunKeyLayout, prefixes_offset), offsetof(IndexRunKeyLayout, rows_offset),
       offsetof(IndexRunKeyLayout, fences_offset), offsetof(IndexRunKeyLayout, ordered_entries),
       offsetof(IndexRunKeyLayout, checksum), sizeof(IndexRunKeyLayout)},
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 128});
  check_offsets("IndexRunListLayout",
                {offsetof(IndexRunListLayout, magic), offsetof(IndexRunListLayout, checksum),
                 offsetof(IndexRunListLayout, bytes), offsetof(IndexRunListLayout, table_id),
                 offsetof(IndexRunListLayout, run_count), offsetof(IndexRunListLayout, chunk_count),
                 sizeof(IndexRunListLayout)},
                {0, 8, 16, 24, 28, 32, 64});
}

TEST_CASE("offsets of the structures of transactions", "[format]") {
  using mvcc::IntentBlockLayout, mvcc::SlotArrayLayout, mvcc::SlotHalfLayout,
      mvcc::TransactionSlotLayout, mvcc::VersionLayout;
  check_offsets(
      "VersionLayout",
      {offsetof(VersionLayout, created), offsetof(VersionLayout, deleted), sizeof(VersionLayout)},
      {0, 8, 16});
  check_offsets(
      "SlotHalfLayout",
      {offsetof(SlotHalfLayout, commit_generation), offsetof(SlotHalfLayout, commit_timestamp),
       offsetof(SlotHalfLayout, commit_check), offsetof(SlotHalfLayout, overflow),
       offsetof(SlotHalfLayout, intents), sizeof(SlotHalfLayout), sizeof(TransactionSlotLayout)},
      {0, 8, 16, 24, 32, 64, 128});
  check_offsets("SlotArrayLayout",
                {offsetof(SlotArrayLayout, magic), offsetof(SlotArrayLayout, slot_count),
                 offsetof(SlotArrayLayout, timestamp_floor), offsetof(SlotArrayLayout, checksum),
                 offsetof(SlotArrayLayout, reserved), sizeof(SlotArrayLayout)},
                {0, 8, 16, 24, 32, 64});
  check_offsets("IntentBlockLayout",
                {offsetof(IntentBlockLayout, magic), offsetof(IntentBlockLayout, bytes),
                 offsetof(IntentBlockLayout, next), offsetof(IntentBlockLayout, checksum),
                 sizeof(IntentBlockLayout)},
                {0, 8, 16, 24, 64});
}

TEST_CASE("the magics read as words in the file", "[format]") {
  CHECK(std::string(pmem::kPoolMagic.begin(), pmem::kPoolMagic.end()) == "flugsPL\n");
  CHECK(bytes_of(engine::DatabaseLayout::kMagic) == "FGLSDB01");
  CHECK(bytes_of(engine::TableLayout::kMagic) == "FLGTABLE");
  CHECK(bytes_of(engine::SchemaBlockLayout::kMagic) == "FLSCHEMA");
  CHECK(bytes_of(engine::RowChunkLayout::kMagic) == "FLRWCHNK");
  CHECK(bytes_of(engine::IndexRunLayout::kMagic) == "FLIDXRUN");
  CHECK(bytes_of(engine::IndexRunListLayout::kMagic) == "FLDXLIST");
  CHECK(bytes_of(columns::StringHeapChunkLayout::kMagic) == "FLUGHEAP");
  CHECK(bytes_of(mvcc::SlotArrayLayout::kMagic) == "FLGSLOTS");
  CHECK(bytes_of(mvcc::IntentBlockLayout::kMagic) == "FLINTENT");
  CHECK(pmem::kFormatVersion == 13);
}

TEST_CASE("a tag is bit 63, twelve bits of slot, 51 of generation", "[format]") {
  CHECK(mvcc::make_tag(0, 1) == 0x8000000000000001u);
  CHECK(mvcc::make_tag(1, 0) == 0x8008000000000000u);
  CHECK(mvcc::make_tag(3999, 0x7FFFFFFFFFFFFu) == 0xFCFFFFFFFFFFFFFFu);
  CHECK(mvcc::slot_of(0xFCFFFFFFFFFFFFFFu) == 3999);
  CHECK(mvcc::generation_of(0xFCFFFFFFFFFFFFFFu) == mvcc::kGenerationMax);
  CHECK(mvcc::kSlotsMax == 4000);
  CHECK(mvcc::is_tag(mvcc::make_tag(0, 0)));
  CHECK_FALSE(mvcc::is_tag(mvcc::kTimestampMax));
  CHECK(mvcc::kTimestampMax == 0x7FFFFFFFFFFFFFFFu);
}

TEST_CASE("an intent is three flags, 29 bits of table, 32 of row", "[format]") {
  CHECK(mvcc::make_intent(false, 1, 2) == 0x8000000100000002u);
  CHECK(mvcc::make_intent(true, 0x1FFFFFFF, 0xFFFFFFFE) == 0xDFFFFFFFFFFFFFFEu);
  const mvcc::Intent intent = mvcc::make_intent(true, 0x0ABCDEF0, 0x12345678);
  CHECK(intent == 0xCABCDEF012345678u);
  CHECK_FALSE(mvcc::has_mask(intent));
  CHECK(mvcc::with_mask(intent) == 0xEABCDEF012345678u);
  CHECK(mvcc::without_mask(mvcc::with_mask(intent)) == intent);
  CHECK(mvcc::is_intent(intent));
  CHECK(mvcc::intent_deletes(intent));
  CHECK(mvcc::intent_table(intent) == 0x0ABCDEF0);
  CHECK(mvcc::intent_row(intent) == 0x12345678);
  CHECK_FALSE(mvcc::is_intent(262150));  // a number of intents in the block
}

TEST_CASE("types, encodings and kinds of cells have the numbers they had", "[format]") {
  CHECK(static_cast<int>(Type::kBool) == 1);
  CHECK(static_cast<int>(Type::kInt32) == 2);
  CHECK(static_cast<int>(Type::kInt64) == 3);
  CHECK(static_cast<int>(Type::kDouble) == 4);
  CHECK(static_cast<int>(Type::kDecimal) == 5);
  CHECK(static_cast<int>(Type::kDate) == 6);
  CHECK(static_cast<int>(Type::kTimestamp) == 7);
  CHECK(static_cast<int>(Type::kString) == 8);
  CHECK(static_cast<int>(Type::kBytes) == 9);
  CHECK(static_cast<int>(Encoding::kDictionary) == 1);
  CHECK(static_cast<int>(Encoding::kDirect) == 2);
  CHECK(static_cast<int>(columns::CellKind::kCode) == 1);
  CHECK(static_cast<int>(columns::CellKind::kInteger) == 2);
  CHECK(static_cast<int>(columns::CellKind::kText) == 3);
}

TEST_CASE("a schema has exactly these bytes", "[format]") {
  using namespace std::string_view_literals;
  TableSchema schema("ab");
  schema.column("id", Type::kInt64)
      .column("p", Type::kDecimal)
      .scale(2)
      .expect_distinct(0x01020304);
  schema.column("name", Type::kString);
  schema.primary_key({"id", "p"}).hash_prefix(1).key("by_name", {"name"});
  schema.columns[0].auto_increment = true;
  schema.columns[1].default_value = Value::int32(5);
  schema.check(
      "c", Condition::all_of(
               {Condition::compare("p", Condition::Kind::kLess, Constant(Value::decimal(10, 1))),
                Condition::compare_columns("name", Condition::Kind::kEqual, "name"),
                Condition::is_not_null("name")}));
  schema.foreign_key("f", {"name"}, "x", ReferenceAction::kCascade, ReferenceAction::kSetNull);
  schema.foreign_keys[0].referenced = {TableId(7), 3};
  const auto completed = engine::complete_schema(schema);
  REQUIRE(completed.ok());
  const std::string bytes = engine::encode_schema(*completed);
  const std::string_view expected =
      "\x02"
      "ab"
      "\x03\x00"
      "\x02"
      "id\x03\x02\x00\x00\x00\x00\x00\x00\x0a"
      "\x01"
      "p\x05\x01\x00\x02\x04\x03\x02\x01\x09\x05\xf4\x01\x00\x00\x00\x00\x00\x00"
      "\x04"
      "name\x08\x01\x01\x00\x00\x00\x00\x00\x08"
      "\x01\x02"
      "\x07"
      "primary\x01\x01\x02\x00\x00\x01\x00"
      "\x07"
      "by_name\x02\x00\x01\x02\x00"
      "\x01\x01"
      "c\x04\x00\x0d\x03\x00"
      "\x03\x01\x00\x00\x01\x00\x05\x64\x00\x00\x00\x00\x00\x00\x00"
      "\x01\x02\x00\x01\x02\x00"
      "\x09\x02\x00\x00\x00\x00"
      "\x01\x01"
      "f\x01\x02\x00\x07\x00\x00\x00\x03\x01\x02"sv;
  CHECK(bytes == expected);
  const auto decoded = engine::decode_schema(bytes);
  REQUIRE(decoded.ok());
  CHECK(engine::encode_schema(*decoded) == bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(engine::decode_schema(std::string_view(bytes).substr(0, size)).code() ==
          StatusCode::kCorrupt);
  CHECK(engine::decode_schema(bytes + '\0').code() == StatusCode::kCorrupt);
}

}  // namespace flugs::test
