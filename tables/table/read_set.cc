#include "tables/transactions/read_set.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "tables/table/table.h"

namespace flugs::engine {

namespace {

/// The unique keys for which `has(key)`.
template <typename Has>
KeyMask unique_keys(const Table& table, Has&& has) {
  KeyMask keys = 0;
  for (const std::size_t k : KeySet(table.keys().kept()))
    if (table.keys()[k]->is_unique() && has(*table.keys()[k]))
      keys |= static_cast<KeyMask>(1U << k);
  return keys;
}

// The refusal does not say which key was taken. A row with NULL in a key does not take that key.
template <typename ValueOf>
void add_keys(ReadSet& reads, const Table& table, KeyMask keys, ValueOf&& value_of) {
  std::array<Value, kKeyColumnsMax> wanted;
  for (const std::size_t k : KeySet(keys)) {
    const std::span<const std::uint16_t> columns = table.keys()[k]->columns();
    const std::span<Value> values(wanted.data(), columns.size());
    std::transform(columns.begin(), columns.end(), values.begin(), value_of);
    if (std::none_of(values.begin(), values.end(), [](const Value& v) { return v.is_null(); }))
      reads.add_lookup(table, k, values);
  }
}

}  // namespace

OwnedValues::OwnedValues(std::span<const Value> values) : values_(values.begin(), values.end()) {
  std::size_t bytes = 0;
  for (const Value& value : values) bytes += value.as_string().size();
  if (bytes == 0) return;
  texts_ = std::make_unique<char[]>(bytes);
  char* next = texts_.get();
  for (Value& value : values_) {
    const std::string_view text = value.as_string();
    if (text.empty()) continue;
    std::memcpy(next, text.data(), text.size());
    value = Value::from_bytes(value.type(), {next, text.size()});
    next += text.size();
  }
  FLUGS_DCHECK(next == texts_.get() + bytes);
}

void ReadSet::add_lookup(const Table& table, std::size_t key, std::span<const Value> prefix) {
  lookups_.push_back({&table, key, OwnedValues(prefix)});
}

void ReadSet::add_range(const Table& table, std::size_t key, const KeyBound& lower,
                        const KeyBound& upper, std::uint32_t last) {
  ranges_.push_back({&table, key, OwnedValues(lower.values), OwnedValues(upper.values),
                     lower.inclusive, upper.inclusive, last, false});
}

std::size_t ReadSet::add_walk(const Table& table, std::size_t key, const KeyBound& lower,
                              const KeyBound& upper, bool descending) {
  add_range(table, key, lower, upper, kNoRow);
  ranges_.back().is_descending = descending;
  return ranges_.size() - 1;
}

void ReadSet::note_walked(std::size_t walk, std::uint32_t last) noexcept {
  FLUGS_DCHECK(walk < ranges_.size());
  ranges_[walk].last = last;
}

void ReadSet::add_scan(const Table& table, const Predicate& where) {
  const auto covers = [&](const Scan& scan) {
    return scan.table == &table && !scan.where.has_column;
  };
  if (std::any_of(scans_.begin(), scans_.end(), covers)) return;
  Scan scan{&table, where, {}};
  if (where.has_column) {
    scan.equals = OwnedValues(std::span(&where.equals, 1));
    scan.where.equals = scan.equals.view().front();
  }
  scans_.push_back(std::move(scan));
}

void ReadSet::add_refused_insert(const Table& table, std::span<const Value> values,
                                 std::size_t width) {
  FLUGS_DCHECK(width != 0 && values.size() % width == 0);
  // The rows are narrower if a column has just been added.
  const KeyMask keys = unique_keys(table, [&](const KeyIndex& key) {
    return *std::max_element(key.columns().begin(), key.columns().end()) < width;
  });
  for (std::size_t first = 0; first < values.size(); first += width)
    add_keys(*this, table, keys, [&](std::uint16_t column) { return values[first + column]; });
}

// The transaction has also read that the row is not there, or no longer. Keys of other columns are
// the row's own.
void ReadSet::add_refused_update(const Table& table, std::uint32_t row,
                                 std::span<const ColumnValue> changes, StatusCode why) {
  add_row(table, row);
  if (why != StatusCode::kAlreadyExists) return;
  const RowView view = table.rows().view(row);
  const auto change_of = [&](std::uint16_t column) {
    return std::find_if(changes.rbegin(), changes.rend(),
                        [&](const ColumnValue& change) { return change.column.value() == column; });
  };
  const KeyMask keys = unique_keys(table, [&](const KeyIndex& key) {
    const auto columns = key.columns();
    return std::any_of(columns.begin(), columns.end(),
                       [&](std::uint16_t column) { return change_of(column) != changes.rend(); });
  });
  add_keys(*this, table, keys, [&](std::uint16_t column) {
    const auto change = change_of(column);
    return change == changes.rend() ? view.value(*table.columns()[column], column) : change->value;
  });
}

const Table* ReadSet::changed(const mvcc::Visibility& then, const mvcc::Visibility& now) const {
  FLUGS_DCHECK(then.snapshot() <= now.snapshot());
  const ReadAgain again{then, now};
  for (const SeenRow& r : rows_)
    if (!r.table->reader().is_same_row(r.row, again)) return r.table;
  for (const Lookup& l : lookups_)
    if (!l.table->reader().is_same_lookup(l.key, l.prefix.view(), again)) return l.table;
  for (const Range& r : ranges_)
    if (!r.table->reader().is_same_range(r.key, {r.lower.view(), r.is_lower_inclusive},
                                         {r.upper.view(), r.is_upper_inclusive}, r.is_descending,
                                         r.last, again))
      return r.table;
  for (const Scan& s : scans_)
    if (!s.table->reader().is_same_scan(s.where, again)) return s.table;
  return nullptr;
}

void ReadSet::clear() noexcept {
  if (rows_.capacity() > kRowsKept) {
    rows_ = {};
  } else {
    rows_.clear();
  }
  lookups_.clear();
  ranges_.clear();
  scans_.clear();
}

}  // namespace flugs::engine
