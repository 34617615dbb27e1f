#include "tables/transactions/savepoints.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace flugs::engine {

namespace {

Status gone(const char* why) { return Status(StatusCode::kInvalidArgument, why); }

}  // namespace

Savepoint Savepoints::add(const TransactionMark& at) {
  static std::atomic<std::uint64_t> last_transaction{0};
  if (transaction_ == 0) transaction_ = last_transaction.fetch_add(1) + 1;
  FLUGS_DCHECK(marks_.empty() ||
               (newest().writes <= at.writes && newest().index_changes <= at.index_changes));
  marks_.push_back({next_number_, at});
  return {transaction_, next_number_++};
}

Result<std::size_t> Savepoints::find(const Savepoint& savepoint) const {
  if (savepoint.transaction_ == 0) return gone("savepoint: expected one, found none");
  if (savepoint.transaction_ != transaction_)
    return gone("the savepoint belongs to another transaction");
  const auto found =
      std::lower_bound(marks_.begin(), marks_.end(), savepoint.number_,
                       [](const Mark& mark, std::uint64_t number) { return mark.number < number; });
  if (found == marks_.end() || found->number != savepoint.number_)
    return gone(
        "the savepoint no longer exists: it or an earlier savepoint was released, or the "
        "transaction rolled back to an earlier savepoint");
  return static_cast<std::size_t>(found - marks_.begin());
}

}  // namespace flugs::engine
