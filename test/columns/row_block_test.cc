// Layouts whose columns are apart: rows in blocks, a part for each cell (RowShape::kColumns).

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <new>
#include <vector>

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

}  // namespace flugs::columns
