// Where elements and cells lie: chunks of rows and dictionaries, and the cells within a row.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "columns/cells/chunk_geometry.h"
#include "columns/cells/row_layout.h"
#include "columns/dictionary/dictionary.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using columns::CellKind;
using columns::CellLayout;
using columns::ChunkGeometry;

TableSchema subscriber_schema() {
  TableSchema schema("subscriber");
  schema.column("s_id", Type::kInt32).not_null().direct();
  schema.column("sub_nbr", Type::kString).not_null().direct();
  for (int i = 0; i < 10; ++i)
    schema.column("bit_" + std::to_string(i), Type::kInt32).expect_distinct(2);
  for (int i = 0; i < 10; ++i)
    schema.column("hex_" + std::to_string(i), Type::kInt32).expect_distinct(16);
  for (int i = 0; i < 10; ++i)
    schema.column("byte2_" + std::to_string(i), Type::kInt32).expect_distinct(256);
  schema.column("msc_location", Type::kInt64).not_null().direct();
  schema.column("vlr_location", Type::kInt64).not_null().direct();
  return schema;
}

std::string bits_of(const columns::RowLayout& layout) {
  std::string text = std::to_string(layout.row_bytes()) + ":";
  for (const CellLayout& cell : layout.cells())
    text += " " + std::to_string(cell.bit_offset) + "+" + std::to_string(cell.bits) +
            (cell.null_bit_offset != 0 ? "n" + std::to_string(cell.null_bit_offset) : "");
  return text;
}

}  // namespace

TEST_CASE("chunk_of and first_of agree for every element", "[format]") {
  const ChunkGeometry geometry =
      GENERATE(ChunkGeometry{8, 18}, ChunkGeometry{1, 30}, ChunkGeometry{4, 4},
               ChunkGeometry{11, 17}, ChunkGeometry{0, 3});
  std::uint64_t first = 0;
  for (std::size_t chunk = 0; chunk < 40 && first < 0xFFFFFFFFu; ++chunk) {
    INFO("chunk " << chunk << " of " << geometry.first_log2 << ", " << geometry.largest_log2);
    CHECK(geometry.first_of(chunk) == first);
    const std::uint64_t end = first + geometry.elements_in(chunk);
    CHECK(geometry.chunk_of(static_cast<std::uint32_t>(first)) == chunk);
    if (end <= 0xFFFFFFFFu) CHECK(geometry.chunk_of(static_cast<std::uint32_t>(end - 1)) == chunk);
    CHECK(end - first <= std::uint64_t{1} << geometry.largest_log2);
    first = end;
  }
}

TEST_CASE("chunks of a dictionary begin where the format says", "[format]") {
  constexpr ChunkGeometry geometry{columns::Dictionary::kFirstChunkBits,
                                   columns::Dictionary::kChunkBitsMax};
  CHECK(geometry.chunk_of(255) == 0);
  CHECK(geometry.chunk_of(256) == 1);
  for (unsigned i = 1; i <= 10; ++i) {
    CHECK(geometry.first_of(i) == std::uint64_t{1} << (7 + i));
    CHECK(geometry.elements_in(i) == std::uint64_t{1} << (7 + i));
  }
  CHECK(geometry.first_of(11) == std::uint64_t{1} << 18);
  CHECK(geometry.first_of(12) == std::uint64_t{2} << 18);
  CHECK(geometry.chunk_of(columns::Dictionary::kEntriesMax - 1) == 0xF0000000u / (1u << 18) + 9);
}

TEST_CASE("chunks of rows have 64 KB to 4 MB, or less in pools with small segments", "[format]") {
  const auto logs = [](std::uint32_t row_bytes, std::uint64_t segment_bytes) {
    const ChunkGeometry g = engine::RowStore::geometry_for(row_bytes, segment_bytes);
    return std::pair<unsigned, unsigned>(g.first_log2, g.largest_log2);
  };
  constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
  CHECK(logs(32, 64 * kMegabyte) == std::pair(11u, 17u));
  CHECK(logs(64, 64 * kMegabyte) == std::pair(10u, 16u));
  CHECK(logs(192, 64 * kMegabyte) == std::pair(8u, 14u));
  CHECK(logs(4096, 64 * kMegabyte) == std::pair(4u, 10u));
  CHECK(logs(32, 1024 * kMegabyte) == std::pair(11u, 17u));
  CHECK(logs(32, kMegabyte) == std::pair(9u, 11u));
  CHECK(logs(32, 65536) == std::pair(6u, 7u));
  CHECK(logs(4096, 65536) == std::pair(4u, 4u));
}

