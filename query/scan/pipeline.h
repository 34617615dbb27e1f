#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "flugs/function_ref.h"
#include "query/scan/scan_unit.h"
#include "query/vectors/rows.h"
#include "query/vectors/run_context.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// The rows that a sink wants: the first ones by one of the columns of its batches, with NULL first
/// in ascending order. Only integers in int lanes.
struct FirstRows {
  std::uint32_t column = 0;
  bool descending = false;
};
/// The last value that is still wanted.
struct LastWanted {
  std::int64_t value = 0;
  bool is_excluded = false;
};

/// Takes batches from many workers; the calls of each worker come one after the other. The data
/// that a batch views may be gone after the call.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void push(const Batch& batch, std::uint32_t worker) = 0;
  /// Offers `selected` rows of a unit, those whose bits are set (no mask: all), before any
  /// column of them is read: `columns` says which of the table's columns would be the batch's.
  /// True: taken.
  virtual bool push_masked(const ScanUnit& /*unit*/, const std::vector<std::uint32_t>& /*columns*/,
                           std::uint32_t /*first*/, std::size_t /*count*/,
                           const std::uint64_t* /*mask*/, std::size_t /*selected*/,
                           std::uint32_t /*worker*/) {
    return false;
  }
  /// Whether push_masked should get all rows of a unit at once, if they are selected.
  virtual bool takes_units() const noexcept { return false; }
  /// Whether the header of a unit has all that the sink wants, if all rows of the unit are
  /// wanted.
  virtual bool takes_headers() const noexcept { return false; }
  /// Row positions that a worker should take at a time where no filter leaves rows out, if that is
  /// fewer than the source would take. A multiple of kBatchRows.
  virtual std::uint32_t morsel_rows_max() const noexcept {
    return std::numeric_limits<std::uint32_t>::max();
  }
  virtual std::optional<FirstRows> first_rows() const { return std::nullopt; }
  /// nullopt as long as every row is wanted. Any worker.
  virtual std::optional<LastWanted> last_wanted() const noexcept { return std::nullopt; }
  /// True when no more rows are wanted: sources may stop. Any worker.
  virtual bool is_satisfied() const noexcept { return false; }
  /// True if `push` copies each text that it keeps.
  virtual bool copies_texts() const noexcept { return false; }
};

/// A sink that passes batches on to the next one.
class Stage : public Sink {
 public:
  void set_next(Sink& next) noexcept { next_ = &next; }
  /// Tells the stage that texts which it computes need to live only until its next batch.
  virtual void let_texts_go() noexcept {}
  bool is_satisfied() const noexcept override { return next().is_satisfied(); }
  /// Adds figures to the explanation.
  virtual void finish() {}
  /// The input's column that is passed on as a column of the output; nullopt if the output is
  /// computed, or if rows do not come out as they go in.
  virtual std::optional<std::uint32_t> input_column(std::uint32_t /*output*/) const {
    return std::nullopt;
  }
  std::optional<FirstRows> first_rows() const override;
  std::optional<LastWanted> last_wanted() const noexcept override { return next().last_wanted(); }

 protected:
  Sink& next() const noexcept {
    FLUGS_DCHECK(next_ != nullptr);
    return *next_;
  }

 private:
  Sink* next_ = nullptr;
};

