#include "tables/table/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/names.h"
#include "base/shown.h"
#include "base/types.h"
#include "columns/index/hash_index.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

Result<Row> RowReader::read(const TransactionContext& context, RowId row) const {
  if (!data_.rows.exists(row.value()) || !context.visibility.sees(data_.rows.version(row.value())))
    return Status(StatusCode::kNotFound);
  return data_.make_row(row.value());
}

// Goes from the newest version with the key to the one that the snapshot sees. A version with
// another key than the head's ends the chain: the versions behind it have an entry of their own. A
// version that is deleted in the snapshot ends it, too: those behind it died before, and their rows
// may be of another record by now.
std::uint32_t RowReader::visible_version(const KeyIndex& key, std::uint32_t head,
                                         std::span<const Value> values,
                                         const mvcc::Visibility& visibility) const noexcept {
  FLUGS_DCHECK(values.size() <= key.columns().size());
  const bool is_part = values.size() < key.columns().size();
  for (std::uint32_t row = head; row != kNoRow; row = data_.rows.previous(row)) {
    const RowChunk& chunk = data_.rows.chunk_with(row);
    if (!key.matches(chunk.view(row), values)) return kNoRow;
    if (is_part && row != head && !key.same_key(row, head)) return kNoRow;
    const mvcc::VersionLayout& version = chunk.version(row);
    if (visibility.happened(version.deleted)) return kNoRow;
    if (visibility.happened(version.created)) return row;
  }
  return kNoRow;
}

// The row of a unique key, if the key's guess leads to it. A visible row stays in place, so its key
// may be read; other rows may even have no place in their group.
inline std::uint32_t RowReader::guessed_row(const KeyIndex& key, std::span<const Value> values,
                                            const mvcc::Visibility& visibility) const noexcept {
  if (values.size() != 1) return kNoRow;
  const std::uint32_t row = key.guess().row_of(values.front());
  if (row == kNoRow || !data_.rows.exists(row) || !visibility.sees(data_.rows.version(row)) ||
      !key.matches(row, values))
    return kNoRow;
  key.guess().learn(values.front(), row);
  return row;
}

// Visits visible rows whose key begins with `values`, without the hash index.
void RowReader::walk_unhashed(const KeyIndex& key, std::span<const Value> values,
                              const mvcc::Visibility& visibility,
                              FunctionRef<bool(const Row&)> visit) const {
  if (key.is_ordered()) {
    const auto is_seen = [&](std::uint32_t row) {
      return visibility.sees(data_.rows.version(row));
    };
    build_.walk(key, KeyRange::equal(values), visibility.snapshot(), is_seen,
                [&](std::uint32_t row) { return visit(data_.make_row(row)); });
    return;
  }
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row)
    if (visibility.sees(data_.rows.version(row)) && key.matches(row, values) &&
        !visit(data_.make_row(row)))
      return;
}

// Checks values of a key, and makes `wanted` what the key's columns store for them: the values
// themselves, or a copy in the context's scratch space.
Status RowReader::fit(TransactionContext& context, const KeyIndex& key,
                      std::span<const Value> values, std::span<const Value>& wanted) const {
  bool is_copied = key.needs_normalising();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const columns::Column& column = *data_.columns[key.columns()[i]];
    if (__builtin_expect(column.is_own(values[i]), 1)) continue;
    if (!exact_value(values[i], column.type(), column.scale()).has_value())
      return column.misfit(StatusCode::kInvalidArgument, values[i], column.type(),
                           fmt::format(" (key {})", key.name()));
    is_copied = true;
  }
  wanted = values;
  if (!is_copied) return {};
  context.scratch.values.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    context.scratch.values.push_back(data_.columns[key.columns()[i]]->fitted(values[i]));
  wanted = context.scratch.values;
  return {};
}

// Sets `row` to the visible row with the key, if the index leads to it. False: the index may lack
// rows, because of damage.
inline bool RowReader::find_in_index(TransactionContext& context, const KeyIndex& key,
                                     std::span<const Value> values, std::uint32_t& row) const {
  const std::uint64_t hash = key.hash_of(values);
  const bool is_whole = key.entries().lookup_outside_runs(hash, context.scratch.candidates);
  const std::span<const std::uint32_t> heads = context.scratch.candidates.view();
  for (const std::uint32_t head : heads) data_.rows.prefetch(head);
  const auto is_found = [&](std::uint32_t head) {
    row = visible_version(key, head, values, context.visibility);
    return row != kNoRow;
  };
  if (std::any_of(heads.begin(), heads.end(), is_found) ||
      key.entries().any_in_runs(hash, is_found)) {
    if (values.size() == 1) key.guess().learn(values.front(), row);
    if (context.mode == AccessMode::kReadWrite) context.found.note(key, row, hash);
  }
  return is_whole;
}

