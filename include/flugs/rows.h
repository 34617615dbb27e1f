#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>

#include "flugs/ids.h"
#include "flugs/row.h"
#include "flugs/scan.h"
#include "flugs/status.h"

namespace flugs {

namespace engine {
class DatabaseCore;
class RowCursor;
}  // namespace engine

/// Rows of a key that the caller pulls one by one (Transaction::rows without a visitor):
///
///     Rows last_ten = t.rows(by_customer, {customer}).reverse().limit(10);
///     for (const Row& row : last_ten) print(row);
///     if (!last_ten.status().ok()) return last_ten.status();
///
/// The walk shows the rows as they were when `rows` was called. The transaction may write
/// meanwhile, also the row just given: rows that it inserts do not come, and rows that it changes
/// or deletes come as they were. When it writes for the first time, the walk notes the ids of all
/// rows that are left, four bytes each; `limit` bounds that.
///
/// When the transaction ends, the walk fails. It also fails when the transaction undoes (by
/// rollback_to) a write from before the walk.
///
/// Thread-safety: as the transaction's.
class Rows {
 public:
  Rows(Rows&&) noexcept;
  Rows& operator=(Rows&&) noexcept;
  ~Rows();

  /// The same rows from the last to the first. The key must be ordered. Call it before the first
  /// row is read; else the walk fails.
  Rows reverse() &&;
  /// The first `rows` of these rows. Call it before the first row is read; else the walk fails.
  Rows limit(std::uint64_t rows) &&;

  /// The next row, or null: there is none, or the walk has failed (`status`). Valid until the next
  /// call; a copy of the Row is valid as Row says.
  const Row* next();
  /// The next rows, at most ScanBatch::kRowsMax, column by column, or null as `next`. Texts are
  /// valid until the transaction ends; the batch until the next call. May be mixed with `next`.
  /// Fails with: as `status`, and kInvalidArgument (no such column, or one that was dropped
  /// meanwhile).
  const ScanBatch* next_batch(std::span<const ColumnId> columns);
  const ScanBatch* next_batch(std::initializer_list<ColumnId> columns) {
    return next_batch(std::span<const ColumnId>(columns.begin(), columns.size()));
  }
  /// Why `next` or `next_batch` gave null: ok at the end of the rows.
  /// Fails with: kInvalidArgument (no such key; a key that is not ordered, for bounds or in
  /// reverse; values that do not fit; the transaction has ended), kNotFound (no such table),
  /// kCancelled, kCorrupt.
  const Status& status() const noexcept { return status_; }

  /// An input iterator: one pass.
  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    const Row& operator*() const noexcept { return *row_; }
    const Row* operator->() const noexcept { return row_; }
    Iterator& operator++() {
      row_ = rows_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) noexcept {
      return a.row_ == nullptr;
    }

   private:
    friend class Rows;
    explicit Iterator(Rows* rows) : rows_(rows), row_(rows->next()) {}
    Rows* rows_;
    const Row* row_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class Transaction;
  explicit Rows(Status why);
  Rows(engine::DatabaseCore* database, std::shared_ptr<engine::RowCursor> cursor) noexcept;
  bool begin_step();
  void finish(Status why);

  engine::DatabaseCore* database_ = nullptr;
  std::shared_ptr<engine::RowCursor> cursor_;  // null: no row is left
  Status status_;
  Row row_;
  std::unique_ptr<ScanBatch> batch_;  // once next_batch was called
};
static_assert(!std::is_copy_constructible_v<Rows> && std::is_nothrow_move_constructible_v<Rows>);

}  // namespace flugs
