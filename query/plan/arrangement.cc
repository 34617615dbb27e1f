#include "query/plan/arrangement.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/planner.h"
#include "query/scan/table_scan.h"

namespace flugs::query {

using Step = QueryNode::Step;
using NodePtr = Arrangement::NodePtr;

namespace {

constexpr std::size_t kBitsOfSet = 64;

NodePtr where(NodePtr input, const Expr& condition) {
  auto made = std::make_shared<QueryNode>();
  made->step = Step::kWhere;
  made->input = std::move(input);
  made->condition = condition;
  return made;
}

NodePtr select(NodePtr input, const std::vector<std::string>& names) {
  auto made = std::make_shared<QueryNode>();
  made->step = Step::kSelect;
  made->input = std::move(input);
  for (const std::string& name : names) made->items.emplace_back(name);
  return made;
}

/// The conditions of a chain of where, in the order in which they run; gives the step below.
NodePtr conditions_of(const NodePtr& node, std::vector<Expr>& conditions) {
  std::vector<const QueryNode*> chain;
  NodePtr below = node;
  for (; below->step == Step::kWhere; below = below->input) chain.push_back(below.get());
  for (auto step = chain.rbegin(); step != chain.rend(); ++step)
    split_conjunction((*step)->condition, conditions);
  return below;
}

bool are_equal(const JoinTree& a, const JoinTree& b) {
  if (a.input != b.input) return false;
  return a.input != JoinTree::kJoin ||
         (are_equal(*a.streamed, *b.streamed) && are_equal(*a.held, *b.held));
}

std::unique_ptr<JoinTree> copy(const JoinTree& tree) {
  auto made = tree.input == JoinTree::kJoin ? JoinTree::join(copy(*tree.streamed), copy(*tree.held))
                                            : JoinTree::of(tree.input);
  made->rows = tree.rows;
  return made;
}

/// The part of a condition that names only columns for which `is_one` holds. Each row that meets
/// the condition meets this part. nullopt: there is no such part.
std::optional<Expr> implied(const Expr& condition,
                            FunctionRef<bool(const std::string& name)> is_one) {
  const ExprNode& node = *condition.node();
  if (node.op == Op::kAnd || node.op == Op::kOr) {
    FLUGS_DCHECK(node.args.size() == 2);
    std::optional<Expr> a = implied(node.args[0], is_one);
    std::optional<Expr> b = implied(node.args[1], is_one);
    if (a && b) return node.op == Op::kAnd ? *a && *b : *a || *b;
    if (node.op == Op::kOr) return std::nullopt;
    return a ? a : b;
  }
  std::vector<std::string> names;
  collect_columns(condition, names);
  if (names.empty() || !std::all_of(names.begin(), names.end(), is_one)) return std::nullopt;
  return condition;
}

void split_disjunction(const Expr& condition, std::vector<Expr>& parts) {
  if (condition.node()->op != Op::kOr) return parts.push_back(condition);
  for (const Expr& arg : condition.node()->args) split_disjunction(arg, parts);
}

/// The conditions that each part of an `or` has, once, and behind them the rest of the `or`.
void factor(const Expr& condition, std::vector<Expr>& out) {
  std::vector<Expr> parts;
  split_disjunction(condition, parts);
  if (parts.size() == 1) return out.push_back(condition);
  std::vector<std::vector<Expr>> all(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) split_conjunction(parts[i], all[i]);
  const std::vector<Expr> first = all.front();
  const std::size_t before = out.size();
  for (const Expr& one : first) {
    const auto is_it = [&](const Expr& other) { return are_same(one, other); };
    if (!std::all_of(all.begin(), all.end(), [&](const std::vector<Expr>& part) {
          return std::any_of(part.begin(), part.end(), is_it);
        }))
      continue;
    out.push_back(one);
    for (std::vector<Expr>& part : all) std::erase_if(part, is_it);
  }
  if (out.size() == before) return out.push_back(condition);
  for (const std::vector<Expr>& part : all)
    if (part.empty()) return;  // the rest is true
  Expr rest = all_of(all.front());
  for (std::size_t i = 1; i < all.size(); ++i) rest = rest || all_of(all[i]);
  out.push_back(rest);
}

bool all_cannot_fail(const std::vector<Expr>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(), cannot_fail);
}

}  // namespace

// Recursive, as the query's own functions are: a query has few steps.
NodePtr Arrangement::arrange(const NodePtr& node) {
  FLUGS_CHECK(node != nullptr);
  if (node->step == Step::kShared) return arrange_shared(node);
  if (node->step == Step::kWhere) return arrange_where(node);
  if (node->step != Step::kJoin) return arrange_inputs(node);
  if (is_chained(*node)) return arrange_joins(node, {});
  if (NodePtr moved = push_filter(node); moved != nullptr) return arrange(moved);
  return arrange_inputs(node);
}

