#pragma once

#include <vector>

#include "columns/dictionary/dictionary.h"
#include "pmem/pool/pool.h"
#include "recovery/phases.h"

namespace flugs::recovery {

/// Rebuilds the DRAM indexes of dictionaries in parallel, after their begin_rebuild. Large
/// dictionaries are divided, so that a single column keeps every thread busy. Transactions may run
/// meanwhile. Dictionaries with hints are recovered instead; some of their hints may be left for
/// later. Returns the number of entries, and adds to the report.
/// Source: SOFORT (DaMoN 2014), section 3.3: the time-consuming part of restart.
Result<std::uint64_t> rebuild_dictionaries(const std::vector<columns::Dictionary*>& dictionaries,
                                           pmem::Pool& pool, const std::string& phase,
                                           Phases& phases, RecoveryReport& report);

/// Enters all hints that recovery has left, as far as there is space for them. Many hints are
/// entered in parallel, one dictionary per task.
Status enter_hints(const std::vector<columns::Dictionary*>& dictionaries, pmem::Pool& pool,
                   const std::string& phase, Phases& phases);

}  // namespace flugs::recovery
