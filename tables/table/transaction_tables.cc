// The parts of a transaction's context that work on tables; elsewhere the context knows only the
// name of the class Table.

#include <algorithm>

#include "base/check.h"
#include "base/stable_array.h"
#include "mvcc/commit.h"
#include "tables/data/unlink_rows.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

// Takes the place of a dropped table, if there is one: tables may come and go for a long time.
LocalRows& SlotRows::add(Table& table) {
  auto place = std::find_if(tables_.begin(), tables_.end(),
                            [](const LocalRows& local) { return local.table->is_gone(); });
  if (place == tables_.end()) place = tables_.emplace(place);
  *place = LocalRows{&table, {}, {}, table.rows().last_emptied_at(), {}};
  return *place;
}

Table* TransactionContext::table_of(std::uint32_t id) const noexcept {
  return __atomic_load_n(&(*tables)[id], __ATOMIC_ACQUIRE);
}

// As TransactionManager::undo, for the end of the lists. The order is the same: a row is let go
// when the indexes are as they were, since the next writer enters the row's next version there. The
// list of entries that the transaction will flush (`unflushed`) stays: the transaction and its
// later statements rely on entries of others in it. To flush an entry or hint too many changes
// nothing. A row that was inserted is not used again before the transaction ends, as readers may
// have its id (give_back).
void TransactionContext::undo_since(const TransactionMark& mark) noexcept {
  FLUGS_DCHECK(mark.writes <= writes.size() && mark.index_changes <= index_changes.size());
  for (; index_changes.size() > mark.index_changes; index_changes.pop_back())
    undo_index_change(index_changes.back().table->data(), index_changes.back());
  for (; writes.size() > mark.writes; writes.pop()) {
    const mvcc::Write& write = writes.back();
    Table* owner = table_of(write.table);
    if (write.deletes && owner != nullptr) owner->rows().take_mark_back(write.row);
    mvcc::Commit::take_back(*slot, write);
    if (!write.deletes && owner != nullptr) dead_rows.give_back(*owner, write.row);
  }
  dead_rows.keep_dying(mark.dying);
  dead_rows.texts().keep_left(mark.texts_left);
  take_back_texts(mark.texts_written);
}

// At once: no other transaction reads texts of a row that was not committed. Readers of keys do,
// but texts of keys stay (Column::give_back_text).
void TransactionContext::take_back_texts(std::size_t count) noexcept {
  LeftTexts& texts = dead_rows.texts();
  if (__builtin_expect(texts.written() <= count, 1)) return;
  for (const LongText& text : texts.written_since(count)) give_back_text(text.table->data(), text);
  texts.keep_written(count);
}

}  // namespace flugs::engine
