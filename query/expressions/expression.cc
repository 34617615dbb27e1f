#include "flugs/expression.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/calendar.h"
#include "base/check.h"
#include "columns/column/column.h"
#include "query/expressions/expr_node.h"
#include "tables/catalog/schema_checks.h"

namespace flugs::query {

Expr wrong(std::string why) {
  auto node = std::make_shared<ExprNode>();
  node->error = std::move(why);
  return Expr(std::move(node));
}

Expr make_expr(ExprNode made) {
  std::uint32_t levels = 0;
  std::uint64_t nodes = 1;
  for (const Expr& arg : made.args) {
    if (!arg.is_given()) continue;
    const ExprNode& node = *arg.node();
    if (!node.error.empty()) return wrong(node.error);
    levels = std::max(levels, node.levels);
    nodes += node.nodes;
  }
  if (levels >= ExprNode::kLevelsMax)
    return wrong(
        fmt::format("an expression of more than {} levels: write a long chain of || as in(), or "
                    "compute parts of it in an earlier select",
                    ExprNode::kLevelsMax));
  if (nodes > ExprNode::kNodesMax)
    return wrong(
        fmt::format("an expression of {} parts, at most {} are allowed: put a long list into a "
                    "table and use semi_join, or compute parts of it in an earlier select",
                    nodes, ExprNode::kNodesMax));
  FLUGS_CHECK(made.error.empty());  // a node with an error has no arguments
  made.levels = levels + 1;
  made.nodes = static_cast<std::uint32_t>(nodes);
  return Expr(std::make_shared<ExprNode>(std::move(made)));
}

namespace {

Expr make(Op op, std::vector<Expr> args) {
  ExprNode node;
  node.op = op;
  node.args = std::move(args);
  return make_expr(std::move(node));
}

Expr make_text_predicate(Op op, const Expr& subject, std::string_view pattern) {
  ExprNode node;
  node.op = op;
  node.args = {subject};
  node.text = pattern;
  return make_expr(std::move(node));
}

bool exists(int year, unsigned month, unsigned day) noexcept {
  // The years that a 32-bit count of days reaches.
  if (year < -5'000'000 || year > 5'000'000 || month < 1 || month > 12 || day < 1) return false;
  const std::int64_t days = days_from_civil(year, month, 1);
  const std::int64_t next =
      month == 12 ? days_from_civil(year + 1, 1, 1) : days_from_civil(year, month + 1, 1);
  return day <= next - days;
}

Expr make_time(const Value& value, bool valid, const std::string& text) {
  return valid ? constant(value) : wrong("there is no " + text);
}

}  // namespace

void Literal::assign(const Value& from, std::uint8_t scale) {
  type = {from.is_null() ? Type::kInt64 : from.type(), 0};
  if (type.type == Type::kDecimal) type.scale = scale;
  value = from.is_null() ? from : columns::normalised(from, from.type());
  text = from.as_string();
  is_untyped_null = from.is_null();
  if (!from.is_null() && lane_of(type) == Lane::kText) value = Value::from_bytes(type.type, text);
}

Expr::Expr(const Value& value) : Expr(constant(value)) {}
Expr Expr::integer(std::int64_t value) { return constant(Value::int64(value)); }

Expr Expr::as(std::string name) const {
  auto node = node_ ? std::make_shared<ExprNode>(*node_) : std::make_shared<ExprNode>();
  if (!node_) node->error = "an expression is missing";
  node->name = std::move(name);
  return Expr(std::move(node));
}

Expr Expr::is_null() const { return make(Op::kIsNull, {*this}); }
Expr Expr::is_not_null() const { return make(Op::kIsNotNull, {*this}); }
Expr Expr::between(const Expr& low, const Expr& high) const {
  return low <= *this && *this <= high;
}
Expr Expr::in(std::vector<Expr> constants) const {
  constants.insert(constants.begin(), *this);
  return make(Op::kIn, std::move(constants));
}
Expr Expr::starts_with(std::string_view prefix) const {
  return make_text_predicate(Op::kStartsWith, *this, prefix);
}
Expr Expr::ends_with(std::string_view suffix) const {
  return make_text_predicate(Op::kEndsWith, *this, suffix);
}
Expr Expr::contains(std::string_view part) const {
  return make_text_predicate(Op::kContains, *this, part);
}

Expr Expr::matches(std::string_view pattern) const {
  return make_text_predicate(Op::kMatches, *this, pattern);
}

Expr Expr::like(std::string_view pattern, char escape) const {
  ExprNode node;
  node.op = Op::kLike;
  node.args = {*this};
  node.text = pattern;
  node.first = static_cast<unsigned char>(escape);
  return make_expr(std::move(node));
}

Expr Expr::equal(const Expr& a, const Expr& b) { return make(Op::kEqual, {a, b}); }
Expr Expr::not_equal(const Expr& a, const Expr& b) { return make(Op::kNotEqual, {a, b}); }
Expr Expr::less(const Expr& a, const Expr& b) { return make(Op::kLess, {a, b}); }
Expr Expr::less_equal(const Expr& a, const Expr& b) { return make(Op::kLessEqual, {a, b}); }
Expr Expr::both(const Expr& a, const Expr& b) { return make(Op::kAnd, {a, b}); }
Expr Expr::either(const Expr& a, const Expr& b) { return make(Op::kOr, {a, b}); }
Expr Expr::negated(const Expr& a) { return make(Op::kNot, {a}); }
Expr Expr::plus(const Expr& a, const Expr& b) { return make(Op::kAdd, {a, b}); }
Expr Expr::minus(const Expr& a, const Expr& b) { return make(Op::kSubtract, {a, b}); }
Expr Expr::times(const Expr& a, const Expr& b) { return make(Op::kMultiply, {a, b}); }
Expr Expr::divided(const Expr& a, const Expr& b) { return make(Op::kDivide, {a, b}); }
Expr Expr::remainder(const Expr& a, const Expr& b) { return make(Op::kRemainder, {a, b}); }

Expr col(std::string name) {
  auto node = std::make_shared<ExprNode>();
  node->op = Op::kColumn;
  node->text = std::move(name);
  return Expr(std::move(node));
}

std::string row_id_name() { return std::string(engine::kRowIdName); }

Expr row_id() { return col(row_id_name()); }

Expr constant(const Value& value) {
  if (value.scale() == Value::kScaleOfColumn)
    return wrong(
        fmt::format("the decimal of {} units has no scale: make it by Value::decimal(units, scale)",
                    value.raw()));
  if (value.scale() > 18)
    return wrong(fmt::format("a decimal of scale {}, at most 18 are allowed", value.scale()));
  auto node = std::make_shared<ExprNode>();
  node->literal = Literal(value, value.scale());
  return Expr(std::move(node));
}

Expr date(int year, unsigned month, unsigned day) {
  const bool valid = exists(year, month, day);
  const std::int64_t days = valid ? days_from_civil(year, month, day) : 0;
  return make_time(Value::date(static_cast<std::int32_t>(days)), valid,
                   fmt::format("date {}-{}-{}", year, month, day));
}

Expr timestamp(int year, unsigned month, unsigned day, unsigned hour, unsigned minute,
               unsigned second) {
  // 64 bits of microseconds reach 290,000 years.
  const bool valid = exists(year, month, day) && year > -290'000 && year < 290'000 && hour < 24 &&
                     minute < 60 && second < 60;
  const std::int64_t days = valid ? days_from_civil(year, month, day) : 0;
  const std::int64_t seconds =
      days * 86'400 + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60 + second;
  return make_time(
      Value::timestamp(valid ? seconds * 1'000'000 : 0), valid,
      fmt::format("timestamp {}-{}-{} {}:{}:{}", year, month, day, hour, minute, second));
}

Expr case_when(std::vector<WhenThen> cases, const Expr& otherwise) {
  std::vector<Expr> args;
  for (WhenThen& c : cases) {
    args.push_back(std::move(c.when));
    args.push_back(std::move(c.then));
  }
  args.push_back(otherwise.is_given() ? otherwise : constant(Value::null()));
  return make(Op::kCase, std::move(args));
}

namespace {
Aggregate aggregate(AggregateKind kind, const Item& of) { return {kind, of.expr(), {}, 0}; }
}  // namespace

Aggregate count() { return {}; }
Aggregate count(const Item& of) { return aggregate(AggregateKind::kCount, of); }
Aggregate count_distinct(const Item& of) { return aggregate(AggregateKind::kCountDistinct, of); }
Aggregate approx_count_distinct(const Item& of) {
  return aggregate(AggregateKind::kApproxCountDistinct, of);
}
Aggregate sum(const Item& of) { return aggregate(AggregateKind::kSum, of); }
Aggregate min(const Item& of) { return aggregate(AggregateKind::kMin, of); }
Aggregate max(const Item& of) { return aggregate(AggregateKind::kMax, of); }
Aggregate avg(const Item& of) { return aggregate(AggregateKind::kAvg, of); }
Aggregate variance(const Item& of) { return aggregate(AggregateKind::kVariance, of); }
Aggregate stddev(const Item& of) { return aggregate(AggregateKind::kStddev, of); }
Aggregate quantile(const Item& of, double q) {
  return {AggregateKind::kQuantile, of.expr(), {}, q};
}
Aggregate median(const Item& of) { return aggregate(AggregateKind::kMedian, of); }

}  // namespace flugs::query
