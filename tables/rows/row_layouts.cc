#include "tables/rows/row_layouts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace flugs::engine {

const columns::RowLayout* RowLayouts::shared(columns::RowLayout layout) {
  for (const auto& known : layouts_)
    if (*known == layout) return known.get();
  const std::size_t count = columns_.size();
  for (std::size_t i = layout.column_count(); i < count; ++i)
    layout.add_constant(columns_[i]->cell_kind(), columns_[i]->constant(), columns_[i]->edition());
  layouts_.push_back(std::make_unique<columns::RowLayout>(std::move(layout)));
  return layouts_.back().get();
}

void RowLayouts::add_constant(const columns::Column& column) {
  for (const auto& layout : layouts_)  // without a constant there are no layouts
    layout->add_constant(column.cell_kind(), column.constant(), column.edition());
}

// A call that began before a column was dropped may ask for a cell of it; no new chunk has one.
bool RowLayouts::fits(const columns::RowLayout& layout,
                      std::span<const std::uint8_t> bits) const noexcept {
  FLUGS_DCHECK(bits.size() <= columns_.size());
  if (layout.editions() != columns_.editions() || !shape().is_of(layout)) return false;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (layout.bits(i) < bits[i] && !columns_[i]->is_dropped()) return false;
  return true;
}

// Makes rows as short as possible while dictionaries may double. Space left in a row goes to wider
// codes of large dictionaries, so that the next widening comes later.
Result<columns::RowLayout> RowLayouts::roomy(std::span<const std::uint8_t> least) const {
  FLUGS_CHECK(least.size() <= columns_.size());
  std::vector<columns::CellNeed> needs(least.size());
  const columns::DeltaShape& shape = this->shape();
  const auto with = [&](unsigned more_bits) {
    for (std::size_t i = 0; i < least.size(); ++i)
      needs[i] = columns_[i]->need(least[i], more_bits);
    return shape.layout(needs);
  };
  Result<columns::RowLayout> best = with(0);
  if (!best.ok()) return best;
  for (unsigned more_bits = 4; more_bits <= columns::kSmallCodeBits; more_bits += 4) {
    Result<columns::RowLayout> wider = with(more_bits);
    if (!wider.ok() || wider->row_bytes() > best->row_bytes()) break;
    best = std::move(wider);
  }
  return best;
}

// A call that began before a column was added knows fewer columns than there are. The cell width of
// another edition says nothing about this one.
std::vector<std::uint8_t> RowLayouts::widths_after(const columns::RowLayout* last,
                                                   std::span<const std::uint8_t> bits) const {
  std::vector<std::uint8_t> widths(columns_.size());
  FLUGS_CHECK(bits.size() <= widths.size());
  std::copy(bits.begin(), bits.end(), widths.begin());
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (last != nullptr && last->edition(i) == columns_[i]->edition())
      widths[i] = std::max(widths[i], last->bits(i));
  }
  return widths;
}

}  // namespace flugs::engine
