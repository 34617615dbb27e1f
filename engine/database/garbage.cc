// Rows nobody sees any more (protocol recycle), and what large transactions do ahead of their end.

#include <algorithm>
#include <utility>

#include "engine/database/database_core.h"

namespace flugs::engine {

namespace {

// Finding the oldest snapshot interrupts the other processors: once in so many transactions of a
// slot, or in so many dead rows if transactions are large.
constexpr std::uint64_t kEndingsPerOldest = 2048;
constexpr std::size_t kDeadRowsPerOldest = 16384;
// Then a few rows per commit, and twice as many as it leaves behind itself: no commit pays for all.
constexpr std::size_t kRowsPerCollection = 8;
// Of a large transaction only so many are paid for at its end, the others by the statements of the
// next large one (work_ahead), and by each end for its part: one in so many of those that wait.
constexpr std::size_t kDyingPerCollection = 512;
constexpr std::size_t kDeadRowsPerRow = 2048;
constexpr std::size_t kLocalFreeRowsMax = 512;
// What unlinking reads is asked for so many rows ahead: the caches have lost some of it by then.
constexpr std::size_t kDeadRowsAhead = 4;
constexpr std::size_t kWritesPerOldest = 64 * WriteList::kWritesAhead;

void prefetch_unlinking(const DeadRow& dead) noexcept { dead.table->prefetch_unlinking(dead); }

void unlink_dead_rows(TransactionContext& context, std::size_t rows_max, std::size_t sweeps_max) {
  std::size_t sweeps_left = sweeps_max;
  for (std::size_t i = 0; i < rows_max && !context.dead.empty() &&
                          context.dead.front().since <= context.oldest_snapshot;
       ++i) {
    DeadRow dead = context.dead.front();
    if (context.dead.size() > kDeadRowsAhead) prefetch_unlinking(context.dead[kDeadRowsAhead]);
    // A drop that is under way may still fail: leave the rows until it is decided.
    if (dead.table->is_dropped() && !dead.table->is_gone()) return;
    if (!dead.table->is_gone() && !dead.table->may_unlink(dead.row, sweeps_left)) return;
    context.dead.pop();
    if (dead.table->is_gone() || dead.since < dead.table->rows().emptied_at(dead.row)) continue;
    if (mvcc::VersionLayout* version = dead.table->unlink_dead(dead); version != nullptr)
      context.slot->flush_later(*version);
    dead.since = context.slots->latest_snapshot();
    dead.fences = context.commits.get() + 1;
    context.unreachable.push(dead);
  }
  // For the next time.
  for (std::size_t i = 0; i < std::min(kDeadRowsAhead, context.dead.size()); ++i)
    prefetch_unlinking(context.dead[i]);
}

void reuse_rows(TransactionContext& context, std::size_t rows_max) {
  for (std::size_t i = 0; i < rows_max && !context.unreachable.empty() &&
                          context.unreachable.front().since < context.oldest_snapshot &&
                          context.unreachable.front().fences <= context.commits.get();
       ++i) {
    const DeadRow row = context.unreachable.front();
    context.unreachable.pop();
    if (row.table->is_gone() || !row.table->rows().takes_rows(row.row) ||
        row.since < row.table->rows().emptied_at(row.row))
      continue;
    LocalRows& local = context.local_rows_of(*row.table);
    row.table->forget_emptied(local);
    local.free.push_back(row.row);
    if (local.free.size() > kLocalFreeRowsMax) {
      row.table->add_free_rows(local.free);
      local.free.clear();
    }
  }
}

// In the midst of a large transaction, whose commit would otherwise flush everything it wrote, and
// whose snapshot is old: so rows that died before it began, and no others, are looked at.
void collect_ahead(TransactionContext& context, std::size_t first, std::size_t end) {
  if (context.dead.empty() && context.unreachable.empty()) return;
  // Those that it gave back itself must stand at the end (collect_garbage).
  if (!context.unreachable.empty() &&
      context.unreachable[context.unreachable.size() - 1].since == ~std::uint64_t{0})
    return;
  if (first / kWritesPerOldest != end / kWritesPerOldest)
    context.oldest_snapshot = context.slots->oldest_collected(context.slots->oldest_snapshot());
  reuse_rows(context, (end - first) * 2);
  unlink_dead_rows(context, (end - first) * 2, 1);
}

}  // namespace

void TransactionContext::work_ahead() {
  const std::size_t first = writes.flushed_ahead();
  writes.flush_ahead(*slot);
  dead.reserve(dead.size() + dying.size() + WriteList::kWritesAhead);
  collect_ahead(*this, first, writes.flushed_ahead());
}

// Rows that a committed transaction deleted leave the indexes when no snapshot sees them any more,
// and are used again when no reader can have their row id from an index (protocol recycle).
void DatabaseCore::collect_garbage(TransactionContext& context) {
  ++context.endings;
  // Those that this transaction has left behind stand at the end.
  std::size_t given_back = 0;
  for (std::size_t i = context.unreachable.size();
       i > 0 && context.unreachable[i - 1].since == ~std::uint64_t{0}; --i, ++given_back)
    context.unreachable[i - 1].since = slots_->latest_snapshot();
  if (std::exchange(context.wants_rows, false)) rows_wanted_.fetch_add(1);
  const std::uint64_t rows_wanted = rows_wanted_.load(std::memory_order_relaxed);
  if (context.dead.empty() && context.unreachable.empty()) return;
  if (context.rows_wanted_seen != rows_wanted) {
    context.rows_wanted_seen = rows_wanted;
    collect_all_garbage(context);
    return;
  }
  const bool looks_again =
      context.endings - context.oldest_snapshot_endings >= kEndingsPerOldest ||
      context.dead.size() > context.dead_rows_after_oldest + kDeadRowsPerOldest;
  // Without commits the clock stands still, and rows of aborted transactions would never be free.
  if (looks_again) {
    slots_->advance();
    merger_->retry_start();
  }
  // A snapshot of now instead of the transaction's: it holds up no collection, but drop_table waits
  // for it, so that no table whose rows we touch goes away.
  slots_->begin_snapshot(*context.slot);
  if (looks_again) {
    context.oldest_snapshot =
        slots_->oldest_collected(slots_->shared_oldest_snapshot(context.oldest_looked_at));
    context.oldest_snapshot_endings = context.endings;
    context.dead_rows_after_oldest = context.dead.size();
  }
  const std::size_t dying = std::min(context.dying.size(), kDyingPerCollection);
  const std::size_t rows = kRowsPerCollection + dying * 2 + context.dead.size() / kDeadRowsPerRow;
  reuse_rows(context, rows + given_back * 2);
  unlink_dead_rows(context, rows, 1 + dying);
}

// The pool is full: without rows to write there is no commit whose fence rows could wait for. What
// no snapshot holds can be used by the next transaction, of any slot, whatever it costs this one.
void DatabaseCore::collect_all_garbage(TransactionContext& context) {
  const auto look_again = [&] {
    slots_->advance();
    slots_->begin_snapshot(*context.slot);
    context.oldest_snapshot = slots_->oldest_collected(slots_->oldest_snapshot());
  };
  look_again();
  unlink_dead_rows(context, context.dead.size(), context.dead.size());
  slots_->persist_stamps(*context.slot);
  for (std::size_t i = 0; i < context.unreachable.size(); ++i) context.unreachable[i].fences = 0;
  look_again();
  reuse_rows(context, context.unreachable.size());
  for (LocalRows& local : context.local_rows) {
    if (!local.table->is_gone()) local.table->add_free_rows(local.free);
    local.free.clear();
  }
}

}  // namespace flugs::engine
