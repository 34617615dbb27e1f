// The functions of expressions (flugs/expression.h), as nodes.

#include <algorithm>
#include <iterator>
#include <utility>

#include "flugs/expression.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

namespace {

// By their numbers.
constexpr std::string_view kUnitNames[] = {"year", "quarter", "month",  "week",
                                           "day",  "hour",    "minute", "second"};
static_assert(std::size(kUnitNames) == static_cast<std::size_t>(TimeUnit::kSecond) + 1);

Expr function(Op op, std::vector<Expr> args, std::uint32_t first = 0) {
  ExprNode node;
  node.op = op;
  node.args = std::move(args);
  node.first = first;
  return make_expr(std::move(node));
}

}  // namespace

Expr year(const Expr& time) { return function(Op::kYear, {time}); }
Expr quarter(const Expr& time) { return function(Op::kQuarter, {time}); }
Expr month(const Expr& time) { return function(Op::kMonth, {time}); }
Expr day(const Expr& time) { return function(Op::kDay, {time}); }
Expr day_of_year(const Expr& time) { return function(Op::kDayOfYear, {time}); }
Expr weekday(const Expr& time) { return function(Op::kWeekday, {time}); }
Expr hour(const Expr& time) { return function(Op::kHour, {time}); }
Expr minute(const Expr& time) { return function(Op::kMinute, {time}); }
Expr second(const Expr& time) { return function(Op::kSecond, {time}); }

std::string_view to_string(TimeUnit unit) noexcept {
  const auto number = static_cast<std::size_t>(unit);
  return number < std::size(kUnitNames) ? kUnitNames[number] : "unknown";
}

std::optional<TimeUnit> time_unit(std::string_view name) noexcept {
  const auto* const found = std::find(std::begin(kUnitNames), std::end(kUnitNames), name);
  if (found == std::end(kUnitNames)) return std::nullopt;
  return static_cast<TimeUnit>(found - std::begin(kUnitNames));
}

Expr truncate_time(TimeUnit unit, const Expr& time) {
  if (static_cast<std::size_t>(unit) >= std::size(kUnitNames))
    return wrong("truncate_time: the unit is unknown");
  return function(Op::kTruncateTime, {time}, static_cast<std::uint32_t>(unit));
}
Expr add_months(const Expr& time, const Expr& months) {
  return function(Op::kAddMonths, {time, months});
}
Expr to_date(const Expr& from) { return function(Op::kToDate, {from}); }
Expr to_timestamp(const Expr& time) { return function(Op::kToTimestamp, {time}); }

Expr substring(const Expr& text, std::uint32_t first, std::uint32_t length) {
  ExprNode node;
  node.op = Op::kSubstring;
  node.args = {text};
  node.first = first;
  node.length = length;
  return make_expr(std::move(node));
}

Expr first_byte(const Expr& text) { return function(Op::kFirstByte, {text}); }
Expr length(const Expr& text) { return function(Op::kLength, {text}); }
Expr byte_length(const Expr& text) { return function(Op::kByteLength, {text}); }
Expr lower(const Expr& text) { return function(Op::kLower, {text}); }
Expr upper(const Expr& text) { return function(Op::kUpper, {text}); }

Expr trim(const Expr& text, Sides sides) {
  if (sides < Sides::kLeft || sides > Sides::kBoth)
    return wrong("trim: the sides must be kLeft, kRight or kBoth");
  return function(Op::kTrim, {text}, static_cast<std::uint32_t>(sides));
}
Expr concat(std::vector<Expr> texts) {
  if (texts.empty()) return wrong("concat: the list of texts is empty");
  return function(Op::kConcat, std::move(texts));
}
Expr regexp_extract(const Expr& text, std::string_view pattern, std::uint32_t group) {
  ExprNode node;
  node.op = Op::kRegexpExtract;
  node.args = {text};
  node.text = pattern;
  node.first = group;
  return make_expr(std::move(node));
}
Expr regexp_replace(const Expr& text, std::string_view pattern, std::string_view replacement,
                    Replace which) {
  ExprNode node;
  node.op = Op::kRegexpReplace;
  node.args = {text, constant(Value::string(replacement))};
  node.text = pattern;
  node.first = static_cast<std::uint32_t>(which);
  return make_expr(std::move(node));
}
Expr position(const Expr& text, const Expr& part) { return function(Op::kPosition, {text, part}); }
Expr to_text(const Expr& value) { return function(Op::kToText, {value}); }

Expr absolute(const Expr& number) { return function(Op::kAbsolute, {number}); }
Expr floor(const Expr& number) { return function(Op::kFloor, {number}); }
Expr ceiling(const Expr& number) { return function(Op::kCeiling, {number}); }
Expr round(const Expr& number, int places) {
  return function(Op::kRound, {number}, static_cast<std::uint32_t>(places));
}
Expr square_root(const Expr& number) { return function(Op::kSquareRoot, {number}); }
Expr logarithm(const Expr& number) { return function(Op::kLogarithm, {number}); }
Expr exponential(const Expr& number) { return function(Op::kExponential, {number}); }
Expr power(const Expr& base, const Expr& exponent) {
  return function(Op::kPower, {base, exponent});
}
Expr quotient(const Expr& dividend, const Expr& divisor) {
  return function(Op::kQuotient, {dividend, divisor});
}
Expr to_double(const Expr& from) { return function(Op::kToDouble, {from}); }
Expr to_int64(const Expr& from) { return function(Op::kToInteger, {from}); }
Expr to_decimal(const Expr& number, std::uint8_t scale) {
  if (scale > kScaleMax) return wrong("to_decimal: a scale of at most 18 is allowed");
  return function(Op::kToDecimal, {number}, scale);
}

Aggregate Aggregate::where(const Expr& condition) const {
  const Expr counted = kind == AggregateKind::kCountRows ? Expr(true) : of;
  const AggregateKind of_kind = kind == AggregateKind::kCountRows ? AggregateKind::kCount : kind;
  return {of_kind, case_when({{condition, counted}}),
          output_name(*this) + " where " + condition.to_string(), q};
}

}  // namespace flugs::query
