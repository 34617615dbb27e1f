#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "mvcc/stamps.h"
#include "mvcc/transaction_slots.h"
#include "mvcc/transaction_slots_layout.h"
#include "mvcc/visibility.h"
#include "mvcc/write.h"

namespace flugs::mvcc {

/// The commit protocol and its counterpart, the abort.
/// Source: SOFORT (DaMoN 2014), section 4.1 (Algorithms 1 to 3), for any number of rows.
class Commit {
 public:
  explicit Commit(TransactionSlots& slots) noexcept : slots_(slots) {}
  /// With `soon`, `run` does not wait until the commit is durable: it should be after this time.
  Commit(TransactionSlots& slots, std::optional<std::chrono::microseconds> soon) noexcept
      : slots_(slots), soon_(soon) {}

  enum class Lock : std::uint8_t { kLocked, kConflict, kDeletedBySelf };
  /// Locks a row that the transaction sees, so that it alone may delete it: the first updater wins.
  /// A tag of an aborted or crashed transaction does not lock.
  static Lock lock(VersionLayout& version, const Visibility& visibility) noexcept;

  /// Flushes writes of a running transaction, without a fence, so that its commit need not.
  static void flush_ahead(Slot& slot, std::span<const Write> writes) noexcept;
  /// Makes `writes` durable (with `soon`: orders them), then visible, and returns the commit
  /// time-stamp. The first `flushed` of them were flushed ahead and have not changed since.
  /// `flush_rest` flushes what the rows refer to; it is called before the first fence. `is_durable`
  /// is called when the commit is durable, or ordered: what relies on it has later records.
  /// `may_commit` is called when the time-stamp is known, and decides. Fails with kOutOfSpace (no
  /// room for the intents), kConflict (`may_commit` refused), as LineJournal::wait_durable (then
  /// the transaction may be durable, but nothing after it): abort then.
  Result<std::uint64_t> run(Slot& slot, const std::vector<Write>& writes, std::size_t flushed,
                            FunctionRef<void(pmem::Persister&)> flush_rest,
                            FunctionRef<void()> is_durable,
                            FunctionRef<bool(std::uint64_t timestamp)> may_commit);

  /// Takes one lock or tag of a running transaction back: from here on another transaction may have
  /// the row. The caller has removed an inserted row from every index.
  static void take_back(const Slot& slot, const Write& write) noexcept;
  /// The same for all of `writes`; the transaction has ended.
  void undo(Slot& slot, const std::vector<Write>& writes) noexcept;

  static bool is_committed(std::uint32_t slot, const SlotHalfLayout& half) noexcept {
    return half.commit_timestamp != 0 &&
           half.commit_check == check_of(slot, half.commit_generation, half.commit_timestamp);
  }
  static std::uint64_t check_of(std::uint32_t slot, std::uint64_t generation,
                                std::uint64_t timestamp) noexcept;

 private:
  static void flush_stamps_left(Slot& slot) noexcept;
  Status store_intents(Slot& slot, const std::vector<Write>& writes);
  Status make_durable(Slot& slot, std::uint64_t timestamp) const;

  TransactionSlots& slots_;
  const std::optional<std::chrono::microseconds> soon_ = {};
};

}  // namespace flugs::mvcc
