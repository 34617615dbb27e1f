#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "columns/main/main_column.h"
#include "query/scan/scan_unit.h"

namespace flugs::query {

/// A row group of main: immutable columns, each packed separately. Positions are places in the
/// columns. Conditions on ranges are tested on packed codes. Other conditions are tested once per
/// entry, if the column has a dictionary of the group's own. Each of the group's codes is
/// translated once, when it occurs, to a code of the query's domain.
class MainScanUnit : public ScanUnit {
 public:
  /// The rows that the transaction sees, by their places. Thread-safety: any thread.
  class Rows {
   public:
    virtual ~Rows() = default;
    /// As ScanUnit::visible.
    virtual std::size_t visible(std::uint32_t first, std::size_t count, std::uint64_t* mask) = 0;
    /// As ScanUnit::seen.
    virtual SeenMask seen() noexcept { return {}; }
    /// The rows with the least and the greatest value of a column, kept from query to query; null:
    /// not kept.
    virtual columns::ExtremePlaces* extreme_places(std::uint32_t /*column*/) const noexcept {
      return nullptr;
    }
    /// For each code of a column, as columns::KeptCodes has them; null: not kept.
    virtual std::atomic<std::uint32_t>* kept_codes(std::uint32_t /*column*/) const {
      return nullptr;
    }
    /// The id of the row at a place.
    virtual std::uint32_t id(std::uint32_t place) const noexcept = 0;
    /// As ScanUnit::sees_all.
    virtual bool are_all_visible() const noexcept = 0;
    /// As ScanUnit::entries_read.
    virtual std::uint64_t entries_read() const noexcept = 0;
  };

  /// `columns` in the order of the table's `schema`, each of `row_count` rows; all outlive the
  /// unit.
  MainScanUnit(std::string table, const Schema& schema,
               std::vector<const columns::MainColumn*> columns, std::uint32_t row_count,
               std::unique_ptr<Rows> rows);

  std::uint32_t row_count() const noexcept override { return row_count_; }
  std::uint32_t block_rows() const noexcept override { return kBlockRowsMax; }
  std::size_t visible(std::uint32_t first, std::size_t count,
                      std::uint64_t* mask) const noexcept override {
    return rows_->visible(first, count, mask);
  }
  bool answers_whole() const noexcept override { return true; }
  SeenMask seen() const noexcept override { return rows_->seen(); }
  bool sees_all() const noexcept override { return rows_->are_all_visible(); }
  std::uint64_t entries_read() const noexcept override { return rows_->entries_read(); }
  bool may_be_null(std::uint32_t column) const noexcept override {
    return columns_[column]->has_nulls();
  }
  std::span<const std::byte> memory(std::uint32_t column) const noexcept override {
    return columns_[column]->parts();
  }
  const columns::MainColumn* packed(std::uint32_t column) const noexcept override {
    return columns_[column];
  }
  std::uint32_t domain_code(std::uint32_t column, std::uint64_t entry) const override;
  ColumnView values(std::uint32_t column, const RowSelection& rows, Vec& out,
                    columns::TextScratch* scratch) const override;
  ColumnView codes(std::uint32_t column, const RowSelection& rows, Vec& out) const override;
  ColumnView row_ids(const RowSelection& rows, Vec& out) const override {
    std::int64_t* ids = out.ints(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ids[i] = rows_->id(rows.place(i));
    return out.view(false);
  }
  bool likely_extremes(std::uint32_t column, Value& least, Value& greatest) const override {
    least = columns_[column]->min();
    greatest = columns_[column]->max();
    return !least.is_null();
  }
  ScanUnitRange range_of(const RangeCondition& condition) const override {
    return {&condition, codes_of(condition)};
  }
  Reach reach(const ScanUnitRange& range) const override;
  bool narrow(const ScanUnitRange& range, std::uint32_t first, std::size_t count,
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
  using Translation = std::atomic<std::uint32_t>*;
  /// A translation that the group does not keep.
  struct OwnTranslation {
    std::once_flag once;
    std::vector<std::atomic<std::uint32_t>> codes;
  };
  /// The codes of the group for which a condition holds.
  struct Wanted {
    bool by_value = false;
    std::vector<std::uint64_t> bits;
  };

  /// The domain's code of a code of the group.
  [[gnu::always_inline]] std::uint32_t translated(std::uint32_t column, Translation translation,
                                                  std::uint64_t code) const {
    const std::uint32_t known = translation[code].load(std::memory_order_relaxed);
    return __builtin_expect(known != 0, 1) ? known - 1 : look_up(column, translation, code);
  }
  Translation translation_of(std::uint32_t column) const;
  std::uint32_t look_up(std::uint32_t column, Translation translation, std::uint64_t code) const;
  std::uint32_t code_of_value(std::uint32_t column, const Value& value) const;
  bool sees_extremes(std::uint32_t column, const std::uint64_t* mask) const;
  columns::MainRange codes_of(const RangeCondition& range) const;
  ColumnView codes_by_value(std::uint32_t column, const RowSelection& rows, Vec& out) const;
  const Wanted& wanted(const BoundExpr& condition, std::uint32_t column, std::uint32_t slots) const;
  void evaluate_entries(const BoundExpr& condition, std::uint32_t column, std::uint32_t slots,
                        Wanted& wanted) const;

  std::string table_;
  const Schema& schema_;
  std::vector<const columns::MainColumn*> columns_;
  std::uint32_t row_count_;
  std::unique_ptr<Rows> rows_;
  std::unique_ptr<OwnTranslation[]> own_translations_;  // one per column
  mutable std::mutex wanted_mutex_;                     // protects wanted_; a leaf
  mutable std::unordered_map<const BoundExpr*, std::unique_ptr<Wanted>> wanted_;
};

}  // namespace flugs::query
