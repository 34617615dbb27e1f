#pragma once

#include "flugs/transaction.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// The way from a Transaction to what lies behind it, for the layers above the engine.
struct TransactionAccess {
  static const DatabaseCore* database(const Transaction& transaction) noexcept {
    return transaction.database_;
  }
  /// Whether calls of it may go on; if not, why not, and it is ended if it was asked to.
  static Status check(const Transaction& transaction) {
    return transaction.is_usable() ? Status() : transaction.unusable();
  }
  /// Null when the transaction has ended.
  static TransactionContext* context(const Transaction& transaction) noexcept {
    return transaction.context_;
  }
};

}  // namespace flugs::engine
