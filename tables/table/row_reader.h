#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/scan.h"
#include "flugs/transaction.h"
#include "flugs/value.h"
#include "mvcc/visibility.h"
#include "tables/rows/row_store.h"

namespace flugs::columns {
class Candidates;
}

namespace flugs::engine {

class IndexBuild;
class KeyIndex;
class TransactionContext;
struct ReadAgain;
struct TableData;

/// Reads rows of a table by row id, by key, by range and by scan, as one snapshot sees them. A
/// reader holds nothing: make one wherever rows are read.
///
/// An index leads to the newest version of a record that has the key; from there the reader goes
/// back to the version that the snapshot sees. Indexes that opening deferred are asked for before
/// (IndexBuild::prepare_lookup); rows that they may lack are found here all the same.
///
/// Thread-safety: any thread with a context of its own. Rows stay as long as the snapshot.
class RowReader final {
 public:
  RowReader(const TableData& data, const IndexBuild& build) noexcept : data_(data), build_(build) {}

  Result<Row> read(const TransactionContext& context, RowId row) const;
  Result<Row> find(TransactionContext& context, std::size_t key,
                   std::span<const Value> values) const;
  /// Starts fetching what `find` reads first: a line of the index, or the row if it can be guessed.
  void prefetch(std::size_t key, std::span<const Value> values) const noexcept;
  /// Some time after `prefetch`: starts fetching the rows to which the index leads.
  void prefetch_rows(TransactionContext& context, std::size_t key,
                     std::span<const Value> values) const noexcept;
  Status find_all(TransactionContext& context, std::size_t key, std::span<const Value> prefix,
                  FunctionRef<bool(const Row&)> visit) const;
  Status range(TransactionContext& context, std::size_t key, const KeyBound& lower,
               const KeyBound& upper, FunctionRef<bool(const Row&)> visit) const;
  /// `range` for a walk that is read in parts, as `visibility` sees it. `descending`: from the
  /// upper bound down. `behind`, unless kNoRow: the last row of the part before.
  struct Part {
    const KeyBound& lower;
    const KeyBound& upper;
    bool descending = false;
    std::uint32_t behind = kNoRow;
  };
  Status range_part(TransactionContext& context, std::size_t key, const Part& part,
                    const mvcc::Visibility& visibility,
                    FunctionRef<bool(std::uint32_t row)> visit) const;
  Status scan(const TransactionContext& context, std::span<const ColumnId> columns,
              const Predicate& where, FunctionRef<bool(const ScanBatch&)> visit) const;

  // Reads again what was read (ReadSet): whether it is the same in both snapshots. The arguments
  // are those of the first read, and were checked then.
  bool is_same_row(std::uint32_t row, const ReadAgain& again) const noexcept;
  bool is_same_lookup(std::size_t key, std::span<const Value> prefix, const ReadAgain& again) const;
  bool is_same_range(std::size_t key, const KeyBound& lower, const KeyBound& upper, bool descending,
                     std::uint32_t last, const ReadAgain& again) const;
  bool is_same_scan(const Predicate& where, const ReadAgain& again) const;

  /// Collects at most `rows_max` visible rows whose key begins with `wanted`; none of these values
  /// is NULL.
  Status collect(std::size_t key, std::span<const Value> wanted, const mvcc::Visibility& visibility,
                 std::size_t rows_max, std::vector<std::uint32_t>& rows) const;
  /// Whether two rows that are visible have these values of a unique key.
  bool is_key_twice(std::size_t key, std::span<const Value> values,
                    const mvcc::Visibility& visibility) const;
  /// The values of a row's columns; false when one is NULL.
  bool values_of(std::uint32_t row, std::span<const std::uint16_t> columns,
                 std::span<Value> values) const noexcept;

 private:
  using Values = std::span<const Value>;

  std::uint32_t visible_version(const KeyIndex& key, std::uint32_t head, Values values,
                                const mvcc::Visibility& visibility) const noexcept;
  std::uint32_t guessed_row(const KeyIndex& key, Values values,
                            const mvcc::Visibility& visibility) const noexcept;
  bool find_in_index(TransactionContext& context, const KeyIndex& key, Values values,
                     std::uint32_t& row) const;
  std::uint32_t guess_in_chunk(const KeyIndex& key, Values values) const noexcept;
  std::uint64_t hash_of_fitted(const KeyIndex& key, Values values) const noexcept;
  std::optional<std::uint64_t> hash_of(const KeyIndex& key, Values values) const noexcept;
  std::uint32_t find_deferred(TransactionContext& context, const KeyIndex& key,
                              Values values) const;
  void walk_unhashed(const KeyIndex& key, Values values, const mvcc::Visibility& visibility,
                     FunctionRef<bool(const Row&)> visit) const;
  void collect_hashed(const KeyIndex& key, Values wanted, const columns::Candidates& heads,
                      const mvcc::Visibility& visibility, std::vector<std::uint32_t>& out) const;
  Status fit(TransactionContext& context, const KeyIndex& key, Values values, Values& wanted) const;
  Status fit_bound(TransactionContext& context, const KeyIndex& key, const KeyBound& bound,
                   std::vector<Value>& values) const;

  const TableData& data_;
  const IndexBuild& build_;
};

}  // namespace flugs::engine
