#include "tables/keys/key_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/shown.h"
#include "base/types.h"
#include "columns/column/column.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/key_prefix.h"

namespace flugs::engine {

namespace {

/// -1, 0, 1: a key is before, inside or behind the range. `of_lower` and `of_upper` compare the key
/// with the bounds.
template <typename OfLower, typename OfUpper>
int place_in(const KeyRange& range, OfLower&& of_lower, OfUpper&& of_upper) {
  if (!range.lower.empty()) {
    const int order = of_lower();
    if (order < 0 || (order == 0 && !range.lower_inclusive)) return -1;
  }
  if (!range.upper.empty()) {
    const int order = of_upper();
    if (order > 0 || (order == 0 && !range.upper_inclusive)) return 1;
  }
  return 0;
}

}  // namespace

KeyColumns::KeyColumns(const RowStore& rows, const columns::ColumnArray& columns,
                       const KeySchema& schema, std::vector<std::uint16_t> key_columns)
    : rows_(rows),
      columns_(columns),
      compare_(columns, std::move(key_columns)),
      unique_(schema.unique),
      ordered_(schema.ordered),
      hashed_columns_(schema.hashed_columns) {
  FLUGS_CHECK(!schema.dropped);
  const std::size_t key_size = compare_.columns().size();
  FLUGS_CHECK(key_size != 0 && key_size <= kKeyColumnsMax);
  FLUGS_CHECK(hashed_columns_ <= key_size);
  for (const std::uint16_t column : this->columns().first(hashed_columns_))
    hashed_end_ = std::max<std::size_t>(hashed_end_, column + 1u);
  for (const std::uint16_t column : compare_.columns())
    if (!facts_of(columns_[column]->type()).is_always_normal) set_needs_normalising();
  for (const std::uint16_t column : compare_.columns())
    if (columns_[column]->nullable()) note_nullable(column);
}

// A thread that meets a row with NULL sees the store: the row was written after it.
void KeyColumns::note_nullable(std::size_t column) noexcept {
  if (has_column(column)) has_nullable_.store(true, std::memory_order_relaxed);
  const auto hashed = columns().first(hashed_columns_);
  if (std::find(hashed.begin(), hashed.end(), column) != hashed.end())
    hashes_nullable_.store(true, std::memory_order_relaxed);
}

std::string KeyColumns::describe(std::span<const Value> values) const {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", columns_[columns()[i]]->name(),
                        shown(values[i]));
  return text;
}

std::string KeyColumns::describe(std::uint32_t row) const {
  std::array<Value, kKeyColumnsMax> values;
  for (std::size_t i = 0; i < columns().size(); ++i) values[i] = value(row, i);
  return describe(std::span(values.data(), columns().size()));
}

bool KeyColumns::has_column(std::size_t column) const noexcept {
  return std::find(columns().begin(), columns().end(), column) != columns().end();
}

Value KeyColumns::value(std::uint32_t row, std::size_t key_position) const noexcept {
  const std::uint16_t column = columns()[key_position];
  return rows_.view(row).value(*columns_[column], column);
}

bool KeyColumns::has_null(std::uint32_t row) const noexcept {
  if (!has_nullable_.load(std::memory_order_relaxed)) return false;
  const RowView view = rows_.view(row);
  for (const std::uint16_t column : columns())
    if (columns_[column]->nullable() && view.is_null(*columns_[column], column)) return true;
  return false;
}

bool KeyColumns::is_hashed(std::uint32_t row) const noexcept {
  if (!unique_) return false;
  if (!hashes_nullable_.load(std::memory_order_relaxed)) return true;
  const RowView view = rows_.view(row);
  for (std::size_t i = 0; i < hashed_columns_; ++i)
    if (view.is_null(*columns_[columns()[i]], columns()[i])) return false;
  return true;
}

bool KeyColumns::is_hashed(std::span<const Value> values) const noexcept {
  FLUGS_DCHECK(values.size() >= hashed_columns_);
  if (!hashes_nullable_.load(std::memory_order_relaxed))
    return true;  // no row has NULL there; NULL finds nothing
  const auto hashed = values.first(hashed_columns_);
  return std::none_of(hashed.begin(), hashed.end(), [](const Value& v) { return v.is_null(); });
}

inline std::uint64_t KeyColumns::hash_of(std::uint32_t row, std::size_t count) const noexcept {
  const RowView view = rows_.view(row);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t position = columns()[i];
    const columns::Column& column = *columns_[position];
    std::uint64_t part = kHashOfNull;
    if (!column.nullable() || !view.is_null(column, position))
      part = column.is_text() ? hash_text(view.text(column, position))
                              : hash_integer(view.integer(column, position));
    hash = i == 0 ? part : combine_hashes(hash, part);
  }
  return hash;
}

