#include "query/operators/code_groups.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "columns/main/main_blocks.h"

namespace flugs::query {

namespace {

using columns::MainColumn;
using columns::MainEncoding;

// Rows whose keys and values are unpacked at a time: they stay in the first-level cache.
constexpr std::uint32_t kStepRows = 1024;
// Words per group. Rows use them in turn, so that no row waits for the one before it.
constexpr std::uint32_t kCopies = 4;
constexpr std::uint32_t kGroupsOfCopies = 1024;
// A word can count distances of this many bits for at least kStepRows rows.
constexpr unsigned kDistanceBitsMax = 36;
static_assert(kStepRows % 64 == 0);
static_assert(kStepRows < (std::uint64_t{1} << ((64 - kDistanceBitsMax) / 2)));

unsigned distance_bits(const MainColumn& column) noexcept {
  if (column.min().is_null()) return 0;
  const std::uint64_t distance = static_cast<std::uint64_t>(column.max().raw()) -
                                 static_cast<std::uint64_t>(column.min().raw());
  const auto bits = static_cast<unsigned>(std::bit_width(distance));
  // Codes of a damaged group may be greater than its greatest value, but not wider.
  return column.encoding() == MainEncoding::kPacked ? std::max(bits, column.code_bits()) : bits;
}

}  // namespace

bool CodeGroups::can_aggregate(const BoundAggregate& aggregate) noexcept {
  if (!aggregate.of) return true;
  if (aggregate.of->op != Op::kColumn) return false;
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
    case AggregateKind::kCount:
      return true;
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
      return aggregate.form() == Form::kInt || aggregate.form() == Form::kReal;
    case AggregateKind::kMin:
    case AggregateKind::kMax:
      return aggregate.form() == Form::kInt;
    default:
      return false;
  }
}

CodeGroups::CodeGroups(const std::vector<std::uint32_t>& keys,
                       const std::vector<BoundAggregate>& aggregates)
    : lanes_(aggregates.size()),
      group_of_(kStepRows),
      codes_(kStepRows),
      values_(kStepRows),
      selected_(kStepRows / 64),
      present_(kStepRows / 64) {
  FLUGS_CHECK(!keys.empty());
  for (const std::uint32_t key : keys) keys_.push_back({key, 0, nullptr});
  for (std::size_t a = 0; a < aggregates.size(); ++a) {
    const BoundAggregate& of = aggregates[a];
    FLUGS_CHECK(can_aggregate(of));
    Lane& lane = lanes_[a];
    lane.has_argument = of.of != nullptr && of.kind != AggregateKind::kCountRows;
    if (lane.has_argument) lane.input = of.of->column;
    if (of.kind == AggregateKind::kSum || of.kind == AggregateKind::kAvg)
      lane.kind = of.form() == Form::kReal ? Kind::kReal : Kind::kSum;
    if (of.kind == AggregateKind::kMin) lane.kind = Kind::kLeast;
    if (of.kind == AggregateKind::kMax) lane.kind = Kind::kGreatest;
  }
}

bool CodeGroups::fits(const ScanUnit& unit, const std::vector<std::uint32_t>& columns) {
  std::uint64_t groups = 1;
  next_keys_.clear();
  for (const Key& key : keys_) {
    const MainColumn* column = unit.packed(columns[key.input]);
    if (column == nullptr || column->code_count() == 0) return false;
    groups *= column->code_count();
    // With more codes, handing them over costs more than looking rows up.
    if (column->code_count() > kGroupsMax || groups > kGroupsMax ||
        groups * 4 > std::uint64_t{unit.row_count()} + 1024)
      return false;
    next_keys_.push_back(column);
  }
  return std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    if (!lane.has_argument) return true;
    const MainColumn* column = unit.packed(columns[lane.input]);
    if (column == nullptr) return false;
    return lane.kind != Kind::kSum || distance_bits(*column) <= kDistanceBitsMax;
  });
}

bool CodeGroups::has_same_codes() const {
  FLUGS_DCHECK(next_keys_.size() == keys_.size());
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (!keys_[k].column->has_codes_of(*next_keys_[k])) return false;
  return true;
}

