#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "columns/main/main_column.h"
#include "flugs/value.h"
#include "query/expressions/bound_expr.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// A condition on one column that a unit may be able to test without reading values. Bounds are
/// of the column's type, except that integers may have another width.
struct RangeCondition {
  enum class Kind : std::uint8_t { kWithin, kOutside, kIsNull, kIsNotNull };
  std::uint32_t column = 0;
  Kind kind = Kind::kWithin;
  std::optional<Value> low;
  std::optional<Value> high;
  bool low_excluded = false;
  bool high_excluded = false;
};

/// A condition in the form that one unit tests. It is computed once for several ranges of rows.
/// The condition must outlive it.
struct ScanUnitRange {
  const RangeCondition* condition = nullptr;
  columns::MainRange codes;  ///< for a unit whose columns are packed
};

/// Payloads from the least to the greatest, and the number of their rows.
struct PayloadRange {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::uint64_t rows = 0;
};

/// Some rows of a unit: positions relative to `first`, ascending; null: all from 0 on.
struct RowSelection {
  std::uint32_t first = 0;
  const std::uint32_t* positions = nullptr;
  std::size_t count = 0;

  /// The position of row `i` of the selection in the unit.
  std::uint32_t place(std::size_t i) const noexcept {
    return first + (positions != nullptr ? positions[i] : static_cast<std::uint32_t>(i));
  }
};

/// A mask of all rows of a unit that the transaction sees, which stays as long as the unit.
struct SeenMask {
  const std::uint64_t* words = nullptr;  ///< null: there is none
  std::size_t count = 0;                 ///< of its bits
};

using columns::Int128;

/// Sums over the values of some rows; NULLs do not count.
struct Totals {
  Int128 sum = 0;
  double real_sum = 0;  ///< for doubles
  std::int64_t count = 0;
};

/// Rows of a table that lie in memory in one way: a chunk of the delta, a row group of main. A
/// unit makes no decision about a query. It answers questions about ranges of its row positions.
/// `first` is a multiple of 64. A range has at most block_rows() rows for a mask, else kBatchRows.
///
/// Thread-safety: const, any thread.
class ScanUnit {
 public:
  enum class Reach : std::uint8_t { kNone, kSome, kAll };

  virtual ~ScanUnit() = default;

  virtual std::uint32_t row_count() const noexcept = 0;
  /// Number of rows for which masks are made together; a multiple of 64, at most kBlockRowsMax.
  virtual std::uint32_t block_rows() const noexcept { return kBatchRows; }
  static constexpr std::uint32_t kBlockRowsMax = 8 * kBatchRows;
  /// Whether it may know answers for all its rows together that it would have to search for in
  /// parts.
  virtual bool answers_whole() const noexcept { return false; }
  /// Whether the transaction is known to see every row, without looking at them.
  virtual bool sees_all() const noexcept { return false; }
  /// The rows that the transaction sees, if that is known for all of them together.
  virtual SeenMask seen() const noexcept { return {}; }
  /// Sets bit i of `mask` if the transaction sees row `first + i`, and clears it if not; returns
  /// the number of visible rows. Words are written whole.
  virtual std::size_t visible(std::uint32_t first, std::size_t count,
                              std::uint64_t* mask) const noexcept = 0;
  /// Number of MVCC entries in main that `visible` has read one by one.
  virtual std::uint64_t entries_read() const noexcept { return 0; }
  /// Values of a column, in the lane of its type. With a scratch, texts may be there, until it is
  /// used again; else they stay as long as the transaction.
  virtual ColumnView values(std::uint32_t column, const RowSelection& rows, Vec& out,
                            columns::TextScratch* scratch) const = 0;
  /// The same as codes of the column's domain. Fails with kCorrupt.
  virtual ColumnView codes(std::uint32_t column, const RowSelection& rows, Vec& out) const = 0;

  /// Ids of the rows.
  virtual ColumnView row_ids(const RowSelection& rows, Vec& out) const = 0;

  /// Whether the column may be NULL in one of the rows.
  virtual bool may_be_null(std::uint32_t column) const noexcept = 0;
  /// Where the values of the column lie in the pool, if they lie together.
  virtual std::span<const std::byte> memory(std::uint32_t column) const noexcept = 0;
  /// A column in its packed form, if the unit has it; else null.
  virtual const columns::MainColumn* packed(std::uint32_t /*column*/) const noexcept {
    return nullptr;
  }
  /// The code, in the column's domain, of an entry of a packed column. The entry is not NULL's.
  /// Fails with kCorrupt.
  virtual std::uint32_t domain_code(std::uint32_t /*column*/, std::uint64_t /*entry*/) const {
    return CodeDomain::kNone;
  }

  /// The condition for `reach` and `narrow` of this unit.
  virtual ScanUnitRange range_of(const RangeCondition& condition) const { return {&condition, {}}; }
  /// The part of the unit's rows for which a condition holds, as far as it is known beforehand.
  virtual Reach reach(const ScanUnitRange&) const { return Reach::kSome; }
  /// Clears the bits of rows for which the condition does not hold. False: it cannot.
  virtual bool narrow(const ScanUnitRange&, std::uint32_t /*first*/, std::size_t /*count*/,
                      std::uint64_t* /*mask*/) const {
    return false;
  }
  /// As `narrow`, for any condition on one column alone, evaluated once per entry of the unit's
  /// own dictionary. The condition must outlive the use of the unit, which recognises it by its
  /// address.
  virtual bool narrow_by_entries(const BoundExpr& /*condition*/, std::uint32_t /*column*/,
                                 std::uint32_t /*slots*/, std::uint32_t /*first*/,
                                 std::size_t /*count*/, std::uint64_t* /*mask*/) const {
    return false;
  }

  /// Sum and count of a column's values, and the least and the greatest value, NULL if there is
  /// none, over the rows whose bits are set (no mask: all), without reading values one by one.
  /// False: it cannot.
  virtual bool add_up(std::uint32_t /*column*/, std::uint32_t /*first*/, std::size_t /*count*/,
                      const std::uint64_t* /*mask*/, Totals& /*totals*/) const {
    return false;
  }
  virtual bool extremes(std::uint32_t /*column*/, std::uint32_t /*first*/, std::size_t /*count*/,
                        const std::uint64_t* /*mask*/, Value& /*least*/,
                        Value& /*greatest*/) const {
    return false;
  }
  /// Roughly the bounds of a column of integers; a few values may lie outside. False: it has no
  /// values, or nothing is known about them.
  virtual bool likely_extremes(std::uint32_t /*column*/, Value& /*least*/,
                               Value& /*greatest*/) const {
    return false;
  }
};

}  // namespace flugs::query
