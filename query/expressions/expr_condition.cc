// Expressions that a schema can keep: flugs/condition.h.

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "flugs/condition.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

namespace {

using ConditionKind = Condition::Kind;

Condition unfit(const Expr& expr) {
  return Condition::wrong(
      fmt::format("'{}' is neither a comparison of a column with constants or a column nor a "
                  "combination of comparisons",
                  expr.to_string()));
}

bool is_column(const Expr& expr) { return expr.is_given() && expr.node()->op == Op::kColumn; }
bool is_constant(const Expr& expr) {
  return expr.is_given() && expr.node()->op == Op::kConstant && expr.node()->error.empty();
}
Constant constant_of(const Expr& expr) {
  const Literal& literal = expr.node()->literal;
  return literal.value.with_scale(literal.type.scale);
}

ConditionKind mirrored(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::kLess:
      return ConditionKind::kGreater;
    case ConditionKind::kLessEqual:
      return ConditionKind::kGreaterEqual;
    default:
      return kind;
  }
}

Condition comparison(ConditionKind kind, const Expr& whole) {
  FLUGS_CHECK(whole.node()->args.size() == 2);
  const Expr& left = whole.node()->args[0];
  const Expr& right = whole.node()->args[1];
  if (is_column(left) && is_column(right))
    return Condition::compare_columns(left.node()->text, kind, right.node()->text);
  if (is_column(left) && is_constant(right))
    return Condition::compare(left.node()->text, kind, constant_of(right));
  if (is_constant(left) && is_column(right))
    return Condition::compare(right.node()->text, mirrored(kind), constant_of(left));
  return unfit(whole);
}

Condition membership(const Expr& whole) {
  const std::vector<Expr>& args = whole.node()->args;
  if (!is_column(args[0])) return unfit(whole);
  std::vector<Constant> constants;
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (!is_constant(args[i])) return unfit(whole);
    constants.push_back(constant_of(args[i]));
  }
  return Condition::in(args[0].node()->text, std::move(constants));
}

Condition of_column(const Expr& whole) {
  const ExprNode& node = *whole.node();
  const Expr& subject = node.args[0];
  if (!is_column(subject)) return unfit(whole);
  const std::string& column = subject.node()->text;
  switch (node.op) {
    case Op::kIsNull:
      return Condition::is_null(column);
    case Op::kIsNotNull:
      return Condition::is_not_null(column);
    case Op::kStartsWith:
      return Condition::starts_with(column, node.text);
    case Op::kEndsWith:
      return Condition::ends_with(column, node.text);
    default:
      FLUGS_CHECK(node.op == Op::kContains);
      return Condition::contains(column, node.text);
  }
}

// Recursive; ExprNode bounds the depth.
Condition condition_of(const Expr& expr) {
  if (!expr.is_given()) return Condition::wrong("an expression is missing");
  const ExprNode& node = *expr.node();
  if (!node.error.empty()) return Condition::wrong(node.error);
  switch (node.op) {
    case Op::kColumn:  // a column of type bool
      return Condition::compare(node.text, ConditionKind::kEqual, Value::boolean(true));
    case Op::kEqual:
      return comparison(ConditionKind::kEqual, expr);
    case Op::kNotEqual:
      return comparison(ConditionKind::kNotEqual, expr);
    case Op::kLess:
      return comparison(ConditionKind::kLess, expr);
    case Op::kLessEqual:
      return comparison(ConditionKind::kLessEqual, expr);
    case Op::kIn:
      return membership(expr);
    case Op::kAnd:
      return Condition::all_of({condition_of(node.args[0]), condition_of(node.args[1])});
    case Op::kOr:
      return Condition::any_of({condition_of(node.args[0]), condition_of(node.args[1])});
    case Op::kNot:
      return Condition::negated(condition_of(node.args[0]));
    case Op::kIsNull:
    case Op::kIsNotNull:
    case Op::kStartsWith:
    case Op::kEndsWith:
    case Op::kContains:
      return of_column(expr);
    default:
      return unfit(expr);
  }
}

}  // namespace

Expr::operator Condition() const { return condition_of(*this); }

}  // namespace flugs::query
