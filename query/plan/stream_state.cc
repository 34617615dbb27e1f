#include "query/plan/stream_state.h"

#include <utility>

#include "base/check.h"
#include "engine/database/transaction_access.h"
#include "query/plan/planner.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::query {

namespace {

using Clock = std::chrono::steady_clock;

// Batches, or bytes, after which a step ends: some hundred microseconds of work, for which waking
// the workers is worth it. The first step makes one batch.
constexpr std::size_t kStepBatches = 8;
constexpr std::uint64_t kStepBytes = std::uint64_t{4} << 20;
// If rows come slowly, the user gets those that are there after this time.
constexpr std::chrono::milliseconds kStepTime{2};

}  // namespace

StreamState::StreamState(std::shared_ptr<const QueryNode> query, const Transaction& transaction,
                         const RunOptions& options)
    : OpenWalk(engine::TransactionAccess::context(transaction)->writes.size()),
      context_(std::move(query), transaction, options, thread_count(options)),
      database_(engine::TransactionAccess::core(transaction)) {
  const auto begin = Clock::now();
  Planner planner(context_);
  const std::vector<std::string> names = planner.names(*context_.query);
  pipeline_ = planner.open();
  sink_.emplace(context_, pipeline_.schema, names);
  run_.emplace(context_, pipeline_, *sink_);
  spent_ = Clock::now() - begin;
}

// Makes batches; at the end of the rows, of all that are left.
void StreamState::advance() {
  FLUGS_CHECK(run_.has_value());
  const auto begin = Clock::now();
  const std::size_t batches = std::exchange(is_first_step_, false) ? 1 : kStepBatches;
  const auto is_enough = [&] {
    if (sink_->ready_count() >= batches || sink_->ready_bytes() >= kStepBytes) return true;
    return (sink_->ready_count() != 0 || sink_->has_rows()) && Clock::now() - begin >= kStepTime;
  };
  const bool is_left = run_->advance(is_enough);
  if (!is_left || sink_->ready_count() == 0) sink_->close_all();
  if (!is_left) {
    run_->finish();
    run_.reset();
  }
  spent_ += Clock::now() - begin;
}

void StreamState::read_all() {
  FLUGS_CHECK(run_.has_value());
  const auto begin = Clock::now();
  run_->advance([] { return false; });
  sink_->close_all();
  FLUGS_CHECK(!sink_->has_rows());  // no row that is left may show a later write
  run_->finish();
  run_.reset();
  spent_ += Clock::now() - begin;
}

std::optional<ReadyBatch> StreamState::next() {
  if (!failure_.ok()) throw Failure{failure_};
  while (sink_->ready_count() == 0 && run_.has_value()) advance();
  return sink_->take();
}

void StreamState::read_rest() {
  const bool sees_own_writes = context_.visibility.own_tag() != mvcc::kNoStamp;
  if (!sees_own_writes || !run_.has_value() || !failure_.ok()) return;
  const Result<bool> done = guarded([&] {
    read_all();
    return true;
  });
  if (!done.ok()) failure_ = done.status();
}

QueryStatistics StreamState::statistics() const noexcept {
  return statistics_of(context_, std::chrono::duration<double>(spent_).count());
}

std::string StreamState::explain() const {
  return to_text(*pipeline_.explain) + summary(statistics());
}

}  // namespace flugs::query
