#pragma once

#include <cstdint>
#include <vector>

#include "flugs/database.h"

// Does a long writer finish among short writers that write the same rows, and when?

namespace flugs::bench {

/// How the long writer makes sure that it finishes.
enum class LongWriter : std::uint8_t {
  kRuns,   ///< all use Database::run: the one that has failed long gets the turn
  kLocks,  ///< it alone does, at kReadCommitted with Transaction::lock; the short ones try again by
           ///< themselves as soon as they can
};

struct StarvationOptions {
  std::uint32_t rows = 10'000;  ///< that the long writer updates in one transaction
  std::uint32_t hot_rows = 8;   ///< its last ones, which the short ones update, one each
  std::uint32_t users = 2;      ///< short writers, a thread each
  std::uint32_t runs = 20;      ///< long transactions, one after the other
  double pause_seconds = 0.1;   ///< before each, the short ones alone
  double limit_seconds = 30;    ///< that the long writer may take
  std::uint64_t seed = 1;
};

struct StarvationRun {
  double ms = 0;  ///< from the call to the return
  std::uint32_t attempts = 0;
  double short_per_second = 0;        ///< committed meanwhile
  double short_alone_per_second = 0;  ///< in the pause before
  bool has_committed = false;
};

struct StarvationFigures {
  std::vector<StarvationRun> runs;
  double short_ms_max = 0;  ///< the longest of the short ones' transactions, retries included
  std::uint64_t lost = 0;   ///< updates that were acknowledged and are not in the rows
  std::uint32_t committed() const noexcept;
  double ms_median() const;
  double ms_max() const noexcept;
  std::uint32_t attempts_max() const noexcept;
  /// Throughput of the short ones while a long one is under way, by that without.
  double short_share() const noexcept;
};

/// Makes the table. Fails as create_table and commit do.
Status create_starvation_rows(Database& database, const StarvationOptions& options);
Result<StarvationFigures> run_starvation(Database& database, const StarvationOptions& options,
                                         LongWriter how);

}  // namespace flugs::bench
