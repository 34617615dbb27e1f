#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/published.h"
#include "flugs/status.h"
#include "flugs/value.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"

namespace flugs::engine {

/// Values of an auto-increment column that one slot may give. They count as given, durably, before
/// the slot gives the first.
struct ValueBlock {
  std::int64_t next = 0;
  std::uint32_t left = 0;
  std::uint32_t size = 0;  ///< of the block; the next one has twice as many
};

/// The counter of an auto-increment column. Each slot takes a block of values, so that transactions
/// do not all write one word; blocks grow with use, from kBlockMin to kBlockMax values. Numbers
/// have gaps: the rest of a block is lost when the database is closed or crashes, and so are the
/// numbers of an aborted transaction. Numbers of different slots do not follow each other. Numbers
/// that the caller gives for a row do not move the counter; `skip` does.
///
/// Thread-safety: any thread, each with its own block.
class AutoIncrement {
 public:
  static constexpr std::uint32_t kBlockMin = 16;
  static constexpr std::uint32_t kBlockMax = 1024;
  static_assert(kBlockMin != 0 && kBlockMin <= kBlockMax);

  /// `last_taken`, in the pool: no value up to it is given again. `owner` names the column in
  /// messages.
  AutoIncrement(pmem::Pool& pool, std::uint64_t& last_taken, Type type, std::string owner);

  /// Called at opening. Fails with kCorrupt.
  Status load();
  /// The next value, for a row that commits with this persister's fences. Fails with kOutOfSpace
  /// when the column's type has no further value.
  Result<std::int64_t> next(ValueBlock& block, pmem::Persister& persister) {
    const std::int64_t skipped = skipped_.load(std::memory_order_acquire);
    if (__builtin_expect(block.left == 0 || block.next <= skipped, 0))
      if (Status s = refill(block, skipped, persister); !s.ok()) return s;
    --block.left;
    return block.next++;
  }
  /// No value up to `last` is given from now on. Durable on return. Fails with kInvalidArgument
  /// when the type has no such value.
  Status skip(std::int64_t last, pmem::Persister& persister);
  /// Changes the column's type. The new type must have all numbers of the old one.
  void set_type(Type type) noexcept;
  /// Changes the name in messages. One thread at a time.
  void rename(std::string owner) {
    if (owner != owner_.get()) owner_.put(std::move(owner));
  }

 private:
  Status refill(ValueBlock& block, std::int64_t skipped, pmem::Persister& persister);
  void store_last_taken(std::int64_t last, pmem::Persister& persister) noexcept;

  pmem::Pool& pool_;
  std::uint64_t& last_taken_;
  std::atomic<std::int64_t> max_;
  Published<std::string> owner_;
  Mutex mutex_;  // protects last_taken_; a leaf
  std::atomic<std::int64_t> skipped_{
      0};  // slots skip values up to it in the blocks that they already have
};

}  // namespace flugs::engine