Result<Row> RowReader::find(TransactionContext& context, std::size_t key_index,
                            std::span<const Value> values) const {
  const KeyIndex& key = *data_.keys[key_index];
  const bool is_deferred = build_.is_deferred() && key.entries().deferred_rows() != nullptr;
  if (!key.is_unique())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
                  "not unique, use rows");
  if (values.size() != key.columns().size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
                  fmt::format("get needs {}, found {}", counted(key.columns().size(), "value"),
                              values.size()));
  std::span<const Value> wanted;
  if (Status s = fit(context, key, values, wanted); !s.ok()) return s;
  if (!key.is_hashed(wanted)) {
    Result<Row> found = Status(StatusCode::kNotFound);
    walk_unhashed(key, wanted, context.visibility, [&](const Row& row) {
      found = row;
      return false;
    });
    return found;
  }
  std::uint32_t row = guessed_row(key, wanted, context.visibility);
  const bool is_whole = row != kNoRow || find_in_index(context, key, wanted, row);
  if (__builtin_expect(row == kNoRow && is_deferred, 0)) row = find_deferred(context, key, wanted);
  if (__builtin_expect(row != kNoRow, 1)) return data_.make_row(row);
  return is_whole ? Status(StatusCode::kNotFound) : key.entries().damage();
}

// Finds a row that was not found in the index.
std::uint32_t RowReader::find_deferred(TransactionContext& context, const KeyIndex& key,
                                       std::span<const Value> values) const {
  static_cast<void>(key.entries().lookup(values, context.scratch.candidates));
  for (const std::uint32_t head : context.scratch.candidates.view())
    if (const std::uint32_t row = visible_version(key, head, values, context.visibility);
        row != kNoRow)
      return row;
  return kNoRow;
}

// The row that a key's guess names for the values, which it may not have; kNoRow: no row.
inline std::uint32_t RowReader::guess_in_chunk(const KeyIndex& key, Values values) const noexcept {
  if (values.size() != 1) return kNoRow;
  const std::uint32_t guess = key.guess().row_of(values.front());
  return guess != kNoRow && data_.rows.exists(guess) ? guess : kNoRow;
}

// The hash of values that are not as the key's columns store them. Apart, because the look-ups of
// most programs have no need of its array.
[[gnu::noinline]] std::uint64_t RowReader::hash_of_fitted(const KeyIndex& key,
                                                          Values values) const noexcept {
  std::array<Value, kKeyColumnsMax> wanted;
  for (std::size_t i = 0; i < values.size(); ++i)
    wanted[i] = data_.columns[key.columns()[i]]->fitted(values[i]);
  return key.hash_of(std::span(wanted.data(), values.size()));
}

// What a unique key's index is asked for; nothing if the values do not tell.
inline std::optional<std::uint64_t> RowReader::hash_of(const KeyIndex& key,
                                                       Values values) const noexcept {
  if (!key.is_unique() || values.size() < key.hashed_columns()) return std::nullopt;
  const Values hashed = values.first(key.hashed_columns());
  bool is_own = !key.needs_normalising();
  for (std::size_t i = 0; i < hashed.size(); ++i)
    is_own = is_own && data_.columns[key.columns()[i]]->is_own(hashed[i]);
  return __builtin_expect(is_own, 1) ? key.hash_of(hashed) : hash_of_fitted(key, hashed);
}

void RowReader::prefetch(std::size_t key_index, std::span<const Value> values) const noexcept {
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_unique()) return;
  if (const std::uint32_t guess = guess_in_chunk(key, values); guess != kNoRow)
    return data_.rows.prefetch_in_chunk(guess);
  if (const auto hash = hash_of(key, values)) key.entries().prefetch(*hash);
}

void RowReader::prefetch_rows(TransactionContext& context, std::size_t key_index,
                              std::span<const Value> values) const noexcept {
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_unique() || guess_in_chunk(key, values) != kNoRow) return;
  const auto hash = hash_of(key, values);
  if (!hash) return;
  static_cast<void>(key.entries().lookup_outside_runs(*hash, context.scratch.candidates));
  for (const std::uint32_t head : context.scratch.candidates.view()) data_.rows.prefetch(head);
}

Status RowReader::find_all(TransactionContext& context, std::size_t key_index,
                           std::span<const Value> prefix,
                           FunctionRef<bool(const Row&)> visit) const {
  const KeyIndex& key = *data_.keys[key_index];
  if (prefix.size() > key.columns().size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
                  fmt::format("{} for {}", counted(prefix.size(), "value"),
                              counted(key.columns().size(), "column")));
  if (key.is_ordered()) return range(context, key_index, {prefix, true}, {prefix, true}, visit);
  if (prefix.size() < key.hashed_columns())
    return Status(
        StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
        fmt::format("not ordered, so a look-up needs values for the {} hashed columns, found {}",
                    key.hashed_columns(), prefix.size()));
  std::span<const Value> normal;
  if (Status s = fit(context, key, prefix, normal); !s.ok()) return s;
  // A local copy: the visitor may call find, which uses the context's scratch space.
  std::array<Value, kKeyColumnsMax> copy;
  FLUGS_DCHECK(normal.size() == prefix.size());
  std::copy(normal.begin(), normal.end(), copy.begin());
  const std::span<const Value> wanted(copy.data(), prefix.size());
  if (!key.is_hashed(wanted)) {
    walk_unhashed(key, wanted, context.visibility, visit);
    return {};
  }
  columns::Candidates candidates;
  const bool is_deferred = key.entries().deferred_rows() != nullptr;
  const bool is_whole = key.entries().lookup(wanted, candidates);
  for (const std::uint32_t head : candidates.view()) data_.rows.prefetch(head);
  // An old snapshot may be led from a newer version to one that also has an entry of its own: in a
  // run, which comes later, or in a hint index or among rows without an entry, in any order.
  std::vector<std::uint32_t> led_to;
  const bool is_any_order =
      (key.entries().finds_in_any_order() || is_deferred) && candidates.view().size() > 1;
  for (const std::uint32_t head : candidates.view()) {
    const std::uint32_t row = visible_version(key, head, wanted, context.visibility);
    if (row == kNoRow || std::find(led_to.begin(), led_to.end(), row) != led_to.end()) continue;
    if (is_any_order || (row != head && data_.runs.serves(row))) led_to.push_back(row);
    if (!visit(data_.make_row(row))) break;
  }
  return is_whole ? Status() : key.entries().damage();
}

