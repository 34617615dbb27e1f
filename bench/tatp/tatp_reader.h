#pragma once

#include <cstdint>
#include <optional>

#include "bench/tatp/tatp_invariants.h"
#include "bench/tatp/tatp_population.h"

namespace flugs::bench {

/// Reads a subscriber with everything that belongs to it, through every key that leads there, and
/// reports what contradicts T1 to T4 and T8 on the way. What is absent stays not present; nothing
/// when there is no such subscriber. Fails when a look-up fails in a way that is no answer.
Result<std::optional<SubscriberRecord>> read_subscriber(const Transaction& transaction,
                                                        const TatpTables& tables,
                                                        const Population& population,
                                                        std::uint32_t s_id,
                                                        InvariantReport& report);

}  // namespace flugs::bench
