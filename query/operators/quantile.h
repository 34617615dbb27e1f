#pragma once

#include <cstddef>
#include <cstdint>

#include "query/operators/aggregate_state.h"

namespace flugs::query {

/// Which of `count` values in ascending order, at least one, is the quantile `q`: the first with at
/// least that part of the values at it or before it. `q` counts as the decimal of at most 15 digits
/// that it is nearest to, if there is one: 0.07 of 100 values are 7.
std::uint64_t quantile_index(double q, std::uint64_t count);

/// As `finish` (aggregate_state.h), for quantiles and medians. It may change the order of values.
/// Values of one group are copied, which counts for the budget. Fails with kOutOfMemory.
ColumnView finish_quantiles(const BoundAggregate& aggregate, const AggregateState* states,
                            std::size_t stride, std::size_t index, std::size_t first,
                            std::size_t count, Vec& out, MemoryBudget& budget);

}  // namespace flugs::query
