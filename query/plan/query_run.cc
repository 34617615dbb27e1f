#include "query/plan/query_run.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/processors.h"
#include "engine/database/transaction_access.h"
#include "query/operators/query_node.h"

namespace flugs::query {

// More threads than cores are allowed, but not the numbers that only a mistake asks for.
Status check_run(const QueryNode* query, const Transaction& transaction,
                 const RunOptions& options) {
  if (options.threads > Crew::kWorkersMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("RunOptions::threads is {}, allowed are 0 to {}", options.threads,
                              Crew::kWorkersMax));
  if (query == nullptr) return Status(StatusCode::kInvalidArgument, kQueryMovedFrom);
  if (!query->error.empty()) return Status(StatusCode::kInvalidArgument, query->error);
  return engine::TransactionAccess::check(transaction);
}

std::uint32_t thread_count(const RunOptions& options) {
  FLUGS_DCHECK(options.threads <= Crew::kWorkersMax);
  if (options.threads != 0) return options.threads;
  return processors();
}

QueryStatistics statistics_of(const RunContext& context, double seconds) {
  return {context.rows_scanned,
          context.rows_skipped,
          context.rows_selected,
          context.batches,
          context.budget.peak(),
          context.threads,
          seconds,
          context.entries_read};
}

std::string summary(const QueryStatistics& s) {
  return fmt::format(
      "{} rows scanned, {} skipped, {} selected, {} batches, {} threads, {:.1f} MB at most, "
      "{:.3f} ms\n",
      s.rows_scanned, s.rows_skipped, s.rows_selected, s.batches, s.threads,
      static_cast<double>(s.memory_bytes_peak) / 1e6, s.seconds * 1e3);
}

}  // namespace flugs::query
