#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "query/expressions/expr_node.h"
#include "query/operators/distinct_sketch.h"
#include "test/query/naive.h"

namespace flugs::test {

using query::AggregateKind;
using query::DataType;
using query::Expr;
using query::JoinKind;
using query::QueryNode;
using Rows = std::vector<std::vector<Cell>>;
using Tables = std::function<const Relation&(const std::string&)>;
__extension__ using Int128 = __int128;

namespace {

bool is_true(const Expr& condition, const Relation& relation, const std::vector<Cell>& row) {
  const Cell cell = evaluate(condition, relation, row);
  return !cell.null && cell.i != 0;
}

DataType type_of_result(const query::Aggregate& aggregate, const Relation& input) {
  if (aggregate.kind <= AggregateKind::kCountDistinct ||
      aggregate.kind == AggregateKind::kApproxCountDistinct)
    return {Type::kInt64, 0};
  const DataType type = type_of(aggregate.of, input);
  if (aggregate.kind == AggregateKind::kQuantile) return type;
  if (aggregate.kind >= AggregateKind::kAvg) return {Type::kDouble, 0};
  const bool is_sum = aggregate.kind == AggregateKind::kSum;
  return is_sum && query::is_integer(type) ? DataType{Type::kInt64, 0} : type;
}

Cell null_cell(DataType type) {
  Cell null;
  null.type = type;
  return null;
}

double real_of(const Cell& cell) {
  return cell.type.type == Type::kDouble
             ? cell.r
             : static_cast<double>(cell.i) / std::pow(10.0, cell.type.scale);
}

Cell count_cell(std::size_t count) {
  Cell cell;
  cell.null = false;
  cell.i = static_cast<std::int64_t>(count);
  return cell;
}

std::size_t distinct_count(const std::vector<Cell>& values) {
  std::set<std::string> distinct;
  for (const Cell& cell : values) distinct.insert(cell.to_text());
  return distinct.size();
}

/// In one sketch, value by value, without threads, parts and merges.
std::size_t approximate_count(const std::vector<Cell>& values) {
  query::MemoryBudget budget(1 << 20);
  query::KeptMemory memory(budget);
  query::DistinctSketch* sketch = nullptr;
  for (const Cell& cell : values) {
    const query::Lane lane = query::lane_of(cell.type);
    const std::int64_t word = lane == query::Lane::kReal ? Value::real(cell.r).raw() : cell.i;
    query::note_hash(sketch, lane == query::Lane::kText ? hash_text(cell.s) : hash_integer(word),
                     memory);
  }
  return static_cast<std::size_t>(query::estimate_of(sketch));
}

const Cell& extreme_of(const std::vector<Cell>& values, bool is_least) {
  const Cell* found = &values[0];
  for (const Cell& cell : values)
    if (is_least ? compare(cell, *found) < 0 : compare(*found, cell) < 0) found = &cell;
  return *found;
}

bool is_less(const Cell& a, const Cell& b) { return compare(a, b) < 0; }

/// The first of the sorted values with at least that part of them at it or before it.
Cell quantile_of(std::vector<Cell> values, double q) {
  std::sort(values.begin(), values.end(), is_less);
  std::size_t at = 0;
  // The parts that the tests ask for are products of 1/1000.
  while (static_cast<double>((at + 1) * 1000) < std::round(q * 1000) * double(values.size())) ++at;
  return values[at];
}

Cell median_of(std::vector<Cell> values, DataType type) {
  std::sort(values.begin(), values.end(), is_less);
  Cell out = values[0];
  out.type = type;
  const double low = real_of(values[(values.size() - 1) / 2]);
  out.r = low / 2 + real_of(values[values.size() / 2]) / 2;
  return out;
}

Cell exact_sum(const std::vector<Cell>& values, DataType type) {
  Int128 sum = 0;
  for (const Cell& cell : values) sum += cell.i;
  if (sum != static_cast<std::int64_t>(sum)) throw NaiveOverflow{};
  Cell out;
  out.type = type;
  out.null = false;
  out.i = static_cast<std::int64_t>(sum);
  return out;
}

// There is at least one value. A variance of a single value is NULL.
Cell real_aggregate(AggregateKind kind, const std::vector<Cell>& values, DataType type) {
  const auto n = static_cast<double>(values.size());
  Cell out;
  out.type = {Type::kDouble, 0};
  out.null = false;
  double sum = 0;
  for (const Cell& cell : values) sum += real_of(cell);
  out.r = kind == AggregateKind::kSum ? sum : sum / n;
  if (kind < AggregateKind::kVariance) return out;
  if (values.size() < 2) return null_cell(type);
  double deviations = 0;
  for (const Cell& cell : values) {
    const double value = real_of(cell);
    deviations += (value - sum / n) * (value - sum / n);
  }
  out.r = deviations / (n - 1);
  if (kind == AggregateKind::kStddev) out.r = std::sqrt(out.r);
  return out;
}

Cell aggregate_of(const query::Aggregate& aggregate, const std::vector<Cell>& values,
                  std::size_t row_count, DataType type) {
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
      return count_cell(row_count);
    case AggregateKind::kCount:
      return count_cell(values.size());
    case AggregateKind::kCountDistinct:
      return count_cell(distinct_count(values));
    case AggregateKind::kApproxCountDistinct:
      return count_cell(approximate_count(values));
    default:
      break;
  }
  if (values.empty()) return null_cell(type);
  if (aggregate.kind == AggregateKind::kMin || aggregate.kind == AggregateKind::kMax)
    return extreme_of(values, aggregate.kind == AggregateKind::kMin);
  if (aggregate.kind == AggregateKind::kQuantile) return quantile_of(values, aggregate.q);
  if (aggregate.kind == AggregateKind::kMedian) return median_of(values, type);
  if (aggregate.kind == AggregateKind::kSum && values[0].type.type != Type::kDouble)
    return exact_sum(values, type);
  return real_aggregate(aggregate.kind, values, type);
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
    group.keys = std::move(keys);
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
  Relation both{left.names, {}, left.types};
  both.names.insert(both.names.end(), right.names.begin(), right.names.end());
  both.types.insert(both.types.end(), right.types.begin(), right.types.end());
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  Relation out = pairs ? both : Relation{left.names, {}, left.types};
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

// Keys are evaluated also for a row without another to compare with.
Relation order(const QueryNode& node, const Relation& input) {
  Rows keys;
  std::vector<std::size_t> places(input.rows.size());
  for (const std::vector<Cell>& row : input.rows) {
    places[keys.size()] = keys.size();
    keys.emplace_back();
    for (const query::SortKey& key : node.sort_keys)
      keys.back().push_back(evaluate(key.item.expr(), input, row));
  }
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    for (std::size_t k = 0; k < node.sort_keys.size(); ++k) {
      const int order = compare(keys[a][k], keys[b][k]);
      if (order != 0) return node.sort_keys[k].descending ? order > 0 : order < 0;
    }
    return false;
  });
  Relation out{input.names, {}, input.types};
  for (const std::size_t place : places) out.rows.push_back(input.rows[place]);
  return out;
}

