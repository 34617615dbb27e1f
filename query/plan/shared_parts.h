#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "query/operators/query_node.h"
#include "query/plan/arrangement.h"
#include "query/plan/estimates.h"

namespace flugs::query {

class Planner;

/// Finds parts of a query that several of its steps read, and that are worth being computed once
/// (decision 0066): a group by or distinct, conditions on its rows, and joins or first rows in an
/// order that have few rows for what they read. Parts are the same if they are the same step, or
/// written in the same way.
///
/// A part is refused if each of its readers wants some of its rows only, and can say so to the
/// tables below: by a condition on its keys, or by the keys of a join.
class SharedParts {
 public:
  using NodePtr = std::shared_ptr<const QueryNode>;

  /// Parts may have `bytes_max` bytes each, as far as Estimates knows.
  SharedParts(const Planner& planner, Estimates& estimates, std::uint64_t bytes_max)
      : planner_(planner), estimates_(estimates), bytes_max_(bytes_max) {}

  /// The query with a step kShared above each part. All readers of a part have the same step.
  NodePtr mark(const NodePtr& query);
  /// Refuses parts by the form in which the marked query would run. True: it refused none. False:
  /// the query must be marked and arranged again.
  bool are_worth_it(const NodePtr& arranged, const Arrangement& arrangement);

 private:
  struct Part {
    NodePtr node;
    std::size_t readers = 0;
    bool is_refused = false;
    NodePtr marked;  // null: not yet
    bool is_visited = false;
    bool is_read_whole = false;  // by at least one reader
  };

  std::size_t part_of(const NodePtr& node);
  void count(const NodePtr& node);
  NodePtr rewrite(const NodePtr& node);
  bool is_worth_it(const QueryNode& node, const NodePtr& core, double rows);
  bool reads_shared_rows(const Part& part);
  /// `reached`: parts of which the step's reader wants some rows only.
  void visit(const NodePtr& node, const std::vector<std::size_t>& reached,
             const Arrangement& arrangement);
  void visit_join(const QueryNode& node, const std::vector<std::size_t>& reached,
                  const Arrangement& arrangement);

  const Planner& planner_;
  Estimates& estimates_;
  std::uint64_t bytes_max_;
  std::vector<Part> parts_;            // and candidates
  std::vector<std::size_t> numbered_;  // by QueryNode::part, which begins with 1
};

}  // namespace flugs::query
