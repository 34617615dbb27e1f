#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "flugs/status.h"
#include "flugs/transaction.h"
#include "mvcc/visibility.h"
#include "tables/rows/row_store.h"
#include "tables/transactions/open_walk.h"
#include "tables/transactions/read_set.h"

namespace flugs::engine {

class Table;
class TransactionContext;

/// Where a walk goes. With `is_prefix`: all rows whose key begins with `lower`.
struct RowCursorWay {
  std::size_t key = 0;
  OwnedValues lower;
  OwnedValues upper;
  bool lower_inclusive = true;
  bool upper_inclusive = true;
  bool is_prefix = false;
  bool descending = false;

  KeyBound from() const noexcept { return {lower.view(), lower_inclusive}; }
  KeyBound to() const noexcept {
    return {is_prefix ? lower.view() : upper.view(), upper_inclusive};
  }
};

/// A walk over the rows of a key that its user pulls one by one (flugs/rows.h). It reads the index
/// in batches, each larger than the one before, and goes on behind the last row of a batch. Between
/// two batches it holds nothing but that row's id, which keeps its meaning as long as the
/// transaction's snapshot.
///
/// Invariant: until the transaction writes, the index and the snapshot of the walk say which rows
/// are left. When it writes, `read_rest` has put them all into `rows_`.
/// Thread-safety: that of OpenWalk.
class RowCursor final : public OpenWalk {
 public:
  RowCursor(Table& table, TransactionContext& context, RowCursorWay way);

  Table& table() const noexcept { return table_; }
  TransactionContext& context() const noexcept { return context_; }
  /// Makes the walk go the other way. Returns false if a row has been read.
  bool reverse() noexcept;
  /// Ends the walk after `rows` rows at most. Returns false if a row has been read.
  bool limit(std::uint64_t rows) noexcept;
  /// The next row, or kNoRow at the end.
  /// Fails with: kInvalidArgument (no such key, a key without order, values that do not fit),
  /// kCancelled, kCorrupt.
  Result<std::uint32_t> next();
  /// Adds the next rows to `rows` until it has `rows_max`, or none is left. Fails as `next`.
  Status next_batch(std::size_t rows_max, std::vector<RowId>& rows);
  void read_rest() override;

 private:
  /// Whether there is a row at `at_`.
  Result<bool> has_row();
  Status read_batch(std::uint64_t rows_max);
  Status read_unordered();
  void note_read();

  Table& table_;
  TransactionContext& context_;
  RowCursorWay way_;
  const mvcc::Visibility visibility_;       // of the moment at which the walk began
  std::vector<std::uint32_t> rows_;         // the present batch
  std::size_t at_ = 0;                      // of them, the next one
  std::uint64_t left_ = ~std::uint64_t{0};  // rows that may still be read
  std::uint64_t batch_rows_ = kFirstBatch;
  std::uint32_t last_ = kNoRow;  // the last row of the batches so far
  bool has_begun_ = false;
  bool has_read_all_ = false;
  Status failure_;
  std::optional<std::size_t> noted_;  // in the transaction's read set

  // A walk often ends after a few rows.
  static constexpr std::uint64_t kFirstBatch = 16;
  static constexpr std::uint64_t kBatchMax = 4096;
};

}  // namespace flugs::engine
