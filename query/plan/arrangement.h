#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "flugs/function_ref.h"
#include "query/operators/query_node.h"
#include "query/plan/estimates.h"
#include "query/plan/join_order.h"

namespace flugs::query {

class Planner;

/// Gives a query a form that runs faster and has the same rows and columns (decision 0064):
///   - conditions go down to the tables, past steps that pass their columns on;
///   - chains of inner joins run in the order that Estimates makes look cheapest;
///   - semi and anti joins that drop at least half of the rows go down;
///   - other joins learn which side to hold first, and how many rows to expect.
///
/// Invariants: a condition moves only if it cannot fail. So no expression that can fail sees a row
/// that it would not have seen before. A query that names a missing column, or a column of the
/// wrong side, fails as if it ran as written.
class Arrangement {
 public:
  using NodePtr = std::shared_ptr<const QueryNode>;

  Arrangement(const Planner& planner, Estimates& estimates)
      : planner_(planner), estimates_(estimates) {}

  NodePtr arrange(const NodePtr& node);
  /// Whether a condition above the step would go down below it.
  bool moves_into(const NodePtr& node, const Expr& condition) const;

 private:
  /// Joins that follow each other, with the conditions on their rows.
  struct Chain {
    struct Key {
      JoinKey key;
      std::size_t left = 0;  ///< the input that has the left column
      std::size_t right = 0;
    };
    struct Condition {
      Expr expr;
      std::uint64_t inputs = 0;  ///< a bit for each of which it names a column
    };
    /// A key as a join has it. Inputs `first` to `middle` - 1 are the join's left side, and inputs
    /// `middle` to `end` - 1 its right side.
    struct KeyWritten {
      JoinKey key;
      std::size_t first = 0;
      std::size_t middle = 0;
      std::size_t end = 0;
    };
    /// A condition as the query has it, on columns of the inputs from `first` on.
    struct ConditionWritten {
      Expr expr;
      std::size_t first = 0;
      std::size_t end = 0;
    };
    std::vector<NodePtr> inputs;
    std::unordered_map<std::string, std::size_t> columns;  ///< the input that has each
    std::vector<KeyWritten> keys_written;
    std::vector<ConditionWritten> conditions_written;
    std::vector<Key> keys;
    std::vector<Condition> conditions;  ///< of several inputs
  };
  struct Made {
    NodePtr node;
    std::uint64_t inputs = 0;
  };

  NodePtr arrange_where(const NodePtr& node);
  NodePtr arrange_inputs(const NodePtr& node);
  NodePtr arrange_shared(const NodePtr& node);
  NodePtr arrange_joins(const NodePtr& node, const std::vector<Expr>& conditions);
  std::unique_ptr<JoinTree> gather(const NodePtr& node, Chain& chain) const;
  static bool is_chained(const QueryNode& node);
  bool place_all(Chain& chain) const;
  std::unique_ptr<JoinTree> order(const Chain& chain, std::unique_ptr<JoinTree> written);
  static Made make(const Chain& chain, const JoinTree& tree);

  NodePtr push(const NodePtr& node, const Expr& condition) const;
  NodePtr push_or_wrap(const NodePtr& node, const Expr& condition) const;
  NodePtr push_into_outputs(const NodePtr& node, const Expr& condition) const;
  NodePtr push_into_join(const NodePtr& node, const Expr& condition) const;
  bool has_all(const QueryNode& node, const Expr& condition) const;
  NodePtr push_filter(const NodePtr& join);
  NodePtr push_filter(const NodePtr& below, const NodePtr& join,
                      const std::vector<std::string>& wanted,
                      FunctionRef<bool(const NodePtr&)> is_worth_it) const;

  const Planner& planner_;
  Estimates& estimates_;
  std::unordered_map<NodePtr, NodePtr> shared_;  // arranged
};

}  // namespace flugs::query
