#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/status.h"

namespace flugs::engine {

/// Names a record for locking: its table, and a number that Table::lock_name makes. Two records
/// with the same name are locked together.
struct LockName {
  std::uint32_t table = 0;
  std::uint64_t record = 0;
  friend bool operator==(const LockName&, const LockName&) noexcept = default;
};

/// Locks of records that transactions took for themselves (Transaction::lock). They are
/// in DRAM: no row stores a lock, and no lock outlives the process. A slot stands for its
/// transaction.
///
/// A transaction that wants a taken lock joins the lock's queue. Each transaction waits for at most
/// one other at a time, the one before it. So a deadlock is a cycle in a list; the transaction that
/// is about to close it finds it and fails.
///
/// The table of locks is divided by record, and each part has its own cache lines: transactions
/// that lock different records rarely meet. Only waiting, or unlocking a record that another waits
/// for, needs the shared list.
/// Thread-safety: any thread.
/// Source: decision 0021.
class RowLocks {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RowLocks(std::size_t slots) : waits_for_(slots, kNobody) {}

  /// Whether another transaction has locked the record; whether this one has. The look is seq_cst,
  /// as is the writer's store into the row before it: of a writer and a locker at least one sees
  /// the other.
  bool is_others(const LockName& name, std::uint32_t slot) const;
  bool is_own(const LockName& name, std::uint32_t slot) const;

  /// Locks the record; `is_new` becomes true unless the transaction had the lock already. Waits
  /// until `deadline` at most, and only while `must_stop` is false. Fails with kBusy (another
  /// transaction still has it), kConflict (a deadlock), kCancelled (`must_stop`).
  Status lock(const LockName& name, std::uint32_t slot, Clock::time_point deadline,
              FunctionRef<bool()> must_stop, bool& is_new);
  void unlock(const LockName& name, std::uint32_t slot) noexcept;

  /// Announces that the transaction will wait, by other means, until the one in slot `other` has
  /// ended. Fails with kConflict (a deadlock).
  Status begin_waiting(std::uint32_t slot, std::uint32_t other);
  void end_waiting(std::uint32_t slot) noexcept;

  /// The slot whose transaction has locked the record, if there is one.
  std::optional<std::uint32_t> holder_of(const LockName& name) const;
  /// Number of locks that are held.
  std::size_t size() const;

 private:
  static constexpr std::uint32_t kNobody = ~0U;
  static constexpr std::size_t kParts = 64;
  static constexpr std::size_t kCounters = 16;

  struct Waiter {
    std::uint32_t slot;
    bool has_it = false;
    std::condition_variable got_it;
  };
  struct Lock {
    std::uint32_t holder;
    std::deque<Waiter*> queue;
  };
  struct Hash {
    std::size_t operator()(const LockName& name) const noexcept {
      return name.record ^ (std::uint64_t{name.table} * 0x9e3779b97f4a7c15u);
    }
  };

  struct Part {
    // Locks by hash: a writer of a record without a lock need not take the mutex.
    alignas(64) std::array<std::atomic<std::uint32_t>, kCounters> counters{};
    alignas(64) std::mutex mutex;  // protects `locks`; rank: before waits_mutex_
    std::unordered_map<LockName, Lock, Hash> locks;
  };
  static_assert(kCounters * sizeof(std::uint32_t) == 64);

  Part& part(const LockName& name) const noexcept { return parts_[(Hash()(name) >> 16) % kParts]; }
  static std::atomic<std::uint32_t>& counter(Part& part, const LockName& name) noexcept {
    return part.counters[(Hash()(name) >> 32) % kCounters];
  }
  Status wait(std::unique_lock<std::mutex>& guard, Lock& lock, std::uint32_t slot,
              Clock::time_point deadline, FunctionRef<bool()> must_stop);
  bool closes_cycle(std::uint32_t slot, std::uint32_t other) const noexcept;
  void leave_queue(Lock& lock, Waiter& waiter) noexcept;

  mutable std::array<Part, kParts> parts_;
  alignas(64) std::mutex waits_mutex_;    // protects waits_for_; a leaf
  std::vector<std::uint32_t> waits_for_;  // by slot: the slot that its transaction waits for
};

}  // namespace flugs::engine
