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

/// Values of an auto-increment column that one slot may give: a part of what is durable as given.
struct ValueBlock {
  std::int64_t next = 0;
  std::uint32_t left = 0;
  std::uint32_t size = 0;  ///< of the block; the next one has twice as many
};

/// The counter of an auto-increment column. Each slot takes a block of values, so that rows are
/// numbered without a word that every transaction writes; blocks grow with use, from kBlockMin to
/// kBlockMax values. What is left of a block is never given when the database is closed or crashes,
/// nor is what an aborted transaction took: numbers have gaps, and those of different slots do not
/// follow each other. Numbers that rows bring with them do not move the counter; `skip` does.
///
/// Thread-safety: any thread, each with a block of its own.
class AutoIncrement {
 public:
  static constexpr std::uint32_t kBlockMin = 16;
  static constexpr std::uint32_t kBlockMax = 1024;

  /// `last_taken`, in the pool: no value up to it is given again. `owner` is for messages.
  AutoIncrement(pmem::Pool& pool, std::uint64_t& last_taken, Type type, std::string owner);

  /// Opening. Fails with kCorrupt.
  Status load();
  /// The next value, for a row that commits with this persister's fences. Fails with kOutOfSpace
  /// when the column's type has no more.
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
  /// The column's type is another from now on, which has all numbers of the one before.
  void set_type(Type type) noexcept;
  /// What messages call it from now on. One thread at a time.
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
      0};  // slots give nothing up to it of the blocks that they have
};

}  // namespace flugs::engine
