#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/names.h"
#include "query/expressions/bound_expr.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

[[noreturn]] void type_error(const std::string& label, std::string_view expected, DataType found) {
  fail(StatusCode::kInvalidArgument,
       fmt::format("{}: expected {}, found {}", label, expected, to_string(found)));
}

bool is_value(const BoundExpr& expr) { return expr.op == Op::kConstant && !expr.value.is_null(); }

double as_double(const Value& exact, DataType type) {
  return static_cast<double>(exact.raw()) / static_cast<double>(power_of_ten(type.scale));
}

/// A constant's place among the values of a type with another unit.
struct Neighbour {
  std::int64_t at_most;   ///< the greatest value that is not above the constant, else the least
  bool is_equal = false;  ///< that value equals the constant
  bool is_above = false;  ///< that value is above it, so every value of the type is
};

Neighbour neighbour_of(const Value& constant, DataType from, DataType to) {
  using Bounds = std::numeric_limits<std::int64_t>;
  FLUGS_CHECK(!constant.is_null() && lane_of(from) == Lane::kInt);
  const std::int64_t raw = constant.raw();
  const std::int64_t ratio = unit_ratio(from, to);
  if (is_finer(from, to)) {
    const bool is_whole = raw % ratio == 0;
    return {raw / ratio - (raw < 0 && !is_whole ? 1 : 0), is_whole, false};
  }
  std::int64_t units = 0;
  if (!__builtin_mul_overflow(raw, ratio, &units)) return {units, true, false};
  return {raw < 0 ? Bounds::min() : Bounds::max(), false, raw < 0};
}

}  // namespace

BoundPtr Binder::node(Op op, DataType type, std::string label) {
  auto made = std::make_unique<BoundExpr>();
  made->op = op;
  made->type = type;
  made->form = form_of(lane_of(type));
  made->label = std::move(label);
  made->slot = slots_++;
  return made;
}

BoundPtr Binder::bind(const Expr& expr, bool may_be_coded) {
  BoundPtr bound = kept(with_lookups(bind_node(expr)));
  if (!may_be_coded) return bound;
  if (bound->op == Op::kColumn && bound->domain) {
    bound->form = Form::kCode;
    bound->result_domain = bound->domain;
  } else if (bound->op == Op::kLookup && bound->form == Form::kText) {
    encode_lookup(*bound);
  }
  return bound;
}

void Binder::encode_lookup(BoundExpr& expr) {
  FLUGS_CHECK(expr.op == Op::kLookup && expr.form == Form::kText);
  fill_lookup(expr);
  LookupTable& table = *expr.lookup;
  if (table.by_value) return;
  auto texts = std::make_shared<FixedTexts>(expr.type.type);
  table.codes.reserve(table.texts.size());
  for (const std::string_view text : table.texts) table.codes.push_back(texts->intern(text));
  FLUGS_CHECK(table.codes.size() == table.nulls.size());
  expr.form = Form::kCode;
  expr.result_domain = std::move(texts);
}

BoundPtr Binder::bind_condition(const Expr& expr) {
  BoundPtr bound = bind_node(expr);
  if (bound->is_untyped_null) give_type(bound, {Type::kBool, 0});
  if (bound->type.type != Type::kBool) type_error(bound->label, "a condition", bound->type);
  return with_lookups(std::move(bound));
}

BoundPtr Binder::bind_is_key(std::uint32_t column, std::shared_ptr<const KeyFilter> keys,
                             std::string label) {
  FLUGS_CHECK(column < schema_.size() && lane_of(schema_[column].type) == Lane::kInt);
  BoundPtr value = node(Op::kColumn, schema_[column].type, schema_[column].name);
  value->column = column;
  value->domain = schema_[column].domain;
  BoundPtr made = node(Op::kIsKey, {Type::kBool, 0}, std::move(label));
  made->keys = std::move(keys);
  made->args.push_back(std::move(value));
  return made;
}

