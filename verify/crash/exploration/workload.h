#pragma once

#include <functional>
#include <memory>

#include "flugs/crashtest.h"
#include "verify/crash/exploration/exploration.h"

namespace flugs::crash {

using WorkloadFactory = std::function<std::unique_ptr<CrashWorkload>(std::uint64_t seed)>;

struct WorkloadLimits {
  std::size_t pool_bytes = std::size_t{512} << 10;
  std::uint32_t slots = 2;
};

/// Explores a user's workload, made with the exploration's seed and round; `protocol` only names
/// it. Each image is judged so: recovery; the audit must be clean and no space lost; the workload's
/// own check; then a second restart, and the audit once more.
ExplorationResult explore_workload(const Exploration& exploration, const WorkloadFactory& make,
                                   const WorkloadLimits& limits);

}  // namespace flugs::crash
