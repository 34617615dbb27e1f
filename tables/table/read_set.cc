#include "tables/transactions/read_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tables/table/table.h"

namespace flugs::engine {

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
}

void ReadSet::add_lookup(const Table& table, std::size_t key, std::span<const Value> prefix) {
  lookups_.push_back({&table, key, OwnedValues(prefix)});
}

void ReadSet::add_range(const Table& table, std::size_t key, const KeyBound& lower,
                        const KeyBound& upper, std::uint32_t last) {
  ranges_.push_back({&table, key, OwnedValues(lower.values), OwnedValues(upper.values),
                     lower.inclusive, upper.inclusive, last});
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

bool ReadSet::holds(const mvcc::Visibility& then, const mvcc::Visibility& now) const {
  const ReadAgain again{then, now};
  return std::all_of(rows_.begin(), rows_.end(),
                     [&](const SeenRow& r) { return r.table->is_same_row(r.row, again); }) &&
         std::all_of(lookups_.begin(), lookups_.end(),
                     [&](const Lookup& l) {
                       return l.table->is_same_lookup(l.key, l.prefix.view(), again);
                     }) &&
         std::all_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) {
                       return r.table->is_same_range(r.key, {r.lower.view(), r.is_lower_inclusive},
                                                     {r.upper.view(), r.is_upper_inclusive}, r.last,
                                                     again);
                     }) &&
         std::all_of(scans_.begin(), scans_.end(),
                     [&](const Scan& s) { return s.table->is_same_scan(s.where, again); });
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
