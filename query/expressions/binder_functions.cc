// Binding of functions: which types they take, and which they give.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/expressions/regular_expression.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

constexpr DataType kInteger{Type::kInt64, 0};
constexpr DataType kReal{Type::kDouble, 0};
constexpr DataType kText{Type::kString, 0};
constexpr DataType kDay{Type::kDate, 0};

[[noreturn]] void not_defined(const std::string& label, DataType type) {
  fail(StatusCode::kInvalidArgument, fmt::format("{}: not defined for {}", label, to_string(type)));
}

bool is_text(DataType type) noexcept { return lane_of(type) == Lane::kText; }

bool is_of_time(Op op) noexcept {
  return (op >= Op::kYear && op <= Op::kDay) || (op >= Op::kToDate && op <= Op::kAddMonths);
}
static_assert(Op::kMonth > Op::kYear && Op::kMonth < Op::kDay && Op::kTruncateTime > Op::kToDate);

bool is_of_text(Op op) noexcept {
  return op == Op::kSubstring || op == Op::kFirstByte || (op >= Op::kLower && op <= Op::kToText);
}
bool is_of_regexp(Op op) noexcept {
  return op == Op::kMatches || op == Op::kRegexpExtract || op == Op::kRegexpReplace;
}
static_assert(Op::kTrim > Op::kLower && Op::kPosition > Op::kLower && Op::kPosition < Op::kToText);

/// Whether the bytes of the value, a text, are the evaluator's own until its next batch.
bool is_computed(const BoundExpr& expr) noexcept {
  switch (expr.op) {
    case Op::kLower:
    case Op::kUpper:
    case Op::kConcat:
    case Op::kToText:
    case Op::kRegexpReplace:
      return true;
    case Op::kSubstring:
    case Op::kRegexpExtract:
    case Op::kTrim:
      return is_computed(*expr.args[0]);
    case Op::kCase: {
      bool is_any = is_computed(*expr.args.back());
      for (std::size_t i = 1; i < expr.args.size(); i += 2) is_any |= is_computed(*expr.args[i]);
      return is_any;
    }
    default:
      return false;
  }
}

}  // namespace

// Operators keep views of texts, in tables of groups and in sorted rows.
BoundPtr Binder::kept(BoundPtr text) {
  if (text->form != Form::kText || !is_computed(*text)) return text;
  const DataType type = text->type;
  std::string label = text->label;
  return with_argument(Op::kKeepText, type, std::move(text), std::move(label));
}

BoundPtr Binder::bind_subject(const Expr& from, DataType type_of_null) {
  BoundPtr subject = bind_node(from);
  if (subject->is_untyped_null) give_type(subject, type_of_null);
  return subject;
}

BoundPtr Binder::with_argument(Op op, DataType type, BoundPtr argument, std::string label) {
  BoundPtr made = node(op, type, std::move(label));
  made->texts_kept = &texts_;
  made->args.push_back(std::move(argument));
  return made;
}

BoundPtr Binder::bind_function(const ExprNode& from, std::string label) {
  FLUGS_CHECK(!from.args.empty());
  if (is_of_time(from.op)) return bind_time_function(from, std::move(label));
  if (is_of_regexp(from.op)) return bind_regexp(from, std::move(label));
  if (is_of_text(from.op)) return bind_text_function(from, std::move(label));
  return bind_number_function(from, std::move(label));
}

BoundPtr Binder::bind_time_function(const ExprNode& from, std::string label) {
  BoundPtr subject = bind_subject(from.args[0], kDay);
  const DataType type = subject->type;
  const bool is_parsed = from.op == Op::kToDate && type.type == Type::kString;
  if (!is_time(type) && !is_parsed) not_defined(label, type);
  if (from.op == Op::kToTimestamp) {
    convert_to(subject, {Type::kTimestamp, 0});
    return subject;
  }
  if (from.op == Op::kToDate)
    return type == kDay ? std::move(subject)
                        : with_argument(Op::kToDate, kDay, std::move(subject), std::move(label));
  const bool is_moved = from.op == Op::kTruncateTime || from.op == Op::kAddMonths;
  BoundPtr made =
      with_argument(from.op, is_moved ? type : kInteger, std::move(subject), std::move(label));
  made->first = from.first;
  if (from.op == Op::kAddMonths) {
    made->args.push_back(bind_subject(from.args[1], kInteger));
    if (!is_integer(made->args[1]->type)) not_defined(made->label, made->args[1]->type);
  }
  return made;
}

