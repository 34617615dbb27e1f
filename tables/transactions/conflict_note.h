#pragma once

#include <cstdint>

#include "flugs/conflict.h"
#include "mvcc/stamps.h"

namespace flugs::engine {

/// The newest conflict in a slot. A call notes it without allocating, and Transaction::conflict
/// makes words of it.
struct ConflictNote {
  /// The number of the transaction in its slot (TransactionContext::opened). 0: no transaction of
  /// the slot has met a conflict.
  std::uint64_t transaction = 0;
  mvcc::Stamp other = mvcc::kNoStamp;  ///< kKeyTaken: the stamp that was in the way
  std::uint32_t table = 0;
  std::uint32_t row = 0;
  std::uint16_t key = 0;  ///< kKeyTaken only
  ConflictReason reason = ConflictReason::kRowWritten;
};

}  // namespace flugs::engine
