#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flugs/status.h"
#include "flugs/transaction.h"
#include "tables/transactions/savepoints.h"

namespace flugs {
class LongCall;
}  // namespace flugs

namespace flugs::engine {

class RowsMade;
class Table;
class TransactionContext;

/// The end of a statement that wrote rows of tables with foreign keys: follows these from the rows
/// that the statement has written, and from the rows that this writes in turn. Checks come when all
/// is done that the foreign keys demand.
///
/// Invariant: a statement fulfils all foreign keys of the rows it touched, or leaves nothing
/// behind. Thread-safety: one thread, as the context.
class Cascade final {
 public:
  /// `mark`: where the statement began. `call`, if there is one, hears of the rows that are written
  /// and may stop the work.
  Cascade(TransactionContext& context, const TransactionMark& mark,
          LongCall* call = nullptr) noexcept
      : context_(context), mark_(mark), call_(call) {}

  /// Fails with kConstraintViolated, kConflict, kCancelled (`call`), or as a write does; all since
  /// the mark is undone then.
  Status finish();
  /// Whether `call` has stopped the work.
  bool is_stopped() const noexcept { return is_stopped_; }

 private:
  Status act_on_children(Table& parent, std::size_t write, RowsMade& made);
  Status act_on_child(Table& child, std::uint32_t row, std::span<const ColumnValue> changes);
  static Status prepare_related(Table& table) noexcept;
  Status may_go_on(std::size_t rows_left);

  TransactionContext& context_;
  const TransactionMark mark_;
  LongCall* const call_;
  std::uint64_t steps_ = 0;  // rows written or checked
  bool is_stopped_ = false;
};

}  // namespace flugs::engine