CodeGroups::Fit CodeGroups::enter(const ScanUnit& unit, const std::vector<std::uint32_t>& columns) {
  if (entered_ == &unit) return fits_ ? Fit::kYes : Fit::kNo;
  if (!fits(unit, columns)) {
    entered_ = &unit;
    fits_ = false;
    return Fit::kNo;
  }
  if (groups_ != 0 && !has_same_codes()) {
    if (!is_empty()) return Fit::kAfterHandOver;
    groups_ = 0;
  }
  entered_ = &unit;
  fits_ = true;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    keys_[k].column = next_keys_[k];
    keys_[k].table_column = columns[keys_[k].input];
  }
  unit_ = &unit;
  if (groups_ == 0) resize();
  // Adds up what was counted with the old columns' distances.
  fold_rows();
  for (Lane& lane : lanes_) {
    if (lane.kind == Kind::kSum) fold(lane);
    lane.column = lane.has_argument ? unit.packed(columns[lane.input]) : nullptr;
  }
  counts_rows_ = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.kind != Kind::kSum) continue;
    enter_lane(lane);
    if (!lane.column->has_nulls()) counts_rows_ = &lane;
  }
  return Fit::kYes;
}

void CodeGroups::resize() {
  groups_ = 1;
  for (const Key& key : keys_) groups_ *= static_cast<std::uint32_t>(key.column->code_count());
  FLUGS_CHECK(groups_ != 0 && groups_ <= kGroupsMax);
  copies_ = groups_ <= kGroupsOfCopies ? kCopies : 1;
  rows_.assign(groups_, 0);
  partial_rows_.words.assign(std::size_t{groups_} * copies_, 0);
  partial_rows_.rows_left = ~std::uint64_t{0};
  for (Lane& lane : lanes_) {
    if (lane.kind != Kind::kSum) lane.missing.assign(groups_, 0);
    if (lane.kind == Kind::kSum) {
      lane.partial.words.assign(std::size_t{groups_} * copies_, 0);
      lane.sums.assign(groups_, 0);
      lane.counts.assign(groups_, 0);
    }
    if (lane.kind == Kind::kReal) lane.reals.assign(groups_, 0);
    if (lane.kind == Kind::kLeast)
      lane.extremes.assign(groups_, std::numeric_limits<std::int64_t>::max());
    if (lane.kind == Kind::kGreatest)
      lane.extremes.assign(groups_, std::numeric_limits<std::int64_t>::min());
  }
}

void CodeGroups::enter_lane(Lane& lane) {
  const MainColumn& column = *lane.column;
  const unsigned bits = distance_bits(column);
  FLUGS_CHECK(bits <= kDistanceBitsMax);
  const unsigned rows_bits = (64 - bits) / 2;
  lane.partial.shift = bits + rows_bits;
  lane.partial.rows_left = (std::uint64_t{1} << rows_bits) - 1;
  lane.is_next = column.encoding() == MainEncoding::kPacked;
  lane.least = column.min().is_null() ? 0 : column.min().raw();
  if (lane.is_next && column.has_nulls()) lane.least -= 1;
}

void CodeGroups::take(std::uint32_t first, std::size_t count, const std::uint64_t* mask) {
  FLUGS_CHECK(fits_ && entered_ == unit_);
  FLUGS_DCHECK(first % 64 == 0);
  FLUGS_DCHECK(count <= unit_->row_count() && first <= unit_->row_count() - count);
  for (std::size_t done = 0; done < count; done += kStepRows) {
    const std::size_t n = std::min<std::size_t>(kStepRows, count - done);
    const std::uint64_t* wanted = mask == nullptr ? nullptr : mask + done / 64;
    if (wanted != nullptr &&
        std::all_of(wanted, wanted + (n + 63) / 64, [](std::uint64_t word) { return word == 0; }))
      continue;
    take_step({first + static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(n), wanted});
  }
  taken_ += count;
}

void CodeGroups::unpack_keys(const Step& step) {
  keys_[0].column->codes(step.first, step.count, group_of_.data());
  for (std::size_t k = 1; k < keys_.size(); ++k) {
    const auto range = static_cast<std::uint32_t>(keys_[k].column->code_count());
    keys_[k].column->codes(step.first, step.count, codes_.data());
    for (std::uint32_t i = 0; i < step.count; ++i) group_of_[i] = group_of_[i] * range + codes_[i];
  }
}

