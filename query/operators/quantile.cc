#include "query/operators/quantile.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace flugs::query {

namespace {

/// The values of one group after another, side by side.
template <typename T>
class Gathered {
 public:
  explicit Gathered(MemoryBudget& budget) : charge_(budget, "group by") {}

  std::span<T> of(const AggregateState& state) {
    const auto count = static_cast<std::size_t>(state.count);
    const ValueList& list = state.values;
    if (list.first == list.last) return {values_of(*list.first), count};
    charge_.set(std::max<std::uint64_t>(charge_.bytes(), count * sizeof(T)));
    all_.clear();
    all_.reserve(count);
    for (ValueChunk* chunk = list.first;; chunk = chunk->next) {
      all_.insert(all_.end(), values_of(*chunk), values_of(*chunk) + chunk->used);
      if (chunk == list.last) break;
    }
    FLUGS_CHECK(all_.size() == count);
    return all_;
  }

 private:
  static T* values_of(ValueChunk& chunk) noexcept { return reinterpret_cast<T*>(chunk.values()); }

  Charge charge_;
  std::vector<T> all_;
};

template <typename T, typename Less>
T quantile_of(double q, std::span<T> values, Less less) {
  const std::uint64_t at = quantile_index(q, values.size());
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end(),
                   less);
  return values[at];
}

double middle(double low, double high, DataType) noexcept { return low * 0.5 + high * 0.5; }

double middle(std::int64_t low, std::int64_t high, DataType type) noexcept {
  const auto unit = static_cast<long double>(power_of_ten(type.scale));
  return static_cast<double>(static_cast<long double>(Int128{low} + high) / 2 / unit);
}

template <typename T, typename Less>
double median_of(std::span<T> values, DataType type, Less less) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end(), less);
  const T high = *half;
  return middle(values.size() % 2 == 1 ? high : *std::max_element(values.begin(), half, less), high,
                type);
}

/// The states of some groups.
struct States {
  const AggregateState* first;
  std::size_t stride;
  std::size_t count;
};

template <typename T, typename Less>
ColumnView results_of(const BoundAggregate& aggregate, const States& states, MemoryBudget& budget,
                      Vec& out, Less less) {
  constexpr bool kIsNumber = !std::is_same_v<T, std::string_view>;
  const bool is_median = kIsNumber && aggregate.kind == AggregateKind::kMedian;
  Gathered<T> gathered(budget);
  void* const to = out.reserve(states.count * sizeof(T));
  std::uint8_t* const nulls = out.nulls(states.count);
  bool any_null = false;
  for (std::size_t i = 0; i < states.count; ++i) {
    const AggregateState& state = states.first[i * states.stride];
    nulls[i] = state.count == 0 ? 1 : 0;
    any_null |= nulls[i] != 0;
    const std::span<T> values = nulls[i] != 0 ? std::span<T>() : gathered.of(state);
    if constexpr (kIsNumber) {
      if (is_median) {
        static_cast<double*>(to)[i] =
            values.empty() ? 0 : median_of(values, aggregate.of->type, less);
        continue;
      }
    }
    static_cast<T*>(to)[i] = values.empty() ? T() : quantile_of(aggregate.q, values, less);
  }
  return out.view(any_null);
}

}  // namespace

std::uint64_t quantile_index(double q, std::uint64_t count) {
  FLUGS_CHECK(count != 0 && q >= 0 && q <= 1);
  constexpr std::int64_t kUnits = 1'000'000'000'000'000;
  const auto units = static_cast<std::int64_t>(std::llround(q * 1e15));
  std::uint64_t part = 0;
  if (static_cast<double>(units) / 1e15 == q)
    part = static_cast<std::uint64_t>((Int128{units} * count + kUnits - 1) / kUnits);
  else
    part = static_cast<std::uint64_t>(
        std::ceil(static_cast<long double>(q) * static_cast<long double>(count)));
  return std::clamp<std::uint64_t>(part, 1, count) - 1;
}

ColumnView finish_quantiles(const BoundAggregate& aggregate, const AggregateState* states,
                            std::size_t stride, std::size_t index, std::size_t first,
                            std::size_t count, Vec& out, MemoryBudget& budget) {
  FLUGS_CHECK(index < stride && aggregate.keeps_values());
  const States own{states + first * stride + index, stride, count};
  switch (aggregate.form()) {
    case Form::kText:
      return results_of<std::string_view>(aggregate, own, budget, out, std::less<>());
    case Form::kReal:
      return results_of<double>(aggregate, own, budget, out, real_less);
    default:
      return results_of<std::int64_t>(aggregate, own, budget, out, std::less<>());
  }
}

}  // namespace flugs::query
