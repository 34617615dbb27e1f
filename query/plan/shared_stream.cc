// Rows that several threads pull at the same time.

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/database/transaction_access.h"
#include "flugs/query.h"
#include "flugs/stream.h"
#include "query/operators/query_node.h"
#include "query/plan/planner.h"
#include "query/plan/query_run.h"
#include "query/scan/pipeline.h"
#include "query/stream/batch_sink.h"
#include "tables/transactions/open_walk.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::query {

/// The work of a SharedStream, as its transaction knows it.
///
/// Thread-safety: `next`: several threads, each with a number of its own.
class SharedState final : public engine::OpenWalk {
 public:
  /// Plans the query, and runs all but its last pipeline. Throws Failure.
  SharedState(std::shared_ptr<const QueryNode> query, const Transaction& transaction,
              const RunOptions& options)
      : OpenWalk(0),
        context_(std::move(query), transaction, options, thread_count(options)),
        pulled_(context_.threads) {
    FLUGS_CHECK(context_.visibility.own_tag() == mvcc::kNoStamp);  // see read_rest
    Planner planner(context_);
    const std::vector<std::string> names = planner.names(*context_.query);
    pipeline_ = planner.open();
    sink_.emplace(context_, pipeline_.schema, names);
    sink_->keep_apart();
    run_.emplace(context_, pipeline_, *sink_);
  }

  const BatchSink& sink() const noexcept { return *sink_; }
  std::uint32_t threads() const noexcept { return context_.threads; }
  Result<const StreamBatch*> next(std::uint32_t thread);
  /// The transaction had no tag when the stream began, so what it writes does not show.
  void read_rest() override {}

 private:
  /// What a thread has pulled last.
  struct Pulled {
    std::shared_ptr<BatchData> data;
    StreamBatch batch;
  };

  RunContext context_;
  Pipeline pipeline_;
  std::optional<BatchSink> sink_;
  std::optional<PipelineRun> run_;
  std::vector<Pulled> pulled_;  // by thread
  std::mutex mutex_;            // protects failure_; a leaf
  Status failure_;              // the first one
};

Result<const StreamBatch*> SharedState::next(std::uint32_t thread) {
  const engine::SharedCall call(*context_.transaction);
  FLUGS_DCHECK(thread < pulled_.size());
  Pulled& pulled = pulled_[thread];
  pulled.batch = StreamBatch();
  if (pulled.data != nullptr) sink_->give_back(thread, std::exchange(pulled.data, nullptr));
  Result<bool> done = guarded([&] {
    if (call.must_end()) throw Failure{context_.transaction->ending.why_ended()};
    context_.check_stop();
    while (sink_->own_rows(thread) < kBatchRows && run_->run_one(thread)) {
    }
    return true;
  });
  const std::lock_guard lock(mutex_);
  if (!done.ok() && failure_.ok()) failure_ = std::move(done).status();
  if (!failure_.ok()) return failure_;
  std::optional<ReadyBatch> batch = sink_->take_own(thread);
  if (!batch) return static_cast<const StreamBatch*>(nullptr);
  pulled.data = std::move(batch->data);
  pulled.batch = StreamBatch(pulled.data);
  return static_cast<const StreamBatch*>(&pulled.batch);
}

Result<SharedStream> Query::share(const Transaction& transaction, const RunOptions& options) const {
  engine::TransactionContext* context = engine::TransactionAccess::context(transaction);
  const engine::Call call(context);
  if (Status s = check_run(node_.get(), transaction, options); !s.ok()) return s;
  if (context->visibility.own_tag() != mvcc::kNoStamp)
    return Status(StatusCode::kInvalidArgument,
                  "a transaction that has written cannot share a stream among threads");
  Result<std::shared_ptr<SharedState>> state = guarded([&] {
    const engine::Visit visiting(*context);
    return std::make_shared<SharedState>(node_, transaction, options);
  });
  if (state.code() == StatusCode::kCancelled)
    if (Status s = engine::TransactionAccess::check(transaction); !s.ok()) return s;
  if (!state.ok()) return state.status();
  context->walks.add(*state);
  return SharedStream(*std::move(state));
}

SharedStream::SharedStream(std::shared_ptr<SharedState> state) noexcept
    : state_(std::move(state)) {}
SharedStream::SharedStream(SharedStream&&) noexcept = default;
SharedStream& SharedStream::operator=(SharedStream&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->abandon();
  state_ = std::move(other.state_);
  return *this;
}
SharedStream::~SharedStream() {
  if (state_ != nullptr) state_->abandon();
}

const std::vector<ResultColumn>& SharedStream::columns() const noexcept {
  return state_->sink().columns();
}
bool SharedStream::has_dictionary(std::size_t column) const noexcept {
  return column < columns().size() && state_->sink().has_dictionary(column);
}

Result<const StreamBatch*> SharedStream::next(std::uint32_t thread) {
  if (thread >= state_->threads())
    return Status(StatusCode::kInvalidArgument,
                  "the stream has " + std::to_string(state_->threads()) + " threads, and this is " +
                      std::to_string(thread));
  if (state_->is_over())
    return Status(StatusCode::kInvalidArgument, "the transaction of this stream has ended");
  return state_->next(thread);
}

}  // namespace flugs::query
