#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "flugs/stream.h"
#include "query/plan/query_run.h"
#include "query/scan/pipeline.h"
#include "query/stream/batch_sink.h"
#include "tables/transactions/open_walk.h"

namespace flugs::query {

/// The work of a ResultStream, as its transaction knows it (OpenWalk).
///
/// Invariant: until the transaction writes, its snapshot and `context_.visibility` say which rows
/// are left. A stream that began before the transaction's first attempt to write has no tag in its
/// visibility, and sees none of its writes. Any other stream has put all its rows into the sink
/// before the next write (`read_rest`).
/// Thread-safety: that of OpenWalk.
class StreamState final : public engine::OpenWalk {
 public:
  /// Plans the query, and runs all but its last pipeline. Throws Failure.
  StreamState(std::shared_ptr<const QueryNode> query, const Transaction& transaction,
              const RunOptions& options);

  engine::TransactionContext& transaction() const noexcept { return *context_.transaction; }
  engine::DatabaseCore& database() const noexcept { return database_; }
  const BatchSink& sink() const noexcept { return *sink_; }
  BatchSink& sink() noexcept { return *sink_; }
  /// The next batch; nothing at the end. Throws Failure.
  std::optional<ReadyBatch> next();
  void read_rest() override;

  QueryStatistics statistics() const noexcept;
  std::string explain() const;

 private:
  void advance();
  void read_all();

  RunContext context_;
  engine::DatabaseCore& database_;
  Pipeline pipeline_;
  std::optional<BatchSink> sink_;
  std::optional<PipelineRun> run_;  // until all rows are in the sink
  bool is_first_step_ = true;
  Status failure_;  // of read_rest
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace flugs::query
