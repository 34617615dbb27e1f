#include "bindings/c/expressions.h"

#include "bindings/c/values.h"

namespace flugs::c {

void TakenExpressions::add(flugs_expr* const* expressions, std::size_t count) {
  const auto refuse = [this](std::string what) {
    if (problem_.ok()) problem_ = Status(StatusCode::kInvalidArgument, std::move(what));
  };
  if (expressions == nullptr && count > 0) return refuse("expressions: NULL");
  std::size_t owned = 0;
  try {
    taken_.reserve(taken_.size() + count);
    for (; owned < count; ++owned) {
      flugs_expr* expression = expressions[owned];
      if (!is_handle(expression)) {
        refuse("expression " + std::to_string(owned) + ": NULL, freed, or taken over before");
        continue;
      }
      expression->retire();  // a second place in the same array finds it taken
      taken_.emplace_back(expression);
      if (problem_.ok()) problem_ = expression->problem;
    }
  } catch (...) {
    for (; owned < count; ++owned)
      if (is_handle(expressions[owned])) delete expressions[owned];
    throw;
  }
}

namespace {

using query::Expr;

/// What the arguments of an operation must be.
struct Arity {
  std::size_t least;
  std::size_t most;
};
constexpr std::size_t kMany = 100'000;

Arity arity_of(flugs_op op) {
  switch (op) {
    case FLUGS_OP_ROW_ID:
      return {0, 0};
    case FLUGS_OP_NOT:
    case FLUGS_OP_IS_NULL:
    case FLUGS_OP_IS_NOT_NULL:
    case FLUGS_OP_YEAR:
    case FLUGS_OP_MONTH:
    case FLUGS_OP_DAY:
    case FLUGS_OP_FIRST_BYTE:
    case FLUGS_OP_TO_DOUBLE:
      return {1, 1};
    case FLUGS_OP_BETWEEN:
    case FLUGS_OP_SUBSTRING:
      return {3, 3};
    case FLUGS_OP_AND:
    case FLUGS_OP_OR:
    case FLUGS_OP_IN:
      return {1, kMany};
    case FLUGS_OP_CASE:
      return {2, kMany};
    default:
      return {2, 2};
  }
}

/// Operations of two arguments that any expressions may be.
Expr binary(flugs_op op, const Expr& a, const Expr& b) {
  switch (op) {
    case FLUGS_OP_EQUAL:
      return a == b;
    case FLUGS_OP_NOT_EQUAL:
      return a != b;
    case FLUGS_OP_LESS:
      return a < b;
    case FLUGS_OP_LESS_EQUAL:
      return a <= b;
    case FLUGS_OP_GREATER:
      return a > b;
    case FLUGS_OP_GREATER_EQUAL:
      return a >= b;
    case FLUGS_OP_AND:
      return a && b;
    case FLUGS_OP_OR:
      return a || b;
    case FLUGS_OP_PLUS:
      return a + b;
    case FLUGS_OP_MINUS:
      return a - b;
    case FLUGS_OP_TIMES:
      return a * b;
    case FLUGS_OP_DIVIDE:
      return a / b;
    default:
      return a % b;
  }
}

Expr unary(flugs_op op, const Expr& a) {
  switch (op) {
    case FLUGS_OP_NOT:
      return !a;
    case FLUGS_OP_IS_NULL:
      return a.is_null();
    case FLUGS_OP_IS_NOT_NULL:
      return a.is_not_null();
    case FLUGS_OP_YEAR:
      return query::year(a);
    case FLUGS_OP_MONTH:
      return query::month(a);
    case FLUGS_OP_DAY:
      return query::day(a);
    case FLUGS_OP_FIRST_BYTE:
      return query::first_byte(a);
    default:
      return query::to_double(a);
  }
}

/// A tree of few levels: an expression has at most 1000.
Expr combined(flugs_op op, const TakenExpressions& of, std::size_t first, std::size_t count) {
  if (count == 1) return of.expression(first);
  const std::size_t left = count / 2;
  return binary(op, combined(op, of, first, left), combined(op, of, first + left, count - left));
}

Expr case_of(const TakenExpressions& of) {
  std::vector<query::WhenThen> cases;
  for (std::size_t i = 0; i + 1 < of.size(); i += 2)
    cases.push_back({of.expression(i), of.expression(i + 1)});
  return query::case_when(std::move(cases),
                          of.size() % 2 == 1 ? of.expression(of.size() - 1) : Expr());
}

bool is_text(const flugs_expr& argument) {
  return argument.constant && !argument.constant->is_null() &&
         (argument.constant->value().type() == Type::kString ||
          argument.constant->value().type() == Type::kBytes);
}

bool is_length(const flugs_expr& argument) {
  if (!argument.constant || argument.constant->is_null()) return false;
  const Value value = argument.constant->value();
  return (value.type() == Type::kInt32 || value.type() == Type::kInt64) && value.raw() >= 0 &&
         value.raw() <= INT32_MAX;
}

/// Operations some of whose arguments must be constants.
Status with_constants(flugs_op op, const TakenExpressions& of, Expr& out) {
  if (op == FLUGS_OP_SUBSTRING) {
    if (!is_length(of[1]) || !is_length(of[2]))
      return Status(StatusCode::kInvalidArgument,
                    "FLUGS_OP_SUBSTRING: first and length must be constant integers");
    out = query::substring(of.expression(0),
                           static_cast<std::uint32_t>(of[1].constant->value().raw()),
                           static_cast<std::uint32_t>(of[2].constant->value().raw()));
    return {};
  }
  if (!is_text(of[1]))
    return Status(StatusCode::kInvalidArgument,
                  "FLUGS_OP_STARTS_WITH, _ENDS_WITH, _CONTAINS: the second argument must be a "
                  "constant text");
  const Value constant = of[1].constant->value();
  const std::string_view text = constant.as_string();
  const Expr& a = of.expression(0);
  if (op == FLUGS_OP_STARTS_WITH) out = a.starts_with(text);
  if (op == FLUGS_OP_ENDS_WITH) out = a.ends_with(text);
  if (op == FLUGS_OP_CONTAINS) out = a.contains(text);
  return {};
}

Status operation(flugs_op op, const TakenExpressions& of, Expr& out) {
  if (!of.problem().ok()) return of.problem();
  if (op < FLUGS_OP_EQUAL || op > FLUGS_OP_ROW_ID)
    return Status(StatusCode::kInvalidArgument,
                  "no operation has the number " + std::to_string(op));
  const Arity arity = arity_of(op);
  if (of.size() < arity.least || of.size() > arity.most)
    return Status(StatusCode::kInvalidArgument, "operation " + std::to_string(op) +
                                                    " does not have " + std::to_string(of.size()) +
                                                    " arguments");
  switch (op) {
    case FLUGS_OP_STARTS_WITH:
    case FLUGS_OP_ENDS_WITH:
    case FLUGS_OP_CONTAINS:
    case FLUGS_OP_SUBSTRING:
      return with_constants(op, of, out);
    case FLUGS_OP_AND:
    case FLUGS_OP_OR:
      out = combined(op, of, 0, of.size());
      return {};
    case FLUGS_OP_BETWEEN:
      out = of.expression(0).between(of.expression(1), of.expression(2));
      return {};
    case FLUGS_OP_IN:
      out = of.expression(0).in(of.as<Expr>(1, of.size() - 1));
      return {};
    case FLUGS_OP_CASE:
      out = case_of(of);
      return {};
    case FLUGS_OP_ROW_ID:
      out = query::row_id();
      return {};
    default:
      out = of.size() == 1 ? unary(op, of.expression(0))
                           : binary(op, of.expression(0), of.expression(1));
      return {};
  }
}

/// A new expression, which `make` fills; NULL: there is no memory.
template <typename Make>
flugs_expr* made(Make&& make) noexcept {
  try {
    auto result = std::make_unique<flugs_expr>();
    make(*result);
    return result.release();
  } catch (...) {
    return nullptr;
  }
}

void refuse(flugs_expr& expression, const char* what) {
  expression.problem = Status(StatusCode::kInvalidArgument, what);
}

}  // namespace

}  // namespace flugs::c

