#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "flugs/ids.h"

namespace flugs {

enum class ConflictReason : std::uint8_t {
  kRowWritten,  ///< the other transaction is changing or deleting the row, or has committed that
                ///< since the snapshot
  kRowLocked,   ///< the other transaction has locked the row (Transaction::lock)
  kKeyTaken,    ///< the other transaction is inserting or deleting a row with the same unique key,
                ///< or has committed that since the snapshot
};

/// The conflict that a call met which failed with kConflict: see Transaction::conflict.
struct Conflict {
  ConflictReason reason = ConflictReason::kRowWritten;
  TableId table = {};
  /// The version that the call tried to write; with kKeyTaken, the one that has the key.
  RowId row = {};
  std::optional<KeyId> key = {};  ///< kKeyTaken only
  /// The transaction that was first, while it is open; else a default TransactionId.
  TransactionId other = {};
  std::uint64_t committed_at = 0;  ///< the time-stamp of its commit; 0 when it has not committed
  std::string message = {};        ///< all of it in a sentence
};
static_assert(std::is_nothrow_move_constructible_v<Conflict>);

}  // namespace flugs
