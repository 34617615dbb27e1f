// A unique key after opening, while its index in DRAM is made of the rows that there are: what the
// index lacks is looked for among these (decision 0020).

#include <algorithm>
#include <array>

#include "tables/keys/key_index.h"
#include "tables/keys/key_scan.h"

namespace flugs::engine {

void KeyIndex::leave_rows(std::uint32_t end, std::uint64_t opened_at) {
  late_ = std::make_unique<LateRows>(end, opened_at);
  is_finished_.store(false, std::memory_order_release);
}

// Rows that may be missing in the index and have the values, until `visit` returns false. How far
// the index has come is read first: what is entered afterwards is looked at here.
void KeyIndex::for_each_late(const LateRows& late, std::span<const Value> values,
                             std::uint32_t like, FunctionRef<bool(std::uint32_t row)> visit) const {
  std::uint32_t first = late.entered();
  KeyScan scan(rows_, columns_, columns(), values, like);
  while (first < late.end()) {
    const std::uint32_t end = std::min(late.end(), rows_.end_of_chunk_with(first));
    if (!is_served(first) && !scan.visit(first, end, [&](std::uint32_t row) {
          return !late.has(rows_.version(row)) || !matches(row, values) || visit(row);
        }))
      return;
    first = end;
  }
}

// That which has the same key, and no NULL in it: of those that were there at opening one had it at
// most. It may be in the index, too.
std::uint32_t KeyIndex::late_row_like(std::uint32_t row) const {
  const LateRows* rows = late();
  if (rows == nullptr) return kNoRow;
  std::array<Value, kKeyColumnsMax> values;
  for (std::size_t i = 0; i < columns().size(); ++i) values[i] = value(row, i);
  std::uint32_t found = kNoRow;
  for_each_late(*rows, std::span(values.data(), columns().size()), row, [&](std::uint32_t other) {
    found = other;
    return false;
  });
  return found;
}

bool KeyIndex::lookup(std::span<const Value> values, columns::Candidates& out) const {
  const LateRows* rows = late();
  if (__builtin_expect(rows == nullptr, 1)) return lookup(hash_of(values), out);
  const bool is_one = values.size() == columns().size() &&
                      std::none_of(values.begin(), values.end(),
                                   [](const Value& value) { return value.is_null(); });
  columns::Candidates late;
  for_each_late(*rows, values, kNoRow, [&](std::uint32_t row) {
    late.push(row);
    return !is_one;
  });
  const bool is_whole = lookup(hash_of(values), out);
  for (const std::uint32_t row : late.view()) {
    const std::span<const std::uint32_t> known = out.view();
    if (std::find(known.begin(), known.end(), row) == known.end()) out.push(row);
  }
  return is_whole;
}

}  // namespace flugs::engine
