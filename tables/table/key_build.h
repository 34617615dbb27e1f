#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flugs/condition.h"
#include "flugs/progress.h"
#include "flugs/status.h"
#include "flugs/value.h"
#include "mvcc/visibility.h"

namespace flugs {
class LongCall;
}  // namespace flugs

namespace flugs::engine {

class IndexBuild;
class KeyIndex;
struct TableData;

/// Makes the index of a key that is added to a table with rows, while transactions run.
///
/// Writers have maintained the key since before the snapshot: transactions that began earlier have
/// ended. So writers have entered all that the snapshot does not see; entering the rows that it
/// sees, in any order, completes the index. If a version has been replaced since, the index already
/// has the newer one, which leads to it.
///
/// A unique key: a writer finds the rows that are entered already, and is refused. If two rows from
/// before have the same key, the second meets the first when it is entered. The first may be about
/// to come or go, so both are checked again at the end.
///
/// Thread-safety: one thread.
class KeyBuild {
 public:
  /// `build` is the table's.
  KeyBuild(const TableData& data, const IndexBuild& build, std::size_t place) noexcept;

  /// Enters the rows that `snapshot`, of an open transaction, sees. Fails with kConstraintViolated,
  /// kNotFound (the table is being dropped), kCancelled (`stops`, or the caller has asked to stop).
  Status enter_rows(const mvcc::Visibility& snapshot, const std::atomic<bool>& stops,
                    const CallOptions& options = {});
  /// Whether it met rows with the same key that may not both be there.
  bool has_doubts() const noexcept { return !doubts_.empty(); }
  /// Checks those rows in the present snapshot; all transactions that were open at enter_rows must
  /// have ended. Fails with kConstraintViolated if both are there.
  Status settle_doubts(const mvcc::Visibility& now) const;

 private:
  Status may_go_on(std::uint32_t row, std::uint32_t end, const std::atomic<bool>& stops,
                   LongCall& call) const;
  bool is_there(std::uint32_t row, const mvcc::Visibility& snapshot) const;
  void note_doubt(std::uint32_t row);
  Status is_repeated(std::span<const Value> values) const;

  const TableData& data_;
  const IndexBuild& build_;
  KeyIndex& key_;
  std::size_t place_;
  std::vector<std::vector<Constant>> doubts_;  // values of the key
};

}  // namespace flugs::engine
