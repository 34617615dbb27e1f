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
///   - conditions go down to the tables, past steps that change nothing about them;
///   - chains of inner joins run in the order that Estimates makes look cheapest.
///
/// Invariants: a condition moves only if it cannot fail, so that no step sees a row that it would
/// not have seen before. A query that is wrong keeps its form, and fails as it is written.
class Arrangement {
 public:
  using NodePtr = std::shared_ptr<const QueryNode>;

  Arrangement(const Planner& planner, Estimates& estimates)
      : planner_(planner), estimates_(estimates) {}

  NodePtr arrange(const NodePtr& node);

 private:
  /// Joins that follow each other, with the conditions on their rows.
  struct Chain {
    struct Key {
      JoinKey key;
      std::size_t left = 0;  ///< inputs
      std::size_t right = 0;
    };
    struct Condition {
      Expr expr;
      std::uint64_t inputs = 0;  ///< a bit for each that has one of its columns
    };
    /// A key as a join has it: its left item is of one of the inputs from `first` on, its right
    /// item of one from `middle` on.
    struct KeyWritten {
      JoinKey key;
      std::size_t first = 0;
      std::size_t middle = 0;
      std::size_t end = 0;
    };
    std::vector<NodePtr> inputs;
    std::unordered_map<std::string, std::size_t> columns;  ///< the input that has each
    std::vector<KeyWritten> keys_written;
    std::vector<Expr> conditions_written;
    std::vector<Key> keys;
    std::vector<Condition> conditions;  ///< of several inputs
  };
  struct Made {
    NodePtr node;
    std::uint64_t inputs = 0;
  };

  NodePtr arrange_where(const NodePtr& node);
  NodePtr arrange_inputs(const NodePtr& node);
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
};

}  // namespace flugs::query
