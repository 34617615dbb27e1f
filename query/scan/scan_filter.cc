#include "base/check.h"
#include "query/scan/table_scan.h"

namespace flugs::query {

void split_conjunction(const Expr& condition, std::vector<Expr>& conjuncts) {
  if (condition.is_given() && condition.node()->op == Op::kAnd && condition.node()->error.empty()) {
    FLUGS_CHECK(condition.node()->args.size() == 2);
    split_conjunction(condition.node()->args[0], conjuncts);
    split_conjunction(condition.node()->args[1], conjuncts);
  } else {
    conjuncts.push_back(condition);
  }
}

namespace {

std::optional<RangeCondition> null_test_of(const BoundExpr& condition) {
  FLUGS_CHECK(condition.args.size() == 1);
  if (condition.args[0]->op != Op::kColumn) return std::nullopt;
  RangeCondition range;
  range.column = condition.args[0]->column;
  range.kind = condition.op == Op::kIsNull ? RangeCondition::Kind::kIsNull
                                           : RangeCondition::Kind::kIsNotNull;
  return range;
}

}  // namespace

std::optional<RangeCondition> range_of(const BoundExpr& condition) {
  const Op op = condition.op;
  if (op == Op::kIsNull || op == Op::kIsNotNull) return null_test_of(condition);
  if (op != Op::kEqual && op != Op::kNotEqual && op != Op::kLess && op != Op::kLessEqual)
    return std::nullopt;
  FLUGS_CHECK(condition.args.size() == 2);
  const bool is_mirrored = condition.args[0]->op == Op::kConstant;
  const BoundExpr& column = *condition.args[is_mirrored ? 1 : 0];
  const BoundExpr& constant = *condition.args[is_mirrored ? 0 : 1];
  if (column.op != Op::kColumn || constant.op != Op::kConstant) return std::nullopt;
  const Value& value = constant.value;
  if (value.is_null() || condition.factors[0] != 1 || condition.factors[1] != 1)
    return std::nullopt;
  RangeCondition range;
  range.column = column.column;
  if (op == Op::kEqual || op == Op::kNotEqual) {
    range.low = range.high = value;
    if (op == Op::kNotEqual) range.kind = RangeCondition::Kind::kOutside;
  } else if (is_mirrored) {
    range.low = value;
    range.low_excluded = op == Op::kLess;
  } else {
    range.high = value;
    range.high_excluded = op == Op::kLess;
  }
  return range;
}

}  // namespace flugs::query
