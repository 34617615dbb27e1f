#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flugs/scan.h"
#include "flugs/transaction.h"
#include "flugs/value.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

class Table;

/// Two snapshots of one transaction that wrote; `now` is the one at its commit time-stamp.
struct ReadAgain {
  const mvcc::Visibility& then;
  const mvcc::Visibility& now;
  bool is_same(const mvcc::VersionLayout& version) const noexcept {
    return then.sees(version) == now.sees(version);
  }
};

/// Values with their own copies of texts.
class OwnedValues {
 public:
  OwnedValues() = default;
  explicit OwnedValues(std::span<const Value> values);
  std::span<const Value> view() const noexcept { return values_; }

 private:
  std::vector<Value> values_;
  std::unique_ptr<char[]> texts_;
};

/// What a serializable transaction has read, as questions that can be asked again: rows, look-ups,
/// ranges, tables. If every answer at the commit time-stamp is the same as at the snapshot, the
/// transaction could have run completely at its commit time-stamp.
///
/// Thread-safety: one thread.
/// Source: backward validation of Kung and Robinson, "On Optimistic Methods for Concurrency
/// Control" (TODS 1981), with predicates read again against phantoms as in Hekaton (Larson et al.,
/// VLDB 2011, section 3.2).
class ReadSet {
 public:
  /// The transaction looked at this version, and saw it or did not.
  void add_row(const Table& table, std::uint32_t row) { rows_.push_back({&table, row}); }
  /// It read all rows whose key begins with `prefix`. The values have been checked.
  void add_lookup(const Table& table, std::size_t key, std::span<const Value> prefix);
  /// It read all rows in the range up to `last`; kNoRow: to the end of the range. The bounds have
  /// been checked.
  void add_range(const Table& table, std::size_t key, const KeyBound& lower, const KeyBound& upper,
                 std::uint32_t last);
  /// It began to walk through the range; note_walked says how far it came. The result names the
  /// walk until the transaction ends.
  std::size_t add_walk(const Table& table, std::size_t key, const KeyBound& lower,
                       const KeyBound& upper, bool descending);
  void note_walked(std::size_t walk, std::uint32_t last) noexcept;
  /// It read all rows that fulfil `where`, which has been checked.
  void add_scan(const Table& table, const Predicate& where);
  /// An insert was refused with kAlreadyExists: one of these rows has a key that is taken. `values`
  /// has row after row.
  void add_refused_insert(const Table& table, std::span<const Value> values, std::size_t width);
  /// A change of this row was refused with `why`. No `changes`: a deletion was refused.
  void add_refused_update(const Table& table, std::uint32_t row,
                          std::span<const ColumnValue> changes, StatusCode why);

  /// Null if every read at `then` gives the same at `now`, a later snapshot of the same
  /// transaction; else the table of the first one that does not. Waits for transactions that are
  /// about to commit below `now`.
  const Table* changed(const mvcc::Visibility& then, const mvcc::Visibility& now) const;

  bool empty() const noexcept {
    return rows_.empty() && lookups_.empty() && ranges_.empty() && scans_.empty();
  }
  void clear() noexcept;

 private:
  struct SeenRow {
    const Table* table;
    std::uint32_t row;
  };
  struct Lookup {
    const Table* table;
    std::size_t key;
    OwnedValues prefix;
  };
  struct Range {
    const Table* table;
    std::size_t key;
    OwnedValues lower;
    OwnedValues upper;
    bool is_lower_inclusive;
    bool is_upper_inclusive;
    std::uint32_t last;
    bool is_descending;
  };
  struct Scan {
    const Table* table;
    Predicate where;     // its value is that of `equals`
    OwnedValues equals;  // empty: every row
  };
  static constexpr std::size_t kRowsKept = std::size_t{1} << 16;

  std::vector<SeenRow> rows_;
  std::vector<Lookup> lookups_;
  std::vector<Range> ranges_;
  std::vector<Scan> scans_;
};

}  // namespace flugs::engine
