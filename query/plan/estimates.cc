#include "query/plan/estimates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/result_data.h"
#include "query/scan/table_scan.h"
#include "query/vectors/failure.h"

namespace flugs::query {

using Step = QueryNode::Step;

namespace {

// Parts of the rows for conditions about which nothing is known.
constexpr double kPartEqual = 0.1;
constexpr double kPartLess = 1.0 / 3;
constexpr double kPartOfPrefix = 0.05;
constexpr double kPartOfPattern = 0.1;
constexpr double kPartNull = 0.05;
constexpr double kPartOther = 0.5;
/// A comparison with a value computed by groups: usually few groups meet it.
constexpr double kPartOfGroups = 0.05;
/// An estimate stays a number, however many joins multiply it.
constexpr double kRowsOfStepMax = 1e18;
/// Rows for each value of a column about which nothing is known.
constexpr double kRowsPerValue = 10;

const Value* literal_of(const Expr& expr) {
  if (!expr.is_given() || expr.node()->op != Op::kConstant || !expr.node()->error.empty())
    return nullptr;
  return &expr.node()->literal.value;
}

/// A constant in the unit of a column's payloads; nothing if it has another kind of type.
std::optional<double> payload_of(const Expr& expr, DataType column) {
  const Value* const value = literal_of(expr);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const DataType type = expr.node()->literal.type;
  const auto raw = static_cast<double>(value->raw());
  if (is_exact(type) && is_exact(column))
    return raw * std::pow(10.0, static_cast<int>(column.scale) - static_cast<int>(type.scale));
  if (is_time(type) && is_time(column))
    return raw * static_cast<double>(facts_of(type.type).unit_us) /
           static_cast<double>(facts_of(column.type).unit_us);
  return std::nullopt;
}

/// The range of some entries of a dictionary; nothing if it has none of integers.
std::optional<PayloadRange> range_of_entries(const ColumnInfo& column) {
  constexpr std::uint32_t kEntriesRead = 64;
  const CodeDomain& entries = *column.domain;
  if (lane_of(column.type) != Lane::kInt) return std::nullopt;
  std::optional<PayloadRange> range;
  const std::uint32_t step = std::max(1u, entries.count() / kEntriesRead);
  for (std::uint64_t code = 0; code < entries.count(); code += step) {
    if (code == entries.null_code()) continue;
    const std::int64_t payload = entries.integer(static_cast<std::uint32_t>(code));
    if (!range) range = PayloadRange{payload, payload, 0};
    range->least = std::min(range->least, payload);
    range->greatest = std::max(range->greatest, payload);
  }
  return range;
}

/// The column of `a < b` or `a <= b`, if one of both is a column; else null.
const std::string* compared_column(const Expr& condition) {
  const ExprNode& of = *condition.node();
  if (of.op != Op::kLess && of.op != Op::kLessEqual) return nullptr;
  const std::string* name = column_name(of.args[0]);
  return name != nullptr ? name : column_name(of.args[1]);
}

double within_0_and_1(double part) noexcept { return std::clamp(part, 0.0, 1.0); }

}  // namespace

const engine::Table& find_table(const RunContext& context, const std::string& name) {
  const Result<TableId> id = context.database->find_table(name);
  const engine::Table* found = id.ok() ? context.database->table(*id) : nullptr;
  if (found == nullptr)
    fail(StatusCode::kNotFound,
         id.ok() ? "no table '" + name + "'" : std::string(id.status().message()));
  return *found;
}

// A unique key of one column has as many values as the table has rows.
Estimates::Table& Estimates::table(const std::string& name) {
  const auto [at, is_new] = tables_.try_emplace(name);
  Table& table = at->second;
  if (!is_new) return table;
  const engine::TableData& data = find_table(context_, name).data();
  table.view = std::make_unique<TableView>(data, context_.visibility);
  table.rows = std::max<double>(1, static_cast<double>(table.view->row_positions()));
  for (std::uint32_t c = 0; c < table.view->schema().size(); ++c)
    if (!table.view->schema()[c].is_dropped) table.columns[table.view->schema()[c].name] = c;
  for (const engine::KeyIndex* key : data.keys)
    if (key->is_unique() && key->columns().size() == 1) table.unique.insert(key->columns().front());
  return table;
}

std::unique_ptr<TableView> Estimates::take_view(const std::string& name) {
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : std::move(found->second.view);
}

Estimates::Origin Estimates::origin(const NodePtr& node, const std::string& column) {
  switch (node->step) {
    case Step::kTable: {
      Table& of = table(node->text);
      const auto found = of.columns.find(column);
      return found == of.columns.end() ? Origin() : Origin{&of, found->second};
    }
    case Step::kWhere:
    case Step::kDistinct:
    case Step::kOrderBy:
    case Step::kLimit:
    case Step::kShared:
      return origin(node->input, column);
    case Step::kRename:
      return column.starts_with(node->text + ".")
                 ? origin(node->input, column.substr(node->text.size() + 1))
                 : Origin();
    case Step::kSelect:
    case Step::kGroupBy:
      for (const Item& item : node->items)
        if (output_name(item.expr()) == column)
          if (const std::string* name = column_name(item.expr()); name != nullptr)
            return origin(node->input, *name);
      return {};
    case Step::kJoin: {
      const Origin left = origin(node->input, column);
      return left.table != nullptr ? left : origin(node->right, column);
    }
    case Step::kResult:
      return {};
  }
  return {};
}

const std::optional<PayloadRange>& Estimates::range_of(const Origin& origin) {
  FLUGS_CHECK(origin.table != nullptr && origin.table->view != nullptr);
  const auto [at, is_new] = origin.table->ranges.try_emplace(origin.column);
  if (!is_new) return at->second;
  at->second = origin.table->view->likely_range(origin.column);
  const ColumnInfo& column = origin.table->view->schema()[origin.column];
  if (!at->second && column.domain != nullptr) at->second = range_of_entries(column);
  return at->second;
}

double Estimates::values_of(const Origin& origin) {
  FLUGS_CHECK(origin.table != nullptr && origin.table->view != nullptr);
  Table& table = *origin.table;
  const auto known = table.values.find(origin.column);
  if (known != table.values.end()) return known->second;
  if (table.unique.count(origin.column) != 0) return table.rows;
  double values = table.rows / kRowsPerValue;
  const ColumnInfo& column = table.view->schema()[origin.column];
  const std::optional<PayloadRange>& range = range_of(origin);
  if (range) values = static_cast<double>(range->greatest) - static_cast<double>(range->least) + 1;
  if (column.domain != nullptr && column.domain->count() != 0)
    values = range ? std::min<double>(values, column.domain->count()) : column.domain->count();
  values = std::clamp(values, 1.0, table.rows);
  table.values[origin.column] = values;
  return values;
}

double Estimates::values(const NodePtr& node, const std::string& column) {
  if (const Origin found = origin(node, column); found.table != nullptr) return values_of(found);
  return std::max(1.0, rows_all(node) / kRowsPerValue);
}

bool Estimates::is_left_first(const NodePtr& left, const NodePtr& right) {
  constexpr double kRightRowsMin = 1 << 16;
  constexpr double kTimesSmaller = 4;
  constexpr double kTimesLargerByMistake = 2;
  const double of_right = rows(right);
  return of_right >= kRightRowsMin && rows(left) * kTimesSmaller <= of_right &&
         rows_all(left) <= of_right * kTimesLargerByMistake;
}

bool Estimates::is_unique(const NodePtr& node, const std::string& column) {
  for (NodePtr step = node; step->step != Step::kTable; step = step->input)
    if (step->step == Step::kJoin || step->input == nullptr) return false;
  const Origin found = origin(node, column);
  return found.table != nullptr && found.table->unique.count(found.column) != 0;
}

double Estimates::rows_read(const NodePtr& node) {
  if (node->step == Step::kTable || node->step == Step::kResult) return rows(node);
  return (node->input == nullptr ? 0 : rows_read(node->input)) +
         (node->right == nullptr ? 0 : rows_read(node->right));
}

double Estimates::rows_all(const NodePtr& node) {
  switch (node->step) {
    case Step::kTable:
      return table(node->text).rows;
    case Step::kWhere:
    case Step::kRename:
    case Step::kSelect:
      return rows_all(node->input);
    default:
      return rows(node);
  }
}

double Estimates::rows(const NodePtr& node) {
  const auto known = rows_.find(node);
  if (known != rows_.end()) return known->second;
  const double rows = std::min(count_rows(node), kRowsOfStepMax);
  rows_.emplace(node, rows);
  return rows;
}

double Estimates::count_rows(const NodePtr& node) {
  switch (node->step) {
    case Step::kTable:
      return table(node->text).rows;
    case Step::kResult:
      return static_cast<double>(node->result->rows->row_count);
    case Step::kWhere: {
      std::vector<Expr> conditions;
      NodePtr below = node;
      for (; below->step == Step::kWhere; below = below->input)
        split_conjunction(below->condition, conditions);
      return rows(below) * part_of_all(below, conditions);
    }
    case Step::kSelect:
    case Step::kRename:
    case Step::kOrderBy:
    case Step::kShared:
      return rows(node->input);
    case Step::kJoin:
      return join_rows(node);
    case Step::kGroupBy:
      return group_rows(node);
    case Step::kDistinct:
      return std::max(1.0, rows(node->input) / 2);
    case Step::kLimit:
      return std::min(rows(node->input), static_cast<double>(node->limit));
  }
  return 1;
}

double Estimates::join_rows(const NodePtr& node) {
  const double left = rows(node->input);
  const double right = rows(node->right);
  double left_values = 1;
  double right_values = 1;
  for (const JoinKey& key : node->join_keys) {
    const std::string* a = column_name(key.left.expr());
    const std::string* b = column_name(key.right.expr());
    left_values *= a == nullptr ? left / kRowsPerValue : values(node->input, *a);
    right_values *= b == nullptr ? right / kRowsPerValue : values(node->right, *b);
  }
  left_values = std::clamp(left_values, 1.0, std::max(1.0, rows_all(node->input)));
  right_values = std::clamp(right_values, 1.0, std::max(1.0, rows_all(node->right)));
  const double pairs = left * right / std::max(left_values, right_values);
  const double with_partner = left * within_0_and_1(right / left_values);
  switch (node->join) {
    case JoinKind::kInner:
      return pairs;
    case JoinKind::kLeft:
      return std::max(left, pairs);
    case JoinKind::kSemi:
      return with_partner;
    case JoinKind::kAnti:
      return std::max(left - with_partner, left * kPartEqual);
  }
  return pairs;
}

double Estimates::group_rows(const NodePtr& node) {
  double groups = 1;
  const double in = rows(node->input);
  for (const Item& item : node->items) {
    const std::string* name = column_name(item.expr());
    groups *= name == nullptr ? in / kRowsPerValue : values(node->input, *name);
  }
  return std::max(1.0, std::min(groups, in));
}

double Estimates::part_equal(const NodePtr& node, const Expr& a, const Expr& b) {
  const std::string* left = column_name(a);
  const std::string* right = column_name(b);
  if (left == nullptr && right == nullptr) return kPartEqual;
  if (left != nullptr && right != nullptr)
    return 1 / std::max(values(node, *left), values(node, *right));
  if (literal_of(left == nullptr ? a : b) == nullptr) return kPartEqual;
  const Origin of = origin(node, left == nullptr ? *right : *left);
  return of.table == nullptr ? kPartEqual : 1 / values_of(of);
}

// For `a < b` or `a <= b`, if one side is a column of a table and the other side a constant.
std::optional<Estimates::Bound> Estimates::bound_of(const NodePtr& node, const Expr& condition) {
  const ExprNode& of = *condition.node();
  if (of.op != Op::kLess && of.op != Op::kLessEqual) return std::nullopt;
  const bool is_upper = column_name(of.args[0]) != nullptr;
  const std::string* name = column_name(of.args[is_upper ? 0 : 1]);
  if (name == nullptr) return std::nullopt;
  const Origin from = origin(node, *name);
  if (from.table == nullptr) return std::nullopt;
  const std::optional<PayloadRange>& range = range_of(from);
  const auto payload =
      payload_of(of.args[is_upper ? 1 : 0], from.table->view->schema()[from.column].type);
  if (!range || !payload) return std::nullopt;
  const auto least = static_cast<double>(range->least);
  const double width = static_cast<double>(range->greatest) - least + 1;
  return Bound{*name, is_upper, within_0_and_1((*payload - least) / width)};
}

// Two bounds of a column are one condition: the values between them.
double Estimates::part_of_all(const NodePtr& node, const std::vector<Expr>& conditions) {
  std::map<std::string, std::pair<double, double>> between;
  std::set<std::string> unknown;  // columns whose bounds say nothing: the first one counts
  double all = 1;
  for (const Expr& condition : conditions) {
    if (!condition.is_given() || !condition.node()->error.empty()) continue;
    if (const std::optional<Bound> bound = bound_of(node, condition)) {
      auto& [low, high] = between.try_emplace(bound->column, 0, 1).first->second;
      if (bound->is_upper)
        high = std::min(high, bound->below);
      else
        low = std::max(low, bound->below);
      continue;
    }
    const std::string* name = compared_column(condition);
    if (name == nullptr || unknown.insert(*name).second) all *= part(node, condition);
  }
  for (const auto& [column, ends] : between) all *= within_0_and_1(ends.second - ends.first);
  return all;
}

double Estimates::part(const NodePtr& node, const Expr& condition) {
  if (!condition.is_given() || !condition.node()->error.empty()) return 1;
  const ExprNode& of = *condition.node();
  switch (of.op) {
    case Op::kAnd: {
      std::vector<Expr> conditions;
      split_conjunction(condition, conditions);
      return part_of_all(node, conditions);
    }
    case Op::kOr: {
      const double a = part(node, of.args[0]);
      const double b = part(node, of.args[1]);
      return a + b - a * b;
    }
    case Op::kNot:
      return 1 - part(node, of.args[0]);
    case Op::kEqual:
      return part_equal(node, of.args[0], of.args[1]);
    case Op::kNotEqual:
      return 1 - part_equal(node, of.args[0], of.args[1]);
    case Op::kLess:
    case Op::kLessEqual: {
      const std::optional<Bound> bound = bound_of(node, condition);
      if (!bound) return node->step == Step::kGroupBy ? kPartOfGroups : kPartLess;
      return bound->is_upper ? bound->below : 1 - bound->below;
    }
    case Op::kIn: {
      double all = 0;
      for (std::size_t i = 1; i < of.args.size(); ++i)
        all += part_equal(node, of.args[0], of.args[i]);
      return within_0_and_1(all);
    }
    case Op::kIsNull:
      return kPartNull;
    case Op::kIsNotNull:
      return 1 - kPartNull;
    case Op::kStartsWith:
      return kPartOfPrefix;
    case Op::kEndsWith:
    case Op::kContains:
    case Op::kLike:
    case Op::kMatches:
      return kPartOfPattern;
    default:
      return kPartOther;
  }
}

}  // namespace flugs::query
