#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "flugs/status.h"
#include "mvcc/transaction_slots_layout.h"
#include "pmem/pool/pool.h"

namespace flugs::mvcc {

/// The intents that half of a slot has no room for, in a chain of blocks: one block, or several if
/// the pool had no free piece as large as the intents. So a transaction can delete all rows of a
/// pool whose free space is in small pieces. A half without such intents has no blocks.
/// Thread-safety: only the owner of the slot, or the thread that opens the database.
class IntentBlocks {
 public:
  /// Opening: claims the block at `offset` and those behind it; 0: there is none. Fails with
  /// kCorrupt, in a message that begins with `owner`.
  Status claim(pmem::Pool& pool, std::uint64_t offset, std::string_view owner);

  /// Makes room for `words`; `pointer` is the half's word for the first block. What the blocks held
  /// is lost. Fails with kOutOfSpace; then nothing has changed.
  Status enlarge(pmem::Pool& pool, std::uint64_t& pointer, std::uint64_t words,
                 pmem::Persister& persister);
  /// Overwrites the blocks' first words; there must be room. Durable with the caller's next fence.
  void store(pmem::Pool& pool, std::span<const Intent> words, pmem::Persister& persister) const;
  /// The first `count` words, or as many as there is room for.
  std::vector<Intent> read(pmem::Pool& pool, std::uint64_t count) const;

  /// Gives the blocks back. No pointer in the pool may lead to them.
  void release(pmem::Pool& pool);

  std::uint64_t capacity() const noexcept;  ///< in words
  std::uint64_t bytes() const noexcept;

 private:
  std::vector<pmem::Extent> blocks_;  // in the order of their words
};

}  // namespace flugs::mvcc