TEST_CASE("a SUBSCRIBER of TATP is 64 bytes, wide cells first", "[format]") {
  MemoryDatabase database;
  const TableId id = must(database->create_table(subscriber_schema()));
  std::vector<Value> values(34, Value::int32(0));
  values[1] = Value::string("000000000000001");
  values[32] = values[33] = Value::int64(0xFFFFFFFF);
  values[0] = Value::int32(0x01020304);
  values[22] = Value::int32(9);
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(id, values));
  must(t.commit());
  const engine::Table& table = *database->table(id);
  const columns::RowLayout& layout = table.rows().layout(row.value());
  CHECK(layout.row_bytes() == 64);
  const auto cells = layout.cells();
  REQUIRE(cells.size() == 34);
  const auto integer = static_cast<std::uint8_t>(CellKind::kInteger);
  const auto code = static_cast<std::uint8_t>(CellKind::kCode);
  const auto text = static_cast<std::uint8_t>(CellKind::kText);
  CHECK(cells[1] == CellLayout{128, text, 128, 0, 0, 0});
  CHECK(cells[0] == CellLayout{256, integer, 32, 0, 0, 0});
  CHECK(cells[32] == CellLayout{288, integer, 32, 0, 0, 0});
  CHECK(cells[33] == CellLayout{320, integer, 32, 0, 0, 0});
  for (std::uint16_t i = 0; i < 10; ++i) {
    CHECK(cells[22u + i] == CellLayout{static_cast<std::uint16_t>(352 + 8 * i), code, 8, 0, 0, 0});
    CHECK(cells[12u + i] == CellLayout{static_cast<std::uint16_t>(432 + 4 * i), code, 4, 0, 0, 0});
    CHECK(cells[2u + i] == CellLayout{static_cast<std::uint16_t>(472 + i), code, 1, 0, 0, 0});
  }
  const std::byte* bytes = table.rows().address(row.value());
  CHECK(std::memcmp(bytes + 16, "000000000000001\x0f", 16) == 0);
  CHECK(std::memcmp(bytes + 32, "\x04\x03\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff", 12) == 0);
}

TEST_CASE("NULL bits follow the cells, rows end at 32 or a multiple of 64 bytes", "[format]") {
  using columns::CellNeed;
  const auto layout = [](std::vector<CellNeed> needs) {
    const auto made = columns::RowLayout::make(needs);
    REQUIRE(made.ok());
    return bits_of(*made);
  };
  const CellNeed narrow{CellKind::kInteger, 32, true};
  const CellNeed wide{CellKind::kInteger, 64, true};
  const CellNeed text{CellKind::kText, 128, true};
  const CellNeed code{CellKind::kCode, 8, false};
  CHECK(layout({code}) == "32: 128+8");
  CHECK(layout({narrow, wide}) == "32: 192+32n224 128+64n225");
  CHECK(layout({code, text}) == "64: 256+8 128+128n264");
  CHECK(layout({wide, wide, wide, wide, wide, wide}) ==
        "128: 128+64n512 192+64n513 256+64n514 320+64n515 384+64n516 448+64n517");
  CHECK(columns::code_bits_for(0) == 1);
  CHECK(columns::code_bits_for(2) == 1);
  CHECK(columns::code_bits_for(3) == 2);
  CHECK(columns::code_bits_for(5) == 4);
  CHECK(columns::code_bits_for(16) == 4);
  CHECK(columns::code_bits_for(17) == 8);
  CHECK(columns::code_bits_for(257) == 16);
  CHECK(columns::code_bits_for(65537) == 20);
  CHECK(columns::code_bits_for(1ull << 32) == 32);
  CHECK(columns::code_bits_for(1ull << 36) == 32);
  const auto code_of = [](std::uint8_t bits) { return CellNeed{CellKind::kCode, bits, false}; };
  CHECK(layout({code_of(25), code_of(25), code_of(25), code_of(25), code_of(8), code_of(11)}) ==
        "32: 128+25 153+25 192+25 217+25 242+8 178+11");
}

}  // namespace flugs::test
