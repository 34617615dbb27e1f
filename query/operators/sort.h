#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Sorts rows. With a bound, keeps only the rows that it needs for the first ones.
class SortSink : public Sink {
 public:
  /// `rows_max`: how many of the first rows are wanted.
  SortSink(RunContext& context, const Schema& input, const std::vector<SortKey>& keys,
           std::optional<std::uint64_t> rows_max, ExplainPtr explain);
  void push(const Batch& batch, std::uint32_t worker) override;
  std::optional<FirstRows> first_rows() const override;
  std::optional<LastWanted> last_wanted() const noexcept override;
  Rows finish();

 private:
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
  };
  struct Order;

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
  Binder binder_;
  std::vector<Key> keys_;
  std::optional<std::uint64_t> rows_max_;
  std::vector<std::unique_ptr<Local>> locals_;
  ExplainPtr explain_;
  // The best of the workers' bounds. The flag is stored after the bound's first value, and loaded
  // before it (publish_bound, last_wanted); an old bound lets unneeded rows pass.
  std::atomic<std::int64_t> bound_{0};
  std::atomic<bool> has_bound_{false};
};

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