std::uint64_t KeyColumns::hash_of(std::uint32_t row) const noexcept {
  return hash_of(row, hashed_columns_);
}

std::uint64_t KeyColumns::hash_of_new(std::span<const Value> by_column) const noexcept {
  FLUGS_DCHECK(hashes_among(by_column.size()));
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < hashed_columns_; ++i) {
    const std::uint16_t position = columns()[i];
    const columns::Column& column = *columns_[position];
    const Value& value = by_column[position];
    std::uint64_t part = kHashOfNull;
    if (!value.is_null())
      part = column.is_text() ? hash_text(value.as_string())
                              : hash_integer(columns::normalised_payload(value, column.type()));
    hash = i == 0 ? part : combine_hashes(hash, part);
  }
  return hash;
}

std::uint64_t KeyColumns::record_hash(std::uint32_t row) const noexcept {
  return hash_of(row, columns().size());
}

std::uint64_t KeyColumns::hash_of(std::span<const Value> values) const noexcept {
  FLUGS_DCHECK(values.size() >= hashed_columns_);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < hashed_columns_; ++i) {
    const Value& v = values[i];
    std::uint64_t part = kHashOfNull;
    if (!v.is_null())
      part = columns_[columns()[i]]->is_text() ? hash_text(v.as_string()) : hash_integer(v.raw());
    hash = i == 0 ? part : combine_hashes(hash, part);
  }
  return hash;
}

Status KeyColumns::judge(std::uint32_t candidate, const mvcc::Visibility& visibility) const {
  using Fate = mvcc::Visibility::Fate;
  const mvcc::VersionLayout& version = rows_.version(candidate);
  const mvcc::Visibility::Resolved created = visibility.resolve(version.created);
  if (created.fate == Fate::kNothing) return {};
  if (created.fate == Fate::kInFlight) return Status(StatusCode::kConflict);
  const mvcc::Visibility::Resolved deleted = visibility.resolve(version.deleted);
  switch (deleted.fate) {
    case Fate::kOwn:
      return {};
    case Fate::kInFlight:
      return Status(StatusCode::kConflict);
    case Fate::kCommitted:
      // Deleted before our snapshot, or only after it: then the deleter was concurrent.
      return deleted.timestamp <= visibility.snapshot() ? Status() : Status(StatusCode::kConflict);
    case Fate::kNothing:
      break;
  }
  const bool concurrent =
      created.fate == Fate::kCommitted && created.timestamp > visibility.snapshot();
  return Status(concurrent ? StatusCode::kConflict : StatusCode::kAlreadyExists);
}

columns::OrderedEntry KeyColumns::ordered_entry(std::uint32_t row, bool& is_whole) const noexcept {
  KeyPrefix prefix;
  const RowView view = rows_.view(row);
  for (const std::uint16_t i : columns()) {
    if (prefix.is_full()) {
      is_whole = false;
      return {prefix.bits(), row};
    }
    const columns::Column& column = *columns_[i];
    const bool is_dropped = !view.is_in_group() && column.is_dropped();
    if (is_dropped || (column.nullable() && view.is_null(column, i))) {
      prefix.add_null(column.type());
    } else if (column.is_text()) {
      prefix.add_text(view.text(column, i));
    } else {
      prefix.add_payload(view.integer(column, i), column.type());
    }
  }
  is_whole = prefix.is_whole();
  return {prefix.bits(), row};
}

KeyPrefix KeyColumns::prefix_of(std::span<const Value> values) const noexcept {
  KeyPrefix prefix;
  for (std::size_t i = 0; i < values.size(); ++i)
    prefix.add(values[i], columns_[columns()[i]]->type());
  return prefix;
}

int KeyColumns::rows(std::uint32_t a, std::uint32_t b) const {
  return compare_.order(rows_.view(a), rows_.view(b));
}

int KeyColumns::place_of(std::uint32_t row, const KeyRange& range) const noexcept {
  const RowView view = rows_.view(row);
  return place_in(
      range, [&] { return compare_.order(view, range.lower); },
      [&] { return compare_.order(view, range.upper); });
}

// The prefix decides; for a bound that does not fit into its prefix, the row decides. An entry's
// prefix is that of its row's key.
int KeyColumns::place_of(const columns::OrderedEntry& entry, const KeyRange& range,
                         const KeyPrefix& lower, const KeyPrefix& upper) const noexcept {
  const auto order = [&](const KeyPrefix& prefix, std::span<const Value> bound) {
    if (entry.prefix < prefix.bits()) return -1;
    if (entry.prefix > prefix.greatest()) return 1;
    return prefix.is_whole() ? 0 : compare_.order(rows_.view(entry.row), bound);
  };
  return place_in(
      range, [&] { return order(lower, range.lower); }, [&] { return order(upper, range.upper); });
}

}  // namespace flugs::engine