// All readers have the same step, so that the Planner knows it again.
NodePtr Arrangement::arrange_shared(const NodePtr& node) {
  const auto known = shared_.find(node);
  if (known != shared_.end()) return known->second;
  NodePtr made = with_inputs(node, arrange(node->input));
  FLUGS_CHECK(made->part == node->part);
  shared_.emplace(node, made);
  return made;
}

NodePtr Arrangement::arrange_inputs(const NodePtr& node) {
  if (node->input == nullptr) return node;
  NodePtr input = arrange(node->input);
  if (node->right == nullptr) return with_inputs(node, std::move(input));
  auto join = std::make_shared<QueryNode>(*node);
  join->input = std::move(input);
  join->right = arrange(node->right);
  if (node->join_keys.empty()) return join;  // fails when it is opened
  join->left_expected = estimates_.rows(join->input);
  join->right_expected = estimates_.rows(join->right);
  join->rows_expected = estimates_.rows(join);
  join->is_left_first = estimates_.is_left_first(join->input, join->right);
  return join;
}

NodePtr Arrangement::arrange_where(const NodePtr& node) {
  std::vector<Expr> conditions;
  NodePtr below = conditions_of(node, conditions);
  if (below->step == Step::kTable) return node;
  std::vector<Expr> stay;
  std::vector<Expr> to_joins;
  bool has_moved = false;
  const bool is_chain = below->step == Step::kJoin && is_chained(*below);
  for (const Expr& condition : conditions) {
    NodePtr moved;
    if (cannot_fail(condition) && has_all(*below, condition)) {
      if (is_chain) {
        to_joins.push_back(condition);
        continue;
      }
      moved = push(below, condition);
    }
    if (moved == nullptr) {
      stay.push_back(condition);
    } else {
      below = moved;
      has_moved = true;
    }
  }
  if (!is_chain && !has_moved) return arrange_inputs(node);
  NodePtr made = is_chain ? arrange_joins(below, to_joins) : arrange(below);
  return stay.empty() ? made : where(std::move(made), all_of(stay));
}

// ------------------------------------------------------------------------------------- joins

// Whether the join is an inner one that may run in another order.
bool Arrangement::is_chained(const QueryNode& node) {
  if (node.join != JoinKind::kInner || node.join_keys.empty()) return false;
  std::vector<Expr> conditions;
  if (node.condition.is_given()) split_conjunction(node.condition, conditions);
  return all_cannot_fail(conditions) &&
         std::all_of(node.join_keys.begin(), node.join_keys.end(), [](const JoinKey& key) {
           return column_name(key.left.expr()) != nullptr &&
                  column_name(key.right.expr()) != nullptr;
         });
}

// Collects the inputs of joins that follow each other; gives the order in which they are written.
std::unique_ptr<JoinTree> Arrangement::gather(const NodePtr& node, Chain& chain) const {
  std::vector<Expr> conditions;
  const NodePtr below = conditions_of(node, conditions);
  if (below->step != Step::kJoin || !is_chained(*below) || !all_cannot_fail(conditions)) {
    for (const std::string& name : planner_.names(*node))
      chain.columns.emplace(name, chain.inputs.size());
    chain.inputs.push_back(node);
    return JoinTree::of(chain.inputs.size() - 1);
  }
  const std::size_t first = chain.inputs.size();
  std::unique_ptr<JoinTree> left = gather(below->input, chain);
  const std::size_t middle = chain.inputs.size();
  std::unique_ptr<JoinTree> right = gather(below->right, chain);
  for (const JoinKey& key : below->join_keys)
    chain.keys_written.push_back({key, first, middle, chain.inputs.size()});
  std::vector<Expr> also;
  if (below->condition.is_given()) split_conjunction(below->condition, also);
  also.insert(also.end(), conditions.begin(), conditions.end());
  for (const Expr& condition : also)
    chain.conditions_written.push_back({condition, first, chain.inputs.size()});
  return JoinTree::join(std::move(left), std::move(right));
}