using flugs::c::TakenExpressions;

extern "C" {

flugs_expr* flugs_expr_column(const char* name) {
  return flugs::c::made([&](flugs_expr& e) {
    if (name == nullptr) return flugs::c::refuse(e, "the name of a column is NULL");
    e.core = flugs::query::col(name);
  });
}

flugs_expr* flugs_expr_constant(const flugs_value* value) {
  return flugs::c::made([&](flugs_expr& e) {
    if (value == nullptr) return flugs::c::refuse(e, "the value of a constant is NULL");
    flugs::Value converted;
    e.problem = flugs::c::from_c(*value, 0, converted);
    if (!e.problem.ok()) return;
    if (converted.scale() == flugs::Value::kScaleOfColumn)
      return flugs::c::refuse(e, "a decimal constant needs a scale of its own");
    e.core = flugs::query::constant(converted);
    e.constant = flugs::Constant(converted);
  });
}

flugs_expr* flugs_expr_op(flugs_op op, flugs_expr* const* arguments, size_t argument_count) {
  return flugs::c::made([&](flugs_expr& e) {
    const TakenExpressions taken(arguments, argument_count);
    e.problem = flugs::c::operation(op, taken, e.core);
  });
}

flugs_expr* flugs_expr_unary(flugs_op op, flugs_expr* argument) {
  return flugs_expr_op(op, &argument, 1);
}

flugs_expr* flugs_expr_binary(flugs_op op, flugs_expr* left, flugs_expr* right) {
  flugs_expr* const arguments[] = {left, right};
  return flugs_expr_op(op, arguments, 2);
}

flugs_expr* flugs_expr_named(flugs_expr* expression, const char* name) {
  return flugs::c::made([&](flugs_expr& e) {
    const TakenExpressions taken(&expression, 1);
    e.problem = taken.problem();
    if (!e.problem.ok()) return;
    if (name == nullptr) return flugs::c::refuse(e, "the name of an expression is NULL");
    e.core = taken.expression(0).as(name);
  });
}

flugs_expr* flugs_expr_copy(const flugs_expr* expression) {
  return flugs::c::made([&](flugs_expr& e) {
    if (!flugs::c::is_handle(expression))
      return flugs::c::refuse(e, "expression: NULL, freed, or taken over before");
    e.core = expression->core;
    e.constant = expression->constant;
    e.problem = expression->problem;
  });
}

flugs_error* flugs_expr_text(const flugs_expr* expression, char** out) {
  return flugs::c::guarded([&]() -> flugs_error* {
    if (out == nullptr) return flugs::c::no_pointer("out");
    *out = nullptr;
    if (!flugs::c::is_handle(expression)) return flugs::c::no_handle("expression");
    if (!expression->problem.ok()) return flugs::c::to_c(expression->problem);
    *out = flugs::c::copy_of(expression->core.to_string());
    return nullptr;
  });
}

void flugs_expr_free(flugs_expr* expression) {
  if (flugs::c::is_handle(expression)) delete expression;
}
}
