#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "flugs/query.h"
#include "flugs/status.h"
#include "flugs/transaction.h"
#include "query/vectors/failure.h"
#include "query/vectors/run_context.h"

namespace flugs::query {

inline constexpr const char* kQueryMovedFrom = "a query that was moved from";
inline constexpr const char* kResultMovedFrom = "a query of a result that was moved from";

/// Whether a query may run. Fails with kInvalidArgument, and as calls of the transaction do.
Status check_run(const QueryNode* query, const Transaction& transaction, const RunOptions& options);
std::uint32_t thread_count(const RunOptions& options);
QueryStatistics statistics_of(const RunContext& context, double seconds);
std::string summary(const QueryStatistics& statistics);

/// Turns every failure inside into a Status.
template <typename Work>
auto guarded(Work&& work) -> Result<decltype(work())> {
  try {
    return work();
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "the process has no more memory");
  }
}

}  // namespace flugs::query
