#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/errors.h"
#include "flugs/condition.h"
#include "flugs/expression.h"

/// An expression, or what is wrong in it.
struct flugs_expr : flugs::c::Handle<flugs::c::Kind::kExpr> {
  flugs::query::Expr core;
  std::optional<flugs::Constant> constant;  ///< what flugs_expr_constant was given
  flugs::Status problem;
};

namespace flugs::c {

/// Expressions that a call has taken over: they are freed with this object.
class TakenExpressions {
 public:
  TakenExpressions() = default;
  /// If this fails for want of memory, it frees them as well.
  TakenExpressions(flugs_expr* const* expressions, std::size_t count) { add(expressions, count); }
  void add(flugs_expr* const* expressions, std::size_t count);

  std::size_t size() const noexcept { return taken_.size(); }
  const query::Expr& expression(std::size_t i) const noexcept { return taken_[i]->core; }
  const flugs_expr& operator[](std::size_t i) const noexcept { return *taken_[i]; }
  /// All of them from `first` on.
  template <typename T>
  std::vector<T> as(std::size_t first, std::size_t count) const {
    std::vector<T> result;
    result.reserve(count);
    for (std::size_t i = first; i < first + count; ++i) result.push_back(T(expression(i)));
    return result;
  }

  /// What is wrong in one of them; NULL: nothing. Only then they may be used.
  flugs_error* error() const { return to_c(problem_); }
  const Status& problem() const noexcept { return problem_; }

 private:
  std::vector<std::unique_ptr<flugs_expr>> taken_;
  Status problem_;
};

}  // namespace flugs::c
