#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "columns/main_column.h"
#include "query/segment.h"

namespace flugs::query {

/// A row group of main: immutable columns, each packed by itself. Positions are places in the
/// columns. Conditions on ranges are tested on packed codes; others once per entry, where a column
/// has a dictionary of the group's own. Codes of the query's domain are looked up once per code of
/// the group that is met.
class MainSegment : public Segment {
 public:
  /// As Segment::visible, for places.
  using Visible = std::function<std::size_t(std::uint32_t, std::size_t, std::uint64_t*)>;

  /// `columns` in the order of the table's `schema`, each of `rows` rows; all outlive the segment.
  /// `sees_all`: see Segment.
  MainSegment(std::string table, const Schema& schema,
              std::vector<const columns::MainColumn*> columns, std::uint32_t rows, Visible visible,
              std::function<bool()> sees_all);

  std::uint32_t row_count() const noexcept override { return rows_; }
  std::uint32_t block_rows() const noexcept override { return kBlockRowsMax; }
  std::size_t visible(std::uint32_t first, std::size_t count,
                      std::uint64_t* mask) const noexcept override {
    return visible_(first, count, mask);
  }
  bool sees_all() const noexcept override { return sees_all_(); }
  bool may_be_null(std::uint32_t column) const noexcept override {
    return columns_[column]->has_nulls();
  }
  const columns::MainColumn* packed(std::uint32_t column) const noexcept override {
    return columns_[column];
  }
  std::uint32_t domain_code(std::uint32_t column, const Value& value) const override;
  ColumnView values(std::uint32_t column, const RowSelection& rows, Vec& out) const override;
  ColumnView codes(std::uint32_t column, const RowSelection& rows, Vec& out) const override;
  bool likely_extremes(std::uint32_t column, Value& least, Value& greatest) const override {
    least = columns_[column]->min();
    greatest = columns_[column]->max();
    return !least.is_null();
  }
  Reach reach(const RangeCondition& range) const override;
  bool narrow(const RangeCondition& range, std::uint32_t first, std::size_t count,
              std::uint64_t* mask) const override;
  bool narrow_by_entries(const BoundExpr& condition, std::uint32_t column, std::uint32_t slots,
                         std::uint32_t first, std::size_t count,
                         std::uint64_t* mask) const override;
  bool add_up(std::uint32_t column, std::uint32_t first, std::size_t count,
              const std::uint64_t* mask, Totals& totals) const override;
  bool extremes(std::uint32_t column, std::uint32_t first, std::size_t count,
                const std::uint64_t* mask, Value& least, Value& greatest) const override;

 private:
  /// For each code of the group the domain's code + 1; 0: not looked up yet.
  struct Translation {
    std::once_flag once;
    std::vector<std::atomic<std::uint32_t>> codes;
  };
  /// For which codes of the group a condition holds.
  struct Wanted {
    bool by_value = false;
    std::vector<std::uint64_t> bits;
  };

  columns::MainRange range_of(const RangeCondition& range) const;
  ColumnView codes_by_value(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  const Wanted& wanted(const BoundExpr& condition, std::uint32_t column, std::uint32_t slots) const;
  void evaluate_entries(const BoundExpr& condition, std::uint32_t column, std::uint32_t slots,
                        Wanted& wanted) const;

  std::string table_;
  const Schema& schema_;
  std::vector<const columns::MainColumn*> columns_;
  std::uint32_t rows_;
  Visible visible_;
  std::function<bool()> sees_all_;
  std::unique_ptr<Translation[]> translations_;  // one per column
  mutable std::mutex wanted_mutex_;              // protects wanted_; a leaf
  mutable std::unordered_map<const BoundExpr*, std::unique_ptr<Wanted>> wanted_;
};

}  // namespace flugs::query
