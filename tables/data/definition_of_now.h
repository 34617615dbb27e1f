#pragma once

#include "tables/data/table_data.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// Calls `call(definition)`. If columns changed while it ran (RowWriter::changed_meanwhile), calls
/// it again with the new definition, so that writers never notice that the table is altered, or
/// that a merge replaces a column. A call that fails for that reason leaves nothing behind. Nor do
/// long texts of a call that fails for any reason stay in the pool.
template <typename F>
auto with_definition_of_now(const TableData& data, TransactionContext& context, F&& call) {
  constexpr int kAttempts = 16;
  for (int attempt = 1;; ++attempt) {
    context.scratch.columns_changed = false;
    const std::size_t texts = context.dead_rows.texts().written();
    auto done = call(data.definition());
    if (__builtin_expect(!done.ok(), 0)) context.take_back_texts(texts);
    if (__builtin_expect(done.ok() || !context.scratch.columns_changed || attempt == kAttempts, 1))
      return done;
  }
}

}  // namespace flugs::engine
