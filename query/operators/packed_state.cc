#include <cstring>

#include "base/check.h"
#include "query/operators/aggregate_state.h"

namespace flugs::query {

namespace {

// A packed state is the count, then words of the union, then the mean.
struct Packing {
  std::size_t of_union = 0;
  bool has_mean = false;
};

Packing packing_of(const BoundAggregate& aggregate) noexcept {
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
    case AggregateKind::kCount:
    case AggregateKind::kCountDistinct:
      return {0, false};
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
      return {aggregate.form() == Form::kReal ? std::size_t{1} : std::size_t{2}, false};
    case AggregateKind::kMin:
    case AggregateKind::kMax:
      return {aggregate.form() == Form::kText ? std::size_t{2} : std::size_t{1}, false};
    case AggregateKind::kVariance:
    case AggregateKind::kStddev:
      return {1, true};
    case AggregateKind::kQuantile:
    case AggregateKind::kMedian:
      return {2, false};
    case AggregateKind::kApproxCountDistinct:
      return {1, false};
  }
  return {2, true};
}

static_assert(sizeof(Int128) == 16 && sizeof(AggregateState::Text) == 16 &&
              sizeof(ValueList) == 16);

AggregateState unpack(Packing packing, const std::uint64_t* from) noexcept {
  AggregateState state;
  state.count = static_cast<std::int64_t>(from[0]);
  std::memcpy(&state.sum, from + 1, packing.of_union * 8);
  if (packing.has_mean) std::memcpy(&state.mean, from + 1 + packing.of_union, 8);
  return state;
}

}  // namespace

std::size_t packed_words(const BoundAggregate& aggregate) noexcept {
  const Packing packing = packing_of(aggregate);
  return 1 + packing.of_union + (packing.has_mean ? 1 : 0);
}

void pack(const BoundAggregate& aggregate, const AggregateState& state,
          std::uint64_t* to) noexcept {
  const Packing packing = packing_of(aggregate);
  to[0] = static_cast<std::uint64_t>(state.count);
  std::memcpy(to + 1, &state.sum, packing.of_union * 8);
  if (packing.has_mean) std::memcpy(to + 1 + packing.of_union, &state.mean, 8);
}

void merge_packed(const BoundAggregate& aggregate, const std::uint64_t* packed, std::size_t words,
                  std::size_t rows, const std::uint32_t* groups, AggregateState* states,
                  std::size_t stride, std::size_t index, KeptMemory& memory) {
  FLUGS_CHECK(index < stride);
  const Packing packing = packing_of(aggregate);
  AggregateState* own = states + index;
  if (packing.of_union == 0) {
    for (std::size_t i = 0; i < rows; ++i)
      own[groups[i] * stride].count += static_cast<std::int64_t>(packed[i * words]);
    return;
  }
  const bool is_exact_sum =
      (aggregate.kind == AggregateKind::kSum || aggregate.kind == AggregateKind::kAvg) &&
      packing.of_union == 2;
  for (std::size_t i = 0; i < rows; ++i) {
    const AggregateState from = unpack(packing, packed + i * words);
    AggregateState& into = own[groups[i] * stride];
    if (is_exact_sum) {
      into.count += from.count;
      into.sum += from.sum;
    } else {
      merge(aggregate, from, into, memory);
    }
  }
}

}  // namespace flugs::query
