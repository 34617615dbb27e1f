#include "query/operators/aggregate_state.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/hash.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// BoundAggregate::is_count
static_assert(AggregateKind::kCountRows < AggregateKind::kCount &&
              AggregateKind::kCount < AggregateKind::kCountDistinct &&
              AggregateKind::kCountDistinct < AggregateKind::kSum);

// Calls `take(state, i)` for each row that is not NULL.
template <typename Take>
void for_values(ColumnView values, const std::uint32_t* groups, std::size_t rows,
                AggregateState* states, std::size_t stride, std::size_t index, Take&& take) {
  FLUGS_DCHECK(index < stride);
  AggregateState* own = states + index;
  if (values.nulls == nullptr) {
    for (std::size_t i = 0; i < rows; ++i) take(own[groups[i] * stride], i);
  } else {
    for (std::size_t i = 0; i < rows; ++i)
      if (values.nulls[i] == 0) take(own[groups[i] * stride], i);
  }
}

void sum_of_one_group(ColumnView values, std::size_t rows, AggregateState& state) {
  static_assert(kBatchRows < (std::size_t{1} << 31));
  FLUGS_DCHECK(rows <= kBatchRows);
  // Halves add up in 64 bits without overflow, and without a carry from one to the other.
  std::int64_t high = 0;
  std::uint64_t low = 0;
  std::int64_t count = 0;
  const std::int64_t* ints = values.ints();
  if (values.nulls == nullptr) {
    for (std::size_t i = 0; i < rows; ++i) {
      high += ints[i] >> 32;
      low += static_cast<std::uint32_t>(ints[i]);
    }
    count = static_cast<std::int64_t>(rows);
  } else {
    for (std::size_t i = 0; i < rows; ++i) {
      const std::int64_t keep = values.nulls[i] - std::int64_t{1};  // all ones unless NULL
      high += (ints[i] & keep) >> 32;
      low += static_cast<std::uint32_t>(ints[i] & keep);
      count -= keep;
    }
  }
  state.count += count;
  state.sum += (Int128{high} << 32) + low;
}

template <typename Replaces, typename Put>
void extreme(ColumnView values, const std::uint32_t* groups, std::size_t rows,
             AggregateState* states, std::size_t stride, std::size_t index, Replaces&& replaces,
             Put&& put) {
  for_values(values, groups, rows, states, stride, index, [&](AggregateState& state, auto i) {
    if (state.count++ == 0 || replaces(state, i)) put(state, i);
  });
}

void extremes(const BoundAggregate& aggregate, ColumnView values, const std::uint32_t* groups,
              std::size_t rows, AggregateState* states, std::size_t stride, std::size_t index) {
  const bool is_max = aggregate.kind == AggregateKind::kMax;
  const auto run = [&](auto&& replaces, auto&& put) {
    extreme(values, groups, rows, states, stride, index, replaces, put);
  };
  switch (aggregate.form()) {
    case Form::kText: {
      const std::string_view* texts = values.texts();
      run(
          [&](const AggregateState& s, std::size_t i) {
            const std::string_view kept(s.text.data, s.text.size);
            return is_max ? kept < texts[i] : texts[i] < kept;
          },
          [&](AggregateState& s, std::size_t i) { s.text = {texts[i].data(), texts[i].size()}; });
      break;
    }
    case Form::kReal: {
      const double* reals = values.reals();
      run(
          [&](const AggregateState& s, std::size_t i) {
            return is_max ? real_less(s.real_value, reals[i]) : real_less(reals[i], s.real_value);
          },
          [&](AggregateState& s, std::size_t i) { s.real_value = reals[i]; });
      break;
    }
    default: {
      const std::int64_t* ints = values.ints();
      run([&](const AggregateState& s,
              std::size_t i) { return is_max ? s.value < ints[i] : ints[i] < s.value; },
          [&](AggregateState& s, std::size_t i) { s.value = ints[i]; });
    }
  }
}

// Welford's method: one pass, no cancellation.
void deviate(AggregateState& state, double value) noexcept {
  const double delta = value - state.mean;
  state.mean += delta / static_cast<double>(++state.count);
  state.real += delta * (value - state.mean);
}

bool is_real_sum(const BoundAggregate& a) noexcept { return a.form() == Form::kReal; }

