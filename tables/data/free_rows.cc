#include "tables/data/free_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/shared_words.h"
#include "mvcc/transaction_slots.h"
#include "tables/rows/row_store.h"
#include "tables/transactions/slot_rows.h"

namespace flugs::engine {

namespace {

// Rows that a slot takes at a time from the table's free rows.
constexpr std::size_t kFreeRowsTaken = 64;

}  // namespace

void FreeRows::add(const std::vector<std::uint32_t>& rows) {
  const std::lock_guard guard(mutex_);
  note_write(SharedWord::kFreeRows, &mutex_);
  note_write(SharedWord::kFreeRows, &free_count_);
  free_.insert(free_.end(), rows.begin(), rows.end());
  free_count_.store(free_.size(), std::memory_order_relaxed);
}

void FreeRows::add(std::vector<std::uint32_t>&& rows) {
  {
    const std::lock_guard guard(mutex_);
    if (free_.empty()) free_.swap(rows);
  }
  add(std::as_const(rows));
}

// Under the mutex: a merge freezes a chunk before it calls `forget`. So a row is left out here if
// `forget` has been there already, and forgotten by it otherwise.
void FreeRows::take_over(LocalRows& local) {
  const std::lock_guard guard(mutex_);
  note_write(SharedWord::kFreeRows, &mutex_);
  note_write(SharedWord::kFreeRows, &free_count_);
  std::copy_if(
      local.free.begin(), local.free.end(), std::back_inserter(free_),
      [&](std::uint32_t row) { return rows_.layout_to_write(row, local.checked_at) != nullptr; });
  local.free.clear();
  free_count_.store(free_.size(), std::memory_order_relaxed);
}

void FreeRows::add_swept(std::vector<std::uint32_t>&& rows, mvcc::TransactionSlots& slots) {
  if (rows.empty()) return;
  const std::uint64_t since = slots.latest_snapshot();
  const std::lock_guard guard(mutex_);
  slots_ = &slots;
  swept_count_.fetch_add(rows.size(), std::memory_order_relaxed);
  if (!swept_.empty() && swept_.back().since >= since) {
    std::vector<std::uint32_t>& last = swept_.back().rows;
    last.insert(last.end(), rows.begin(), rows.end());
  } else {
    swept_.push_back({since, std::move(rows)});
  }
}

void FreeRows::release_swept_soon(mvcc::TransactionSlots& slots) {
  if (swept_count_.load(std::memory_order_relaxed) == 0) return;
  slots.advance();  // a transaction that begins now is above all that was swept, by any thread
  const std::lock_guard guard(mutex_);
  looked_at_ = 0;
}

// Called with mutex_ held. A look costs microseconds, so it is repeated only after some commits.
void FreeRows::release_swept() {
  constexpr std::uint64_t kCommitsBetween = 64;
  FLUGS_DCHECK(slots_ != nullptr);
  const std::uint64_t now = slots_->now();
  if (looked_at_ != 0 && now < looked_at_ + slots_->time_of(kCommitsBetween)) return;
  looked_at_ = now;
  const std::uint64_t oldest = slots_->oldest_snapshot();
  auto batch = swept_.begin();
  for (; batch != swept_.end() && batch->since < oldest; ++batch) {
    free_.insert(free_.end(), batch->rows.begin(), batch->rows.end());
    FLUGS_DCHECK(batch->rows.size() <= swept_count_.load(std::memory_order_relaxed));
    swept_count_.fetch_sub(batch->rows.size(), std::memory_order_relaxed);
  }
  swept_.erase(swept_.begin(), batch);
  free_count_.store(free_.size(), std::memory_order_relaxed);
}

void FreeRows::forget_emptied(LocalRows& local) const noexcept {
  const std::uint64_t emptied_at = rows_.last_emptied_at();
  if (__builtin_expect(local.checked_at == emptied_at, 1)) return;
  std::erase_if(local.free, [&](std::uint32_t row) {
    return rows_.layout_to_write(row, local.checked_at) == nullptr;
  });
  if (local.range.next != local.range.end &&
      rows_.layout_to_write(local.range.next, local.checked_at) == nullptr)
    local.range = {};
  local.checked_at = emptied_at;
}

bool FreeRows::refill(LocalRows& local) {
  FLUGS_DCHECK(local.free.empty());
  note_read(SharedWord::kFreeRows, &free_count_);
  const bool has_swept = swept_count_.load(std::memory_order_relaxed) != 0;
  if (!has_swept && free_count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard guard(mutex_);
  note_write(SharedWord::kFreeRows, &mutex_);
  note_write(SharedWord::kFreeRows, &free_count_);
  if (has_swept) release_swept();
  forget_emptied(local);
  const std::size_t taken = std::min(kFreeRowsTaken, free_.size());
  local.free.assign(free_.end() - static_cast<std::ptrdiff_t>(taken), free_.end());
  free_.resize(free_.size() - taken);
  free_count_.store(free_.size(), std::memory_order_relaxed);
  return taken != 0;
}

void FreeRows::forget(FunctionRef<bool(std::uint32_t row)> is_taken) {
  const std::lock_guard guard(mutex_);
  std::erase_if(free_, is_taken);
  std::size_t swept = 0;
  for (Swept& batch : swept_) {
    std::erase_if(batch.rows, is_taken);
    swept += batch.rows.size();
  }
  swept_count_.store(swept, std::memory_order_relaxed);
  free_count_.store(free_.size(), std::memory_order_relaxed);
}

void FreeRows::release_all() {
  const std::lock_guard guard(mutex_);
  free_count_.store(0, std::memory_order_relaxed);
  free_ = {};
  swept_count_.store(0, std::memory_order_relaxed);
  swept_ = {};
}

}  // namespace flugs::engine
