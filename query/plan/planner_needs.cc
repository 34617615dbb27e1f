// Which columns steps need of their inputs.

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/plan/planner.h"

namespace flugs::query {

using Step = QueryNode::Step;

namespace {

void add(Use& to, Use use) {
  to.codes |= use.codes;
  to.values |= use.values;
  to.leaves |= use.leaves;
}

// The values of every column that the expression names.
void need_values(Needed& needed, const Expr& expr) {
  std::vector<std::string> names;
  collect_columns(expr, names);
  for (const std::string& name : names) needed[name].values = true;
}

// A bare column may be needed as codes only; every computation needs values.
void need(Needed& needed, const Expr& expr, Use use) {
  if (expr.is_given() && expr.node()->op == Op::kColumn)
    add(needed[expr.node()->text], use);
  else
    need_values(needed, expr);
}

// The part of `needed` for these names.
Needed among(const Needed& needed, const std::vector<std::string>& names) {
  Needed found;
  for (const std::string& name : names)
    if (const auto at = needed.find(name); at != needed.end()) found.insert(*at);
  return found;
}

}  // namespace

Needed kept(Needed needed) {
  for (auto& [name, use] : needed) use.values |= use.leaves;
  return needed;
}

std::vector<Item> Planner::group_keys(const QueryNode& node) const {
  if (node.step == Step::kGroupBy) return node.items;
  FLUGS_CHECK(node.step == Step::kDistinct);
  std::vector<Item> keys;
  for (std::string& name : names(*node.input)) keys.emplace_back(std::move(name));
  return keys;
}

Planner::InputNeeds Planner::needs_of(const QueryNode& node, const Needed& needed) const {
  InputNeeds needs;
  switch (node.step) {
    case Step::kWhere:
      needs.input = needed;
      need_values(needs.input, node.condition);
      return needs;
    case Step::kSelect:
      for (const Item& item : node.items)
        if (const auto use = needed.find(output_name(item.expr())); use != needed.end())
          need(needs.input, item.expr(), use->second);
      return needs;
    case Step::kRename:
      for (const auto& [name, use] : needed)
        if (name.starts_with(node.text + ".")) needs.input[name.substr(node.text.size() + 1)] = use;
      return needs;
    case Step::kJoin:
      return needs_of_join(node, needed);
    case Step::kGroupBy:
    case Step::kDistinct:
      for (const Item& key : group_keys(node)) need(needs.input, key.expr(), {.codes = true});
      for (const Aggregate& aggregate : node.aggregates) {
        const bool codes_will_do = aggregate.kind == AggregateKind::kCount ||
                                   aggregate.kind == AggregateKind::kCountDistinct;
        need(needs.input, aggregate.of, {.codes = codes_will_do, .values = !codes_will_do});
      }
      return needs;
    case Step::kOrderBy:
      needs.input = kept(needed);
      for (const SortKey& key : node.sort_keys) need_values(needs.input, key.item.expr());
      return needs;
    case Step::kLimit:
    case Step::kShared:
      needs.input = needed;
      return needs;
    case Step::kTable:
    case Step::kResult:
      return needs;
  }
  return needs;
}

Planner::InputNeeds Planner::needs_of_join(const QueryNode& node, const Needed& needed) const {
  FLUGS_CHECK(node.input != nullptr && node.right != nullptr);
  const std::vector<std::string> left_names = names(*node.input);
  const std::vector<std::string> right_names = names(*node.right);
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  Needed also;
  need_values(also, node.condition);
  InputNeeds needs{among(needed, left_names), pairs ? kept(among(needed, right_names)) : Needed()};
  for (const auto& [name, use] : among(also, left_names)) needs.input[name].values = true;
  for (const auto& [name, use] : among(also, right_names)) needs.right[name].values = true;
  for (const JoinKey& key : node.join_keys) {
    need_values(needs.input, key.left.expr());
    need_values(needs.right, key.right.expr());
  }
  return needs;
}

// Finds out what the readers of each shared part need, before the first of them is opened. A part
// that another one reads has that part as one reader.
void Planner::note_readers(const QueryNode& node, const Needed& needed, bool is_first) {
  if (node.input == nullptr) return;
  if (node.step != Step::kShared) {
    const InputNeeds needs = needs_of(node, needed);
    note_readers(*node.input, needs.input, is_first);
    if (node.right != nullptr) note_readers(*node.right, needs.right, is_first);
    return;
  }
  SharedRows& part = shared_[&node];
  for (const auto& [name, use] : kept(needed)) add(part.needed[name], use);
  const bool is_known = part.readers != 0;
  if (is_first) ++part.readers;
  note_readers(*node.input, part.needed, is_first && !is_known);
}

}  // namespace flugs::query