// Finds the inputs that keys and conditions name. A condition on one input goes down into it.
// False: a key or a condition names a column that its join does not have, a condition names no
// column, or there are more than 64 inputs.
bool Arrangement::place_all(Chain& chain) const {
  if (chain.inputs.size() > kBitsOfSet) return false;
  const auto input_of = [&](const std::string& name) {
    const auto found = chain.columns.find(name);
    return found == chain.columns.end() ? kBitsOfSet : found->second;
  };
  for (const Chain::KeyWritten& written : chain.keys_written) {
    const std::size_t left = input_of(*column_name(written.key.left.expr()));
    const std::size_t right = input_of(*column_name(written.key.right.expr()));
    if (left < written.first || left >= written.middle || right < written.middle ||
        right >= written.end)
      return false;
    chain.keys.push_back({written.key, left, right});
  }
  for (const Chain::ConditionWritten& written : chain.conditions_written) {
    std::vector<Expr> conditions;
    factor(written.expr, conditions);
    for (const Expr& condition : conditions) {
      std::vector<std::string> names;
      collect_columns(condition, names);
      std::uint64_t inputs = 0;
      for (const std::string& name : names) {
        const std::size_t input = input_of(name);
        if (input < written.first || input >= written.end) return false;
        inputs |= std::uint64_t{1} << input;
      }
      if (inputs == 0) return false;
      chain.conditions.push_back({condition, inputs});
    }
  }
  for (const Chain::Condition& condition : chain.conditions) {
    for (std::uint64_t left = condition.inputs; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      const auto is_of = [&](const std::string& name) { return chain.columns.at(name) == i; };
      if (const std::optional<Expr> of_input = implied(condition.expr, is_of))
        chain.inputs[i] = push_or_wrap(chain.inputs[i], *of_input);
    }
  }
  std::erase_if(chain.conditions,
                [](const Chain::Condition& c) { return std::has_single_bit(c.inputs); });
  return true;
}

NodePtr Arrangement::arrange_joins(const NodePtr& node, const std::vector<Expr>& conditions) {
  Chain chain;
  const std::unique_ptr<JoinTree> written = gather(node, chain);
  for (const Expr& condition : conditions)
    chain.conditions_written.push_back({condition, 0, chain.inputs.size()});
  if (!place_all(chain)) {
    NodePtr made = arrange_inputs(node);
    return conditions.empty() ? made : where(std::move(made), all_of(conditions));
  }
  for (NodePtr& input : chain.inputs) input = arrange(input);
  const std::unique_ptr<JoinTree> chosen = order(chain, copy(*written));
  NodePtr made = make(chain, *chosen).node;
  return are_equal(*written, *chosen) ? made : select(std::move(made), planner_.names(*node));
}

std::unique_ptr<JoinTree> Arrangement::order(const Chain& chain,
                                             std::unique_ptr<JoinTree> written) {
  std::vector<JoinInput> inputs;
  inputs.reserve(chain.inputs.size());
  for (const NodePtr& input : chain.inputs)
    inputs.push_back({estimates_.rows(input), estimates_.rows_all(input)});
  std::vector<JoinLink> links;
  links.reserve(chain.keys.size());
  for (const Chain::Key& key : chain.keys) {
    const NodePtr& a = chain.inputs[key.left];
    const NodePtr& b = chain.inputs[key.right];
    const std::string& of_a = *column_name(key.key.left.expr());
    const std::string& of_b = *column_name(key.key.right.expr());
    links.push_back({key.left, key.right, estimates_.values(a, of_a), estimates_.values(b, of_b),
                     estimates_.is_unique(a, of_a), estimates_.is_unique(b, of_b)});
  }
  return choose_join_order(inputs, links, std::move(written));
}

Arrangement::Made Arrangement::make(const Chain& chain, const JoinTree& tree) {
  if (tree.input != JoinTree::kJoin)
    return {chain.inputs[tree.input], std::uint64_t{1} << tree.input};
  Made streamed = make(chain, *tree.streamed);
  Made held = make(chain, *tree.held);
  auto join = std::make_shared<QueryNode>();
  join->step = Step::kJoin;
  join->join = JoinKind::kInner;
  const auto has = [](const Made& made, std::size_t input) {
    return (made.inputs >> input & 1) != 0;
  };
  for (const Chain::Key& key : chain.keys) {
    if (has(streamed, key.left) && has(held, key.right))
      join->join_keys.push_back(key.key);
    else if (has(streamed, key.right) && has(held, key.left))
      join->join_keys.emplace_back(key.key.right, key.key.left);
  }
  FLUGS_CHECK(!join->join_keys.empty());
  const std::uint64_t both = streamed.inputs | held.inputs;
  std::vector<Expr> also;
  for (const Chain::Condition& condition : chain.conditions)
    if ((condition.inputs & ~both) == 0 && (condition.inputs & ~streamed.inputs) != 0 &&
        (condition.inputs & ~held.inputs) != 0)
      also.push_back(condition.expr);
  if (!also.empty()) join->condition = all_of(also);
  join->rows_expected = tree.rows;
  join->left_expected = tree.streamed->rows;
  join->right_expected = tree.held->rows;
  join->input = std::move(streamed.node);
  join->right = std::move(held.node);
  return {std::move(join), both};
}

// -------------------------------------------------------------------------------- conditions

