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
  if (literal.value.is_null() || literal.type.type != Type::kDecimal || literal.type.scale == 0)
    return literal.value.to_string();
  FLUGS_CHECK(literal.type.scale <= kScaleMax);
  const std::int64_t units = literal.value.raw();
  std::string digits = fmt::format(
      "{:0{}}",
      units < 0 ? 0 - static_cast<std::uint64_t>(units) : static_cast<std::uint64_t>(units),
      literal.type.scale + 1);
  digits.insert(digits.size() - literal.type.scale, ".");
  return units < 0 ? "-" + digits : digits;
}

std::string function_text(const ExprNode& node, std::string_view name) {
  std::string text(name);
  text += "(";
  for (std::size_t i = 0; i < node.args.size(); ++i)
    text += (i == 0 ? "" : ", ") + node.args[i].to_string();
  if (node.op == Op::kSubstring) text += fmt::format(", {}, {}", node.first, node.length);
  return text + ")";
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

}  // namespace

std::string Expr::to_string() const {
  if (!node_) return "?";
  const ExprNode& node = *node_;
  if (!node.error.empty()) return node.error;
  if (const char* infix = infix_of(node.op); infix != nullptr) {
    if (node.op == Op::kAnd)
      return fmt::format("{} and {}", node.args[0].to_string(), node.args[1].to_string());
    return fmt::format("{} {} {}", operand(node.args[0]), infix, operand(node.args[1]));
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
    case Op::kYear:
      return function_text(node, "year");
    case Op::kMonth:
      return function_text(node, "month");
    case Op::kDay:
      return function_text(node, "day");
    case Op::kSubstring:
      return function_text(node, "substring");
    case Op::kFirstByte:
      return function_text(node, "first_byte");
    case Op::kToDouble:
      return function_text(node, "to_double");
    case Op::kCase:
      return case_text(node);
    default:
      return "?";
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
  }
  return "?";
}

std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) noexcept {
  FLUGS_DCHECK(month >= 1 && month <= 12 && day >= 1 && day <= 31);
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468;
}

CivilDate civil_from_days(std::int64_t days) noexcept {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  FLUGS_DCHECK(day_of_era < 146097 && year_of_era < 400);
  const unsigned day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * day_of_year + 2) / 153;
  const unsigned day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2), month, day};
}

}  // namespace flugs::query
