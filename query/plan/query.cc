#include "flugs/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "base/check.h"
#include "engine/database/transaction_access.h"
#include "query/operators/query_node.h"
#include "query/plan/planner.h"
#include "query/plan/query_run.h"
#include "query/plan/result_data.h"
#include "query/stream/batch_sink.h"

namespace flugs::query {

using Step = QueryNode::Step;

namespace {

// Makes every step.
std::shared_ptr<QueryNode> step(Step kind, const Query* input, const Query* right = nullptr) {
  auto node = std::make_shared<QueryNode>();
  node->step = kind;
  for (const Query* of : {input, right}) {
    if (of == nullptr) continue;
    if (of->node() == nullptr) {
      node->error = kQueryMovedFrom;
      continue;
    }
    if (node->error.empty()) node->error = of->node()->error;
    node->steps += of->node()->steps;
  }
  if (node->error.empty() && node->steps > QueryNode::kStepsMax)
    node->error = fmt::format(
        "a query of {} steps, at most {} are allowed: run a part of it, and continue from its "
        "result with Query::of",
        node->steps, QueryNode::kStepsMax);
  if (node->error.empty()) {
    if (input != nullptr) node->input = input->node();
    if (right != nullptr) node->right = right->node();
  } else {
    node->steps = 1;
  }
  FLUGS_CHECK(node->steps >= 1 && node->steps <= QueryNode::kStepsMax);
  return node;
}

std::shared_ptr<QueryNode> join_of(JoinKind kind, const Query& left, const Query& right,
                                   std::vector<JoinKey> on, const Expr& also) {
  auto node = step(Step::kJoin, &left, &right);
  node->join = kind;
  node->join_keys = std::move(on);
  node->condition = also;
  return node;
}

}  // namespace

Query Query::table(std::string name) {
  auto node = step(Step::kTable, nullptr);
  node->text = std::move(name);
  return Query(std::move(node));
}

Query Query::of(const QueryResult& result) {
  auto node = step(Step::kResult, nullptr);
  node->result = result.data();
  if (node->result == nullptr) node->error = kResultMovedFrom;
  return Query(std::move(node));
}

Query Query::where(const Expr& condition) const {
  auto node = step(Step::kWhere, this);
  node->condition = condition;
  return Query(std::move(node));
}

Query Query::select(std::vector<Item> outputs) const {
  auto node = step(Step::kSelect, this);
  node->items = std::move(outputs);
  return Query(std::move(node));
}

Query Query::as(const std::string& prefix) const {
  auto node = step(Step::kRename, this);
  node->text = prefix;
  return Query(std::move(node));
}

Query Query::join(const Query& right, std::vector<JoinKey> on, const Expr& also) const {
  return Query(join_of(JoinKind::kInner, *this, right, std::move(on), also));
}
Query Query::left_join(const Query& right, std::vector<JoinKey> on, const Expr& also) const {
  return Query(join_of(JoinKind::kLeft, *this, right, std::move(on), also));
}
Query Query::semi_join(const Query& right, std::vector<JoinKey> on, const Expr& also) const {
  return Query(join_of(JoinKind::kSemi, *this, right, std::move(on), also));
}
Query Query::anti_join(const Query& right, std::vector<JoinKey> on, const Expr& also) const {
  return Query(join_of(JoinKind::kAnti, *this, right, std::move(on), also));
}

Query Query::group_by(std::vector<Item> keys, std::vector<Aggregate> aggregates) const {
  auto node = step(Step::kGroupBy, this);
  node->items = std::move(keys);
  node->aggregates = std::move(aggregates);
  return Query(std::move(node));
}

Query Query::distinct() const { return Query(step(Step::kDistinct, this)); }

Query Query::order_by(std::vector<SortKey> keys) const {
  auto node = step(Step::kOrderBy, this);
  node->sort_keys = std::move(keys);
  return Query(std::move(node));
}

Query Query::limit(std::uint64_t rows, std::uint64_t offset) const {
  auto node = step(Step::kLimit, this);
  node->limit = rows;
  node->offset = offset;
  return Query(std::move(node));
}

Result<QueryResult> Query::run(const Transaction& transaction, const RunOptions& options) const {
  const auto begin = std::chrono::steady_clock::now();
  const engine::Call call(engine::TransactionAccess::context(transaction));
  if (Status s = check_run(node_.get(), transaction, options); !s.ok()) return s;
  RunContext context(node_, transaction, options, thread_count(options));
  Result<QueryResult> result = guarded([&] {
    const engine::Visit visiting(*engine::TransactionAccess::context(transaction));
    Planner planner(context);
    const std::vector<std::string> names = planner.names(*node_);
    Pipeline pipeline = planner.open();
    BatchSink sink(context, pipeline.schema, names);
    pipeline.run(context, sink);
    sink.close_all();
    std::shared_ptr<ResultData> data = make_result(context, sink, pipeline.source->is_ordered());
    FLUGS_CHECK(data->columns.size() == names.size());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    data->statistics = statistics_of(context, seconds.count());
    data->explain = to_text(*pipeline.explain) + summary(data->statistics);
    return QueryResult(std::move(data));
  });
  // Cut short because the transaction must end: no part of the query runs any more, so now it can
  // end.
  if (result.code() == StatusCode::kCancelled)
    if (Status s = engine::TransactionAccess::check(transaction); !s.ok()) return s;
  return result;
}

Result<std::string> Query::explain(const Transaction& transaction,
                                   const RunOptions& options) const {
  const engine::Call call(engine::TransactionAccess::context(transaction));
  if (Status s = check_run(node_.get(), transaction, options); !s.ok()) return s;
  RunContext context(node_, transaction, options, thread_count(options));
  context.is_dry = true;
  return guarded([&] {
    Planner planner(context);
    static_cast<void>(planner.names(*node_));
    return to_text(*planner.open().explain);
  });
}

}  // namespace flugs::query
