#pragma once

#include <cstdint>

#include "tables/rows/row_store.h"

namespace flugs::engine {

class KeyIndex;

/// The row that the last look-up by a key has found, and the key's hash of it: an update of the row
/// needs the hash again.
///
/// Invariant: the row was visible in the snapshot that the transaction has now. So it keeps its key
/// and its id, unless the transaction has written it itself.
class FoundRow {
 public:
  void note(const KeyIndex& key, std::uint32_t row, std::uint64_t hash) noexcept {
    key_ = &key;
    row_ = row;
    hash_ = hash;
  }
  /// Call it when the transaction gets another snapshot.
  void forget() noexcept { row_ = kNoRow; }
  /// True if hash() is the hash of `row` for `key`. The transaction must not have inserted the row.
  bool is(const KeyIndex& key, std::uint32_t row) const noexcept {
    return row_ == row && key_ == &key;
  }
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  const KeyIndex* key_ = nullptr;
  std::uint64_t hash_ = 0;
  std::uint32_t row_ = kNoRow;
};

}  // namespace flugs::engine