Relation limit(const QueryNode& node, const Relation& input) {
  const std::size_t size = input.rows.size();
  const auto first = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(node.offset, size));
  const auto end =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(node.offset + node.limit, size));
  return {input.names, Rows(input.rows.begin() + first, input.rows.begin() + end), input.types};
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

// The rows that a step reads: those of a table where they are, others in `made`.
const Relation& input_of(const QueryNode& node, const Tables& table, Relation& made) {
  if (node.step == QueryNode::Step::kTable) return table(node.text);
  made = run_naively(node, table);
  return made;
}

}  // namespace

Relation run_naively(const QueryNode& node, const Tables& table) {
  if (node.step == QueryNode::Step::kTable) return table(node.text);
  if (node.step == QueryNode::Step::kResult) return relation_of(query::QueryResult(node.result));
  Relation made;
  const Relation& input = input_of(*node.input, table, made);
  switch (node.step) {
    case QueryNode::Step::kWhere: {
      Relation out{input.names, {}, input.types};
      for (const std::vector<Cell>& row : input.rows)
        if (is_true(node.condition, input, row)) out.rows.push_back(row);
      return out;
    }
    case QueryNode::Step::kSelect:
      return select(node, input);
    case QueryNode::Step::kRename: {
      Relation out = input;
      for (std::string& name : out.names) name.insert(0, node.text + ".");
      return out;
    }
    case QueryNode::Step::kJoin: {
      Relation made_right;
      return join(node, input, input_of(*node.right, table, made_right));
    }
    case QueryNode::Step::kGroupBy:
      return group(input, node.items, node.aggregates);
    case QueryNode::Step::kDistinct:
      return group(input, {input.names.begin(), input.names.end()}, {});
    case QueryNode::Step::kOrderBy:
      return order(node, input);
    default:
      return limit(node, input);
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
