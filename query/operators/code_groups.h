#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "query/operators/aggregate_state.h"
#include "query/scan/scan_unit.h"

namespace flugs::query {

/// Groups rows of row groups by the codes that their keys have in the row group, in arrays indexed
/// by these codes. The value of a code is looked up once per code, when the groups are handed over:
/// at the end, and before a row group whose codes have other values.
///
/// Used by one worker.
class CodeGroups {
 public:
  struct Key {
    std::uint32_t input = 0;                      ///< column of the input
    std::uint32_t table_column = 0;               ///< and of the table
    const columns::MainColumn* column = nullptr;  ///< column in unit()
  };

  /// Keys and arguments are columns of the input. The aggregates must outlive this.
  CodeGroups(const std::vector<std::uint32_t>& keys, const std::vector<BoundAggregate>& aggregates);
  static bool can_aggregate(const BoundAggregate& aggregate) noexcept;

  enum class Fit : std::uint8_t { kYes, kNo, kAfterHandOver };
  /// Whether rows of the unit can be taken now. `columns` of its table are those of the input.
  /// After clear() the result is never kAfterHandOver.
  Fit enter(const ScanUnit& unit, const std::vector<std::uint32_t>& columns);
  /// Takes rows of the unit that was entered last, if that fitted; parameters as in
  /// Sink::push_masked.
  void take(std::uint32_t first, std::size_t count, const std::uint64_t* mask);

  // Results. Groups are numbers below size(); numbers without rows are no groups.
  void finish();
  bool is_empty() const noexcept { return taken_ == 0; }
  std::uint32_t size() const noexcept { return groups_; }
  std::uint64_t rows(std::uint32_t group) const noexcept {
    FLUGS_DCHECK(group < groups_);
    return rows_[group];
  }
  AggregateState state(std::uint32_t group, std::size_t aggregate) const noexcept;
  /// The code of a key, in its column of unit().
  std::uint64_t code(std::uint32_t group, std::size_t key) const noexcept;
  const Key& key(std::size_t key) const noexcept { return keys_[key]; }
  const ScanUnit& unit() const noexcept {
    FLUGS_DCHECK(unit_ != nullptr);
    return *unit_;
  }
  void clear();

  std::uint64_t bytes() const noexcept;

  /// Number of groups for which arrays stay in the second-level cache.
  static constexpr std::uint64_t kGroupsMax = 8192;

 private:
  enum class Kind : std::uint8_t { kCount, kSum, kReal, kLeast, kGreatest };
  /// Counters for several rows at a time: a word has the sum of values in its lower bits, and their
  /// number above.
  struct Partial {
    std::vector<std::uint64_t> words;  // kCopies copies after one another, or one
    unsigned shift = 0;
    std::uint64_t rows_left = 0;  // until a word may overflow
  };
  /// One aggregate.
  struct Lane {
    Kind kind = Kind::kCount;
    std::uint32_t input = 0;
    bool has_argument = true;
    const columns::MainColumn* column = nullptr;
    Partial partial;       // kSum: distances from the least value
    Int128 least = 0;      // kSum
    bool is_next = false;  // kSum: packed, and NULL is the code before the least
    std::vector<Int128> sums;
    std::vector<double> reals;
    std::vector<std::int64_t> extremes;
    std::vector<std::uint64_t> counts;   // kSum: values
    std::vector<std::uint64_t> missing;  // others: rows that were NULL
  };
  struct Step {
    std::uint32_t first;
    std::uint32_t count;
    const std::uint64_t* mask;
  };

  bool fits(const ScanUnit& unit, const std::vector<std::uint32_t>& columns);
  bool has_same_codes() const;
  void resize();
  void enter_lane(Lane& lane);
  void select(const Step& step);
  void take_step(const Step& step);
  void unpack_keys(const Step& step);
  void take_lane(Lane& lane, const Step& step);
  void take_sum(Lane& lane, const std::uint64_t* wanted, const Step& step);
  void take_values(Lane& lane, const std::uint64_t* wanted, const Step& step);
  void add(Partial& partial, const std::uint64_t* wanted, const Step& step);
  void fold(Lane& lane);
  void fold_rows();
  template <typename Take>
  void fold(Partial& partial, const Take& take);

  std::vector<Key> keys_;
  std::vector<Lane> lanes_;
  const ScanUnit* unit_ = nullptr;  // the unit of the codes taken so far
  const ScanUnit* entered_ = nullptr;
  bool fits_ = false;
  std::vector<const columns::MainColumn*> next_keys_;
  std::uint32_t groups_ = 0;
  std::uint32_t copies_ = 1;
  std::uint64_t taken_ = 0;
  Lane* counts_rows_ = nullptr;  // a sum without NULLs, which therefore counts all rows
  Partial partial_rows_;
  std::vector<std::uint64_t> rows_;  // by group
  // Data of one step.
  std::vector<std::uint32_t> group_of_;
  std::vector<std::uint32_t> codes_;
  std::vector<std::int64_t> values_;
  std::vector<std::uint64_t> selected_;
  std::vector<std::uint64_t> present_;  // selected, and not NULL in a lane's column
};

}  // namespace flugs::query