bool Arrangement::has_all(const QueryNode& node, const Expr& condition) const {
  std::vector<std::string> wanted;
  collect_columns(condition, wanted);
  const std::vector<std::string> names = planner_.names(node);
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

bool Arrangement::moves_into(const NodePtr& node, const Expr& condition) const {
  return cannot_fail(condition) && has_all(*node, condition) && push(node, condition) != nullptr;
}

NodePtr Arrangement::push_or_wrap(const NodePtr& node, const Expr& condition) const {
  NodePtr moved = push(node, condition);
  return moved != nullptr ? moved : where(node, condition);
}

// Moves the condition below the step. The condition names only columns of the step. Null: the
// condition must stay above it.
NodePtr Arrangement::push(const NodePtr& node, const Expr& condition) const {
  switch (node->step) {
    case Step::kWhere: {
      std::vector<Expr> others;
      if (conditions_of(node, others)->step == Step::kTable) return nullptr;
      return with_inputs(node, push_or_wrap(node->input, condition));
    }
    case Step::kDistinct:
    case Step::kOrderBy:
      return with_inputs(node, push_or_wrap(node->input, condition));
    case Step::kRename:
    case Step::kSelect:
    case Step::kGroupBy:
      return push_into_outputs(node, condition);
    case Step::kJoin:
      return push_into_join(node, condition);
    case Step::kTable:
    case Step::kResult:
    case Step::kLimit:
    case Step::kShared:
      return nullptr;
  }
  return nullptr;
}

NodePtr Arrangement::push_into_outputs(const NodePtr& node, const Expr& condition) const {
  bool is_passed_on = true;
  const Expr below = replace_columns(condition, [&](const std::string& name) -> Expr {
    if (node->step == Step::kRename) return col(name.substr(node->text.size() + 1));
    for (const Item& item : node->items)
      if (output_name(item.expr()) == name && column_name(item.expr()) != nullptr)
        return col(*column_name(item.expr()));
    is_passed_on = false;
    return col(name);
  });
  return is_passed_on ? with_inputs(node, push_or_wrap(node->input, below)) : nullptr;
}

// Only an inner join passes a condition down to its right side. In a left join, NULLs may stand for
// a row of the right side. Semi and anti joins have no columns of the right side.
NodePtr Arrangement::push_into_join(const NodePtr& node, const Expr& condition) const {
  if (has_all(*node->input, condition))
    return with_inputs(node, push_or_wrap(node->input, condition), node->right);
  if (node->join == JoinKind::kInner && has_all(*node->right, condition))
    return with_inputs(node, node->input, push_or_wrap(node->right, condition));
  return nullptr;
}

// Moves a semi or anti join down to the input that has all of its keys, if it drops at least half
// of that input's rows. Null: it stays. It also stays if its left side is held first, because then
// the keys of that side filter its right side.
NodePtr Arrangement::push_filter(const NodePtr& join) {
  constexpr double kPartMax = 0.5;
  const bool is_filter = join->join == JoinKind::kSemi || join->join == JoinKind::kAnti;
  if (!is_filter || join->condition.is_given() || join->join_keys.empty()) return nullptr;
  std::vector<std::string> wanted;
  for (const JoinKey& key : join->join_keys) {
    const std::string* name = column_name(key.left.expr());
    if (name == nullptr) return nullptr;
    wanted.push_back(*name);
  }
  if (estimates_.is_left_first(join->input, join->right)) return nullptr;
  return push_filter(join->input, join, wanted, [&](const NodePtr& moved) {
    return estimates_.rows(moved) <= estimates_.rows(moved->input) * kPartMax;
  });
}

// Puts the join below `below`. Null: there is no place for it.
NodePtr Arrangement::push_filter(const NodePtr& below, const NodePtr& join,
                                 const std::vector<std::string>& wanted,
                                 FunctionRef<bool(const NodePtr&)> is_worth_it) const {
  if (below->step == Step::kWhere) {
    NodePtr moved = push_filter(below->input, join, wanted, is_worth_it);
    return moved == nullptr ? nullptr : with_inputs(below, std::move(moved));
  }
  if (below->step != Step::kJoin) return nullptr;
  const auto is_of = [&](const QueryNode& side) {
    const std::vector<std::string> names = planner_.names(side);
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  };
  const bool is_left = is_of(*below->input);
  if (!is_left && (below->join != JoinKind::kInner || !is_of(*below->right))) return nullptr;
  const NodePtr& side = is_left ? below->input : below->right;
  NodePtr moved = push_filter(side, join, wanted, is_worth_it);
  if (moved == nullptr) {
    // Two filters would change places for ever.
    if (below->join != JoinKind::kInner && below->join != JoinKind::kLeft) return nullptr;
    moved = with_inputs(join, side, join->right);
    if (!is_worth_it(moved)) return nullptr;
  }
  return is_left ? with_inputs(below, std::move(moved), below->right)
                 : with_inputs(below, below->input, std::move(moved));
}

}  // namespace flugs::query
