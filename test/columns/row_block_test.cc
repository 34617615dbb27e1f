// Layouts whose columns are apart: rows in blocks, a part for each cell (RowShape::kColumns).

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "columns/cells/delta_shape.h"
#include "columns/cells/row_layout.h"
#include "test/support/random.h"

namespace flugs::columns {
namespace {

constexpr std::array<std::uint8_t, 15> kBits = {1,  2,  4,  8,  9,  16, 17, 20,
                                                24, 28, 32, 40, 56, 64, 128};

RowLayout in_columns(const std::vector<CellNeed>& needs) {
  Result<RowLayout> layout = RowLayout::make(needs, RowShape::kColumns);
  REQUIRE(layout.ok());
  return std::move(layout).value();
}

CellNeed need_of(std::uint8_t bits, bool null_bit) {
  if (bits == 128) return {CellKind::kText, bits, null_bit};
  return {bits <= 32 ? CellKind::kCode : CellKind::kInteger, bits, null_bit};
}

std::vector<CellNeed> random_needs(test::Random& random) {
  std::vector<CellNeed> needs;
  for (std::uint64_t i = 0, n = 1 + random.below(40); i < n; ++i)
    needs.push_back(need_of(kBits[random.below(kBits.size())], random.chance(30)));
  // Groups of no, one and several columns, with gaps between their numbers.
  if (random.chance(60))
    for (CellNeed& need : needs)
      need.group = static_cast<std::uint8_t>(std::array{0, 0, 1, 2, 7, 255}[random.below(6)]);
  return needs;
}

Cell random_cell(const CellNeed& need, test::Random& random) {
  Cell cell;
  cell.low = random.next();
  if (need.bits < 64) cell.low &= (std::uint64_t{1} << need.bits) - 1;
  if (need.bits == 128) cell.high = random.next();
  cell.is_null = need.null_bit && random.chance(30);
  return cell;
}

bool is_same(const Cell& a, const Cell& b) {
  return a.low == b.low && a.high == b.high && a.is_null == b.is_null;
}

/// Memory for rows of a layout, zero-filled.
class Blocks {
 public:
  Blocks(const RowLayout& layout, std::size_t rows)
      : bytes_(layout.bytes_of_rows(rows)),
        memory_(new(std::align_val_t{RowBlock::kAlignment}) std::byte[bytes_]()),
        layout_(layout) {}

  std::byte* row(std::size_t i) { return const_cast<std::byte*>(layout_.row_at(memory_.get(), i)); }
  std::size_t offset_of(const std::byte* place) const {
    return static_cast<std::size_t>(place - memory_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Delete {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete[](memory, std::align_val_t{RowBlock::kAlignment});
    }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Delete> memory_;
  const RowLayout& layout_;
};

}  // namespace

TEST_CASE("no byte of a block belongs to two rows or two parts", "[columns]") {
  test::Random random(11);
  constexpr std::size_t kRows = 130;
  for (int round = 0; round < 60; ++round) {
    const std::vector<CellNeed> needs = random_needs(random);
    const RowLayout layout = in_columns(needs);
    CHECK(layout.row_bytes() % RowBlock::kStampBytes == 0);
    Blocks blocks(layout, kRows);
    std::vector<bool> used(blocks.bytes());
    bool is_disjoint = true;
    const auto take = [&](const std::byte* place, std::size_t bytes) {
      for (std::size_t at = blocks.offset_of(place); bytes != 0; ++at, --bytes) {
        is_disjoint = is_disjoint && at < used.size() && !used[at];
        if (is_disjoint) used[at] = true;
      }
    };
    for (std::size_t i = 0; i < kRows; ++i) {
      take(blocks.row(i), RowBlock::kStampBytes);
      for (const RowPart& part : layout.parts()) take(part.in_row(blocks.row(i)), part.bytes);
    }
    CHECK(is_disjoint);
    // What a cell stores is in parts of its own row.
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const RowLayout::Access& access = layout.access()[i];
      CHECK(access.is_in_column());
      CHECK(std::any_of(layout.parts().begin(), layout.parts().end(), [&](const RowPart& part) {
        return part.offset == access.part().offset && part.bytes == access.part().bytes;
      }));
    }
    const auto back = RowLayout::from_pool(layout.cells(), layout.row_bytes(), RowShape::kColumns);
    REQUIRE(back.ok());
    CHECK(*back == layout);
  }
}

TEST_CASE("cells in columns give back their values, and cells of other rows stay", "[columns]") {
  test::Random random(12);
  constexpr std::size_t kRows = 140;
  for (int round = 0; round < 20; ++round) {
    const std::vector<CellNeed> needs = random_needs(random);
    const RowLayout layout = in_columns(needs);
    Blocks blocks(layout, kRows);
    std::vector<std::vector<Cell>> model(kRows, std::vector<Cell>(needs.size()));
    for (int step = 0; step < 4000; ++step) {
      const std::size_t row = random.below(kRows);
      if (random.chance(3)) {
        const std::size_t source = random.below(kRows);
        if (source != row) layout.copy_cells(blocks.row(source), blocks.row(row));
        model[row] = model[source];
        continue;
      }
      const std::size_t i = random.below(needs.size());
      model[row][i] = random_cell(needs[i], random);
      layout.store(blocks.row(row), i, model[row][i]);
    }
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t i = 0; i < needs.size(); ++i)
        wrong += is_same(layout.load_cell(blocks.row(row), i), model[row][i]) ? 0 : 1;
    CHECK(wrong == 0);
    std::size_t stamps = 0;
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t at = 0; at < RowBlock::kStampBytes; ++at)
        stamps += blocks.row(row)[at] == std::byte{} ? 0 : 1;
    CHECK(stamps == 0);
  }
}

