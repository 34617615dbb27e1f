#include "query/plan/shared_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/planner.h"
#include "query/plan/source_column.h"

namespace flugs::query {

using Step = QueryNode::Step;
using NodePtr = SharedParts::NodePtr;

namespace {

// A join has few rows if its inputs have this many times as many.
constexpr double kTimesRead = 16;
// The keys of a join's held side leave out most of a part if the part reads this many times as many
// rows.
constexpr double kTimesKeys = 2;
// A value, or the view of a text.
constexpr double kBytesOfValue = 16;

bool has_join(const QueryNode& node) {
  return node.step == Step::kJoin || (node.input != nullptr && has_join(*node.input)) ||
         (node.right != nullptr && has_join(*node.right));
}

bool are_same_items(const Item& a, const Item& b) {
  return output_name(a.expr()) == output_name(b.expr()) && are_same(a.expr(), b.expr());
}
bool are_same_aggregates(const Aggregate& a, const Aggregate& b) {
  return a.kind == b.kind && a.q == b.q && output_name(a) == output_name(b) && are_same(a.of, b.of);
}
bool are_same_keys(const JoinKey& a, const JoinKey& b) {
  return are_same(a.left.expr(), b.left.expr()) && are_same(a.right.expr(), b.right.expr());
}
bool are_same_orders(const SortKey& a, const SortKey& b) {
  return a.descending == b.descending && are_same(a.item.expr(), b.item.expr());
}

template <typename List, typename AreSame>
bool are_lists_same(const List& a, const List& b, AreSame are_elements_same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_elements_same);
}

// Whether two steps are written in the same way, with all steps below them. Recursive, as the
// query's own functions are.
bool are_same_steps(const NodePtr& a, const NodePtr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  return a->step == b->step && a->steps == b->steps && a->text == b->text &&
         a->result == b->result && a->join == b->join && a->limit == b->limit &&
         a->offset == b->offset && are_same(a->condition, b->condition) &&
         are_lists_same(a->items, b->items, are_same_items) &&
         are_lists_same(a->aggregates, b->aggregates, are_same_aggregates) &&
         are_lists_same(a->join_keys, b->join_keys, are_same_keys) &&
         are_lists_same(a->sort_keys, b->sort_keys, are_same_orders) &&
         are_same_steps(a->input, b->input) && are_same_steps(a->right, b->right);
}

/// The step below those that pass rows on.
NodePtr core_of(NodePtr node) {
  while (node->step == Step::kWhere || node->step == Step::kSelect || node->step == Step::kRename ||
         node->step == Step::kOrderBy || node->step == Step::kLimit)
    node = node->input;
  return node;
}

bool is_grouped(const QueryNode& node) {
  return node.step == Step::kGroupBy || node.step == Step::kDistinct;
}

/// Whether the step may be a part, whatever its rows are. Projections and sorts are not: they cost
/// each reader little, or less than a sort of all rows, and the part may begin below them.
bool is_candidate(const NodePtr& node) {
  if (is_grouped(*node) || node->step == Step::kJoin) return true;
  if (node->step == Step::kLimit && node->input->step == Step::kOrderBy) return true;
  if (node->step != Step::kWhere && node->step != Step::kLimit) return false;
  const Step core = core_of(node)->step;
  return core == Step::kGroupBy || core == Step::kDistinct || core == Step::kJoin;
}

bool contains(const std::vector<std::size_t>& parts, std::size_t part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

}  // namespace

// --------------------------------------------------------------------------------- the parts

NodePtr SharedParts::mark(const NodePtr& query) {
  if (!has_join(*query)) return query;  // no step is read twice
  for (Part& part : parts_) {
    part.readers = 0;
    part.marked = nullptr;
  }
  numbered_.clear();
  count(query);
  const bool are_any = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.readers > 1 && !part.is_refused;
  });
  return are_any ? rewrite(query) : query;
}

std::size_t SharedParts::part_of(const NodePtr& node) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (are_same_steps(parts_[i].node, node)) return i;
  parts_.emplace_back().node = node;
  return parts_.size() - 1;
}

// Counts the readers of each part: only one of them if the part's own reader is in another part.
void SharedParts::count(const NodePtr& node) {
  if (node->input == nullptr) return;
  if (is_candidate(node)) {
    Part& part = parts_[part_of(node)];
    if (++part.readers == 2 && !part.is_refused) {
      const NodePtr core = core_of(node);
      part.is_refused = !is_worth_it(*node, core, estimates_.rows(node));
    }
    if (part.readers > 1 && !part.is_refused) return;
  }
  count(node->input);
  if (node->right != nullptr) count(node->right);
}

// Groups always have fewer rows than it costs to make them again.
bool SharedParts::is_worth_it(const QueryNode& node, const NodePtr& core, double rows) {
  const auto columns = static_cast<double>(planner_.names(node).size());
  if (rows * columns * kBytesOfValue > static_cast<double>(bytes_max_)) return false;
  return is_grouped(*core) || rows * kTimesRead <= estimates_.rows_read(core);
}