BoundPtr Binder::bind_node(const Expr& expr) {
  if (!expr.is_given()) fail(StatusCode::kInvalidArgument, "an expression is missing");
  const ExprNode& from = *expr.node();
  if (!from.error.empty()) fail(StatusCode::kInvalidArgument, from.error);
  std::string label = expr.to_string();
  switch (from.op) {
    case Op::kColumn:
      return bind_column(from);
    case Op::kConstant:
      return bind_literal(from.literal, std::move(label));
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLess:
    case Op::kLessEqual:
      return bind_comparison(from, std::move(label));
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
    case Op::kIsNull:
    case Op::kIsNotNull:
      return bind_logic(from, std::move(label));
    case Op::kIn:
      return bind_in(from, std::move(label));
    case Op::kStartsWith:
    case Op::kEndsWith:
    case Op::kContains:
    case Op::kLike:
      return bind_text_predicate(from, std::move(label));
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
      return bind_arithmetic(from, std::move(label));
    case Op::kCase:
      return bind_case(from, std::move(label));
    default:
      return bind_function(from, std::move(label));
  }
}

BoundPtr Binder::bind_column(const ExprNode& from) {
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    if (schema_[i].name != from.text || schema_[i].is_dropped) continue;
    BoundPtr bound = node(Op::kColumn, schema_[i].type, from.text);
    bound->column = static_cast<std::uint32_t>(i);
    bound->domain = schema_[i].domain;
    return bound;
  }
  fail(StatusCode::kInvalidArgument,
       fmt::format("no column {}; there are: {}", from.text, names_of(schema_)));
}

void Binder::fill(BoundExpr& constant) {
  FLUGS_CHECK(constant.op == Op::kConstant);
  const Value& value = constant.value;
  constant.form = form_of(lane_of(constant.type));
  switch (lane_of(constant.type)) {
    case Lane::kInt:
      std::fill_n(constant.constant.ints(kBatchRows), kBatchRows, value.raw());
      break;
    case Lane::kReal:
      std::fill_n(constant.constant.reals(kBatchRows), kBatchRows,
                  value.is_null() ? 0.0 : value.as_double());
      break;
    case Lane::kText:
      std::fill_n(constant.constant.texts(kBatchRows), kBatchRows, value.as_string());
      break;
  }
  if (value.is_null()) std::fill_n(constant.constant.nulls(kBatchRows), kBatchRows, 1);
}

BoundPtr Binder::bind_constant(const Value& value, DataType type, std::string label) {
  BoundPtr made = node(Op::kConstant, type, std::move(label));
  const bool is_text = !value.is_null() && lane_of(type) == Lane::kText;
  made->value = is_text ? Value::from_bytes(type.type, texts_.keep(value.as_string())) : value;
  fill(*made);
  return made;
}

BoundPtr Binder::bind_literal(const Literal& literal, std::string label) {
  BoundPtr made = bind_constant(literal.value, literal.type, std::move(label));
  made->is_untyped_null = literal.is_untyped_null;
  return made;
}

void Binder::give_type(BoundPtr& null, DataType type) {
  FLUGS_CHECK(null->is_untyped_null && null->value.is_null());
  null->type = type;
  null->is_untyped_null = false;
  fill(*null);
}

BoundPtr Binder::convert(Op op, DataType type, BoundPtr from) {
  BoundPtr made = node(op, type, from->label);
  made->args.push_back(std::move(from));
  return made;
}

BoundPtr Binder::rescaled(BoundPtr expr, std::uint8_t scale) {
  FLUGS_CHECK(is_exact(expr->type));
  FLUGS_CHECK(scale >= expr->type.scale && scale <= kScaleMax);
  const DataType target =
      scale == 0 && is_integer(expr->type) ? expr->type : DataType{Type::kDecimal, scale};
  if (expr->type.scale == scale) {
    expr->type = target;
    return expr;
  }
  const unsigned exponent = static_cast<unsigned>(scale - expr->type.scale);
  std::int64_t units = 0;
  if (is_value(*expr) && !__builtin_mul_overflow(expr->value.raw(), power_of_ten(exponent), &units))
    return bind_constant(Value::decimal_units(units), target, expr->label);
  BoundPtr made = convert(Op::kRescale, target, std::move(expr));
  made->first = exponent;
  return made;
}

bool Binder::common_type(DataType a, DataType b, DataType& common) {
  if (is_number(a) && is_number(b)) {
    if (!is_exact(a) || !is_exact(b))
      common = {Type::kDouble, 0};
    else if (is_integer(a) && is_integer(b))
      common = a.type == b.type ? a : DataType{Type::kInt64, 0};
    else
      common = {Type::kDecimal, std::max(a.scale, b.scale)};
    return true;
  }
  if (is_time(a) && is_time(b)) {
    common = a.type == b.type || is_finer(a, b) ? a : b;
    return true;
  }
  common = a;
  return a.type == b.type || (lane_of(a) == Lane::kText && lane_of(b) == Lane::kText);
}