BoundPtr Binder::bind_text_function(const ExprNode& from, std::string label) {
  if (from.op == Op::kConcat) return bind_concat(from, std::move(label));
  BoundPtr subject = bind_subject(from.args[0], kText);
  if (from.op == Op::kToText) return bind_to_text(std::move(subject), std::move(label));
  const DataType of = subject->type;
  if (!is_text(of)) not_defined(label, of);
  if (from.op == Op::kSubstring && from.first == 0)
    fail(StatusCode::kInvalidArgument, label + ": the first byte must be 1 or more");
  const bool gives_text = from.op == Op::kSubstring || from.op == Op::kLower ||
                          from.op == Op::kUpper || from.op == Op::kTrim;
  BoundPtr made =
      with_argument(from.op, gives_text ? of : kInteger, std::move(subject), std::move(label));
  made->first = from.first;
  made->length = from.length;
  if (from.op == Op::kPosition) {
    made->args.push_back(bind_subject(from.args[1], of));
    if (!is_text(made->args[1]->type)) not_defined(made->label, made->args[1]->type);
  }
  return made;
}

BoundPtr Binder::bind_regexp(const ExprNode& from, std::string label) {
  BoundPtr subject = bind_subject(from.args[0], kText);
  const DataType of = subject->type;
  if (!is_text(of)) not_defined(label, of);
  const auto regexp =
      std::make_shared<RegularExpression>(from.text, of.type == Type::kBytes, label);
  if (from.op == Op::kRegexpExtract) regexp->choose_group(from.first, label);
  if (from.op == Op::kRegexpReplace)
    regexp->set_replacement(from.args[1].node()->literal.text,
                            static_cast<Replace>(from.first) == Replace::kAll, label);
  const DataType result = from.op == Op::kMatches ? DataType{Type::kBool, 0} : of;
  BoundPtr made = with_argument(from.op, result, std::move(subject), std::move(label));
  made->regexp = regexp;
  return made;
}

BoundPtr Binder::bind_concat(const ExprNode& from, std::string label) {
  std::vector<BoundPtr> args;
  DataType type = kText;
  bool has_type = false;
  for (const Expr& arg : from.args) {
    BoundPtr text = bind_node(arg);
    if (!text->is_untyped_null) {
      if (!is_text(text->type) || (has_type && text->type != type)) not_defined(label, text->type);
      type = text->type;
      has_type = true;
    }
    args.push_back(std::move(text));
  }
  for (BoundPtr& arg : args)
    if (arg->is_untyped_null) give_type(arg, type);
  BoundPtr made = node(Op::kConcat, type, std::move(label));
  made->texts_kept = &texts_;
  made->args = std::move(args);
  return made;
}

BoundPtr Binder::bind_to_text(BoundPtr subject, std::string label) {
  if (subject->type.type == Type::kString) return subject;
  if (is_text(subject->type)) not_defined(label, subject->type);
  return with_argument(Op::kToText, kText, std::move(subject), std::move(label));
}

