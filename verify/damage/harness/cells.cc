// A row layout and rows as they are in a pool, side by side or in columns. Any CellLayouts are
// accepted or refused; an accepted layout reads and writes inside the row, or its block, only, and
// text inside the pool only.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/cells/row_layout.h"
#include "flugs/value.h"

namespace {

using namespace flugs::columns;

/// Reads every cell of a row of `memory`, writes it back, and reads it again.
void use(const RowLayout& layout, std::span<std::byte> memory, std::byte* bytes) {
  const std::size_t pool_bytes = memory.size();
  for (std::size_t i = 0; i < layout.cells().size(); ++i) {
    const Cell cell = layout.load_cell(bytes, i);
    if (layout.kind(i) == CellKind::kText) {
      const auto text = text_cell::view(layout.text_cell(bytes, i), memory.data(), pool_bytes);
      std::size_t sum = 0;
      for (const char c : text) sum += static_cast<unsigned char>(c);
      FLUGS_CHECK(sum <= text.size() * 255);
      FLUGS_CHECK(flugs::Value::string(text).as_string() == text);
    }
    layout.store(bytes, i, cell);
    const Cell again = layout.load_cell(bytes, i);
    // In layouts that no program made, NULL bits may be inside cells.
    if (layout.cells()[i].null_bit_offset == 0)
      FLUGS_CHECK(again.low == cell.low && again.high == cell.high);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const RowShape shape = data[0] < 128 ? RowShape::kRows : RowShape::kColumns;
  const std::uint32_t row_bytes =
      shape == RowShape::kRows ? 32u << (data[0] % 9) : 16u * (data[0] - 127u);
  const std::size_t columns = data[1] % 32;
  data += 2;
  size -= 2;
  std::vector<CellLayout> cells(columns);
  const std::size_t taken = std::min(size, columns * sizeof(CellLayout));
  if (taken != 0) std::memcpy(cells.data(), data, taken);
  const auto layout = RowLayout::from_pool(cells, row_bytes, shape);
  if (!layout.ok()) return 0;
  // One row, or one block: all the memory there is.
  struct alignas(flugs::RowBlock::kAlignment) Unit {
    std::byte bytes[flugs::RowBlock::kAlignment];
  };
  const std::uint64_t bytes = layout->bytes_of_rows(1);
  const std::uint64_t units = (bytes + sizeof(Unit) - 1) / sizeof(Unit);
  const std::unique_ptr<Unit[]> held(new Unit[units]());
  // The sanitizer watches the end of the memory.
  std::byte* const first =
      held[0].bytes + (shape == RowShape::kRows ? units * sizeof(Unit) - bytes : 0);
  const std::span memory(first, bytes);
  const std::size_t rest = std::min<std::size_t>(size - taken, bytes);
  if (rest != 0) std::memcpy(memory.data(), data + taken, rest);
  const std::uint64_t rows = shape == RowShape::kRows ? 1 : flugs::RowBlock::kRows;
  for (std::uint64_t row = 0; row < rows; row += 21)
    use(*layout, memory, const_cast<std::byte*>(layout->row_at(first, row)));
  return 0;
}
