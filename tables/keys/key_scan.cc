#include "tables/keys/key_scan.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/column/column.h"

namespace flugs::engine {

namespace {

std::uint64_t word_at(const std::byte* address) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_RELAXED);
}

// Visits the positions of words, `stride` bytes apart, that have `bits` where `mask` has ones.
template <typename F>
bool for_each_equal(const std::byte* words, std::uint32_t stride, std::uint32_t count,
                    std::uint64_t mask, std::uint64_t bits, F&& visit) {
  constexpr std::uint32_t kAtOnce = 8;
  // The processor's own prefetching stops at the end of each page.
  constexpr std::uint32_t kBytesAhead = 2048;
  const std::size_t ahead = std::size_t{kBytesAhead / stride + 1} * stride;
  const std::uint32_t step = std::max(stride, 64u);
  const auto is_equal = [&](const std::byte* at) { return ((word_at(at) ^ bits) & mask) == 0; };
  std::uint32_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce, words += std::size_t{kAtOnce} * stride) {
    for (std::uint32_t at = 0; at < kAtOnce * stride; at += step)
      __builtin_prefetch(words + ahead + at);
    unsigned equal = 0;
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      equal |= static_cast<unsigned>(is_equal(words + std::size_t{k} * stride)) << k;
    for (; __builtin_expect(equal != 0, 0); equal &= equal - 1)
      if (!visit(i + static_cast<std::uint32_t>(std::countr_zero(equal)))) return false;
  }
  for (; i < count; ++i, words += stride)
    if (is_equal(words) && !visit(i)) return false;
  return true;
}

}  // namespace

KeyScan::KeyScan(const RowStore& rows, const columns::ColumnArray& columns,
                 std::span<const std::uint16_t> key_columns, std::span<const Value> values,
                 std::uint32_t like)
    : rows_(rows), columns_(columns), key_columns_(key_columns), values_(values), like_(like) {
  FLUGS_CHECK(values.size() <= key_columns.size() && key_columns.size() <= kKeyColumnsMax);
}

// The ValueID of the value in the dictionary of `edition`: the column's first edition with a
// dictionary, even if another is the newest by now. kNone: no row that was there at opening has the
// value.
std::uint32_t KeyScan::code(std::size_t i, const columns::Column& edition) {
  if (codes_[i]) return *codes_[i];
  FLUGS_CHECK(edition.is_dictionary());
  const std::uint16_t column = key_columns_[i];
  const columns::Dictionary& dictionary = edition.dictionary();
  std::uint32_t code = columns::Dictionary::kNone;
  const RowView view = like_ == kNoRow ? RowView() : rows_.view(like_);
  if (view.layout != nullptr && view.layout->edition(column) == edition.edition()) {
    code = static_cast<std::uint32_t>(view.layout->load(view.cells, column));
  } else {
    code = dictionary.find(values_[i]);
  }
  if (!dictionary.has_hints() && code >= dictionary.rebuild_end())
    code = columns::Dictionary::kNone;
  codes_[i] = code;
  return code;
}

// In columns the row's part may be anywhere in a word, which is moved to its beginning.
std::uint64_t KeyScan::Place::load(const std::byte* row) const noexcept {
  if (part_bytes == 0) return word_at(row + std::size_t{word} * 8);
  const std::byte* part = RowPart{word, part_bytes}.in_row(row) + in_part;
  const std::size_t in_word = reinterpret_cast<std::uintptr_t>(part) % 8;
  return word_at(part - in_word) >> in_word * 8;
}

KeyScan::Place KeyScan::place_of(const columns::RowLayout::Access& access) noexcept {
  if (!access.is_in_column()) return {access.word, 0, 0};
  const RowPart part = access.part();
  return {part.offset, part.bytes, static_cast<std::uint16_t>(access.word - part.offset)};
}