void Binder::convert_to(BoundPtr& expr, DataType type) {
  if (expr->is_untyped_null) return give_type(expr, type);
  if (is_value(*expr) && type.type == Type::kDouble && is_exact(expr->type)) {
    expr = bind_constant(Value::real(as_double(expr->value, expr->type)), type, expr->label);
  } else if (type.type == Type::kDouble && expr->type.type != Type::kDouble)
    expr = convert(Op::kToDouble, type, std::move(expr));
  else if (is_time(type) && is_time(expr->type) && type.type != expr->type.type)
    expr = convert(Op::kToInstant, type, std::move(expr));
  else if (type.type == Type::kDecimal)
    expr = rescaled(std::move(expr), type.scale);
  else
    expr->type = type;
  FLUGS_CHECK(expr->form == form_of(lane_of(type)));
}

bool Binder::make_equatable(BoundPtr& own, BoundPtr& others, Binder& other) {
  if (own->is_untyped_null) give_type(own, others->type);
  if (others->is_untyped_null) give_type(others, own->type);
  DataType common;
  if (!common_type(own->type, others->type, common)) return false;
  if (!has_other_unit(own->type, others->type)) {
    convert_to(own, common);
    other.convert_to(others, common);
  } else if (is_finer(own->type, others->type)) {
    own = coarsened(std::move(own), others->type);
  } else {
    others = other.coarsened(std::move(others), own->type);
  }
  return true;
}

BoundPtr Binder::coarsened(BoundPtr expr, DataType type) {
  FLUGS_CHECK(is_finer(expr->type, type));
  const std::int64_t ratio = unit_ratio(expr->type, type);
  BoundPtr made = convert(Op::kCoarsen, type, std::move(expr));
  made->factors[0] = ratio;
  return made;
}

void Binder::unify(BoundPtr& a, BoundPtr& b, std::string_view what) {
  DataType common;
  if (!common_type(a->type, b->type, common))
    fail(StatusCode::kInvalidArgument, fmt::format("{}: {} and {} cannot be compared", what,
                                                   to_string(a->type), to_string(b->type)));
  convert_to(a, common);
  convert_to(b, common);
}

BoundPtr Binder::bind_comparison(const ExprNode& from, std::string label) {
  FLUGS_CHECK(from.args.size() == 2);
  BoundPtr a = bind_node(from.args[0]);
  BoundPtr b = bind_node(from.args[1]);
  if (a->is_untyped_null) give_type(a, b->type);
  if (b->is_untyped_null) give_type(b, a->type);
  BoundPtr made = node(from.op, {Type::kBool, 0}, std::move(label));
  if (!has_other_unit(a->type, b->type))
    unify(a, b, made->label);
  else if (is_value(*b))
    compare_with_constant(*made, *b, false, a->type);
  else if (is_value(*a))
    compare_with_constant(*made, *a, true, b->type);
  if (has_other_unit(a->type, b->type)) {
    // In 128 bits, which hold 64 bits times any ratio.
    const std::int64_t ratio = unit_ratio(a->type, b->type);
    made->factors[is_finer(a->type, b->type) ? 1 : 0] = ratio;
  }
  FLUGS_CHECK(a->form == b->form);
  made->args.push_back(std::move(a));
  made->args.push_back(std::move(b));
  return made;
}

// The constant takes the unit of the other side, so nothing is computed per row, and scan units
// know the range. If no value there equals it, `other < constant` and `other <= constant` become
// `other <= neighbour`, and likewise with the sides exchanged; = and <> stay unchanged.
void Binder::compare_with_constant(BoundExpr& comparison, BoundExpr& constant, bool is_left,
                                   DataType other) {
  const Neighbour neighbour = neighbour_of(constant.value, constant.type, other);
  if (!neighbour.is_equal) {
    if (comparison.op != Op::kLess && comparison.op != Op::kLessEqual) return;
    comparison.op = is_left != neighbour.is_above ? Op::kLess : Op::kLessEqual;
  }
  // An int64, because the constant may have more than 32 bits.
  constant.type = other.type == Type::kInt32 ? DataType{Type::kInt64, 0} : other;
  constant.value = Value::from_raw(constant.type.type, neighbour.at_most);
  fill(constant);
}

