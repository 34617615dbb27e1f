#include <fmt/format.h>

#include "base/check.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

namespace {

const char* infix_of(Op op) noexcept {
  switch (op) {
    case Op::kEqual:
      return "=";
    case Op::kNotEqual:
      return "<>";
    case Op::kLess:
      return "<";
    case Op::kLessEqual:
      return "<=";
    case Op::kAnd:
      return "and";
    case Op::kOr:
      return "or";
    case Op::kAdd:
      return "+";
    case Op::kSubtract:
      return "-";
    case Op::kMultiply:
      return "*";
    case Op::kDivide:
      return "/";
    case Op::kRemainder:
      return "%";
    default:
      return nullptr;
  }
}

std::string literal_text(const Literal& literal) {
  return literal.value.with_scale(literal.type.scale).to_string();
}

/// The name of a function of numbers or of a conversion; null: the operator is none.
const char* number_function_name(Op op) noexcept {
  switch (op) {
    case Op::kAbsolute:
      return "absolute";
    case Op::kFloor:
      return "floor";
    case Op::kCeiling:
      return "ceiling";
    case Op::kRound:
      return "round";
    case Op::kSquareRoot:
      return "square_root";
    case Op::kLogarithm:
      return "logarithm";
    case Op::kExponential:
      return "exponential";
    case Op::kPower:
      return "power";
    case Op::kQuotient:
      return "quotient";
    case Op::kToText:
      return "to_text";
    case Op::kToDouble:
      return "to_double";
    case Op::kToInteger:
      return "to_int64";
    case Op::kToDecimal:
      return "to_decimal";
    default:
      return nullptr;
  }
}

/// The name of an operator that is written as a function; null: it is not.
const char* function_name(const ExprNode& node) noexcept {
  switch (node.op) {
    case Op::kYear:
      return "year";
    case Op::kQuarter:
      return "quarter";
    case Op::kMonth:
      return "month";
    case Op::kDay:
      return "day";
    case Op::kDayOfYear:
      return "day_of_year";
    case Op::kWeekday:
      return "weekday";
    case Op::kHour:
      return "hour";
    case Op::kMinute:
      return "minute";
    case Op::kSecond:
      return "second";
    case Op::kTruncateTime:
      return "truncate_time";
    case Op::kAddMonths:
      return "add_months";
    case Op::kToDate:
      return "to_date";
    case Op::kToTimestamp:
      return "to_timestamp";
    case Op::kSubstring:
      return "substring";
    case Op::kFirstByte:
      return "first_byte";
    case Op::kLength:
      return "length";
    case Op::kByteLength:
      return "byte_length";
    case Op::kLower:
      return "lower";
    case Op::kUpper:
      return "upper";
    case Op::kTrim:
      return node.first == 1 ? "trim_left" : node.first == 2 ? "trim_right" : "trim";
    case Op::kConcat:
      return "concat";
    case Op::kPosition:
      return "position";
    case Op::kRegexpExtract:
      return "regexp_extract";
    case Op::kRegexpReplace:
      return "regexp_replace";
    default:
      return number_function_name(node.op);
  }
}

std::string regexp_text(const ExprNode& node, std::string_view name) {
  std::string text = fmt::format("{}({}, '{}'", name, node.args[0].to_string(), node.text);
  if (node.op == Op::kRegexpReplace)
    text += fmt::format(", '{}'", node.args[1].node()->literal.text);
  const bool is_of_all =
      node.op == Op::kRegexpReplace && static_cast<Replace>(node.first) == Replace::kAll;
  if (is_of_all) text += ", all";
  if (node.op == Op::kRegexpExtract && node.first != 0) text += fmt::format(", {}", node.first);
  return text + ")";
}

std::string function_text(const ExprNode& node, std::string_view name) {
  if (node.op == Op::kRegexpExtract || node.op == Op::kRegexpReplace)
    return regexp_text(node, name);
  std::string text(name);
  text += "(";
  if (node.op == Op::kTruncateTime)
    text += fmt::format("{}, ", query::to_string(static_cast<TimeUnit>(node.first)));
  for (std::size_t i = 0; i < node.args.size(); ++i)
    text += (i == 0 ? "" : ", ") + node.args[i].to_string();
  if (node.op == Op::kSubstring) text += fmt::format(", {}, {}", node.first, node.length);
  if (node.op == Op::kToDecimal) text += fmt::format(", {}", node.first);
  if (node.op == Op::kRound && node.first != 0)
    text += fmt::format(", {}", static_cast<std::int32_t>(node.first));
  return text + ")";
}

std::string like_text(const ExprNode& node, const std::string& subject) {
  std::string text = fmt::format("{} like '{}'", subject, node.text);
  if (node.first != 0) text += fmt::format(" escape '{}'", static_cast<char>(node.first));
  return text;
}

std::string case_text(const ExprNode& node) {
  FLUGS_CHECK(node.args.size() % 2 == 1);
  std::string text = "case";
  std::size_t i = 0;
  for (; i + 1 < node.args.size(); i += 2)
    text += fmt::format(" when {} then {}", node.args[i].to_string(), node.args[i + 1].to_string());
  return text + " else " + node.args[i].to_string() + " end";
}

std::string in_text(const ExprNode& node) {
  std::string text = node.args[0].to_string() + " in (";
  for (std::size_t i = 1; i < node.args.size(); ++i)
    text += (i == 1 ? "" : ", ") + node.args[i].to_string();
  return text + ")";
}

std::string operand(const Expr& expr) {
  const bool nested = expr.is_given() && infix_of(expr.node()->op) != nullptr;
  return nested ? "(" + expr.to_string() + ")" : expr.to_string();
}

// `a > 1` is stored as 1 < a: the constant comes last again.
std::string comparison_text(const ExprNode& node, std::string_view infix) {
  const auto is_constant = [](const Expr& expr) {
    return expr.is_given() && expr.node()->op == Op::kConstant;
  };
  const bool is_order = node.op == Op::kLess || node.op == Op::kLessEqual;
  if (is_order && is_constant(node.args[0]) && !is_constant(node.args[1]))
    return fmt::format("{} {} {}", operand(node.args[1]),
                       node.op == Op::kLess ? ">" : ">=", operand(node.args[0]));
  return fmt::format("{} {} {}", operand(node.args[0]), infix, operand(node.args[1]));
}

}  // namespace

