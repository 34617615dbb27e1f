#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/scan/pipeline.h"
#include "query/scan/table_view.h"

namespace flugs::query {

/// A condition directly behind a table, one of those joined by `and`.
struct ScanFilter {
  std::string text;
  BoundPtr by_value;
  BoundPtr on_codes;  ///< optional; a lookup by the codes of `column`
  std::vector<std::uint32_t> columns;
  std::optional<RangeCondition> range;
  std::optional<std::size_t> part_of;    ///< the filter whose range covers both
  bool is_optional = false;              ///< of a join, which tests the rows that are left
  std::atomic<std::uint64_t> passed{0};  ///< rows of an optional filter that met it
  // Statistics, in rows.
  std::atomic<std::uint64_t> tested_on_codes{0};
  std::atomic<std::uint64_t> tested_by_value{0};
  // Tested by the unit.
  std::atomic<std::uint64_t> narrowed{0};  ///< on packed codes
  std::atomic<std::uint64_t> narrowed_in_delta{0};

  /// Whether an optional filter has met so few rows to drop that it is not worth its tests.
  bool drops_few() const noexcept {
    constexpr std::uint64_t kRowsMin = std::uint64_t{1} << 16;
    if (!is_optional) return false;
    const std::uint64_t tested = tested_by_value.load(std::memory_order_relaxed);
    return tested >= kRowsMin && passed.load(std::memory_order_relaxed) > tested / 8 * 7;
  }
};

/// Reads the visible rows of a table that meet the filters: first visibility, then filter by filter
/// on the rows that are left, then the requested columns.
class TableScan : public Source {
 public:
  /// A column of the output: `as_codes` only if the table's schema has a domain for it. kRowIds:
  /// not a column of the table, but the ids of the rows.
  struct Output {
    std::uint32_t column;
    bool as_codes;
  };
  static constexpr std::uint32_t kRowIds = ~std::uint32_t{0};

  TableScan(RunContext& context, std::unique_ptr<TableView> table,
            const std::vector<Expr>& conditions, std::vector<Output> outputs, ExplainPtr explain);
  Schema output_schema() const;

  void begin(const Sink& sink) override;
  std::optional<PayloadRange> likely_range(std::uint32_t column) const override;
  bool takes_keys(std::uint32_t column) const override;
  void add_keys(std::uint32_t column, std::shared_ptr<const KeyFilter> keys) override;
  std::size_t morsel_count() const override { return morsels_.size(); }
  std::size_t workers_max() const noexcept override;
  void run(std::size_t morsel, std::uint32_t worker, Sink& sink) override;
  void finish() override;

 private:
  struct Morsel {
    std::uint32_t unit;
    std::uint32_t first;
    std::uint32_t rows;
  };
  /// A worker's own data.
  struct Local {
    Local(const TableScan& scan);
    Evaluator values;
    Evaluator codes;
    std::vector<std::uint64_t> mask;
    std::vector<std::uint32_t> positions;
    std::vector<std::uint32_t> chosen;
    std::vector<Vec> columns;                 // columns of the table, for filters
    std::vector<columns::TextScratch> texts;  // of these
    std::vector<Vec> outputs;
    Batch batch;  // of the table's columns
    Batch output;
  };

  void add_filter(const Expr& condition);
  void add_bounds(std::uint32_t column, const KeyFilter& keys);
  std::optional<std::size_t> join_ranges(const RangeCondition& range);
  ColumnView read(const Output& output, const ScanUnit& unit, const RowSelection& rows,
                  Vec& out) const;
  void read_ahead(const ScanUnit& unit) const noexcept;
  /// The ranges of the filters in one unit, by filter.
  using Ranges = std::vector<ScanUnitRange>;
  bool find_ranges(const ScanUnit& unit, Ranges& ranges) const;
  bool needs_no_filter(const ScanUnit& unit, const Ranges& ranges) const;
  std::vector<std::uint32_t> best_first() const;
  std::optional<RangeCondition> still_wanted(const ScanUnit& unit, const Sink& sink) const;
  bool run_whole(const ScanUnit& unit, std::uint32_t worker, Sink& sink);
  Local& local_of(std::uint32_t worker);
  void run_block(const ScanUnit& unit, std::uint32_t first, std::size_t count, Local& local,
                 std::uint32_t worker, Sink& sink);
  void run_batch(const ScanUnit& unit, RowSelection rows, std::uint64_t narrowed, Local& local,
                 std::uint32_t worker, Sink& sink);
  std::uint64_t narrow(const ScanUnit& unit, const Ranges& ranges, std::uint32_t first,
                       std::size_t count, std::uint64_t* mask);
  std::size_t filter_rows(ScanFilter& filter, const ScanUnit& unit, RowSelection& rows,
                          Local& local);
  void explain_filters();

  RunContext& context_;
  std::unique_ptr<TableView> table_;
  Schema plain_schema_;  // the table's without domains
  Binder value_binder_;
  Binder code_binder_;
  std::vector<std::unique_ptr<ScanFilter>> filters_;
  std::vector<Output> outputs_;
  std::vector<std::uint32_t> output_columns_;
  bool has_row_ids_ = false;  // then units are not offered to the sink as they are
  std::vector<Morsel> morsels_;
  std::size_t by_header_ = 0;            // the morsels whose unit's header is enough
  std::optional<FirstRows> first_rows_;  // by a column of the table
  std::vector<std::unique_ptr<Local>> locals_;
  std::vector<Ranges> ranges_;  // by worker, in the unit of its morsel
  ExplainPtr explain_;
  std::atomic<std::uint64_t> scanned_{0};
  std::atomic<std::uint64_t> delta_read_{0};  // of them, in the delta
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint64_t> behind_{0};  // of the skipped: behind the rows that the sink has
  std::atomic<std::uint64_t> whole_{0};   // units that the sink took as a whole
  std::atomic<std::uint64_t> visible_{0};
  std::atomic<std::uint64_t> selected_{0};
};

/// The condition as a RangeCondition, if it is one.
std::optional<RangeCondition> range_of(const BoundExpr& condition);
/// The conditions that `and` joins at the top of `condition`, in order.
void split_conjunction(const Expr& condition, std::vector<Expr>& conjuncts);

}  // namespace flugs::query
