#include "tables/data/unlink_rows.h"

#include "base/check.h"
#include "tables/data/table_data.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

void undo_index_change(TableData& data, const IndexChange& change) {
  FLUGS_DCHECK(data.keys[change.key] != nullptr);
  KeyEntries& entries = data.keys[change.key]->entries();
  if (change.replaced == kNoRow) {
    entries.erase(change.row);
  } else {
    entries.undo_replace(change.replaced, change.row);
  }
}

// Protocol recycle: a committed dead row becomes reusable.
//   step  store             made durable by                    power cut just after it: recovery
//   1     created := 0      flush with commit/1 of the         sweep finds the row dead either way
//                           slot's next commit; at once, as
//                           commit/4, when the pool is full
//   2     cells and stamps  commit/1 of the transaction that   created is 0 or a tag that is not
//         of a new row      reuses the row                     committed: the row is not there
// Must hold:  1 durable before 2, else the old time-stamps with new cells could look like a row.
//             No snapshot as old as step 1 may be left at step 2: a reader could hold the row id.
mvcc::VersionLayout* unlink_dead(TableData& data, const DeadRow& dead) {
  FLUGS_DCHECK(data.rows.exists(dead.row));
  for (const std::size_t k : KeySet(data.keys.kept())) {
    if ((dead.changed_keys & (1u << k)) != 0) {
      data.keys[k]->entries().erase(dead.row);
    } else {
      data.keys[k]->entries().erase_superseded(dead.row, dead.hash_of_key(k));
    }
  }
  // The merge may move the entry meanwhile, and may have read it before this store: then store
  // again, in its new place.
  for (;;) {
    mvcc::VersionLayout* version = data.rows.stamped_version(dead.row);
    if (version == nullptr) return nullptr;
    mvcc::store_stamp(version->created, mvcc::kNoStamp);
    if (data.rows.chunk_with(dead.row).is_still(dead.row, version)) return version;
    data.rows.wait_for_move(dead.row);
  }
}

// Only for the newest edition: a former edition gives back all that it owns at once.
void give_back_text(TableData& data, const LongText& text) noexcept {
  columns::Column& column = *data.columns[text.column];
  if (column.heap_number() == text.heap && !column.is_dropped())
    column.give_back_text(text.offset, text.bytes, text.since);
}

void prefetch_unlinking(const TableData& data, const DeadRow& dead) noexcept {
  __builtin_prefetch(&data.rows.version(dead.row), 1);
  constexpr KeyMask kWithHash = (1U << DeadRow::kHashesKept) - 1;
  for (const std::size_t k : KeySet(static_cast<KeyMask>(data.keys.kept() & kWithHash)))
    if (const auto hash = dead.hash_of_key(k)) data.keys[k]->entries().prefetch_for_erase(*hash);
}

}  // namespace flugs::engine
