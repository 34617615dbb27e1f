#include "query/expressions/expr_rewrite.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

namespace {

bool has_value_always(Op op) noexcept {
  switch (op) {
    case Op::kColumn:
    case Op::kConstant:
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
    case Op::kIsNull:
    case Op::kIsNotNull:
    case Op::kIn:
    case Op::kStartsWith:
    case Op::kEndsWith:
    case Op::kContains:
    case Op::kLike:
    case Op::kMatches:
    case Op::kRegexpExtract:
    case Op::kYear:
    case Op::kMonth:
    case Op::kDay:
    case Op::kSubstring:
    case Op::kFirstByte:
      return true;
    default:
      return false;
  }
}

}  // namespace

const std::string* column_name(const Expr& expr) {
  if (!expr.is_given() || expr.node()->op != Op::kColumn || !expr.node()->error.empty())
    return nullptr;
  return &expr.node()->text;
}

// Recursive; ExprNode bounds the depth.
Expr replace_columns(const Expr& expr, FunctionRef<Expr(const std::string& name)> replace) {
  if (!expr.is_given()) return expr;
  if (const std::string* name = column_name(expr); name != nullptr) return replace(*name);
  ExprNode made = *expr.node();
  for (Expr& arg : made.args) arg = replace_columns(arg, replace);
  return make_expr(std::move(made));
}

bool cannot_fail(const Expr& expr) {
  if (!expr.is_given() || !expr.node()->error.empty()) return false;
  return has_value_always(expr.node()->op) &&
         std::all_of(expr.node()->args.begin(), expr.node()->args.end(), cannot_fail);
}

// Recursive, as replace_columns.
bool are_same(const Expr& a, const Expr& b) {
  if (!a.is_given() || !b.is_given()) return a.is_given() == b.is_given();
  const ExprNode& x = *a.node();
  const ExprNode& y = *b.node();
  if (&x == &y) return true;
  return x.op == y.op && x.text == y.text && x.error == y.error && x.first == y.first &&
         x.length == y.length && x.literal.type == y.literal.type &&
         x.literal.value == y.literal.value &&
         x.literal.is_untyped_null == y.literal.is_untyped_null &&
         std::equal(x.args.begin(), x.args.end(), y.args.begin(), y.args.end(), are_same);
}

Expr all_of(const std::vector<Expr>& conditions) {
  FLUGS_CHECK(!conditions.empty());
  Expr all = conditions.front();
  for (std::size_t i = 1; i < conditions.size(); ++i) all = all && conditions[i];
  return all;
}

}  // namespace flugs::query
