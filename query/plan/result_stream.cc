// Rows that the user pulls in batches: the public side of a StreamState.

#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"
#include "flugs/query.h"
#include "flugs/stream.h"
#include "query/operators/query_node.h"
#include "query/plan/query_run.h"
#include "query/plan/stream_state.h"

namespace flugs::query {

Result<ResultStream> Query::stream(const Transaction& transaction,
                                   const RunOptions& options) const {
  engine::TransactionContext* context = engine::TransactionAccess::context(transaction);
  const engine::Call call(context);
  if (Status s = check_run(node_.get(), transaction, options); !s.ok()) return s;
  Result<std::shared_ptr<StreamState>> state = guarded([&] {
    const engine::Visit visiting(*context);
    return std::make_shared<StreamState>(node_, transaction, options);
  });
  if (state.code() == StatusCode::kCancelled)
    if (Status s = engine::TransactionAccess::check(transaction); !s.ok()) return s;
  if (!state.ok()) return state.status();
  context->walks.add(*state);
  return ResultStream(*std::move(state));
}

ResultStream::ResultStream(std::shared_ptr<StreamState> state) noexcept
    : state_(std::move(state)) {}
ResultStream::ResultStream(ResultStream&&) noexcept = default;
ResultStream& ResultStream::operator=(ResultStream&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->abandon();
  state_ = std::move(other.state_);
  batch_ = std::move(other.batch_);
  status_ = std::move(other.status_);
  is_finished_ = other.is_finished_;
  return *this;
}
ResultStream::~ResultStream() {
  if (state_ != nullptr) state_->abandon();
}

const std::vector<ResultColumn>& ResultStream::columns() const noexcept {
  return state_->sink().columns();
}
bool ResultStream::has_dictionary(std::size_t column) const noexcept {
  return column < columns().size() && state_->sink().has_dictionary(column);
}

const StreamBatch* ResultStream::finish(Status why) {
  FLUGS_CHECK(!is_finished_);
  status_ = std::move(why);
  batch_ = StreamBatch();
  is_finished_ = true;
  state_->abandon();
  return nullptr;
}

const StreamBatch* ResultStream::next() {
  if (is_finished_) return nullptr;
  if (state_->is_over())
    return finish(Status(StatusCode::kInvalidArgument,
                         "the transaction of this stream has ended, or has undone writes from "
                         "before the stream began"));
  engine::TransactionContext& context = state_->transaction();
  const engine::Call call(&context);
  const auto cancelled = [&] {
    return finish(state_->database().transaction_manager().end_as_asked(context));
  };
  if (context.ending.is_to_end()) return cancelled();
  Result<std::optional<ReadyBatch>> batch = guarded([&] {
    const engine::Visit visiting(context);
    return state_->next();
  });
  if (batch.code() == StatusCode::kCancelled && context.ending.is_to_end()) return cancelled();
  if (!batch.ok()) return finish(batch.status());
  if (!batch->has_value()) return finish({});
  batch_ = StreamBatch((*batch)->data);
  return &batch_;
}

QueryStatistics ResultStream::statistics() const noexcept { return state_->statistics(); }
std::string ResultStream::explain() const { return state_->explain(); }

}  // namespace flugs::query