// Conditions and limits on a part cost little: their rows need not be kept beside the part's.
bool SharedParts::reads_shared_rows(const Part& part) {
  if (part.node->step != Step::kWhere && part.node->step != Step::kLimit) return false;
  for (NodePtr node = part.node->input; node->input != nullptr; node = node->input) {
    if (is_candidate(node)) {
      const Part& below = parts_[part_of(node)];
      if (below.readers > 1 && !below.is_refused) return true;
    }
    if (node->step != Step::kWhere && node->step != Step::kSelect && node->step != Step::kRename)
      return false;
  }
  return false;
}

NodePtr SharedParts::rewrite(const NodePtr& node) {
  if (node->input == nullptr) return node;
  if (is_candidate(node)) {
    const std::size_t i = part_of(node);
    const Part& part = parts_[i];
    if (part.readers > 1 && !part.is_refused && !reads_shared_rows(part)) {
      if (part.marked != nullptr) return part.marked;
      const NodePtr first = part.node;
      FLUGS_CHECK(first->input != nullptr);  // no table is a part
      auto made = std::make_shared<QueryNode>();
      made->step = Step::kShared;
      numbered_.push_back(i);
      made->part = numbered_.size();
      made->steps = first->steps;
      made->input = with_inputs(first, rewrite(first->input),
                                first->right == nullptr ? nullptr : rewrite(first->right));
      parts_[i].marked = made;
      return made;
    }
  }
  return with_inputs(node, rewrite(node->input),
                     node->right == nullptr ? nullptr : rewrite(node->right));
}

// ------------------------------------------------------------------------------- the readers

bool SharedParts::are_worth_it(const NodePtr& arranged, const Arrangement& arrangement) {
  for (Part& part : parts_) part.is_visited = part.is_read_whole = false;
  visit(arranged, {}, arrangement);
  bool are_all = true;
  for (Part& part : parts_) {
    if (!part.is_visited || part.is_read_whole) continue;
    part.is_refused = true;
    are_all = false;
  }
  return are_all;
}

void SharedParts::visit(const NodePtr& node, const std::vector<std::size_t>& reached,
                        const Arrangement& arrangement) {
  if (node->step == Step::kShared) {
    FLUGS_CHECK(node->part != 0 && node->part <= numbered_.size());
    Part& part = parts_[numbered_[node->part - 1]];
    part.is_read_whole = part.is_read_whole || !contains(reached, node->part);
    if (std::exchange(part.is_visited, true)) return;
    return visit(node->input, {}, arrangement);
  }
  if (node->step == Step::kJoin) return visit_join(*node, reached, arrangement);
  if (node->input == nullptr) return;
  if (node->step != Step::kWhere) return visit(node->input, reached, arrangement);
  // A condition that could not pass the part stands directly above it.
  std::vector<Expr> conditions;
  NodePtr below = node;
  for (; below->step == Step::kWhere; below = below->input)
    split_conjunction(below->condition, conditions);
  if (below->step != Step::kShared) return visit(below, reached, arrangement);
  NodePtr part = below->input;
  while (part->step == Step::kWhere) part = part->input;
  std::vector<std::size_t> with_part = reached;
  if (std::any_of(conditions.begin(), conditions.end(),
                  [&](const Expr& condition) { return arrangement.moves_into(part, condition); }))
    with_part.push_back(below->part);
  visit(below, with_part, arrangement);
}

// The same side of the join as Planner::open_join lets await the other side's keys.
void SharedParts::visit_join(const QueryNode& node, const std::vector<std::size_t>& reached,
                             const Arrangement& arrangement) {
  FLUGS_CHECK(node.input != nullptr && node.right != nullptr);
  const bool needs_partner = node.join == JoinKind::kInner || node.join == JoinKind::kSemi;
  const bool is_right = node.is_left_first;
  const NodePtr& read = is_right ? node.right : node.input;
  const NodePtr& held = is_right ? node.input : node.right;
  std::vector<std::size_t> of_read = reached;
  if (is_right || needs_partner)
    for (const JoinKey& key : node.join_keys) {
      const std::string* const wanted = column_name((is_right ? key.right : key.left).expr());
      if (wanted == nullptr) continue;
      const SourceColumn from = source_of(planner_, *read, *wanted);
      if (from.step == nullptr || from.step->step != Step::kShared) continue;
      SourceColumn below = from;
      while (below.step != nullptr && below.step->step == Step::kShared)
        below = source_of(planner_, *below.step->input, below.column);
      if (below.step != nullptr && times_in(*read, *from.step) == 1 &&
          estimates_.rows(held) * kTimesKeys <= estimates_.rows_read(from.step->input))
        of_read.push_back(from.step->part);
    }
  visit(node.input, is_right ? reached : of_read, arrangement);
  visit(node.right, is_right ? of_read : reached, arrangement);
}

}  // namespace flugs::query
