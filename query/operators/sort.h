#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/operators/row_codec.h"
#include "query/operators/spill_file.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Sorts rows. With a bound, keeps only the rows that it needs for the first ones. Rows that take
/// more than a quarter of the query's budget are written to temporary files as sorted runs, and the
/// runs are merged when they are read.
class SortSink : public Sink {
 public:
  /// `rows_max`: how many of the first rows are wanted.
  SortSink(RunContext& context, const Schema& input, const std::vector<SortKey>& keys,
           std::optional<std::uint64_t> rows_max, ExplainPtr explain);
  void push(const Batch& batch, std::uint32_t worker) override;
  std::optional<FirstRows> first_rows() const override;
  std::optional<LastWanted> last_wanted() const noexcept override;
  /// Call after the last row. The source of the sorted rows; it keeps the sink for as long as it
  /// needs it, but nothing of the sink's input.
  static std::unique_ptr<Source> finish(std::shared_ptr<SortSink> sink);

 private:
  class RunsSource;  // sort_runs.cc
  struct Run {
    std::uint64_t offset;
    std::uint64_t rows;
  };
  struct Key {
    BoundPtr expr;
    bool descending;
  };
  struct Local {
    Local(const SortSink& sink);
    Evaluator evaluator;
    Rows rows;
    Charge charge;
    Batch batch;
    std::vector<std::uint32_t> chosen;
    std::vector<Vec> chosen_columns;
    Batch chosen_batch;
    // The first key of the worst kept row: rows behind it are not wanted.
    bool has_bound = false;
    std::int64_t bound = 0;
    bool bound_is_null = false;
    std::uint64_t counted_bytes = 0;  // of the charge, in held_bytes_
    std::unique_ptr<SpillFile> file;  // null: no rows had to be written
    std::vector<Run> runs;
  };
  struct Order;
  struct Prefixed;  // a row to be sorted, with a number by which most rows can be told apart

  Rows sort_held();
  std::uint64_t held_bytes_max() const noexcept;
  void limit_memory(Local& local);
  void recount(Local& local) noexcept;
  void spill(Local& local);
  bool is_before(const std::uint64_t* a, const std::uint64_t* b) const noexcept;
  std::vector<std::uint32_t> sorted(Rows& rows, std::size_t wanted) const;
  void prune(Local& local);
  void publish_bound(std::int64_t bound) noexcept;
  bool is_beyond(const Local& local, ColumnView key, std::size_t i) const noexcept;
  const Batch& admitted(Local& local) const;
  Rows picked(const Rows& rows, const std::vector<std::uint32_t>& order, Charge& charge,
              std::size_t columns) const;

  RunContext& context_;
  Schema schema_;
  Schema extended_;  // with the keys behind the columns
  RowCodec codec_;   // of records of runs; made when extended_ is complete
  Binder binder_;
  std::vector<Key> keys_;
  std::optional<std::uint64_t> rows_max_;
  std::vector<std::unique_ptr<Local>> locals_;
  ExplainPtr explain_;
  // The best of the workers' bounds. The flag is stored after the bound's first value, and loaded
  // before it (publish_bound, last_wanted); an old bound lets unneeded rows pass.
  std::atomic<std::int64_t> bound_{0};
  std::atomic<bool> has_bound_{false};
  std::atomic<std::uint64_t> held_bytes_{0};  // of all workers' rows
};

// Orders of two values: negative, 0 or positive.
inline int compare_ints(std::int64_t a, std::int64_t b) noexcept {
  return a < b ? -1 : a > b ? 1 : 0;
}
inline int compare_reals(double a, double b) noexcept {
  if (a < b) return -1;
  if (a > b) return 1;
  return (a != a ? 1 : 0) - (b != b ? 1 : 0);  // NaN last
}

/// Passes a number of rows on, in no particular order unless one worker brings them.
class LimitStage : public Stage {
 public:
  LimitStage(const Schema& schema, std::uint64_t limit, std::uint64_t offset);
  void push(const Batch& batch, std::uint32_t worker) override;
  bool is_satisfied() const noexcept override {
    return taken_.load(std::memory_order_relaxed) >= end_ || Stage::is_satisfied();
  }

 private:
  std::uint64_t offset_;
  std::uint64_t end_;
  std::vector<Form> forms_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace flugs::query
