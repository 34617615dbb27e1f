#include "bindings/c/expressions.h"

#include "bindings/c/operations.h"
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