// Sets a bit for each row that counts: selected, and in the step.
void CodeGroups::select(const Step& step) {
  const std::size_t words = (step.count + 63) / 64;
  FLUGS_DCHECK(words != 0 && words <= selected_.size());
  for (std::size_t w = 0; w < words; ++w)
    selected_[w] = step.mask == nullptr ? ~std::uint64_t{0} : step.mask[w];
  if (step.count % 64 != 0) selected_[words - 1] &= columns::low_bits(step.count % 64);
}

void CodeGroups::take_step(const Step& step) {
  unpack_keys(step);
  select(step);
  for (Lane& lane : lanes_)
    if (lane.has_argument) take_lane(lane, step);
  if (counts_rows_ != nullptr) return;
  std::fill_n(values_.begin(), step.count, 1);
  add(partial_rows_, selected_.data(), step);
}

// Keys are below groups_, as codes are below code_count().
void CodeGroups::add(Partial& partial, const std::uint64_t* wanted, const Step& step) {
  FLUGS_DCHECK(partial.words.size() == std::size_t{groups_} * copies_);
  FLUGS_DCHECK(std::all_of(group_of_.begin(), group_of_.begin() + step.count,
                           [&](std::uint32_t group) { return group < groups_; }));
  columns::kernels().fill_clear(wanted, (step.count + 63) / 64, 0, values_.data());
  const std::uint32_t* g = group_of_.data();
  const auto* x = reinterpret_cast<const std::uint64_t*>(values_.data());
  std::uint64_t* words = partial.words.data();
  const std::size_t copy = copies_ == kCopies ? groups_ : 0;
  std::uint64_t* const w[kCopies] = {words, words + copy, words + 2 * copy, words + 3 * copy};
  std::uint32_t i = 0;
  for (; i + kCopies <= step.count; i += kCopies) {
    w[0][g[i]] += x[i];
    w[1][g[i + 1]] += x[i + 1];
    w[2][g[i + 2]] += x[i + 2];
    w[3][g[i + 3]] += x[i + 3];
  }
  for (; i < step.count; ++i) w[0][g[i]] += x[i];
}

void CodeGroups::take_lane(Lane& lane, const Step& step) {
  const MainColumn& column = *lane.column;
  const std::uint64_t* wanted = selected_.data();
  if (column.has_nulls()) {
    column.null_bits(step.first, step.count, present_.data());
    for (std::size_t w = 0; w < (step.count + 63) / 64; ++w) {
      std::uint64_t missing = present_[w] & selected_[w];
      present_[w] = ~present_[w] & selected_[w];
      if (lane.kind == Kind::kSum) continue;
      for (; missing != 0; missing &= missing - 1)
        ++lane.missing[group_of_[w * 64 + static_cast<unsigned>(std::countr_zero(missing))]];
    }
    wanted = present_.data();
  }
  if (lane.kind == Kind::kCount) return;
  if (lane.kind == Kind::kSum)
    take_sum(lane, wanted, step);
  else
    take_values(lane, wanted, step);
}

void CodeGroups::take_sum(Lane& lane, const std::uint64_t* wanted, const Step& step) {
  if (lane.partial.rows_left < step.count) {
    fold(lane);
    enter_lane(lane);
  }
  FLUGS_DCHECK(lane.partial.rows_left >= step.count);
  lane.partial.rows_left -= step.count;
  const MainColumn& column = *lane.column;
  const std::uint64_t one = std::uint64_t{1} << lane.partial.shift;
  std::int64_t* x = values_.data();
  if (lane.is_next) {
    column.stored_plus(step.first, step.count, one, x);
  } else {
    column.integers(step.first, step.count, x);
    const std::uint64_t origin = one - static_cast<std::uint64_t>(lane.least);
    for (std::uint32_t i = 0; i < step.count; ++i)
      x[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(x[i]) + origin);
  }
  add(lane.partial, wanted, step);
}