void KeyScan::add(Place place, std::uint64_t mask, std::uint64_t bits) {
  FLUGS_DCHECK(tests_.count < tests_.all.size());
  Test* const end = tests_.all.data() + tests_.count;
  Test* const test =
      std::find_if(tests_.all.data(), end, [&](const Test& t) { return t.place == place; });
  if (test == end) ++tests_.count;
  if (test == end) *test = {place, 0, 0};
  test->mask |= mask;
  test->bits |= bits & mask;
}

void KeyScan::add_text(const columns::RowLayout::Access& access, std::string_view text) {
  const Place lower = place_of(access);
  Place upper = lower;
  if (access.is_in_column())
    upper.in_part += 8;
  else
    upper.word += 1;
  if (text.size() <= columns::text_cell::kInlineBytesMax) {
    const columns::Cell cell = columns::text_cell::make_inline(text);
    add(lower, ~std::uint64_t{0}, cell.low);
    add(upper, ~std::uint64_t{0}, cell.high);
    return;
  }
  const columns::Cell cell =
      columns::text_cell::make_out_of_line(0, static_cast<std::uint32_t>(text.size()));
  add(upper, 0xFF000000FFFFFFFFu, cell.high);  // length and tag
}

// Makes no test for NULL, constants, and cells of earlier editions: the caller that looks at the
// row decides.
void KeyScan::prepare(const columns::RowLayout& layout) {
  if (tests_.layout == &layout) return;
  tests_ = {};
  tests_.layout = &layout;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::uint16_t position = key_columns_[i];
    const columns::Column& column = *columns_[position];
    const columns::RowLayout::Access& access = layout.access()[position];
    if (values_[i].is_null() || !access.has_cell() || layout.edition(position) != column.edition())
      continue;
    if (access.kind == columns::CellKind::kText) {
      add_text(access, values_[i].as_string());
      continue;
    }
    auto bits = static_cast<std::uint64_t>(values_[i].raw());
    if (access.kind == columns::CellKind::kCode) {
      bits = code(i, column);
      tests_.is_nowhere |= bits == columns::Dictionary::kNone || (bits & ~access.mask) != 0;
    }
    unsigned shift = access.shift;
    if (access.is_in_column()) shift = access.is_in_record() ? access.record().shift : 0;
    add(place_of(access), access.mask << shift, (bits & access.mask) << shift);
  }
  std::sort(tests_.all.data(), tests_.all.data() + tests_.count, [](const Test& a, const Test& b) {
    return std::popcount(a.mask) > std::popcount(b.mask);
  });
}

bool KeyScan::visit(std::uint32_t first, std::uint32_t end,
                    FunctionRef<bool(std::uint32_t row)> visit) {
  FLUGS_DCHECK(first < end && end <= rows_.end_of_chunk_with(first));
  const bool is_group = rows_.group_with(first) != nullptr;
  if (!is_group) prepare(rows_.layout(first));
  if (!is_group && tests_.is_nowhere) return true;
  if (is_group || tests_.count == 0) {
    for (std::uint32_t row = first; row < end; ++row)
      if (!visit(row)) return false;
    return true;
  }
  const std::byte* const cells = rows_.address(first);
  const std::uint32_t row_bytes = tests_.layout->row_bytes();
  const std::span<const Test> tests(tests_.all.data(), tests_.count);
  const auto pass = [](std::span<const Test> all, const std::byte* row) {
    return std::all_of(all.begin(), all.end(), [&](const Test& t) { return t.passes(row); });
  };
  if (tests_.layout->is_in_columns()) {
    for (std::uint32_t row = first; row < end; ++row)
      if (pass(tests, rows_.address(row)) && !visit(row)) return false;
    return true;
  }
  const Test& leading = tests.front();
  return for_each_equal(cells + std::size_t{leading.place.word} * 8, row_bytes, end - first,
                        leading.mask, leading.bits, [&](std::uint32_t i) {
                          const std::byte* const row = cells + std::size_t{i} * row_bytes;
                          return !pass(tests.subspan(1), row) || visit(first + i);
                        });
}

}  // namespace flugs::engine
