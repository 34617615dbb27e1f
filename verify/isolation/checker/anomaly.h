#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flugs/status.h"

namespace flugs::isolation {

/// Anomalies of a history, by the names of Adya ("Weak Consistency", 1999), Berenson et al. (1995),
/// Hermitage and Elle.
enum class Anomaly : std::uint8_t {
  // Seen in single operations.
  kGarbage,            ///< a read value that no transaction wrote there
  kDuplicate,          ///< an element is in a list twice
  kIncompatibleOrder,  ///< two reads of a list contradict each other about its order
  kLost,               ///< an acknowledged append is not in a read that began later
  kInternal,           ///< a transaction does not see its own write
  kG1a,                ///< a write of an aborted transaction was read
  kG1b,                ///< a value that its transaction later overwrote was read
  // Cycles of dependencies.
  kG0,            ///< of writes only
  kG1c,           ///< of writes and reads
  kLostUpdate,    ///< P4: written over a version that was no longer the newest
  kOtv,           ///< a transaction that was seen vanishes again
  kPmp,           ///< a read by a condition misses a row that the transaction has seen otherwise
  kGSingle,       ///< one anti-dependency: read skew
  kGNonadjacent,  ///< several anti-dependencies, no two of them side by side
  kG2Item,        ///< anti-dependencies side by side: write skew
  kG2,            ///< the same with a read by a condition: phantoms
};
inline constexpr std::size_t kAnomalyCount = 16;

/// "G1a", "lost update (P4)", ...
std::string_view to_string(Anomaly anomaly) noexcept;

/// What the database promises to its users.
enum class Level : std::uint8_t {
  kReadCommitted,
  kSnapshot,            ///< some snapshot
  kStrongSnapshot,      ///< a snapshot with all transactions that were answered before it began
  kSerializable,        ///< in some order
  kStrictSerializable,  ///< in an order that agrees with real time
};
std::string_view to_string(Level level) noexcept;
/// The level with a name that users give: "read-committed", "snapshot" and "serializable", the last
/// two with what real time demands besides. Fails with kInvalidArgument.
Result<Level> level_named(std::string_view name);

/// Whether a level excludes an anomaly. `in_real_time`: the anomaly needs the order of answers and
/// begins.
bool forbids(Level level, Anomaly anomaly, bool in_real_time) noexcept;

}  // namespace flugs::isolation
