// A unique key after opening, while its index in DRAM is made of the existing rows: rows that the
// index lacks are found by a search of those rows (decision 0020).

#include <algorithm>
#include <array>

#include "base/check.h"
#include "tables/keys/key_index.h"
#include "tables/keys/key_scan.h"

namespace flugs::engine {

void KeyIndex::defer_rows(std::uint32_t end, std::uint64_t opened_at) {
  FLUGS_CHECK(unique_ && hash_ && deferred_rows_ == nullptr);
  deferred_rows_ = std::make_unique<DeferredRows>(end, opened_at);
  is_finished_.store(false, std::memory_order_release);
}

// Visits rows that the index may lack and that have the values, until `visit` returns false. Reads
// first how far the index has come: rows entered after that are searched here as well.
void KeyIndex::for_each_deferred(const DeferredRows& deferred, std::span<const Value> values,
                                 std::uint32_t like,
                                 FunctionRef<bool(std::uint32_t row)> visit) const {
  std::uint32_t first = deferred.entered();
  KeyScan scan(rows_, columns_, columns(), values, like);
  while (first < deferred.end()) {
    const std::uint32_t end = std::min(deferred.end(), rows_.end_of_chunk_with(first));
    if (!is_served(first) && !scan.visit(first, end, [&](std::uint32_t row) {
          return !deferred.has(rows_.version(row)) || !matches(row, values) || visit(row);
        }))
      return;
    first = end;
  }
}

// The row with the same key (no NULL). At most one row present at opening has it. The index may
// have it, too.
std::uint32_t KeyIndex::deferred_row_like(std::uint32_t row) const {
  const DeferredRows* rows = deferred_rows();
  if (rows == nullptr) return kNoRow;
  std::array<Value, kKeyColumnsMax> values;
  for (std::size_t i = 0; i < columns().size(); ++i) values[i] = value(row, i);
  std::uint32_t found = kNoRow;
  for_each_deferred(*rows, std::span(values.data(), columns().size()), row,
                    [&](std::uint32_t other) {
                      found = other;
                      return false;
                    });
  return found;
}

bool KeyIndex::lookup(std::span<const Value> values, columns::Candidates& out) const {
  const DeferredRows* rows = deferred_rows();
  if (__builtin_expect(rows == nullptr, 1)) return lookup(hash_of(values), out);
  const bool is_one = values.size() == columns().size() &&
                      std::none_of(values.begin(), values.end(),
                                   [](const Value& value) { return value.is_null(); });
  columns::Candidates deferred;
  for_each_deferred(*rows, values, kNoRow, [&](std::uint32_t row) {
    deferred.push(row);
    return !is_one;
  });
  const bool is_whole = lookup(hash_of(values), out);
  for (const std::uint32_t row : deferred.view()) {
    const std::span<const std::uint32_t> known = out.view();
    if (std::find(known.begin(), known.end(), row) == known.end()) out.push(row);
  }
  return is_whole;
}

}  // namespace flugs::engine
