#include <cmath>
#include <functional>

#include "base/check.h"
#include "query/expressions/bound_expr.h"

namespace flugs::query {

namespace {

__extension__ using Int128 = __int128;

template <typename T, typename Compare>
void compare(const T* a, const T* b, std::size_t n, std::int64_t* out, Compare&& is_true) {
  for (std::size_t i = 0; i < n; ++i) out[i] = is_true(a[i], b[i]) ? 1 : 0;
}

template <typename T, typename Equal, typename Less>
void compare_by(Op op, const T* a, const T* b, std::size_t n, std::int64_t* out, Equal equal,
                Less less) {
  switch (op) {
    case Op::kEqual:
      return compare(a, b, n, out, equal);
    case Op::kNotEqual:
      return compare(a, b, n, out, [&](const T& x, const T& y) { return !equal(x, y); });
    case Op::kLess:
      return compare(a, b, n, out, less);
    default:
      FLUGS_DCHECK(op == Op::kLessEqual);
      return compare(a, b, n, out, [&](const T& x, const T& y) { return !less(y, x); });
  }
}

bool matches(const BoundExpr& predicate, std::string_view text) noexcept {
  if (predicate.op == Op::kLike) return predicate.like->matches(text);
  if (predicate.op == Op::kStartsWith) return text.starts_with(predicate.text);
  if (predicate.op == Op::kEndsWith) return text.ends_with(predicate.text);
  FLUGS_DCHECK(predicate.op == Op::kContains);
  return text.find(predicate.text) != std::string_view::npos;
}

}  // namespace

ColumnView Evaluator::comparison(const BoundExpr& expr, const Batch& batch) {
  FLUGS_DCHECK(expr.args[0]->form == expr.args[1]->form && expr.args[0]->form != Form::kCode);
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const std::size_t n = batch.rows;
  std::int64_t* result = out(expr).ints(n);
  switch (expr.args[0]->form) {
    case Form::kText:
      compare_by(expr.op, a.texts(), b.texts(), n, result, std::equal_to<>(), std::less<>());
      break;
    case Form::kReal:
      compare_by(expr.op, a.reals(), b.reals(), n, result, real_equal, real_less);
      break;
    default:
      if (expr.factors[0] == 1 && expr.factors[1] == 1) {
        compare_by(expr.op, a.ints(), b.ints(), n, result, std::equal_to<>(), std::less<>());
      } else {
        const Int128 fa = expr.factors[0];
        const Int128 fb = expr.factors[1];
        for (std::size_t i = 0; i < n; ++i) {
          const Int128 x = fa * a.ints()[i];
          const Int128 y = fb * b.ints()[i];
          const bool truth = expr.op == Op::kEqual      ? x == y
                             : expr.op == Op::kNotEqual ? x != y
                             : expr.op == Op::kLess     ? x < y
                                                        : x <= y;
          result[i] = truth ? 1 : 0;
        }
      }
  }
  return {result, merged_nulls(expr, a.nulls, b.nulls, n)};
}

// `false and x` is false and `true or x` is true, even where x is NULL.
ColumnView Evaluator::logic(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const std::size_t n = batch.rows;
  std::int64_t* result = out(expr).ints(n);
  const bool is_and = expr.op == Op::kAnd;
  for (std::size_t i = 0; i < n; ++i)
    result[i] = is_and ? a.ints()[i] & b.ints()[i] : a.ints()[i] | b.ints()[i];
  if (a.nulls == nullptr && b.nulls == nullptr) return {result, nullptr};
  std::uint8_t* nulls = out(expr).nulls(n);
  const std::int64_t decisive = is_and ? 0 : 1;
  for (std::size_t i = 0; i < n; ++i) {
    const bool a_null = a.nulls != nullptr && a.nulls[i] != 0;
    const bool b_null = b.nulls != nullptr && b.nulls[i] != 0;
    const bool decided =
        (!a_null && a.ints()[i] == decisive) || (!b_null && b.ints()[i] == decisive);
    nulls[i] = (a_null || b_null) && !decided ? 1 : 0;
    if (decided) result[i] = decisive;
  }
  return {result, nulls};
}

ColumnView Evaluator::negation(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) result[i] = a.ints()[i] == 0 ? 1 : 0;
  return {result, a.nulls};
}

ColumnView Evaluator::null_test(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  const bool wanted = expr.op == Op::kIsNull;
  for (std::size_t i = 0; i < batch.rows; ++i)
    result[i] = (a.nulls != nullptr && a.nulls[i] != 0) == wanted ? 1 : 0;
  return {result, nullptr};
}

ColumnView Evaluator::membership(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const std::size_t n = batch.rows;
  std::int64_t* result = out(expr).ints(n);
  if (expr.args[0]->form == Form::kText) {
    for (std::size_t i = 0; i < n; ++i) result[i] = expr.texts.count(a.texts()[i]) != 0 ? 1 : 0;
  } else {
    expr.ints.find(a.ints(), n, result);  // doubles by their bits, which are normalised
  }
  if (!expr.in_has_null) return {result, a.nulls};
  std::uint8_t* nulls = out(expr).nulls(n);
  for (std::size_t i = 0; i < n; ++i)
    nulls[i] = result[i] == 0 || (a.nulls != nullptr && a.nulls[i] != 0) ? 1 : 0;
  return {result, nulls};
}

ColumnView Evaluator::key_test(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  expr.keys->find(a.ints(), batch.rows, result);
  return {result, a.nulls};
}

ColumnView Evaluator::text_predicate(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) result[i] = matches(expr, a.texts()[i]) ? 1 : 0;
  return {result, a.nulls};
}

}  // namespace flugs::query
