// Undoing a part of a transaction.

#include "engine/database/database_core.h"

namespace flugs::engine {

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
  context.locks.release_since(context.savepoints[*place].locks);
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