void keep_values(const BoundAggregate& aggregate, ColumnView values, const std::uint32_t* groups,
                 std::size_t rows, AggregateState* states, std::size_t stride, std::size_t index,
                 KeptMemory& memory) {
  const auto run = [&](const auto* of) {
    for_values(values, groups, rows, states, stride, index, [&](AggregateState& state, auto i) {
      append(state.values, of[i], memory);
      ++state.count;
    });
  };
  switch (aggregate.form()) {
    case Form::kText:
      return run(values.texts());
    case Form::kReal:
      return run(values.reals());
    default:
      return run(values.ints());
  }
}

void note_values(const BoundAggregate& aggregate, ColumnView values, const std::uint32_t* groups,
                 std::size_t rows, AggregateState* states, std::size_t stride, std::size_t index,
                 KeptMemory& memory) {
  const auto run = [&](auto&& hash_at) {
    for_values(values, groups, rows, states, stride, index, [&](AggregateState& state, auto i) {
      note_hash(state.sketch, hash_at(i), memory);
      ++state.count;
    });
  };
  if (aggregate.form() == Form::kText)
    run([texts = values.texts()](std::size_t i) { return hash_text(texts[i]); });
  else
    run([ints = values.ints()](std::size_t i) { return hash_integer(ints[i]); });
}

}  // namespace

void accumulate(const BoundAggregate& aggregate, ColumnView values, const std::uint32_t* groups,
                std::size_t rows, bool one_group, AggregateState* states, std::size_t stride,
                std::size_t index, KeptMemory& memory) {
  FLUGS_CHECK(!aggregate.is_distinct());
  const auto run = [&](auto&& take) {
    for_values(values, groups, rows, states, stride, index, take);
  };
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
    case AggregateKind::kCount:
      if (one_group && values.nulls == nullptr)
        states[index].count += static_cast<std::int64_t>(rows);
      else
        run([](AggregateState& state, std::size_t) { ++state.count; });
      break;
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
      if (is_real_sum(aggregate)) {
        run([reals = values.reals()](AggregateState& state, std::size_t i) {
          ++state.count;
          state.real += reals[i];
        });
      } else if (one_group) {
        sum_of_one_group(values, rows, states[index]);
      } else {
        run([ints = values.ints()](AggregateState& state, std::size_t i) {
          ++state.count;
          state.sum += ints[i];
        });
      }
      break;
    case AggregateKind::kMin:
    case AggregateKind::kMax:
      extremes(aggregate, values, groups, rows, states, stride, index);
      break;
    case AggregateKind::kVariance:
    case AggregateKind::kStddev:
      run([reals = values.reals()](AggregateState& s, std::size_t i) { deviate(s, reals[i]); });
      break;
    case AggregateKind::kQuantile:
    case AggregateKind::kMedian:
      keep_values(aggregate, values, groups, rows, states, stride, index, memory);
      break;
    case AggregateKind::kApproxCountDistinct:
      note_values(aggregate, values, groups, rows, states, stride, index, memory);
      break;
    case AggregateKind::kCountDistinct:
      break;
  }
}

bool state_of(const BoundAggregate& aggregate, const ScanUnit& unit, std::uint32_t column,
              std::uint32_t first, std::size_t count, const std::uint64_t* mask,
              std::size_t selected, AggregateState& state) {
  FLUGS_DCHECK(selected <= count);
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
      state.count = static_cast<std::int64_t>(selected);
      return true;
    case AggregateKind::kCount:
    case AggregateKind::kSum:
    case AggregateKind::kAvg: {
      Totals totals;
      if (!unit.add_up(column, first, count, mask, totals)) return false;
      state.count = totals.count;
      if (is_real_sum(aggregate))
        state.real = totals.real_sum;
      else
        state.sum = totals.sum;
      return true;
    }
    case AggregateKind::kMin:
    case AggregateKind::kMax: {
      Value least;
      Value greatest;
      if (!unit.extremes(column, first, count, mask, least, greatest)) return false;
      const Value& value = aggregate.kind == AggregateKind::kMin ? least : greatest;
      state.count = value.is_null() ? 0 : 1;
      if (aggregate.form() == Form::kText)
        state.text = {value.as_string().data(), value.as_string().size()};
      else if (aggregate.form() == Form::kReal)
        state.real_value = value.as_double();
      else
        state.value = value.raw();
      return true;
    }
    default:
      return false;
  }
}

