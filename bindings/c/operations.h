#pragma once

#include "bindings/c/expressions.h"
#include "flugs/expression.h"
#include "flugs/status.h"

namespace flugs::c {

/// The expression that an operation on these arguments is. Fails with kInvalidArgument: no such
/// operation, a wrong number of arguments, or one that should be a constant.
Status operation(flugs_op op, const TakenExpressions& of, query::Expr& out);

}  // namespace flugs::c