void CodeGroups::take_values(Lane& lane, const std::uint64_t* wanted, const Step& step) {
  // A value that changes nothing takes the place of missing ones.
  std::int64_t nothing = 0;
  if (lane.kind == Kind::kLeast) nothing = std::numeric_limits<std::int64_t>::max();
  if (lane.kind == Kind::kGreatest) nothing = std::numeric_limits<std::int64_t>::min();
  std::int64_t* x = values_.data();
  lane.column->integers(step.first, step.count, x);
  columns::kernels().fill_clear(wanted, (step.count + 63) / 64, nothing, x);
  const std::uint32_t* g = group_of_.data();
  std::int64_t* extremes = lane.extremes.data();
  if (lane.kind == Kind::kReal) {
    double* reals = lane.reals.data();
    for (std::uint32_t i = 0; i < step.count; ++i) reals[g[i]] += std::bit_cast<double>(x[i]);
  } else if (lane.kind == Kind::kLeast) {
    for (std::uint32_t i = 0; i < step.count; ++i)
      if (x[i] < extremes[g[i]]) extremes[g[i]] = x[i];
  } else {
    for (std::uint32_t i = 0; i < step.count; ++i)
      if (x[i] > extremes[g[i]]) extremes[g[i]] = x[i];
  }
}

template <typename Take>
void CodeGroups::fold(Partial& partial, const Take& take) {
  for (std::size_t copy = 0; copy < copies_; ++copy) {
    std::uint64_t* words = partial.words.data() + copy * groups_;
    for (std::uint32_t group = 0; group < groups_; ++group) {
      if (words[group] == 0) continue;
      take(group, words[group]);
      words[group] = 0;
    }
  }
}

void CodeGroups::fold(Lane& lane) {
  if (lane.column == nullptr) return;
  const unsigned shift = lane.partial.shift;
  const bool counts_rows = counts_rows_ == &lane;
  fold(lane.partial, [&](std::uint32_t group, std::uint64_t word) {
    const std::uint64_t count = word >> shift;
    lane.sums[group] += static_cast<std::int64_t>(word & ((std::uint64_t{1} << shift) - 1));
    lane.sums[group] += lane.least * static_cast<std::int64_t>(count);
    lane.counts[group] += count;
    if (counts_rows) rows_[group] += count;
  });
}

void CodeGroups::fold_rows() {
  fold(partial_rows_, [&](std::uint32_t group, std::uint64_t word) { rows_[group] += word; });
}

void CodeGroups::finish() {
  fold_rows();
  for (Lane& lane : lanes_)
    if (lane.kind == Kind::kSum) fold(lane);
}

AggregateState CodeGroups::state(std::uint32_t group, std::size_t aggregate) const noexcept {
  FLUGS_DCHECK(group < groups_ && aggregate < lanes_.size());
  const Lane& lane = lanes_[aggregate];
  FLUGS_DCHECK(lane.kind == Kind::kSum || lane.missing[group] <= rows_[group]);
  AggregateState state;
  state.count = static_cast<std::int64_t>(
      lane.kind == Kind::kSum ? lane.counts[group] : rows_[group] - lane.missing[group]);
  switch (lane.kind) {
    case Kind::kCount:
      break;
    case Kind::kSum:
      state.sum = lane.sums[group];
      break;
    case Kind::kReal:
      state.real = lane.reals[group];
      break;
    case Kind::kLeast:
    case Kind::kGreatest:
      state.value = lane.extremes[group];
      break;
  }
  return state;
}

std::uint64_t CodeGroups::code(std::uint32_t group, std::size_t key) const noexcept {
  FLUGS_DCHECK(group < groups_ && key < keys_.size());
  std::uint64_t code = group;
  for (std::size_t k = keys_.size() - 1; k > key; --k) code /= keys_[k].column->code_count();
  return code % keys_[key].column->code_count();
}

void CodeGroups::clear() {
  groups_ = 0;
  taken_ = 0;
  entered_ = nullptr;
  counts_rows_ = nullptr;
  for (Lane& lane : lanes_) lane.column = nullptr;
}

std::uint64_t CodeGroups::bytes() const noexcept {
  std::uint64_t sum = (rows_.capacity() + partial_rows_.words.capacity()) * 8;
  for (const Lane& lane : lanes_)
    sum += (lane.partial.words.capacity() + lane.reals.capacity() + lane.extremes.capacity() +
            lane.missing.capacity() + lane.counts.capacity()) *
               8 +
           lane.sums.capacity() * 16;
  return sum;
}

}  // namespace flugs::query
