#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/operators/distinct_sketch.h"
#include "query/operators/group_table.h"
#include "query/operators/value_list.h"
#include "query/scan/scan_unit.h"
#include "query/vectors/code_domain.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// The state of an aggregate for one group. `count` counts the values that are not NULL (rows, for
/// count(*)).
struct AggregateState {
  struct Text {
    const char* data;
    std::size_t size;
  };
  std::int64_t count = 0;
  double mean = 0;  ///< variance
  union {
    Int128 sum = 0;      ///< sum and avg of exact numbers
    double real;         ///< sum and avg of doubles; sum of squared deviations of variance
    std::int64_t value;  ///< min and max
    double real_value;
    Text text;
    ValueList values;        ///< quantile and median
    DistinctSketch* sketch;  ///< approx_count_distinct; null: no value
  };
};

static_assert(sizeof(AggregateState) == 32);  // two to a cache line
static_assert(std::is_trivially_copyable_v<AggregateState>);

/// An aggregate whose argument is bound.
struct BoundAggregate {
  AggregateKind kind = AggregateKind::kCountRows;
  BoundPtr of;
  std::string name;
  DataType type;  ///< of the result
  double q = 0;   ///< of a quantile

  Form form() const noexcept { return of ? of->form : Form::kInt; }
  bool is_distinct() const noexcept { return kind == AggregateKind::kCountDistinct; }
  /// The result is never NULL.
  bool is_count() const noexcept { return kind <= AggregateKind::kCountDistinct || is_sketch(); }
  bool is_sketch() const noexcept { return kind == AggregateKind::kApproxCountDistinct; }
  bool is_deviation() const noexcept {
    return kind == AggregateKind::kVariance || kind == AggregateKind::kStddev;
  }
  /// States have lists of values, in a KeptMemory.
  bool keeps_values() const noexcept {
    return kind == AggregateKind::kQuantile || kind == AggregateKind::kMedian;
  }
};

/// Adds the values of a batch to the groups' states. `states` has `stride` states per group; this
/// aggregate's is the one at `index`. What a state keeps beside it is in `memory`. Not for count
/// distinct.
void accumulate(const BoundAggregate& aggregate, ColumnView values, const std::uint32_t* groups,
                std::size_t rows, bool one_group, AggregateState* states, std::size_t stride,
                std::size_t index, KeptMemory& memory);
/// Sets the state for one group of a unit's rows, if the unit knows it without reading
/// values; the argument is the table's `column`. False: it does not.
bool state_of(const BoundAggregate& aggregate, const ScanUnit& unit, std::uint32_t column,
              std::uint32_t first, std::size_t count, const std::uint64_t* mask,
              std::size_t selected, AggregateState& state);
/// Adds another worker's state. If the aggregate keeps values or a sketch, these become a part of
/// `into`, and may not be added to any more. What it keeps besides is in `memory`.
void merge(const BoundAggregate& aggregate, const AggregateState& from, AggregateState& into,
           KeptMemory& memory);
/// Words of a state in a record, which has only what the aggregate needs.
std::size_t packed_words(const BoundAggregate& aggregate) noexcept;
void pack(const BoundAggregate& aggregate, const AggregateState& state, std::uint64_t* to) noexcept;
/// Adds packed states, which lie `words` words apart, to the groups' states.
void merge_packed(const BoundAggregate& aggregate, const std::uint64_t* packed, std::size_t words,
                  std::size_t rows, const std::uint32_t* groups, AggregateState* states,
                  std::size_t stride, std::size_t index, KeptMemory& memory);
/// The results of `count` groups from `first` on. Fails with kOverflow. Not for aggregates that
/// keep values (quantile.h).
ColumnView finish(const BoundAggregate& aggregate, const AggregateState* states, std::size_t stride,
                  std::size_t index, std::size_t first, std::size_t count, Vec& out);

}  // namespace flugs::query
