#pragma once

#include "flugs/transaction.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// Gives the layers above the engine access to the parts of a Transaction.
struct TransactionAccess {
  static const DatabaseCore* database(const Transaction& transaction) noexcept {
    return transaction.database_;
  }
  static DatabaseCore& core(const Transaction& transaction) noexcept {
    return *transaction.database_;
  }
  /// Whether calls of the transaction may go on; if not, the reason. Ends it if it was asked to
  /// end.
  static Status check(const Transaction& transaction) {
    return transaction.is_usable() ? Status() : transaction.unusable();
  }
  /// Null when the transaction has ended.
  static TransactionContext* context(const Transaction& transaction) noexcept {
    return transaction.context_;
  }
};

}  // namespace flugs::engine
