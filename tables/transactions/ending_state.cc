#include "tables/transactions/ending_state.h"

#include <chrono>

namespace flugs::engine {

// The reason is stored before, in another word: `must_end`, which takes the attention word with
// acquire, sees the reason.
void EndingState::draw_attention() noexcept { attention_->store(1, std::memory_order_release); }

bool EndingState::must_end() const noexcept {
  attention_->exchange(0, std::memory_order_acq_rel);
  answers_.fetch_add(1, std::memory_order_relaxed);
  EndedBy why = ended_by_.load(std::memory_order_acquire);
  const std::int64_t limit = deadline_.load(std::memory_order_relaxed);
  if (why == EndedBy::kNobody) {
    if (begun_at_ < asked_to_end_->load(std::memory_order_acquire)) why = EndedBy::kMerge;
    if (cancelled_.load(std::memory_order_acquire) == current_.load(std::memory_order_relaxed))
      why = EndedBy::kCancel;
    if (why == EndedBy::kNobody && limit != kNoDeadline &&
        std::chrono::steady_clock::now().time_since_epoch().count() >= limit)
      why = EndedBy::kTimeLimit;
    // Pairs with is_to_end_shared: end_as_asked looks at the shared calls after this store.
    if (why != EndedBy::kNobody) ended_by_.store(why, std::memory_order_seq_cst);
  }
  if (why != EndedBy::kNobody || limit != kNoDeadline)
    attention_->store(1, std::memory_order_release);
  return why != EndedBy::kNobody;
}

// The slot's former transaction had a time limit, or was ended.
void EndingState::forget_requests() noexcept {
  deadline_.store(kNoDeadline, std::memory_order_relaxed);
  ended_by_.store(EndedBy::kNobody, std::memory_order_relaxed);
  ender_.store(0, std::memory_order_relaxed);
  is_undone_.store(false, std::memory_order_relaxed);
}

Status forked() {
  return Status(StatusCode::kInvalidArgument,
                "this process is a fork of the process that opened the database, and cannot use "
                "it: open the pool in this process after the other process has closed it");
}

Status EndingState::why_ended() const {
  switch (ended_by()) {
    case EndedBy::kCancel:
      return Status(StatusCode::kCancelled, "the transaction was ended: it was cancelled");
    case EndedBy::kTimeLimit:
      return Status(StatusCode::kCancelled, "the transaction was ended: its time limit has passed");
    case EndedBy::kAbandoned:
      return Status(
          StatusCode::kCancelled,
          "the transaction was ended: it made no call for too long and was taken to be abandoned");
    case EndedBy::kFork:
      return forked();
    case EndedBy::kNobody:
    case EndedBy::kMerge:
      break;
  }
  return Status(StatusCode::kCancelled,
                "the transaction was ended: a merge waited for it and asked for its end");
}

}  // namespace flugs::engine