Status RowReader::fit_bound(TransactionContext& context, const KeyIndex& key, const KeyBound& bound,
                            std::vector<Value>& values) const {
  if (bound.values.size() > key.columns().size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
                  fmt::format("a bound has {} for {}", counted(bound.values.size(), "value"),
                              counted(key.columns().size(), "column")));
  std::span<const Value> wanted;
  if (Status s = fit(context, key, bound.values, wanted); !s.ok()) return s;
  values.assign(wanted.begin(), wanted.end());
  return {};
}

Status RowReader::range_part(TransactionContext& context, std::size_t key_index, const Part& part,
                             const mvcc::Visibility& visibility,
                             FunctionRef<bool(std::uint32_t row)> visit) const {
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_ordered())
    return Status(StatusCode::kInvalidArgument, SchemaPart::key(data_.name(), key.name()),
                  "not ordered");
  std::vector<Value> low;
  std::vector<Value> high;
  if (Status s = fit_bound(context, key, part.lower, low); !s.ok()) return s;
  if (Status s = fit_bound(context, key, part.upper, high); !s.ok()) return s;
  // Without the index all rows are checked: a request to end the transaction must not wait for
  // that.
  constexpr std::uint32_t kRowsLookedAt = 1024;
  bool is_to_end = false;
  const auto is_seen = [&](std::uint32_t row) {
    if (row % kRowsLookedAt == 0 && context.ending.is_to_end()) is_to_end = true;
    return !is_to_end && visibility.sees(data_.rows.version(row));
  };
  const KeyRange range{
      low, part.lower.inclusive, high, part.upper.inclusive, part.descending, part.behind};
  build_.walk(key, range, visibility.snapshot(), is_seen, visit);
  return is_to_end ? context.ending.why_ended() : Status();
}

Status RowReader::range(TransactionContext& context, std::size_t key, const KeyBound& lower,
                        const KeyBound& upper, FunctionRef<bool(const Row&)> visit) const {
  return range_part(context, key, {lower, upper}, context.visibility,
                    [&](std::uint32_t row) { return visit(data_.make_row(row)); });
}

// Collects at most `rows_max` visible rows whose key begins with `wanted`; none of these values is
// NULL.
Status RowReader::collect(std::size_t key_index, std::span<const Value> wanted,
                          const mvcc::Visibility& visibility, std::size_t rows_max,
                          std::vector<std::uint32_t>& rows) const {
  FLUGS_DCHECK(rows_max != 0);
  rows.clear();
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_unique() || wanted.size() < key.hashed_columns()) {
    const auto is_seen = [&](std::uint32_t row) {
      return visibility.sees(data_.rows.version(row));
    };
    build_.walk(key, KeyRange::equal(wanted), visibility.snapshot(), is_seen,
                [&](std::uint32_t row) {
                  rows.push_back(row);
                  return rows.size() < rows_max;
                });
    return {};
  }
  columns::Candidates heads;
  const bool is_whole = key.entries().lookup(wanted, heads);
  for (const std::uint32_t head : heads.view()) {
    const std::uint32_t row = visible_version(key, head, wanted, visibility);
    if (row == kNoRow || std::find(rows.begin(), rows.end(), row) != rows.end()) continue;
    rows.push_back(row);
    if (rows.size() >= rows_max) break;
  }
  return is_whole || !rows.empty() ? Status() : key.entries().damage();
}

bool RowReader::is_key_twice(std::size_t key, std::span<const Value> values,
                             const mvcc::Visibility& visibility) const {
  std::vector<std::uint32_t> found;
  return collect(key, values, visibility, 2, found).ok() && found.size() == 2;
}

// False: one of the values is NULL.
bool RowReader::values_of(std::uint32_t row, std::span<const std::uint16_t> columns,
                          std::span<Value> values) const noexcept {
  FLUGS_DCHECK(columns.size() <= values.size());
  const RowView view = data_.rows.view(row);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    values[i] = view.value(*data_.columns[columns[i]], columns[i]);
    if (values[i].is_null()) return false;
  }
  return true;
}

}  // namespace flugs::engine