std::string Expr::to_string() const {
  if (!node_) return "?";
  const ExprNode& node = *node_;
  if (!node.error.empty()) return node.error;
  if (const char* infix = infix_of(node.op); infix != nullptr) {
    if (node.op == Op::kAnd)
      return fmt::format("{} and {}", node.args[0].to_string(), node.args[1].to_string());
    return comparison_text(node, infix);
  }
  switch (node.op) {
    case Op::kColumn:
      return node.text;
    case Op::kConstant:
      return literal_text(node.literal);
    case Op::kNot:
      return "not (" + node.args[0].to_string() + ")";
    case Op::kIsNull:
      return operand(node.args[0]) + " is null";
    case Op::kIsNotNull:
      return operand(node.args[0]) + " is not null";
    case Op::kIn:
      return in_text(node);
    case Op::kStartsWith:
      return fmt::format("{} starts with '{}'", operand(node.args[0]), node.text);
    case Op::kEndsWith:
      return fmt::format("{} ends with '{}'", operand(node.args[0]), node.text);
    case Op::kContains:
      return fmt::format("{} contains '{}'", operand(node.args[0]), node.text);
    case Op::kLike:
      return like_text(node, operand(node.args[0]));
    case Op::kMatches:
      return fmt::format("{} matches '{}'", operand(node.args[0]), node.text);
    case Op::kCase:
      return case_text(node);
    default: {
      const char* name = function_name(node);
      return name == nullptr ? "?" : function_text(node, name);
    }
  }
}

std::string output_name(const Expr& expr) {
  if (expr.is_given() && !expr.node()->name.empty()) return expr.node()->name;
  return expr.to_string();
}

std::string output_name(const Aggregate& aggregate) {
  if (!aggregate.name.empty()) return aggregate.name;
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
      return "count(*)";
    case AggregateKind::kCount:
      return "count(" + aggregate.of.to_string() + ")";
    case AggregateKind::kCountDistinct:
      return "count(distinct " + aggregate.of.to_string() + ")";
    case AggregateKind::kSum:
      return "sum(" + aggregate.of.to_string() + ")";
    case AggregateKind::kMin:
      return "min(" + aggregate.of.to_string() + ")";
    case AggregateKind::kMax:
      return "max(" + aggregate.of.to_string() + ")";
    case AggregateKind::kAvg:
      return "avg(" + aggregate.of.to_string() + ")";
    case AggregateKind::kVariance:
      return "variance(" + aggregate.of.to_string() + ")";
    case AggregateKind::kStddev:
      return "stddev(" + aggregate.of.to_string() + ")";
    case AggregateKind::kQuantile:
      return fmt::format("quantile({}, {})", aggregate.of.to_string(), aggregate.q);
    case AggregateKind::kMedian:
      return "median(" + aggregate.of.to_string() + ")";
    case AggregateKind::kApproxCountDistinct:
      return "approx_count_distinct(" + aggregate.of.to_string() + ")";
  }
  return "?";
}

}  // namespace flugs::query
