// Reads again, at its commit, what a serializable transaction has read (ReadSet).

#include <algorithm>
#include <array>
#include <vector>

#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/table/row_reader.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

bool RowReader::is_same_row(std::uint32_t row, const ReadAgain& again) const noexcept {
  return !data_.rows.exists(row) || again.is_same(data_.rows.version(row));
}

// Collects the rows that a look-up without an ordered key finds, in ascending order.
void RowReader::collect_hashed(const KeyIndex& key, std::span<const Value> wanted,
                               const columns::Candidates& heads, const mvcc::Visibility& visibility,
                               std::vector<std::uint32_t>& out) const {
  out.clear();
  for (const std::uint32_t head : heads.view())
    if (const std::uint32_t row = visible_version(key, head, wanted, visibility); row != kNoRow)
      out.push_back(row);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

bool RowReader::is_same_lookup(std::size_t key_index, std::span<const Value> prefix,
                               const ReadAgain& again) const {
  if (!data_.keys.can_find(key_index)) return false;  // dropped, so perhaps not maintained
  const KeyIndex& key = *data_.keys[key_index];
  if (key.is_ordered())
    return is_same_range(key_index, {prefix, true}, {prefix, true}, false, kNoRow, again);
  std::array<Value, kKeyColumnsMax> copy;
  for (std::size_t i = 0; i < prefix.size(); ++i)
    copy[i] = data_.columns[key.columns()[i]]->fitted(prefix[i]);
  const std::span<const Value> wanted(copy.data(), prefix.size());
  if (!key.is_hashed(wanted)) {
    const std::uint32_t end = data_.rows.rows_end();
    for (std::uint32_t row = 0; row < end; ++row)
      if (!is_same_row(row, again) && key.matches(row, wanted)) return false;
    return true;
  }
  // One look-up for both snapshots: a transaction that commits below the later one has its entries
  // in place.
  columns::Candidates heads;
  if (!key.entries().lookup(wanted, heads)) return false;
  std::vector<std::uint32_t> then;
  std::vector<std::uint32_t> now;
  collect_hashed(key, wanted, heads, again.then, then);
  collect_hashed(key, wanted, heads, again.now, now);
  return then == now;
}

// An ordered key has an entry for each version, so each version is checked by itself.
bool RowReader::is_same_range(std::size_t key_index, const KeyBound& lower, const KeyBound& upper,
                              bool descending, std::uint32_t last, const ReadAgain& again) const {
  if (!data_.keys.can_find(key_index)) return false;
  const KeyIndex& key = *data_.keys[key_index];
  // The bounds were valid when they were read; a column may have another type since, with the same
  // payloads.
  const auto normalised = [&](const KeyBound& bound) {
    std::vector<Value> values(bound.values.begin(), bound.values.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = data_.columns[key.columns()[i]]->fitted(values[i]);
    return values;
  };
  const std::vector<Value> low = normalised(lower);
  const std::vector<Value> high = normalised(upper);
  bool is_same = true;
  const auto matters = [&](std::uint32_t row) { return row == last || !is_same_row(row, again); };
  build_.walk(key, {low, lower.inclusive, high, upper.inclusive, descending}, again.then.snapshot(),
              matters, [&](std::uint32_t row) {
                is_same = is_same_row(row, again);
                return is_same && row != last;
              });
  return is_same;
}

bool RowReader::is_same_scan(const Predicate& where, const ReadAgain& again) const {
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row) {
    if (is_same_row(row, again)) continue;
    if (!where.has_column) return false;
    const std::size_t column = where.column.value();
    const Value wanted = data_.columns[column]->fitted(where.equals);
    if (data_.rows.view(row).equals(*data_.columns[column], column, wanted)) return false;
  }
  return true;
}

}  // namespace flugs::engine
