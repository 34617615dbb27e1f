#pragma once

#include "tables/data/table_data.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// Calls `call(definition)`, and again, with the definition of then, while it fails because columns
/// have changed in the midst of it (RowWriter::changed_meanwhile): a writer should not have to know
/// that somebody alters the table, or that a merge lets a column begin anew. A call that fails for
/// that reason has left nothing behind.
template <typename F>
auto with_definition_of_now(const TableData& data, TransactionContext& context, F&& call) {
  constexpr int kAttempts = 16;
  for (int attempt = 1;; ++attempt) {
    context.scratch.columns_changed = false;
    auto done = call(data.definition());
    if (__builtin_expect(done.ok() || !context.scratch.columns_changed || attempt == kAttempts, 1))
      return done;
  }
}

}  // namespace flugs::engine
