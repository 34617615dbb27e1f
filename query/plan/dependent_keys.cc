#include "query/plan/dependent_keys.h"

#include <algorithm>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/estimates.h"

namespace flugs::query {

using Step = QueryNode::Step;

DependentKeys::DependentKeys(const RunContext& context, const QueryNode& input)
    : context_(context) {
  columns_ = read(input);
}

// Recursive, as the query's own functions are.
DependentKeys::Columns DependentKeys::read(const QueryNode& node) {
  switch (node.step) {
    case Step::kTable:
      return read_table(node.text);
    case Step::kWhere:
    case Step::kDistinct:
    case Step::kOrderBy:
    case Step::kLimit:
    case Step::kShared:
      return read(*node.input);
    case Step::kJoin:
      return read_join(node);
    case Step::kRename: {
      Columns renamed;
      for (const auto& [name, number] : read(*node.input))
        renamed.emplace(node.text + "." + name, number);
      return renamed;
    }
    case Step::kSelect:
    case Step::kGroupBy: {
      const Columns below = read(*node.input);
      Columns passed;
      for (const Item& item : node.items) {
        const std::string* name = column_name(item.expr());
        const auto found = name == nullptr ? below.end() : below.find(*name);
        if (found != below.end()) passed.emplace(output_name(item.expr()), found->second);
      }
      return passed;
    }
    case Step::kResult:
      return {};
  }
  return {};
}

// Doubles say nothing: 0.0 equals -0.0, and large integers may equal the same double.
DependentKeys::Columns DependentKeys::read_table(const std::string& name) {
  const TableSchema& schema = find_table(context_, name).schema();
  Columns columns;
  Table table;
  for (const ColumnSchema& column : schema.columns) {
    if (column.dropped) continue;
    columns.emplace(column.name, is_exact_.size());
    table.columns.push_back(is_exact_.size());
    is_exact_.push_back(column.type != Type::kDouble);
  }
  if (schema.has_primary_key) {
    FLUGS_CHECK(!schema.keys.empty());
    for (const std::string& of_key : schema.keys.front().columns) {
      const auto found = columns.find(of_key);
      FLUGS_CHECK(found != columns.end());
      table.primary.push_back(found->second);
    }
    if (!std::all_of(table.primary.begin(), table.primary.end(),
                     [&](std::size_t column) { return is_exact_[column]; }))
      table.primary.clear();
  }
  tables_.push_back(std::move(table));
  return columns;
}

DependentKeys::Columns DependentKeys::read_join(const QueryNode& node) {
  Columns columns = read(*node.input);
  if (node.join != JoinKind::kInner) return columns;
  const Columns right = read(*node.right);
  for (const JoinKey& key : node.join_keys) {
    const std::string* a = column_name(key.left.expr());
    const std::string* b = column_name(key.right.expr());
    if (a == nullptr || b == nullptr) continue;
    const auto of_left = columns.find(*a);
    const auto of_right = right.find(*b);
    if (of_left != columns.end() && of_right != right.end() && is_exact_[of_left->second] &&
        is_exact_[of_right->second])
      equal_.emplace_back(of_left->second, of_right->second);
  }
  columns.insert(right.begin(), right.end());
  return columns;
}

// The columns that follow from these, and these.
std::vector<bool> DependentKeys::closure(const std::vector<std::size_t>& of) const {
  std::vector<bool> follows(is_exact_.size());
  for (const std::size_t column : of) follows[column] = true;
  const auto does_follow = [&](std::size_t column) { return bool(follows[column]); };
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    const auto add = [&](std::size_t column) {
      has_grown = has_grown || !follows[column];
      follows[column] = true;
    };
    for (const auto& [a, b] : equal_) {
      if (follows[a]) add(b);
      if (follows[b]) add(a);
    }
    for (const Table& table : tables_)
      if (!table.primary.empty() &&
          std::all_of(table.primary.begin(), table.primary.end(), does_follow))
        std::for_each(table.columns.begin(), table.columns.end(), add);
  }
  return follows;
}

// Takes the primary key from which most keys follow, as long as there is one.
std::vector<bool> DependentKeys::among(const std::vector<Item>& keys) const {
  std::vector<bool> is_dependent(keys.size());
  std::vector<bool> is_needed(keys.size());
  const auto key_of = [&](std::size_t column) {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::string* name = column_name(keys[k].expr());
      const auto found = name == nullptr ? columns_.end() : columns_.find(*name);
      if (found != columns_.end() && found->second == column && !is_dependent[k]) return k;
    }
    return keys.size();
  };
  const auto follows_from = [&](const Item& key, const std::vector<bool>& columns) {
    std::vector<std::string> names;
    collect_columns(key.expr(), names);
    return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      const auto found = columns_.find(name);
      return found != columns_.end() && columns[found->second];
    });
  };
  for (;;) {
    std::vector<std::size_t> best;
    std::vector<std::size_t> best_primary;
    for (const Table& table : tables_) {
      std::vector<std::size_t> primary;
      primary.reserve(table.primary.size());
      for (const std::size_t column : table.primary) primary.push_back(key_of(column));
      if (primary.empty() || std::count(primary.begin(), primary.end(), keys.size()) != 0) continue;
      const std::vector<bool> columns = closure(table.primary);
      std::vector<std::size_t> dependent;
      for (std::size_t k = 0; k < keys.size(); ++k)
        if (!is_dependent[k] && !is_needed[k] && follows_from(keys[k], columns) &&
            std::find(primary.begin(), primary.end(), k) == primary.end())
          dependent.push_back(k);
      if (dependent.size() <= best.size()) continue;
      best = std::move(dependent);
      best_primary = std::move(primary);
    }
    if (best.empty()) return is_dependent;
    for (const std::size_t k : best) is_dependent[k] = true;
    for (const std::size_t k : best_primary) is_needed[k] = true;
  }
}

}  // namespace flugs::query
