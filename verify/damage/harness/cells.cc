// A row layout and rows as they are in a pool. Any CellLayouts are accepted or refused; an accepted
// layout reads and writes inside the row only, and text inside the pool only.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/cells/row_layout.h"
#include "flugs/value.h"

namespace {

using namespace flugs::columns;

/// Reads every cell of `row`, which is all the memory there is, writes it back, and reads it again.
void use(const RowLayout& layout, std::vector<std::uint64_t>& row, std::size_t pool_bytes) {
  auto* const bytes = reinterpret_cast<std::byte*>(row.data());
  for (std::size_t i = 0; i < layout.cells().size(); ++i) {
    const Cell cell = layout.load_cell(bytes, i);
    if (layout.kind(i) == CellKind::kText) {
      const auto text = text_cell::view(layout.text_cell(bytes, i), bytes, pool_bytes);
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
  const std::uint32_t row_bytes = 32u << (data[0] % 9);
  const std::size_t columns = data[1] % 32;
  data += 2;
  size -= 2;
  std::vector<CellLayout> cells(columns);
  const std::size_t taken = std::min(size, columns * sizeof(CellLayout));
  if (taken != 0) std::memcpy(cells.data(), data, taken);
  const auto layout = RowLayout::from_pool(cells, row_bytes);
  if (!layout.ok()) return 0;
  std::vector<std::uint64_t> row(layout->row_bytes() / 8);
  const std::size_t rest = std::min(size - taken, row.size() * 8);
  if (rest != 0) std::memcpy(row.data(), data + taken, rest);
  use(*layout, row, row.size() * 8);
  return 0;
}
