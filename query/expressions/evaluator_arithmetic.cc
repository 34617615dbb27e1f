#include <fmt/format.h>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// The value at a NULL is 0, but 0 and the other operand may overflow: NULLs do not count.
template <typename Function>
bool checked(ColumnView a, ColumnView b, const std::uint8_t* nulls, std::size_t n,
             std::int64_t* out, Function&& function) {
  bool wrong = false;
  if (nulls == nullptr) {
    for (std::size_t i = 0; i < n; ++i) wrong |= function(a.ints()[i], b.ints()[i], out + i);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      wrong |= function(a.ints()[i], b.ints()[i], out + i) && nulls[i] == 0;
      if (nulls[i] != 0) out[i] = 0;
    }
  }
  return wrong;
}

}  // namespace

void fail_by_overflow(const BoundExpr& expr) {
  fail(StatusCode::kOverflow,
       fmt::format("{}: a result does not fit {}", expr.label, to_string(expr.type)));
}

ColumnView Evaluator::arithmetic(const BoundExpr& expr, const Batch& batch) {
  FLUGS_DCHECK(is_arithmetic(expr.op) && expr.args.size() == 2);
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  return expr.form == Form::kReal ? real_arithmetic(expr, a, b, batch.rows)
                                  : integer_arithmetic(expr, a, b, batch.rows);
}

ColumnView Evaluator::integer_arithmetic(const BoundExpr& expr, ColumnView a, ColumnView b,
                                         std::size_t n) {
  std::int64_t* result = out(expr).ints(n);
  const std::uint8_t* nulls = merged_nulls(expr, a.nulls, b.nulls, n);
  using I = std::int64_t;
  bool wrong = false;
  switch (expr.op) {
    case Op::kAdd:
      wrong = checked(a, b, nulls, n, result,
                      [](I x, I y, I* to) { return __builtin_add_overflow(x, y, to); });
      break;
    case Op::kSubtract:
      wrong = checked(a, b, nulls, n, result,
                      [](I x, I y, I* to) { return __builtin_sub_overflow(x, y, to); });
      break;
    case Op::kMultiply:
      wrong = checked(a, b, nulls, n, result,
                      [](I x, I y, I* to) { return __builtin_mul_overflow(x, y, to); });
      break;
    default: {
      FLUGS_DCHECK(expr.op == Op::kRemainder);
      std::uint8_t* zeros = out(expr).nulls(n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t divisor = b.ints()[i];
        zeros[i] = divisor == 0 || (nulls != nullptr && nulls[i] != 0) ? 1 : 0;
        // -1: the quotient of the least number does not fit, the remainder is 0.
        result[i] = divisor == 0 || divisor == -1 ? 0 : a.ints()[i] % divisor;
      }
      return {result, zeros};
    }
  }
  if (is_time(expr.type) && is_narrow_type(expr.type.type))
    for (std::size_t i = 0; i < n; ++i)
      wrong |=
          result[i] != static_cast<std::int32_t>(result[i]) && (nulls == nullptr || nulls[i] == 0);
  if (wrong) fail_by_overflow(expr);
  return {result, nulls};
}

ColumnView Evaluator::real_arithmetic(const BoundExpr& expr, ColumnView a, ColumnView b,
                                      std::size_t n) {
  double* result = out(expr).reals(n);
  const double* x = a.reals();
  const double* y = b.reals();
  const std::uint8_t* nulls = merged_nulls(expr, a.nulls, b.nulls, n);
  switch (expr.op) {
    case Op::kAdd:
      for (std::size_t i = 0; i < n; ++i) result[i] = normal(x[i] + y[i]);
      break;
    case Op::kSubtract:
      for (std::size_t i = 0; i < n; ++i) result[i] = normal(x[i] - y[i]);
      break;
    case Op::kMultiply:
      for (std::size_t i = 0; i < n; ++i) result[i] = normal(x[i] * y[i]);
      break;
    default: {
      FLUGS_DCHECK(expr.op == Op::kDivide);
      std::uint8_t* zeros = out(expr).nulls(n);
      for (std::size_t i = 0; i < n; ++i) {
        zeros[i] = y[i] == 0 || (nulls != nullptr && nulls[i] != 0) ? 1 : 0;
        result[i] = zeros[i] != 0 ? 0 : normal(x[i] / y[i]);
      }
      return {result, zeros};
    }
  }
  if (nulls != nullptr)
    for (std::size_t i = 0; i < n; ++i)
      if (nulls[i] != 0) result[i] = 0;
  return {result, nulls};
}

ColumnView Evaluator::conversion(const BoundExpr& expr, const Batch& batch) {
  const BoundExpr& from = *expr.args[0];
  FLUGS_DCHECK(from.form == Form::kInt);
  const ColumnView a = evaluate(from, batch);
  const std::size_t n = batch.rows;
  if (expr.op == Op::kToDouble) {
    double* result = out(expr).reals(n);
    const auto divisor = static_cast<double>(power_of_ten(from.type.scale));
    for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<double>(a.ints()[i]) / divisor;
    return {result, a.nulls};
  }
  const std::int64_t factor =
      expr.op == Op::kToInstant ? unit_ratio(from.type, expr.type) : power_of_ten(expr.first);
  std::int64_t* result = out(expr).ints(n);
  bool wrong = false;
  for (std::size_t i = 0; i < n; ++i)
    wrong |= __builtin_mul_overflow(a.ints()[i], factor, result + i);  // 0 at a NULL
  if (wrong) fail_by_overflow(expr);
  return {result, a.nulls};
}

ColumnView Evaluator::coarsened(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const std::size_t n = batch.rows;
  const std::int64_t ratio = expr.factors[0];
  FLUGS_DCHECK(ratio > 1);
  std::int64_t* result = out(expr).ints(n);
  std::uint8_t* nulls = out(expr).nulls(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_whole = a.ints()[i] % ratio == 0;
    nulls[i] = !is_whole || (a.nulls != nullptr && a.nulls[i] != 0) ? 1 : 0;
    result[i] = is_whole ? a.ints()[i] / ratio : 0;
  }
  return {result, nulls};
}

}  // namespace flugs::query
