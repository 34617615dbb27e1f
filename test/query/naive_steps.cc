#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "query/expr_node.h"
#include "test/query/naive.h"

namespace flugs::test {

using query::AggregateKind;
using query::DataType;
using query::Expr;
using query::JoinKind;
using query::QueryNode;
using Rows = std::vector<std::vector<Cell>>;
using Tables = std::function<Relation(const std::string&)>;
__extension__ using Int128 = __int128;

namespace {

bool is_true(const Expr& condition, const Relation& relation, const std::vector<Cell>& row) {
  const Cell cell = evaluate(condition, relation, row);
  return !cell.null && cell.i != 0;
}

Cell aggregate_of(const query::Aggregate& aggregate, const std::vector<Cell>& values,
                  std::size_t row_count) {
  Cell out;
  out.null = false;
  std::set<std::string> distinct;
  Int128 sum = 0;
  double real_sum = 0;
  Cell least;
  Cell greatest;
  for (const Cell& cell : values) {
    distinct.insert(cell.to_text());
    sum += cell.i;
    real_sum += cell.type.type == Type::kDouble
                    ? cell.r
                    : static_cast<double>(cell.i) / std::pow(10.0, cell.type.scale);
    if (least.null || compare(cell, least) < 0) least = cell;
    if (greatest.null || compare(greatest, cell) < 0) greatest = cell;
  }
  const auto n = static_cast<double>(values.size());
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
      out.i = static_cast<std::int64_t>(row_count);
      return out;
    case AggregateKind::kCount:
      out.i = static_cast<std::int64_t>(values.size());
      return out;
    case AggregateKind::kCountDistinct:
      out.i = static_cast<std::int64_t>(distinct.size());
      return out;
    case AggregateKind::kMin:
      return least;
    case AggregateKind::kMax:
      return greatest;
    default:
      break;
  }
  if (values.empty()) return Cell();
  if (aggregate.kind == AggregateKind::kSum && values[0].type.type != Type::kDouble) {
    if (sum != static_cast<std::int64_t>(sum)) throw NaiveOverflow{};
    out.type = values[0].type;
    out.i = static_cast<std::int64_t>(sum);
    return out;
  }
  out.type = {Type::kDouble, 0};
  out.r = real_sum;
  if (aggregate.kind == AggregateKind::kAvg) out.r = real_sum / n;
  if (aggregate.kind < AggregateKind::kVariance) return out;
  if (values.size() < 2) return Cell();
  double deviations = 0;
  for (const Cell& cell : values) {
    const double value = cell.type.type == Type::kDouble
                             ? cell.r
                             : static_cast<double>(cell.i) / std::pow(10.0, cell.type.scale);
    deviations += (value - real_sum / n) * (value - real_sum / n);
  }
  out.r = deviations / (n - 1);
  if (aggregate.kind == AggregateKind::kStddev) out.r = std::sqrt(out.r);
  return out;
}

Relation group(const Relation& input, const std::vector<query::Item>& items,
               const std::vector<query::Aggregate>& aggregates) {
  struct Group {
    std::vector<Cell> keys;
    std::size_t rows = 0;
    std::vector<std::vector<Cell>> values;
  };
  std::map<std::string, Group> groups;
  if (items.empty()) groups[""].values.resize(aggregates.size());
  for (const std::vector<Cell>& row : input.rows) {
    std::vector<Cell> keys;
    std::string text;
    for (const query::Item& item : items) {
      keys.push_back(evaluate(item.expr(), input, row));
      text += keys.back().to_text() + "|";
    }
    Group& group = groups[text];
    group.keys = keys;
    ++group.rows;
    group.values.resize(aggregates.size());
    for (std::size_t a = 0; a < aggregates.size(); ++a) {
      if (!aggregates[a].of.is_given()) continue;
      Cell cell = evaluate(aggregates[a].of, input, row);
      if (!cell.null) group.values[a].push_back(std::move(cell));
    }
  }
  Relation out;
  for (const query::Item& item : items) out.names.push_back(query::output_name(item.expr()));
  for (const query::Aggregate& aggregate : aggregates)
    out.names.push_back(query::output_name(aggregate));
  for (auto& [text, group] : groups) {
    std::vector<Cell> row = group.keys;
    for (std::size_t a = 0; a < aggregates.size(); ++a)
      row.push_back(aggregate_of(aggregates[a], group.values[a], group.rows));
    out.rows.push_back(std::move(row));
  }
  return out;
}

Relation join(const QueryNode& node, const Relation& left, const Relation& right) {
  Relation both = left;
  both.names.insert(both.names.end(), right.names.begin(), right.names.end());
  both.rows.clear();
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  Relation out = pairs ? both : left;
  out.rows.clear();
  for (const std::vector<Cell>& l : left.rows) {
    bool matched = false;
    for (const std::vector<Cell>& r : right.rows) {
      bool equal = true;
      for (const query::JoinKey& key : node.join_keys) {
        const Cell a = evaluate(key.left.expr(), left, l);
        const Cell b = evaluate(key.right.expr(), right, r);
        equal = equal && !a.null && !b.null && compare(a, b) == 0;
      }
      if (!equal) continue;
      std::vector<Cell> row = l;
      row.insert(row.end(), r.begin(), r.end());
      if (node.condition.is_given() && !is_true(node.condition, both, row)) continue;
      matched = true;
      if (pairs) out.rows.push_back(std::move(row));
    }
    if (!matched && node.join == JoinKind::kLeft) {
      std::vector<Cell> row = l;
      row.resize(out.names.size());
      out.rows.push_back(std::move(row));
    }
    if (!pairs && matched == (node.join == JoinKind::kSemi)) out.rows.push_back(l);
  }
  return out;
}

Relation order(const QueryNode& node, Relation input) {
  std::stable_sort(input.rows.begin(), input.rows.end(), [&](const auto& a, const auto& b) {
    for (const query::SortKey& key : node.sort_keys) {
      const int order =
          compare(evaluate(key.item.expr(), input, a), evaluate(key.item.expr(), input, b));
      if (order != 0) return key.descending ? order > 0 : order < 0;
    }
    return false;
  });
  return input;
}

Relation limit(const QueryNode& node, Relation input) {
  const std::size_t size = input.rows.size();
  const auto first = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(node.offset, size));
  const auto end =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(node.offset + node.limit, size));
  input.rows = Rows(input.rows.begin() + first, input.rows.begin() + end);
  return input;
}