void merge(const BoundAggregate& aggregate, const AggregateState& from, AggregateState& into,
           KeptMemory& memory) {
  if (from.count == 0) return;
  const bool first = into.count == 0;
  switch (aggregate.kind) {
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
      if (is_real_sum(aggregate))
        into.real += from.real;
      else
        into.sum += from.sum;
      break;
    case AggregateKind::kMin:
    case AggregateKind::kMax: {
      AggregateState one = from;
      const std::uint32_t group = 0;
      const std::int64_t count = into.count;
      const std::string_view text = aggregate.form() == Form::kText
                                        ? std::string_view(one.text.data, one.text.size)
                                        : std::string_view();
      const void* data = &one.value;
      if (aggregate.form() == Form::kText) data = &text;
      if (aggregate.form() == Form::kReal) data = &one.real_value;
      extremes(aggregate, {data, nullptr}, &group, 1, &into, 1, 0);
      into.count = count;
      break;
    }
    case AggregateKind::kVariance:
    case AggregateKind::kStddev: {
      if (first) {  // the square of a large mean may not be finite
        into = from;
        return;
      }
      // Chan, Golub, LeVeque: the deviations of two parts and of their means.
      const auto a = static_cast<double>(into.count);
      const auto b = static_cast<double>(from.count);
      const double delta = from.mean - into.mean;
      into.real += from.real + delta * delta * a * b / (a + b);
      into.mean += delta * b / (a + b);
      break;
    }
    case AggregateKind::kQuantile:
    case AggregateKind::kMedian:
      append_list(from.values, into.values);
      break;
    case AggregateKind::kApproxCountDistinct:
      merge_sketches(from.sketch, into.sketch, memory);
      break;
    default:
      break;
  }
  into.count += from.count;
}

namespace {

std::int64_t exact_sum(const BoundAggregate& aggregate, const AggregateState& state) {
  const auto value = static_cast<std::int64_t>(state.sum);
  if (value != state.sum)
    fail(StatusCode::kOverflow,
         fmt::format("{}: a sum does not fit {}", aggregate.name, to_string(aggregate.type)));
  return value;
}

std::int64_t count_result(const BoundAggregate& aggregate, const AggregateState& state) {
  return aggregate.is_sketch() ? estimate_of(state.sketch) : state.count;
}

double real_result(const BoundAggregate& aggregate, const AggregateState& state) {
  FLUGS_DCHECK(state.count > (aggregate.is_deviation() ? 1 : 0));
  const auto count = static_cast<double>(state.count);
  switch (aggregate.kind) {
    case AggregateKind::kAvg: {
      if (is_real_sum(aggregate)) return state.real / count;
      const auto unit = static_cast<double>(power_of_ten(aggregate.of->type.scale));
      return static_cast<double>(static_cast<long double>(state.sum) / state.count / unit);
    }
    case AggregateKind::kVariance:
      return state.real / (count - 1);
    case AggregateKind::kStddev:
      return std::sqrt(state.real / (count - 1));
    case AggregateKind::kSum:
      return state.real;
    default:
      return state.real_value;
  }
}

}  // namespace

ColumnView finish(const BoundAggregate& aggregate, const AggregateState* states, std::size_t stride,
                  std::size_t index, std::size_t first, std::size_t count, Vec& out) {
  FLUGS_CHECK(index < stride && !aggregate.keeps_values());
  const AggregateState* own = states + first * stride + index;
  const bool is_count = aggregate.is_count();
  const bool of_two = aggregate.is_deviation();
  std::uint8_t* nulls = out.nulls(count);
  bool any_null = false;
  for (std::size_t i = 0; i < count; ++i) {
    nulls[i] = !is_count && own[i * stride].count < (of_two ? 2 : 1) ? 1 : 0;
    any_null |= nulls[i] != 0;
  }
  switch (lane_of(aggregate.type)) {
    case Lane::kText:
      for (std::size_t i = 0; i < count; ++i)
        out.texts(count)[i] =
            nulls[i] != 0 ? std::string_view()
                          : std::string_view(own[i * stride].text.data, own[i * stride].text.size);
      break;
    case Lane::kReal:
      for (std::size_t i = 0; i < count; ++i)
        out.reals(count)[i] = nulls[i] != 0 ? 0 : real_result(aggregate, own[i * stride]);
      break;
    case Lane::kInt:
      for (std::size_t i = 0; i < count; ++i) {
        const AggregateState& state = own[i * stride];
        out.ints(count)[i] = is_count        ? count_result(aggregate, state)
                             : nulls[i] != 0 ? 0
                             : aggregate.kind == AggregateKind::kSum ? exact_sum(aggregate, state)
                                                                     : state.value;
      }
  }
  return out.view(any_null);
}

}  // namespace flugs::query
