#include "columns/cells/row_layout.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "test/support/random.h"

namespace flugs::columns {
namespace {

RowLayout layout_of(const std::vector<CellNeed>& needs) {
  Result<RowLayout> layout = RowLayout::make(needs);
  REQUIRE(layout.ok());
  return std::move(layout).value();
}

}  // namespace

TEST_CASE("a layout has room only if each cell is wide enough", "[columns]") {
  for (std::size_t columns = 1; columns <= 40; ++columns) {
    const RowLayout layout = layout_of(std::vector<CellNeed>(columns, {CellKind::kCode, 8}));
    for (std::size_t asked = 1; asked <= columns; ++asked) {
      std::vector<std::uint8_t> bits(asked, 8);
      REQUIRE(layout.has_room(bits));
      for (std::uint8_t& one : bits) {
        one = 16;
        REQUIRE(!layout.has_room(bits));
        one = 128;
        REQUIRE(!layout.has_room(bits));
        one = 0;
        REQUIRE(layout.has_room(bits));
        one = 8;
      }
    }
    std::vector<std::uint8_t> more(columns + 1, 8);
    REQUIRE(!layout.has_room(more));
    more.back() = 0;
    REQUIRE(layout.has_room(more));
  }
}

TEST_CASE("a row has 32 or 64 bytes or whole lines", "[columns]") {
  CHECK(layout_of({{CellKind::kCode, 1, false}}).row_bytes() == 32);
  CHECK(layout_of({{CellKind::kInteger, 64, false}, {CellKind::kInteger, 64, false}}).row_bytes() ==
        32);
  CHECK(layout_of({{CellKind::kInteger, 64, true}, {CellKind::kInteger, 64, false}}).row_bytes() ==
        64);
  CHECK(layout_of(std::vector<CellNeed>(4, {CellKind::kText, 128, false})).row_bytes() == 128);
  CHECK(layout_of(std::vector<CellNeed>(255, {CellKind::kText, 128, false})).row_bytes() == 4096);
}

TEST_CASE("a row that is too long is refused", "[columns]") {
  const std::vector<CellNeed> needs(256, {CellKind::kText, 128, false});
  CHECK(RowLayout::make(needs).code() == StatusCode::kInvalidArgument);
  const std::vector<CellNeed> with_null(255, {CellKind::kText, 128, true});
  CHECK(RowLayout::make(with_null).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("cells do not overlap and never straddle a word", "[columns]") {
  test::Random random(3);
  constexpr std::array<std::uint8_t, 13> kBits = {1, 2, 3, 4, 7, 8, 12, 16, 25, 31, 32, 64, 128};
  for (int round = 0; round < 200; ++round) {
    std::vector<CellNeed> needs;
    for (std::uint64_t i = 0, n = 1 + random.below(60); i < n; ++i) {
      const std::uint8_t bits = kBits[random.below(kBits.size())];
      const CellKind kind = bits == 128  ? CellKind::kText
                            : bits == 64 ? CellKind::kInteger
                                         : CellKind::kCode;
      needs.push_back({kind, bits, random.chance(30)});
    }
    const RowLayout layout = layout_of(needs);
    std::vector<bool> used(std::size_t{layout.row_bytes()} * 8);
    const auto take = [&](std::size_t first, std::size_t bits) {
      for (std::size_t bit = first; bit < first + bits; ++bit) {
        if (bit < 128 || used.at(bit)) return false;
        used[bit] = true;
      }
      return true;
    };
    bool disjoint = true;
    for (const CellLayout& cell : layout.cells()) {
      disjoint = disjoint && take(cell.bit_offset, cell.bits);
      if (cell.null_bit_offset != 0) disjoint = disjoint && take(cell.null_bit_offset, 1);
      if (cell.bits <= 64) CHECK(cell.bit_offset / 64 == (cell.bit_offset + cell.bits - 1) / 64);
    }
    CHECK(disjoint);
    // And the header says the same.
    const auto back = RowLayout::from_pool(layout.cells(), layout.row_bytes());
    REQUIRE(back.ok());
    CHECK(*back == layout);
  }
}

TEST_CASE("a cell gives back its value, and its neighbours stay", "[columns]") {
  test::Random random(5);
  const std::vector<CellNeed> needs = {
      {CellKind::kCode, 1, false},    {CellKind::kCode, 2, false},   {CellKind::kCode, 4, false},
      {CellKind::kCode, 8, false},    {CellKind::kCode, 16, false},  {CellKind::kCode, 32, false},
      {CellKind::kInteger, 64, true}, {CellKind::kText, 128, true},  {CellKind::kInteger, 32, true},
      {CellKind::kInteger, 1, true},  {CellKind::kInteger, 1, false}};
  const RowLayout layout = layout_of(needs);
  alignas(64) std::array<std::byte, 256> row{};
  REQUIRE(layout.row_bytes() <= row.size());
  std::vector<Cell> model(needs.size());
  for (int round = 0; round < 5000; ++round) {
    const std::size_t i = random.below(needs.size());
    Cell cell;
    cell.low = random.next();
    if (needs[i].bits < 64) cell.low &= (std::uint64_t{1} << needs[i].bits) - 1;
    if (needs[i].bits == 128) cell.high = random.next();
    cell.is_null = needs[i].null_bit && random.chance(30);
    layout.store(row.data(), i, cell);
    model[i] = cell;
    for (std::size_t k = 0; k < needs.size(); ++k) {
      const Cell loaded = layout.load_cell(row.data(), k);
      if (loaded.low != model[k].low || loaded.high != model[k].high ||
          loaded.is_null != model[k].is_null)
        FAIL("column " << k << " in round " << round);
    }
  }
  std::uint64_t stamps[2];
  std::memcpy(stamps, row.data(), sizeof stamps);
  CHECK(stamps[0] == 0);
  CHECK(stamps[1] == 0);
}

TEST_CASE("an impossible layout in a pool is reported", "[columns]") {
  const RowLayout layout = layout_of({{CellKind::kCode, 8, false}, {CellKind::kInteger, 64, true}});
  const auto damaged = [&](auto&& damage, std::uint32_t row_bytes) {
    std::vector<CellLayout> cells(layout.cells().begin(), layout.cells().end());
    damage(cells);
    return RowLayout::from_pool(cells, row_bytes).code();
  };
  const std::uint32_t bytes = layout.row_bytes();
  const auto nothing = [](auto&) {};
  CHECK(damaged(nothing, bytes) == StatusCode::kOk);
  CHECK(damaged(nothing, 0) == StatusCode::kCorrupt);
  CHECK(damaged(nothing, 48) == StatusCode::kCorrupt);
  CHECK(damaged(nothing, 4096 + 64) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].kind = 0; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].kind = 4; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bits = 0; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bits = 33; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bits = 23; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bits = 33; }, bytes) == StatusCode::kOk);
  CHECK(damaged([](auto& c) { c[0].bits = 3; }, bytes) == StatusCode::kOk);
  CHECK(damaged([](auto& c) { c[0].bits = 64; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 64; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 192 + 60; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bit_offset += 1; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 0xFFF8; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bits = 128; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].null_bit_offset = 5; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].null_bit_offset = 0xFFFF; }, bytes) == StatusCode::kCorrupt);
}

TEST_CASE("codes take as few bits as their number allows", "[columns]") {
  CHECK(code_bits_for(0) == 1);
  CHECK(code_bits_for(2) == 1);
  CHECK(code_bits_for(3) == 2);
  CHECK(code_bits_for(4) == 2);
  CHECK(code_bits_for(5) == 4);
  CHECK(code_bits_for(16) == 4);
  CHECK(code_bits_for(17) == 8);
  CHECK(code_bits_for(256) == 8);
  CHECK(code_bits_for(257) == 16);
  CHECK(code_bits_for(65536) == 16);
  CHECK(code_bits_for(65537) == 20);
  CHECK(code_bits_for((1u << 20) + 1) == 24);
  CHECK(code_bits_for(1u << 24) == 24);
  CHECK(code_bits_for((1u << 28) + 1) == 32);
  CHECK(code_bits_for(std::uint64_t{1} << 32) == 32);
  CHECK(code_bits_for(std::uint64_t{1} << 36) == 32);
}

}  // namespace flugs::columns
