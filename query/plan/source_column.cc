#include "query/plan/source_column.h"

#include <algorithm>
#include <vector>

#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/planner.h"

namespace flugs::query {

using Step = QueryNode::Step;

SourceColumn source_of(const Planner& planner, const QueryNode& node, const std::string& name) {
  switch (node.step) {
    case Step::kTable:
    case Step::kShared:
      return {&node, name};
    case Step::kWhere:
    case Step::kDistinct:
    case Step::kOrderBy:
      return source_of(planner, *node.input, name);
    case Step::kRename:
      return source_of(planner, *node.input, name.substr(node.text.size() + 1));
    case Step::kSelect:
    case Step::kGroupBy:
      for (const Item& item : node.items)
        if (output_name(item.expr()) == name)
          if (const std::string* below = column_name(item.expr()); below != nullptr)
            return source_of(planner, *node.input, *below);
      return {};
    case Step::kJoin: {
      const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
      if (!pairs) return source_of(planner, *node.input, name);
      // The right side is asked: the left one may be a long chain of joins.
      const std::vector<std::string> right = planner.names(*node.right);
      if (std::find(right.begin(), right.end(), name) == right.end())
        return source_of(planner, *node.input, name);
      return node.join == JoinKind::kInner ? source_of(planner, *node.right, name) : SourceColumn();
    }
    case Step::kResult:
    case Step::kLimit:
      return {};
  }
  return {};
}

std::size_t times_in(const QueryNode& query, const QueryNode& step) {
  std::size_t times = &query == &step ? 1 : 0;
  if (query.input != nullptr) times += times_in(*query.input, step);
  if (query.right != nullptr) times += times_in(*query.right, step);
  return times;
}

}  // namespace flugs::query
