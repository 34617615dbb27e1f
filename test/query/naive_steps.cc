#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "query/expressions/expr_node.h"
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

DataType type_of_result(const query::Aggregate& aggregate, const Relation& input) {
  if (aggregate.kind <= AggregateKind::kCountDistinct) return {Type::kInt64, 0};
  if (aggregate.kind >= AggregateKind::kAvg) return {Type::kDouble, 0};
  const DataType type = type_of(aggregate.of, input);
  const bool is_sum = aggregate.kind == AggregateKind::kSum;
  return is_sum && query::is_integer(type) ? DataType{Type::kInt64, 0} : type;
}

Cell null_cell(DataType type) {
  Cell null;
  null.type = type;
  return null;
}

Cell aggregate_of(const query::Aggregate& aggregate, const std::vector<Cell>& values,
                  std::size_t row_count, DataType type) {
  const Cell null = null_cell(type);
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
      return values.empty() ? null : least;
    case AggregateKind::kMax:
      return values.empty() ? null : greatest;
    default:
      break;
  }
  if (values.empty()) return null;
  if (aggregate.kind == AggregateKind::kSum && values[0].type.type != Type::kDouble) {
    if (sum != static_cast<std::int64_t>(sum)) throw NaiveOverflow{};
    out.type = type;
    out.i = static_cast<std::int64_t>(sum);
    return out;
  }
  out.type = {Type::kDouble, 0};
  out.r = real_sum;
  if (aggregate.kind == AggregateKind::kAvg) out.r = real_sum / n;
  if (aggregate.kind < AggregateKind::kVariance) return out;
  if (values.size() < 2) return null;
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

Relation outputs_of(const std::vector<query::Item>& items, const Relation& input) {
  Relation out;
  for (const query::Item& item : items) {
    out.names.push_back(query::output_name(item.expr()));
    out.types.push_back(type_of(item.expr(), input));
  }
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
  Relation out = outputs_of(items, input);
  for (const query::Aggregate& aggregate : aggregates) {
    out.names.push_back(query::output_name(aggregate));
    out.types.push_back(type_of_result(aggregate, input));
  }
  for (auto& [text, group] : groups) {
    std::vector<Cell> row = group.keys;
    for (std::size_t a = 0; a < aggregates.size(); ++a)
      row.push_back(
          aggregate_of(aggregates[a], group.values[a], group.rows, out.types[items.size() + a]));
    out.rows.push_back(std::move(row));
  }
  return out;
}

// The keys of every row of one side, even if the other side has none.
Rows keys_of(const QueryNode& node, const Relation& side, bool is_left) {
  Rows all;
  for (const std::vector<Cell>& row : side.rows) {
    all.emplace_back();
    for (const query::JoinKey& key : node.join_keys)
      all.back().push_back(evaluate((is_left ? key.left : key.right).expr(), side, row));
  }
  return all;
}

Relation join(const QueryNode& node, const Relation& left, const Relation& right) {
  const Rows left_keys = keys_of(node, left, true);
  const Rows right_keys = keys_of(node, right, false);
  Relation both = left;
  both.names.insert(both.names.end(), right.names.begin(), right.names.end());
  both.types.insert(both.types.end(), right.types.begin(), right.types.end());
  both.rows.clear();
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  Relation out = pairs ? both : left;
  out.rows.clear();
  for (std::size_t i = 0; i < left.rows.size(); ++i) {
    const std::vector<Cell>& l = left.rows[i];
    bool matched = false;
    for (std::size_t j = 0; j < right.rows.size(); ++j) {
      const std::vector<Cell>& r = right.rows[j];
      bool equal = true;
      for (std::size_t k = 0; k < left_keys[i].size() && equal; ++k) {
        const Cell& a = left_keys[i][k];
        const Cell& b = right_keys[j][k];
        equal = !a.null && !b.null && compare(a, b) == 0;
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
      for (std::size_t c = l.size(); c < out.names.size(); ++c)
        row.push_back(null_cell(out.types[c]));
      out.rows.push_back(std::move(row));
    }
    if (!pairs && matched == (node.join == JoinKind::kSemi)) out.rows.push_back(l);
  }
  return out;
}

Relation order(const QueryNode& node, Relation input) {
  // Also for a row without another to compare with.
  for (const std::vector<Cell>& row : input.rows)
    for (const query::SortKey& key : node.sort_keys) evaluate(key.item.expr(), input, row);
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
  Relation out = outputs_of(node.items, input);
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
      Relation out{input.names, {}, input.types};
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
  for (const query::ResultColumn& column : result.columns()) {
    relation.names.push_back(column.name);
    relation.types.push_back({column.type, column.scale});
  }
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < result.columns().size(); ++c) {
      const query::ResultColumn& column = result.columns()[c];
      cells.push_back(Cell::of({column.type, column.scale}, result.get_unchecked(row, c)));
    }
    relation.rows.push_back(std::move(cells));
  }
  return relation;
}

Relation relation_of(query::ResultStream& stream) {
  Relation relation;
  for (const query::ResultColumn& column : stream.columns()) {
    relation.names.push_back(column.name);
    relation.types.push_back({column.type, column.scale});
  }
  for (const query::StreamBatch& batch : stream) {
    const std::size_t first = relation.rows.size();
    relation.rows.resize(first + batch.row_count());
    for (std::size_t c = 0; c < relation.types.size(); ++c) {
      const query::DataType type = relation.types[c];
      const auto value = [&](std::size_t row) {
        if (!batch.nulls(c).empty() && batch.nulls(c)[row] != 0) return Value::null();
        if (query::lane_of(type) == Lane::kText)
          return Value::from_bytes(type.type, batch.texts(c).value()[row]);
        if (query::lane_of(type) == Lane::kReal)
          return Value::real(batch.column<double>(c).value()[row]);
        return Value::from_raw(type.type, batch.column<std::int64_t>(c).value()[row])
            .with_scale(type.scale);
      };
      for (std::size_t row = 0; row < batch.row_count(); ++row)
        relation.rows[first + row].push_back(Cell::of(type, value(row)));
    }
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
