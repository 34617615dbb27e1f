#pragma once

#include "bindings/c/expressions.h"
#include "flugs/expression.h"
#include "flugs/status.h"

namespace flugs::c {

/// Sets `out` to the operation on these arguments. Fails with kInvalidArgument if there is no such
/// operation, if the number of arguments is wrong, or if an argument that must be a constant is
/// none.
Status operation(flugs_op op, const TakenExpressions& of, query::Expr& out);

}  // namespace flugs::c
