// Transaction::conflict: words for what a call noted when it failed with kConflict.

#include "flugs/conflict.h"

#include <fmt/format.h>

#include "engine/database/database_core.h"
#include "flugs/transaction.h"
#include "mvcc/stamps.h"
#include "tables/table/table.h"

namespace flugs {

namespace {

// The transaction that the stamp of a row names, as far as it can still be told.
struct Other {
  TransactionId id;
  std::uint64_t committed_at = 0;
};

Other find_other(const engine::TransactionContext& context, const engine::TransactionManager& all,
                 const mvcc::Stamp& stamp) {
  using Fate = mvcc::Visibility::Fate;
  const mvcc::Visibility::Resolved found = context.visibility.resolve(stamp);
  if (found.fate == Fate::kCommitted) return {{}, found.timestamp};
  if (found.fate != Fate::kInFlight) return {};
  const TransactionId id = all.in_slot(mvcc::slot_of(found.seen));
  // The id belongs to the stamp if the transaction has still not ended.
  const mvcc::Visibility::Resolved again = context.visibility.resolve(stamp);
  return again.fate == Fate::kInFlight && again.seen == found.seen ? Other{id} : Other{};
}

std::string words_of(const Other& other, std::uint64_t snapshot) {
  if (other.id != TransactionId())
    return fmt::format("transaction {}, which is still open,", other.id.value());
  if (other.committed_at != 0)
    return fmt::format("a transaction that has committed at {}, after the snapshot {},",
                       other.committed_at, snapshot);
  return "a transaction that has ended since";
}

}  // namespace

std::optional<Conflict> Transaction::conflict() const {
  const engine::Call call(context_);
  if (!is_usable() || context_->conflict.transaction != context_->opened) return std::nullopt;
  const engine::ConflictNote& note = context_->conflict;
  const engine::Table* table = database_->table(TableId(note.table));
  if (table == nullptr) return std::nullopt;
  const engine::TransactionManager& all = database_->transaction_manager();
  Conflict conflict{.reason = note.reason, .table = TableId(note.table), .row = RowId(note.row)};
  Other other;
  if (note.reason == ConflictReason::kRowLocked)
    other.id = all.holder_of(table->lock_name(note.row));
  else if (note.reason == ConflictReason::kRowWritten)
    other = find_other(*context_, all, table->rows().version(note.row).deleted);
  else
    other = find_other(*context_, all, note.other);
  conflict.other = other.id;
  conflict.committed_at = other.committed_at;
  std::string what = "has written the row";
  std::string where = fmt::format("table {}", table->name());
  if (note.reason == ConflictReason::kRowLocked) what = "has locked the row";
  if (note.reason == ConflictReason::kKeyTaken) {
    conflict.key = KeyId{conflict.table, note.key};
    what = "has inserted or deleted a row with the same values";
    if (table->keys().can_find(note.key))
      where += fmt::format(", key {}", table->keys()[note.key]->name());
  }
  conflict.message =
      fmt::format("{}: {} {}", where, words_of(other, context_->visibility.snapshot()), what);
  return conflict;
}

}  // namespace flugs
