#pragma once

#include <string>

#include "flugs/expression.h"
#include "flugs/function_ref.h"

namespace flugs::query {

/// The name of the column, if the expression is a column and nothing else; else null.
const std::string* column_name(const Expr& expr);
/// The expression with `replace(name)` in the place of each column.
Expr replace_columns(const Expr& expr, FunctionRef<Expr(const std::string& name)> replace);
/// True if the expression cannot fail for any row; NULL counts as a value. An expression that may
/// fail must not move below a step that drops rows.
bool cannot_fail(const Expr& expr);
/// Whether two expressions are written in the same way, with constants of the same types.
bool are_same(const Expr& a, const Expr& b);
/// All of the conditions, in order, as one; at least one.
Expr all_of(const std::vector<Expr>& conditions);

}  // namespace flugs::query
