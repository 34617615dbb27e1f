#pragma once

#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs::bench {

/// What a TpccClient adds to each transaction that writes, without any part in TPC-C.
///
/// Thread-safety: that of its client.
class TpccMark {
 public:
  virtual ~TpccMark() = default;
  /// Writes into a transaction that is about to commit. Fails: the attempt fails with it.
  virtual Status before_commit(Transaction& transaction) = 0;
  /// The commit has returned, and it succeeded.
  virtual void after_commit() noexcept = 0;
};

}  // namespace flugs::bench
