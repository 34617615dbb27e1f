#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/check.h"
#include "flugs/merge.h"
#include "flugs/status.h"

namespace flugs::engine {

/// A table's merge policy, and the results of its merges.
/// Thread-safety: any thread.
class MergeRecord {
 public:
  /// While it exists, a merge of the table is at work, and not waiting.
  class Work {
   public:
    explicit Work(MergeRecord& record);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    MergeRecord& record_;
  };

  /// While it exists, the database's own thread has the table's merge mutex, or tries to get it.
  class ByPolicy {
   public:
    explicit ByPolicy(MergeRecord& record) noexcept : record_(record) {
      record_.by_policy_.store(true, std::memory_order_seq_cst);
    }
    ~ByPolicy() { record_.by_policy_.store(false, std::memory_order_seq_cst); }
    ByPolicy(const ByPolicy&) = delete;
    ByPolicy& operator=(const ByPolicy&) = delete;

   private:
    MergeRecord& record_;
  };
  bool is_by_policy() const noexcept { return by_policy_.load(std::memory_order_seq_cst); }

  /// Fails with kInvalidArgument.
  static Status check(const MergePolicy& policy);

  MergePolicy policy() const;
  void set_policy(const MergePolicy& policy);

  void set_state(MergeState state, std::string reason);
  void note_failure(const Status& status);
  /// `report` describes a merge that has ended; `status` says how.
  void note_merge(const MergeReport& report, const Status& status);
  /// A merge moves chunks: it has already waited for transactions, and no longer waits for an open
  /// one.
  void set_moving(bool moving) noexcept {
    FLUGS_DCHECK(is_moving() != moving);
    moving_.store(moving, std::memory_order_release);
  }
  bool is_moving() const noexcept { return moving_.load(std::memory_order_acquire); }
  void note_refused() noexcept { writes_refused_.fetch_add(1, std::memory_order_relaxed); }

  /// Without the numbers that come from the rows.
  MergeStatus status() const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;  // protects the members below; a leaf
  MergePolicy policy_;
  MergeStatus status_;
  Clock::time_point work_since_;
  bool works_ = false;
  std::atomic<std::uint64_t> writes_refused_{0};
  std::atomic<bool> moving_{false};
  std::atomic<bool> by_policy_{false};
};

}  // namespace flugs::engine