BoundPtr Binder::bind_logic(const ExprNode& from, std::string label) {
  FLUGS_CHECK(from.args.size() == (from.op == Op::kAnd || from.op == Op::kOr ? 2 : 1));
  BoundPtr made = node(from.op, {Type::kBool, 0}, std::move(label));
  const bool any_type = from.op == Op::kIsNull || from.op == Op::kIsNotNull;
  for (const Expr& arg : from.args) {
    BoundPtr bound = bind_node(arg);
    if (bound->is_untyped_null) give_type(bound, {Type::kBool, 0});
    if (!any_type && bound->type.type != Type::kBool)
      type_error(bound->label, "a condition", bound->type);
    made->args.push_back(std::move(bound));
  }
  return made;
}

namespace {

const Literal& listed(const Expr& constant, const std::string& label) {
  if (!constant.is_given() || constant.node()->op != Op::kConstant)
    fail(StatusCode::kInvalidArgument, label + ": only constants can be listed");
  return constant.node()->literal;
}

}  // namespace

BoundPtr Binder::bind_in(const ExprNode& from, std::string label) {
  FLUGS_CHECK(!from.args.empty());
  BoundPtr subject = bind_node(from.args[0]);
  std::vector<Expr> reals;
  std::vector<Expr> others;
  DataType common = subject->type;
  bool has_type = !subject->is_untyped_null;
  for (auto arg = from.args.begin() + 1; arg != from.args.end(); ++arg) {
    const Literal& literal = listed(*arg, label);
    (literal.type.type == Type::kDouble ? reals : others).push_back(*arg);
    if (literal.is_untyped_null) continue;
    if (has_type && !common_type(common, literal.type, common))
      type_error(label, to_string(common), literal.type);
    if (!has_type) common = literal.type;
    has_type = true;
  }
  if (subject->is_untyped_null) give_type(subject, common);
  // An exact number compares exactly with exact numbers, and as a double with doubles.
  if (is_exact(subject->type) && !reals.empty()) {
    if (!others.empty())
      return bind_node(from.args[0].in(std::move(others)) || from.args[0].in(std::move(reals)));
    convert_to(subject, common);
  }
  BoundPtr made = node(Op::kIn, {Type::kBool, 0}, std::move(label));
  made->args.push_back(std::move(subject));
  std::vector<std::int64_t> ints;
  for (auto arg = from.args.begin() + 1; arg != from.args.end(); ++arg)
    add_member(*made, arg->node()->literal, ints);
  made->ints = IntegerSet(std::move(ints));
  return made;
}

void Binder::add_member(BoundExpr& in, const Literal& literal, std::vector<std::int64_t>& ints) {
  const DataType type = in.args[0]->type;
  if (literal.is_untyped_null) {
    in.in_has_null = true;
  } else if (lane_of(type) == Lane::kText) {
    in.texts.insert(texts_.keep(literal.value.as_string()));
  } else if (type.type == Type::kDouble && literal.type.type != Type::kDouble) {
    ints.push_back(Value::real(as_double(literal.value, literal.type)).raw());
  } else if (!has_other_unit(literal.type, type)) {
    ints.push_back(literal.value.raw());
  } else if (const Neighbour n = neighbour_of(literal.value, literal.type, type); n.is_equal) {
    ints.push_back(n.at_most);  // else it equals no value
  }
}

BoundPtr Binder::bind_text_predicate(const ExprNode& from, std::string label) {
  FLUGS_CHECK(from.args.size() == 1);
  BoundPtr subject = bind_node(from.args[0]);
  if (subject->is_untyped_null) give_type(subject, {Type::kString, 0});
  if (lane_of(subject->type) != Lane::kText) type_error(label, "text", subject->type);
  BoundPtr made = node(from.op, {Type::kBool, 0}, std::move(label));
  made->text = from.text;
  if (from.op == Op::kLike)
    made->like = std::make_shared<const LikePattern>(
        from.text, static_cast<char>(from.first), subject->type.type == Type::kBytes, made->label);
  made->args.push_back(std::move(subject));
  return made;
}

}  // namespace flugs::query
