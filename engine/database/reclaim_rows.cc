#include "engine/database/reclaim_rows.h"

#include <algorithm>

#include "base/check.h"
#include "tables/data/unlink_rows.h"
#include "tables/rows/space_reserve.h"
#include "tables/table/table.h"

namespace flugs::engine {

namespace {

// Each commit collects a few rows, and twice as many as it leaves behind: no commit pays for all.
constexpr std::size_t kRowsPerCollection = 8;
// A large transaction pays at its end for only this many of its dead rows. The statements of the
// next large one pay for others (work_ahead), and so does each end: for one in this many of the
// rows that wait.
constexpr std::size_t kDyingPerCollection = 512;
constexpr std::size_t kDeadRowsPerRow = 2048;
constexpr std::size_t kLocalFreeRowsMax = 512;
// What unlinking reads is fetched this many rows ahead: the caches have lost some of it by then.
constexpr std::size_t kDeadRowsAhead = 4;
constexpr std::size_t kWritesPerOldest = 64 * WriteList::kWritesAhead;
static_assert(kDeadRowsAhead <= kRowsPerCollection);
// Hardly any dead row leaves more long texts than this.
constexpr std::size_t kTextsPerRow = 4;

void prefetch_unlinking(const DeadRow& dead) noexcept {
  engine::prefetch_unlinking(dead.table->data(), dead);
}

void unlink_dead_rows(TransactionContext& context, std::size_t rows_max, std::size_t sweeps_max) {
  DeadRowQueue& waiting = context.dead_rows.dead();
  const std::uint64_t oldest_snapshot = context.dead_rows.oldest_snapshot().get();
  std::size_t sweeps_left = sweeps_max;
  std::size_t unlinked = 0;
  for (std::size_t i = 0;
       i < rows_max && !waiting.empty() && waiting.front().since <= oldest_snapshot; ++i) {
    DeadRow dead = waiting.front();
    FLUGS_DCHECK(dead.table != nullptr && dead.since != DeadRows::kGivenBack);
    if (waiting.size() > kDeadRowsAhead) prefetch_unlinking(waiting[kDeadRowsAhead]);
    // A drop that is under way may still fail: leave the rows until it is decided.
    if (dead.table->is_dropped() && !dead.table->is_gone()) return;
    if (!dead.table->is_gone() && !dead.table->row_sweep().may_unlink(dead.row, sweeps_left))
      return;
    waiting.pop();
    ++unlinked;
    if (dead.table->is_gone() || dead.since < dead.table->rows().emptied_at(dead.row)) continue;
    if (mvcc::VersionLayout* version = unlink_dead(dead.table->data(), dead); version != nullptr)
      context.slot->flush_later(*version);
    dead.since = context.slots->latest_snapshot();
    dead.fences = context.commits.get() + 1;
    FLUGS_DCHECK(!context.dead_rows.has_given_back());  // these stand at the end
    context.dead_rows.unreachable().push(dead);
  }
  // For the next call, which will hardly take many more than this one.
  for (std::size_t i = 0; i < std::min({kDeadRowsAhead, waiting.size(), unlinked + 1}); ++i)
    prefetch_unlinking(waiting[i]);
}

void reuse_rows(TransactionContext& context, std::size_t rows_max) {
  DeadRowQueue& waiting = context.dead_rows.unreachable();
  const std::uint64_t oldest_snapshot = context.dead_rows.oldest_snapshot().get();
  for (std::size_t i = 0;
       i < rows_max && !waiting.empty() && waiting.front().since < oldest_snapshot &&
       waiting.front().fences <= context.commits.get();
       ++i) {
    const DeadRow row = waiting.front();
    FLUGS_DCHECK(row.table != nullptr);
    waiting.pop();
    if (row.table->is_gone() || row.table->rows().layout_to_write(row.row, row.since) == nullptr)
      continue;
    LocalRows& local = context.local_rows.of(*row.table);
    row.table->free_rows().forget_emptied(local);
    local.free.push_back(row.row);
    if (local.free.size() > kLocalFreeRowsMax) row.table->free_rows().take_over(local);
  }
}

// A text goes when no snapshot sees the row that had it last, and this slot has taken that row out
// of the indexes.
void give_back_texts(TransactionContext& context, std::size_t texts_max) {
  LeftTexts& texts = context.dead_rows.texts();
  const std::uint64_t oldest_snapshot = context.dead_rows.oldest_snapshot().get();
  const DeadRowQueue& dead = context.dead_rows.dead();
  const std::uint64_t linked_since = dead.empty() ? ~std::uint64_t{0} : dead[0].since;
  for (std::size_t i = 0; i < texts_max && !texts.none_waits(); ++i) {
    const LongText text = texts.next();
    FLUGS_DCHECK(text.table != nullptr);
    if (text.since > oldest_snapshot || text.since >= linked_since) return;
    if (text.table->is_dropped() && !text.table->is_gone()) return;
    texts.pop();
    if (!text.table->is_gone()) give_back_text(text.table->data(), text);
  }
}

// Called within a large transaction, because its commit would otherwise have to flush everything
// that it wrote. Its snapshot is old, so only rows that died before it began are collected.
void reclaim_ahead(TransactionContext& context, std::size_t first, std::size_t end) {
  FLUGS_DCHECK(first <= end);
  if (context.dead_rows.empty()) return;
  // Rows that the transaction itself gave back must stay at the end (RowReclaimer::reclaim).
  if (context.dead_rows.has_given_back()) return;
  if (first / kWritesPerOldest != end / kWritesPerOldest)
    context.dead_rows.oldest_snapshot().set(
        context.slots->oldest_collected(context.slots->oldest_snapshot()));
  reuse_rows(context, (end - first) * 2);
  unlink_dead_rows(context, (end - first) * 2, 1);
  give_back_texts(context, (end - first) * 2 * kTextsPerRow);
}

}  // namespace

void TransactionContext::work_ahead() {
  FLUGS_DCHECK(writes.is_flush_due());
  const std::size_t first = writes.flushed_ahead();
  writes.flush_ahead(*slot);
  dead_rows.reserve(WriteList::kWritesAhead);
  reclaim_ahead(*this, first, writes.flushed_ahead());
}

bool RowReclaimer::reclaim(TransactionContext& context) {
  DeadRows& rows = context.dead_rows;
  rows.oldest_snapshot().note_ending();
  const std::size_t given_back =
      rows.has_given_back() ? rows.end_giving_back(slots_.latest_snapshot()) : 0;
  FLUGS_DCHECK(!rows.has_given_back());
  if (rows.take_wants_rows()) want_rows();
  const std::uint64_t rows_wanted = rows_wanted_.load(std::memory_order_relaxed);
  if (rows.empty()) return false;
  // Free rows spare a nearly full pool the next chunk.
  const bool is_large = rows.dying().size() > kDyingPerCollection;
  if (rows.is_news(rows_wanted) || (is_large && is_room_short(allocator_.space()))) {
    reclaim_all(context);
    return false;
  }
  const bool looks_again = rows.oldest_snapshot().is_due(rows.dead().size());
  // Without commits the clock stands still, and rows of aborted transactions would never be free.
  if (looks_again) slots_.advance();
  // A present snapshot instead of the transaction's: it delays no collection, but drop_table waits
  // for it, so that no table whose rows are used here goes away.
  slots_.begin_snapshot(*context.slot);
  if (looks_again) {
    const std::uint64_t oldest = slots_.shared_oldest_snapshot(rows.oldest_snapshot().looked_at());
    rows.oldest_snapshot().renew(slots_.oldest_collected(oldest), rows.dead().size());
  }
  const std::size_t dying = std::min(rows.dying().size(), kDyingPerCollection);
  const std::size_t count = kRowsPerCollection + dying * 2 + rows.dead().size() / kDeadRowsPerRow;
  reuse_rows(context, count + given_back * 2);
  unlink_dead_rows(context, count, 1 + dying);
  if (!rows.texts().none_waits()) give_back_texts(context, count * kTextsPerRow);
  return looks_again;
}

// The pool is full: without rows to write there is no commit whose fence could free rows. So all
// rows that no snapshot holds are made usable for the next transaction, of any slot, whatever that
// costs this one.
void RowReclaimer::reclaim_all(TransactionContext& context) {
  FLUGS_CHECK(context.slot != nullptr);
  DeadRows& rows = context.dead_rows;
  FLUGS_DCHECK(!rows.has_given_back());
  const auto look_again = [&] {
    slots_.catch_up(slots_.advance());
    slots_.begin_snapshot(*context.slot);
    rows.oldest_snapshot().set(slots_.oldest_collected(slots_.oldest_snapshot()));
  };
  look_again();
  unlink_dead_rows(context, rows.dead().size(), rows.dead().size());
  give_back_texts(context, rows.texts().waiting());
  slots_.persist_stamps(*context.slot);
  for (std::size_t i = 0; i < rows.unreachable().size(); ++i) rows.unreachable()[i].fences = 0;
  look_again();
  reuse_rows(context, rows.unreachable().size());
  for (LocalRows& local : context.local_rows) {
    if (!local.table->is_gone()) local.table->free_rows().take_over(local);
    local.free.clear();
  }
}

}  // namespace flugs::engine
