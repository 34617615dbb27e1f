// Undoing a part of a transaction.

#include "engine/database/database_core.h"
#include "mvcc/commit.h"

namespace flugs::engine {

// As `undo`, for the end of the lists. The order is the same: a row is let go when the indexes are
// as they were, since the next writer enters what follows it there. What the transaction will flush
// (`unflushed`) stays: it tells which dictionary entries of others it relies on, and so do later
// statements; an entry or hint too many is flushed, which changes nothing. A row that was inserted
// is not used again before the transaction ends, as readers may have its id (give_back).
void TransactionContext::undo_since(const TransactionMark& mark) noexcept {
  for (; index_changes.size() > mark.index_changes; index_changes.pop_back())
    index_changes.back().table->undo_index_change(index_changes.back());
  for (; writes.size() > mark.writes; writes.pop()) {
    const mvcc::Write& write = writes.back();
    Table* owner = table_of(write.table);
    if (write.deletes && owner != nullptr) owner->rows().take_mark_back(write.row);
    mvcc::Commit::take_back(*slot, write);
    if (!write.deletes && owner != nullptr) dead_rows.give_back(*owner, write.row);
  }
  dead_rows.keep_dying(mark.dying);
}

// What was read since is still noted, and rightly: which way the transaction went from here on may
// depend on it, although it does not depend on what was written. Rows of its own that are noted and
// undone are seen neither at the snapshot nor at the commit.
Status DatabaseCore::rollback_to(TransactionContext& context, const Savepoint& savepoint) noexcept {
  const Result<std::size_t> place = context.savepoints.find(savepoint);
  if (!place.ok()) return place.status();
  if (context.ending.is_visited())
    return Status(StatusCode::kInvalidArgument,
                  "rollback_to: a call of the transaction is going through rows");
  const Visit visiting(context);
  context.undo_since(context.savepoints[*place]);
  unlock_since(context, context.savepoints[*place].locks);
  context.savepoints.keep(*place + 1);
  return {};
}

Status DatabaseCore::release(TransactionContext& context, const Savepoint& savepoint) noexcept {
  const Result<std::size_t> place = context.savepoints.find(savepoint);
  if (!place.ok()) return place.status();
  context.savepoints.keep(*place);
  return {};
}

}  // namespace flugs::engine