/// A source of batches, in morsels that workers take one by one.
class Source {
 public:
  virtual ~Source() = default;
  /// Called first, with the sink that morsels will run with.
  virtual void begin(const Sink& /*sink*/) {}
  virtual std::size_t morsel_count() const = 0;
  /// More workers than that take longer to wake than they save.
  virtual std::size_t workers_max() const noexcept { return morsel_count(); }
  virtual void run(std::size_t morsel, std::uint32_t worker, Sink& sink) = 0;
  /// Whether one worker must take the rows in the order of morsels.
  virtual bool is_ordered() const noexcept { return false; }
  /// Roughly the range of a column's payloads, over rows about which something is known; nullopt if
  /// there are none, or if the column is not one of integers.
  virtual std::optional<PayloadRange> likely_range(std::uint32_t /*column*/) const {
    return std::nullopt;
  }
  /// Whether the source can drop rows by the keys of a join in this column.
  virtual bool takes_keys(std::uint32_t /*column*/) const { return false; }
  /// Drops rows whose value in `column`, which takes keys, is none of these. Called before `begin`.
  virtual void add_keys(std::uint32_t column, std::shared_ptr<const KeyFilter> keys);
  /// Adds figures to the explanation.
  virtual void finish() {}
  /// All of its rows, if they are held; else null.
  virtual std::shared_ptr<const Rows> held_rows() const { return nullptr; }
};

/// A source and the stages behind it: the part of a query that runs without holding rows.
struct Pipeline {
  std::unique_ptr<Source> source;
  std::vector<std::unique_ptr<Stage>> stages;
  Schema schema;  ///< schema of the rows that come out
  ExplainPtr explain;

  void add(std::unique_ptr<Stage> stage);
  /// Runs everything through to `sink`, in parallel.
  void run(RunContext& context, Sink& sink);
};

/// A pipeline on its way to a sink, in as many steps as the caller likes.
///
/// Thread-safety: one thread at a time, that of the query; `run_one`: several, each with a worker
/// of its own, and then no `advance`.
class PipelineRun {
 public:
  /// All three outlive it.
  PipelineRun(RunContext& context, Pipeline& pipeline, Sink& sink);

  /// Lets the workers take morsels until `is_enough`, which any worker asks, or none is left.
  /// False: none is left, or the sink wants none. Fails as the source, the stages and the sink do.
  bool advance(FunctionRef<bool()> is_enough);
  /// Runs one morsel in this thread. False: none is left, the sink wants none, or another worker
  /// has failed. Fails as `advance`.
  bool run_one(std::uint32_t worker);
  /// Adds figures to the explanation. Once, after the last `advance`.
  void finish();

 private:
  void work(std::uint32_t worker, FunctionRef<bool()> is_enough);

  RunContext& context_;
  Pipeline& pipeline_;
  Sink& first_;
  std::size_t morsels_;
  std::uint32_t workers_;
  const bool tells_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> has_failed_{false};
  std::chrono::steady_clock::duration spent_{};
};

/// A source of held rows.
class RowsSource : public Source {
 public:
  RowsSource(RunContext& context, std::shared_ptr<const Rows> rows);
  std::size_t morsel_count() const override { return morsels_.size(); }
  void run(std::size_t morsel, std::uint32_t worker, Sink& sink) override;
  bool is_ordered() const noexcept override { return rows_->is_ordered; }
  std::shared_ptr<const Rows> held_rows() const override { return rows_; }

 private:
  struct Morsel {
    std::size_t part;
    std::size_t first;
    std::size_t rows;
  };
  RunContext& context_;
  std::shared_ptr<const Rows> rows_;
  std::vector<Morsel> morsels_;
};

/// Holds every row that it gets.
class RowsSink : public Sink {
 public:
  /// `bytes_max`: it is satisfied with rows of that many bytes, and also if they need more than
  /// half of the memory that is left; it then wants no more rows, and lacks some.
  RowsSink(RunContext& context, const Schema& schema, const std::string& owner,
           std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());
  void push(const Batch& batch, std::uint32_t worker) override;
  bool is_satisfied() const noexcept override { return is_full_.load(std::memory_order_relaxed); }
  Rows finish();

 private:
  struct Local {
    Rows rows;
    Charge charge;
  };
  bool is_too_much(const Batch& batch);

  Schema schema_;
  std::vector<Local> locals_;  // one per worker
  const MemoryBudget& budget_;
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_{0};  // counted if there is a limit
  std::atomic<bool> is_full_{false};
};

}  // namespace flugs::query
