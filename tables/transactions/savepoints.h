#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs::engine {

/// Lengths of the transaction's lists at one moment; undoing truncates to them
/// (TransactionContext::undo_since).
struct TransactionMark {
  std::size_t writes = 0;
  std::size_t index_changes = 0;
  std::size_t dying = 0;
  std::size_t locks = 0;
  std::size_t texts_written = 0;
  std::size_t texts_left = 0;
};

/// The savepoints of one transaction, the oldest first.
///
/// Invariant: their numbers ascend, and so do their marks. A savepoint of an earlier transaction,
/// or of another slot, has another `transaction_` in it and is not found.
class Savepoints final {
 public:
  bool empty() const noexcept { return marks_.empty(); }
  const TransactionMark& newest() const noexcept {
    FLUGS_DCHECK(!marks_.empty());
    return marks_.back().at;
  }
  Savepoint add(const TransactionMark& at);
  /// The position of the savepoint. Fails with kInvalidArgument when it is of another transaction,
  /// or gone.
  Result<std::size_t> find(const Savepoint& savepoint) const;
  const TransactionMark& operator[](std::size_t i) const noexcept {
    FLUGS_DCHECK(i < marks_.size());
    return marks_[i].at;
  }
  /// Keeps the first `count` savepoints and forgets the others.
  void keep(std::size_t count) noexcept {
    FLUGS_DCHECK(count <= marks_.size());
    marks_.resize(count);
  }
  void clear() noexcept {
    if (__builtin_expect(transaction_ == 0, 1)) return;
    transaction_ = 0;
    marks_.clear();
  }

 private:
  struct Mark {
    std::uint64_t number = 0;
    TransactionMark at;
  };
  std::uint64_t transaction_ = 0;  // unique in the process; 0: no savepoint yet
  std::uint64_t next_number_ = 1;
  std::vector<Mark> marks_;
};

}  // namespace flugs::engine
