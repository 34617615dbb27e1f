#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "columns/column/column_array.h"
#include "columns/index/ordered_index.h"
#include "flugs/schema.h"
#include "mvcc/visibility.h"
#include "tables/keys/key_compare.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

class KeyPrefix;

/// Bounds of a walk: values of the first columns of a key, checked and normalised. Empty: no bound.
struct KeyRange {
  std::span<const Value> lower;
  bool lower_inclusive = true;
  std::span<const Value> upper;
  bool upper_inclusive = true;
  /// Walks from the upper bound to the lower one.
  bool descending = false;
  /// A walk that goes on: it leaves out the entries up to that of this row, in its own direction.
  /// The row's key must be readable. kNoRow: a walk from the beginning.
  std::uint32_t behind = kNoRow;

  static KeyRange equal(std::span<const Value> values) noexcept {
    return {values, true, values, true};
  }
};

/// The columns of a key, as the schema gives them: reads, hashes and compares the keys of rows.
/// Knows nothing of indexes.
/// Thread-safety: any thread.
class KeyColumns : public columns::OrderedIndexCompare {
 public:
  KeyColumns(const RowStore& rows, const columns::ColumnArray& columns, const KeySchema& schema,
             std::vector<std::uint16_t> key_columns);
  KeyColumns(const KeyColumns&) = delete;
  KeyColumns& operator=(const KeyColumns&) = delete;

  /// For messages: "a = 1, b = 'x'".
  std::string describe(std::span<const Value> values) const;
  std::string describe(std::uint32_t row) const;
  std::span<const std::uint16_t> columns() const noexcept { return compare_.columns(); }
  bool is_unique() const noexcept { return unique_; }
  bool is_ordered() const noexcept { return ordered_; }
  std::size_t hashed_columns() const noexcept { return hashed_columns_; }
  /// Whether values for this key may have to be normalised first.
  bool needs_normalising() const noexcept {
    return needs_normalising_.load(std::memory_order_relaxed);
  }
  void set_needs_normalising() noexcept {
    needs_normalising_.store(true, std::memory_order_relaxed);
  }
  bool has_column(std::size_t column) const noexcept;
  /// Rows may have NULL in this column of the key from then on. Call it before a row has.
  void note_nullable(std::size_t column) noexcept;

  Value value(std::uint32_t row, std::size_t key_position) const noexcept;
  /// Whether the values of the key's first columns equal `values` (checked and normalised).
  bool matches(std::uint32_t row, std::span<const Value> values) const noexcept {
    return matches(rows_.view(row), values);
  }
  [[gnu::always_inline]] bool matches(const RowView& row,
                                      std::span<const Value> values) const noexcept {
    return compare_.is_equal(row, values);
  }
  /// Whether two rows have the same key (NULL equals NULL).
  bool same_key(std::uint32_t a, std::uint32_t b) const noexcept {
    return same_key(a, rows_.view(b));
  }
  bool same_key(std::uint32_t a, const RowView& b) const noexcept {
    return compare_.is_same(rows_.view(a), b);
  }
  bool has_null(std::uint32_t row) const noexcept;
  /// Whether this row, or rows with these values, have entries under a hash: not if a hashed column
  /// is NULL. There may be any number of such rows, all with the same hash.
  bool is_hashed(std::uint32_t row) const noexcept;
  bool is_hashed(std::span<const Value> values) const noexcept;
  std::uint64_t hash_of(std::uint32_t row) const noexcept;
  std::uint64_t hash_of(std::span<const Value> values) const noexcept;
  /// Returns the hash of a row that will be made of these values, one for each column of the table.
  /// The caller must check hashes_among(by_column.size()) first.
  std::uint64_t hash_of_new(std::span<const Value> by_column) const noexcept;
  /// Whether the hash needs only the table's first `columns` columns.
  bool hashes_among(std::size_t columns) const noexcept { return hashed_end_ <= columns; }
  /// Hash of all columns of the key.
  std::uint64_t record_hash(std::uint32_t row) const noexcept;

  /// `is_whole`: whether the prefix says all of the key.
  columns::OrderedEntry ordered_entry(std::uint32_t row, bool& is_whole) const noexcept;
  columns::OrderedEntry ordered_entry(std::uint32_t row) const noexcept {
    bool is_whole = false;
    return ordered_entry(row, is_whole);
  }
  KeyPrefix prefix_of(std::span<const Value> values) const noexcept;
  /// -1, 0, 1: the row's key is before, inside or behind the range.
  int place_of(std::uint32_t row, const KeyRange& range) const noexcept;
  /// The same for an entry; `lower` and `upper` are the prefixes of the bounds.
  int place_of(const columns::OrderedEntry& entry, const KeyRange& range, const KeyPrefix& lower,
               const KeyPrefix& upper) const noexcept;
  int rows(std::uint32_t a, std::uint32_t b) const final;

  /// Whether a transaction may insert a row with the same key as `candidate`. Fails with
  /// kAlreadyExists; kConflict: it may turn out so.
  Status judge(std::uint32_t candidate, const mvcc::Visibility& visibility) const;

 protected:
  ~KeyColumns() = default;

 private:
  std::uint64_t hash_of(std::uint32_t row, std::size_t count) const noexcept;

  const RowStore& rows_;
  const columns::ColumnArray& columns_;
  const KeyCompare compare_;
  const bool unique_;
  const bool ordered_;
  std::atomic<bool> needs_normalising_{false};
  std::atomic<bool> hashes_nullable_{false};
  std::atomic<bool> has_nullable_{false};
  const std::size_t hashed_columns_;
  std::size_t hashed_end_ = 0;  // behind the last hashed column, by its position in the table
};

}  // namespace flugs::engine
