#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/vectors/failure.h"

namespace flugs::query {

BoundPtr Binder::bind_time_arithmetic(Op op, BoundPtr a, BoundPtr b, std::string label) {
  const auto finish = [&](DataType type) {
    BoundPtr made = node(op, type, std::move(label));
    made->args.push_back(std::move(a));
    made->args.push_back(std::move(b));
    return made;
  };
  const bool both = is_time(a->type) && is_time(b->type);
  if (op == Op::kSubtract && both && a->type == b->type) return finish({Type::kInt64, 0});
  if (op == Op::kAdd && is_time(b->type) && is_integer(a->type)) return finish(b->type);
  if ((op == Op::kAdd || op == Op::kSubtract) && is_time(a->type) && is_integer(b->type))
    return finish(a->type);
  fail(StatusCode::kInvalidArgument,
       fmt::format("{}: not defined for {} and {}", label, to_string(a->type), to_string(b->type)));
}

BoundPtr Binder::bind_arithmetic(const ExprNode& from, std::string label) {
  FLUGS_CHECK(is_arithmetic(from.op) && from.args.size() == 2);
  const Op op = from.op;
  BoundPtr a = bind_node(from.args[0]);
  BoundPtr b = bind_node(from.args[1]);
  if (a->is_untyped_null) give_type(a, is_time(b->type) ? DataType{} : b->type);
  if (b->is_untyped_null) give_type(b, is_time(a->type) ? DataType{} : a->type);
  if (is_time(a->type) || is_time(b->type))
    return bind_time_arithmetic(op, std::move(a), std::move(b), std::move(label));
  const bool integers = is_integer(a->type) && is_integer(b->type);
  if (!is_number(a->type) || !is_number(b->type) || (op == Op::kRemainder && !integers))
    fail(StatusCode::kInvalidArgument, fmt::format("{}: not defined for {} and {}", label,
                                                   to_string(a->type), to_string(b->type)));
  DataType type{Type::kInt64, 0};
  if (op == Op::kDivide || !is_exact(a->type) || !is_exact(b->type)) {
    type = {Type::kDouble, 0};
    convert_to(a, type);
    convert_to(b, type);
  } else if (!integers && op == Op::kMultiply) {
    if (a->type.scale + b->type.scale > 18)
      fail(StatusCode::kInvalidArgument, fmt::format("{}: a decimal of scale {}, at most 18", label,
                                                     a->type.scale + b->type.scale));
    type = {Type::kDecimal, static_cast<std::uint8_t>(a->type.scale + b->type.scale)};
  } else if (!integers) {
    type = {Type::kDecimal, std::max(a->type.scale, b->type.scale)};
    a = rescaled(std::move(a), type.scale);
    b = rescaled(std::move(b), type.scale);
  }
  FLUGS_CHECK(a->form == b->form && a->form == form_of(lane_of(type)));
  BoundPtr made = node(op, type, std::move(label));
  made->args.push_back(std::move(a));
  made->args.push_back(std::move(b));
  return made;
}

BoundPtr Binder::bind_case(const ExprNode& from, std::string label) {
  FLUGS_CHECK(from.args.size() % 2 ==
              1);  // conditions with their values, and the value of the rest
  std::vector<BoundPtr> args;
  args.reserve(from.args.size());
  for (const Expr& arg : from.args) args.push_back(bind_node(arg));
  const auto is_value = [&](std::size_t i) { return i % 2 == 1 || i + 1 == args.size(); };
  DataType common;
  bool has_type = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_value(i)) {
      if (args[i]->is_untyped_null) give_type(args[i], {Type::kBool, 0});
      if (args[i]->type.type != Type::kBool)
        fail(StatusCode::kInvalidArgument, fmt::format("{}: expected a condition, found {}",
                                                       args[i]->label, to_string(args[i]->type)));
      continue;
    }
    if (args[i]->is_untyped_null) continue;
    if (has_type && !common_type(common, args[i]->type, common))
      fail(StatusCode::kInvalidArgument, fmt::format("{}: {} and {} have no common type", label,
                                                     to_string(common), to_string(args[i]->type)));
    if (!has_type) common = args[i]->type;
    has_type = true;
  }
  // Always NULL; its place decides the type.
  if (!has_type) return bind_literal(Literal(Value::null(), 0), std::move(label));
  BoundPtr made = node(Op::kCase, common, std::move(label));
  for (std::size_t i = 0; i < args.size(); ++i)
    if (is_value(i)) convert_to(args[i], common);
  made->args = std::move(args);
  collect_columns(*made, made->columns);
  for (const std::uint32_t column : made->columns)
    made->column_forms.push_back(schema_[column].form());
  made->first_slot = slots_;
  slots_ += static_cast<std::uint32_t>(made->columns.size());
  return made;
}

// From the top: replaces the largest parts that depend only on one coded column.
BoundPtr Binder::with_lookups(BoundPtr expr) {
  if (expr->op == Op::kColumn || expr->op == Op::kConstant || expr->op == Op::kLookup) return expr;
  std::vector<std::uint32_t> columns;
  collect_columns(*expr, columns);
  const CodeDomain* domain = columns.size() == 1 ? schema_[columns[0]].domain.get() : nullptr;
  if (domain != nullptr && domain->count() != 0 && domain->count() <= lookup_codes_max_) {
    expr = kept(std::move(expr));  // first: the slots below a lookup come before its own
    BoundPtr made = node(Op::kLookup, expr->type, expr->label);
    made->column = columns[0];
    made->domain = schema_[columns[0]].domain;
    made->lookup = std::make_unique<LookupTable>();
    made->args.push_back(std::move(expr));
    return made;
  }
  for (BoundPtr& arg : expr->args) arg = with_lookups(std::move(arg));
  return expr;
}

void collect_columns(const Expr& expr, std::vector<std::string>& names) {
  if (!expr.is_given()) return;
  const ExprNode& node = *expr.node();
  if (node.op == Op::kColumn && std::find(names.begin(), names.end(), node.text) == names.end())
    names.push_back(node.text);
  for (const Expr& arg : node.args) collect_columns(arg, names);
}

void collect_columns(const BoundExpr& expr, std::vector<std::uint32_t>& columns) {
  const bool is_leaf = (expr.op == Op::kColumn && expr.args.empty()) || expr.op == Op::kLookup;
  if (is_leaf && std::find(columns.begin(), columns.end(), expr.column) == columns.end())
    columns.push_back(expr.column);
  if (is_leaf) return;
  for (const BoundPtr& arg : expr.args) collect_columns(*arg, columns);
}

}  // namespace flugs::query