TEST_CASE("a row in columns that is too long is refused", "[columns]") {
  const auto code_of = [](const std::vector<CellNeed>& needs) {
    return RowLayout::make(needs, RowShape::kColumns).code();
  };
  CHECK(code_of(std::vector<CellNeed>(255, {CellKind::kText, 128, false})) == StatusCode::kOk);
  CHECK(code_of(std::vector<CellNeed>(256, {CellKind::kText, 128, false})) ==
        StatusCode::kInvalidArgument);
  CHECK(code_of(std::vector<CellNeed>(255, {CellKind::kText, 128, true})) ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("an impossible layout of columns in a pool is reported", "[columns]") {
  const RowLayout layout =
      in_columns({{CellKind::kCode, 8, false}, {CellKind::kInteger, 64, true}});
  const auto damaged = [&](auto&& damage, std::uint32_t row_bytes) {
    std::vector<CellLayout> cells(layout.cells().begin(), layout.cells().end());
    damage(cells);
    return RowLayout::from_pool(cells, row_bytes, RowShape::kColumns).code();
  };
  const std::uint32_t bytes = layout.row_bytes();
  const auto nothing = [](auto&) {};
  CHECK(bytes == 32);
  CHECK(damaged(nothing, bytes) == StatusCode::kOk);
  CHECK(damaged(nothing, 16) == StatusCode::kCorrupt);
  CHECK(damaged(nothing, 40) == StatusCode::kCorrupt);
  CHECK(damaged(nothing, 4096 + 16) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset += 1; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 120; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bit_offset = 25 * 8; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bit_offset = 24 * 8; }, bytes) == StatusCode::kOk);
  CHECK(damaged([](auto& c) { c[0].bits = 128; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].null_bit_offset = 5; }, bytes) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].null_bit_offset = 256; }, bytes) == StatusCode::kCorrupt);
}

TEST_CASE("columns of a group share a record, and a group of one has none", "[columns]") {
  // Two codes of 4 bits, a number and a text, one of them NULL, take three words: 32 bytes.
  const RowLayout layout = in_columns({{CellKind::kCode, 4, true, 0, 3},
                                       {CellKind::kCode, 9, false, 0, 0},
                                       {CellKind::kText, 128, false, 0, 3},
                                       {CellKind::kCode, 4, false, 0, 3},
                                       {CellKind::kInteger, 32, false, 0, 9}});
  REQUIRE(layout.parts().size() == 3);
  CHECK(layout.parts()[0].offset == RowBlock::kStampBytes);
  CHECK(layout.parts()[0].bytes == 32);
  CHECK(layout.parts()[1].bytes == 2);
  CHECK(layout.parts()[2].bytes == 4);
  CHECK(layout.row_bytes() == 64);
  CHECK(layout.group(0) == 3);
  CHECK(layout.group(1) == 0);
  CHECK(layout.group(4) == 0);
}

TEST_CASE("a layout has the shape that it was made for", "[columns]") {
  std::vector<CellNeed> needs = {{CellKind::kCode, 8, false},
                                 {CellKind::kCode, 16, false},
                                 {CellKind::kText, 128, true},
                                 {CellKind::kInteger, 64, false}};
  const std::vector<DeltaShape> shapes = {{RowShape::kRows},
                                          {RowShape::kColumns},
                                          {RowShape::kColumns, {1, 1}},
                                          {RowShape::kColumns, {1, 1, 2, 2}},
                                          {RowShape::kColumns, {2, 2, 1, 1}},
                                          {RowShape::kColumns, {1, 1, 1, 1}}};
  for (const DeltaShape& one : shapes) {
    const Result<RowLayout> layout = one.layout(needs);
    REQUIRE(layout.ok());
    for (const DeltaShape& other : shapes) CHECK(other.is_of(*layout) == (&one == &other));
  }
  // A column alone in its group is apart, and one without a cell is in no group.
  const DeltaShape alone{RowShape::kColumns, {1, 0, 2}};
  CHECK(alone.is_of(*shapes[1].layout(needs)));
  needs[1] = {};
  needs[1].bits = 0;
  CHECK(shapes[1].is_of(*shapes[2].layout(needs)));
  CHECK(shapes[2].is_of(*shapes[2].layout(needs)));
}

TEST_CASE("an impossible layout of groups in a pool is reported", "[columns]") {
  const RowLayout layout = in_columns({{CellKind::kCode, 8, false, 0, 1},
                                       {CellKind::kText, 128, true, 0, 1},
                                       {CellKind::kInteger, 64, false, 0, 0}});
  CHECK(layout.row_bytes() == 64);  // stamps, a record of 32 bytes, a number
  const auto damaged = [&](auto&& damage, RowShape shape = RowShape::kColumns) {
    std::vector<CellLayout> cells(layout.cells().begin(), layout.cells().end());
    damage(cells);
    return RowLayout::from_pool(cells, layout.row_bytes(), shape).code();
  };
  CHECK(damaged([](auto&) {}) == StatusCode::kOk);
  CHECK(damaged([](auto&) {}, RowShape::kRows) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset += 60; }) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].bit_offset += 8; }) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 64; }) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[0].bit_offset = 512; }) == StatusCode::kCorrupt);
  // A record from the first word to the last, padded, ends behind the row.
  CHECK(damaged([](auto& c) { c[0].bit_offset = 63 * 8; }) == StatusCode::kCorrupt);
  CHECK(damaged([](auto& c) { c[1].null_bit_offset = 511; }) == StatusCode::kCorrupt);
}

}  // namespace flugs::columns
