#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/cells/cell.h"
#include "columns/index/hash_index.h"
#include "flugs/value.h"

namespace flugs::engine {

/// Memory that single calls of a transaction work with. It is kept from call to call, so that a
/// call allocates nothing once the vectors have grown.
///
/// Invariant: no call relies on what a call before it left here. So there is nothing to clear
/// between calls or at the end of a transaction.
struct StatementScratch {
  // The row that is being encoded.
  std::vector<columns::Cell> cells;
  std::vector<std::uint8_t> bits;
  std::uint64_t editions = 0;  ///< editions of the columns of `cells` (columns::edition_mark)

  /// Columns changed while the call ran, and the call left nothing behind.
  bool columns_changed = false;

  std::vector<Value> values;  ///< of a key that is looked up, as the key's columns have them
  columns::Candidates candidates;
  std::vector<Value> numbered;  ///< rows of the last insert, when they lacked defaults or numbers

  /// The rows of the last insert, completed and numbered, and the number of values of each. Valid
  /// only within the call that inserted.
  std::span<const Value> inserted;
  std::size_t inserted_width = 0;
};

}  // namespace flugs::engine