BoundPtr Binder::bind_number_function(const ExprNode& from, std::string label) {
  if (from.op == Op::kQuotient) return bind_quotient(from, std::move(label));
  if (from.op >= Op::kSquareRoot && from.op <= Op::kPower)
    return bind_real_function(from, std::move(label));
  BoundPtr subject = bind_subject(from.args[0], kReal);
  const DataType type = subject->type;
  const bool is_parsed =
      (from.op == Op::kToDouble || from.op == Op::kToInteger) && type.type == Type::kString;
  if (is_parsed)
    return with_argument(from.op, from.op == Op::kToDouble ? kReal : kInteger, std::move(subject),
                         std::move(label));
  if (!is_number(type)) not_defined(label, type);
  switch (from.op) {
    case Op::kToDouble:
      convert_to(subject, kReal);
      return subject;
    case Op::kAbsolute:
      return with_argument(from.op, is_integer(type) ? kInteger : type, std::move(subject),
                           std::move(label));
    case Op::kToDecimal:
      return bind_to_decimal(std::move(subject), static_cast<std::uint8_t>(from.first),
                             std::move(label));
    default:
      return bind_rounding(from, std::move(subject), std::move(label));
  }
}

BoundPtr Binder::bind_real_function(const ExprNode& from, std::string label) {
  BoundPtr made = node(from.op, kReal, std::move(label));
  for (const Expr& arg : from.args) {
    BoundPtr number = bind_subject(arg, kReal);
    if (!is_number(number->type)) not_defined(made->label, number->type);
    convert_to(number, kReal);
    made->args.push_back(std::move(number));
  }
  return made;
}

BoundPtr Binder::bind_quotient(const ExprNode& from, std::string label) {
  BoundPtr made = node(Op::kQuotient, kInteger, std::move(label));
  for (const Expr& arg : from.args) {
    BoundPtr number = bind_subject(arg, kInteger);
    if (!is_integer(number->type)) not_defined(made->label, number->type);
    made->args.push_back(std::move(number));
  }
  return made;
}

// Rounds an exact number to fewer decimal places. The evaluator divides it by factors[0], which is
// 10 to the number of dropped digits, and multiplies the quotient by factors[1]. factors[1] is 1,
// or a power of ten if `places` is negative.
BoundPtr Binder::bind_rounding(const ExprNode& from, BoundPtr subject, std::string label) {
  const DataType type = subject->type;
  if (!is_exact(type)) {
    BoundPtr made = with_argument(from.op, from.op == Op::kToInteger ? kInteger : kReal,
                                  std::move(subject), std::move(label));
    made->first = from.first;
    return made;
  }
  const int places = from.op == Op::kRound ? static_cast<std::int32_t>(from.first) : 0;
  const int places_left = std::clamp(places, 0, int{type.scale});
  const DataType result = from.op != Op::kRound || is_integer(type)
                              ? kInteger
                              : DataType{Type::kDecimal, static_cast<std::uint8_t>(places_left)};
  if (places >= int{type.scale}) {
    subject->type = is_integer(type) || from.op != Op::kRound ? kInteger : type;
    return subject;
  }
  BoundPtr made = with_argument(from.op, result, std::move(subject), std::move(label));
  const unsigned tens = places < 0 ? static_cast<unsigned>(-std::int64_t{places}) : 0;
  const unsigned dropped = static_cast<unsigned>(type.scale - places_left) + tens;
  made->first = dropped;
  made->length = tens;
  made->factors[0] = dropped > kScaleMax ? 0 : power_of_ten(dropped);  // 0: beyond 64 bits
  made->factors[1] = power_of_ten(std::min(tens, kScaleMax));
  return made;
}

BoundPtr Binder::bind_to_decimal(BoundPtr subject, std::uint8_t scale, std::string label) {
  const DataType result{Type::kDecimal, scale};
  if (is_exact(subject->type) && subject->type.scale <= scale) {
    subject = rescaled(std::move(subject), scale);
    subject->type = result;
    if (subject->op == Op::kRescale) subject->label = std::move(label);
    return subject;
  }
  BoundPtr made = with_argument(Op::kToDecimal, result, std::move(subject), std::move(label));
  const DataType from = made->args[0]->type;
  made->factors[0] = is_exact(from) ? power_of_ten(unsigned(from.scale) - scale) : 1;
  made->first = scale;
  return made;
}

}  // namespace flugs::query
