#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/scan/pipeline.h"
#include "query/stream/batch_builder.h"

namespace flugs::query {

/// Makes batches of the rows that a pipeline yields, one batch at a time in each worker. Texts stay
/// codes where they come as codes; numbers become values.
///
/// Thread-safety: `push`, `ready_count`, `ready_bytes`: any worker; `take_own` and `give_back`:
/// that worker; the others: while no worker pushes.
class BatchSink : public Sink {
 public:
  /// `names`: the columns wanted, in this order, out of `schema`, which outlives the sink.
  BatchSink(RunContext& context, const Schema& schema, const std::vector<std::string>& names);

  const std::vector<ResultColumn>& columns() const noexcept { return *result_schema_; }
  bool has_dictionary(std::size_t column) const noexcept {
    return columns_[column].form == Form::kCode;
  }

  /// From now on batches keep integers as Arrow wants them, unless rows have come already.
  void prefer_arrow() noexcept;

  /// From now on each worker has batches of its own, and gives them back. Before the first row.
  void keep_apart() noexcept { is_apart_ = true; }
  /// The rows that the worker has pushed and not yet taken; nothing: none. Only with keep_apart.
  std::optional<ReadyBatch> take_own(std::uint32_t worker);
  std::size_t own_rows(std::uint32_t worker) const noexcept;
  /// A batch of the worker's. Its memory is used again if no other object holds it.
  void give_back(std::uint32_t worker, std::shared_ptr<BatchData> batch);

  void push(const Batch& batch, std::uint32_t worker) override;
  bool push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                   std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                   std::size_t selected, std::uint32_t worker) override;
  std::uint32_t morsel_rows_max() const noexcept override;
  bool copies_texts() const noexcept override { return true; }
  /// Batches that are ready, and the bytes that they take.
  std::size_t ready_count() const noexcept { return ready_count_.load(std::memory_order_relaxed); }
  std::uint64_t ready_bytes() const noexcept {
    return ready_bytes_.load(std::memory_order_relaxed);
  }
  /// Whether `close_all` would make a batch. Only roughly, while workers push.
  bool has_rows() const noexcept { return rows_.load(std::memory_order_relaxed) != 0; }
  /// Makes batches of the rows that the workers have taken so far.
  void close_all();
  /// A batch that is ready; in the order of rows if the source has one.
  std::optional<ReadyBatch> take();

 private:
  struct Local {
    Evaluator evaluator;
    BatchBuilder builder;
    Batch batch;
    std::vector<const columns::MainColumn*> packed;
    std::deque<ReadyBatch> ready;  // with keep_apart
  };

  Local& local_of(std::uint32_t worker);
  void add_ready(ReadyBatch batch);
  void hand_over(Local& local);

  RunContext& context_;
  Binder binder_;
  std::vector<BoundPtr> exprs_;
  std::vector<StreamColumn> columns_;
  std::shared_ptr<const std::vector<ResultColumn>> result_schema_;
  std::vector<std::unique_ptr<Local>> locals_;  // one per worker
  bool is_apart_ = false;
  bool are_numbers_ = true;  // all columns are numbers as the source has them
  std::mutex mutex_;         // protects ready_; a leaf
  std::deque<ReadyBatch> ready_;
  std::atomic<std::size_t> ready_count_{0};
  std::atomic<std::uint64_t> ready_bytes_{0};
  std::atomic<std::uint64_t> rows_{0};  // that are in no ready batch
};

}  // namespace flugs::query