Relation select(const QueryNode& node, const Relation& input) {
  Relation out;
  for (const query::Item& item : node.items) out.names.push_back(query::output_name(item.expr()));
  for (const std::vector<Cell>& row : input.rows) {
    std::vector<Cell> made;
    for (const query::Item& item : node.items) made.push_back(evaluate(item.expr(), input, row));
    out.rows.push_back(std::move(made));
  }
  return out;
}

}  // namespace

Relation run_naively(const QueryNode& node, const Tables& table) {
  if (node.step == QueryNode::Step::kTable) return table(node.text);
  if (node.step == QueryNode::Step::kResult) return relation_of(query::QueryResult(node.result));
  Relation input = run_naively(*node.input, table);
  switch (node.step) {
    case QueryNode::Step::kWhere: {
      Relation out{input.names, {}};
      for (const std::vector<Cell>& row : input.rows)
        if (is_true(node.condition, input, row)) out.rows.push_back(row);
      return out;
    }
    case QueryNode::Step::kSelect:
      return select(node, input);
    case QueryNode::Step::kRename:
      for (std::string& name : input.names) name.insert(0, node.text + ".");
      return input;
    case QueryNode::Step::kJoin:
      return join(node, input, run_naively(*node.right, table));
    case QueryNode::Step::kGroupBy:
      return group(input, node.items, node.aggregates);
    case QueryNode::Step::kDistinct:
      return group(input, {input.names.begin(), input.names.end()}, {});
    case QueryNode::Step::kOrderBy:
      return order(node, std::move(input));
    default:
      return limit(node, std::move(input));
  }
}

Relation relation_of(const query::QueryResult& result) {
  Relation relation;
  for (const query::ResultColumn& column : result.columns()) relation.names.push_back(column.name);
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < result.columns().size(); ++c) {
      const query::ResultColumn& column = result.columns()[c];
      cells.push_back(Cell::of({column.type, column.scale}, result.value(row, c)));
    }
    relation.rows.push_back(std::move(cells));
  }
  return relation;
}

std::string text_of(const Relation& relation, bool ordered) {
  std::vector<std::string> lines;
  for (const std::vector<Cell>& row : relation.rows) {
    std::string line;
    for (const Cell& cell : row) line += cell.to_text() + " | ";
    lines.push_back(std::move(line));
  }
  if (!ordered) std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& name : relation.names) text += name + " | ";
  for (const std::string& line : lines) text += "\n" + line;
  return text;
}

}  // namespace flugs::test
