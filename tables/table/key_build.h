#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flugs/condition.h"
#include "flugs/status.h"
#include "flugs/value.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

class KeyIndex;
class Table;

/// Makes the index of a key that is added to a table with rows, while transactions go on.
///
/// Writers keep the key up since before the snapshot: those who began earlier have ended. So what
/// the snapshot does not see they have entered, and entering what it sees, in any order, makes the
/// index whole. A version that has been replaced since has its newer one there already, from which
/// it is reached.
///
/// A unique key: whoever writes a row finds those that are in and is refused; two that were there
/// before meet when the second one comes in. What one meets may be on its way in or out, and is
/// asked again in the end.
///
/// Thread-safety: one thread.
class KeyBuild {
 public:
  KeyBuild(const Table& table, std::size_t place) noexcept;

  /// Enters what `snapshot`, of a transaction that is open, sees. Fails with kConstraintViolated,
  /// kNotFound (the table is being dropped), kCancelled (`stops`).
  Status enter_rows(const mvcc::Visibility& snapshot, const std::atomic<bool>& stops);
  /// Whether rows with the same key were met that may not be there together.
  bool has_doubts() const noexcept { return !doubts_.empty(); }
  /// When all have ended that were open then: whether they are, in a snapshot of now. Fails with
  /// kConstraintViolated.
  Status settle_doubts(const mvcc::Visibility& now) const;

 private:
  bool is_there(std::uint32_t row, const mvcc::Visibility& snapshot) const;
  void note_doubt(std::uint32_t row);
  Status is_repeated(std::span<const Value> values) const;

  const Table& table_;
  KeyIndex& key_;
  std::size_t place_;
  std::vector<std::vector<Constant>> doubts_;  // values of the key
};

}  // namespace flugs::engine
