#pragma once

#include <cstdint>
#include <functional>

#include "bench/support/histogram.h"
#include "flugs/database.h"

// The cost of serializable where it matters, and the effect of one large transaction on a reader.

namespace flugs::bench {

/// Accounts in pairs; each pair must keep a sum that is not negative. A transaction reads both
/// accounts of a pair. If the sum allows it, it takes from one of them, else it gives to one. Two
/// transactions that take from different accounts at the same time break the rule, unless they are
/// serializable.
struct SkewOptions {
  std::uint32_t rows = 16;  ///< even
  std::uint32_t users = 2;
  double seconds = 3;
  std::uint64_t seed = 1;
};

struct SkewFigures {
  std::uint64_t committed = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t pairs_broken = 0;  ///< with a negative sum, as transactions that committed read it
  double seconds = 0;
  double per_second() const noexcept {
    return static_cast<double>(committed) / (seconds > 0 ? seconds : 1);
  }
};

/// Makes the table. Fails as create_table and commit do.
Status create_accounts(Database& database, const SkewOptions& options);
/// One round, from balances as at first.
Result<SkewFigures> run_skew(Database& database, const SkewOptions& options, Isolation isolation);

struct LargeOptions {
  std::uint64_t rows = 1'000'000;
  double idle_seconds = 3;  ///< of the reader alone
  std::uint64_t seed = 1;
};

struct LargeFigures {
  double load_seconds = 0;
  double statements_seconds = 0;
  double commit_ms = 0;     ///< from the last statement to the return of the commit
  Histogram idle;           ///< of the reader's transactions, begin to end: alone
  Histogram meanwhile;      ///< from the first statement to the return of the commit
  Histogram during_commit;  ///< from the last statement on
  std::uint64_t wrong = 0;  ///< reads that were not what a snapshot must give
  double p99_ratio() const noexcept {
    const auto alone = static_cast<double>(idle.percentile(0.99));
    return alone > 0 ? static_cast<double>(meanwhile.percentile(0.99)) / alone : 0;
  }
};

/// Loads a table, then updates every row of it in one transaction, by look-up and update of one
/// column, while another thread looks rows up, two in each transaction.
Result<LargeFigures> run_large(Database& database, const LargeOptions& options);

}  // namespace flugs::bench
