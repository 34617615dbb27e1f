// The operations of flugs_expr_op, as functions of flugs/expression.h.

#include "bindings/c/operations.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flugs::c {

using query::Expr;

namespace {

/// How many arguments an operation has.
struct Arity {
  std::size_t least;
  std::size_t most;
};
constexpr std::size_t kMany = 100'000;

/// The function of flugs/expression.h that an operation of one argument is. Null for the others,
/// and for those of one argument that are members of Expr.
Expr (*function_of_one(flugs_op op) noexcept)(const Expr&) {
  switch (op) {
    case FLUGS_OP_YEAR:
      return query::year;
    case FLUGS_OP_QUARTER:
      return query::quarter;
    case FLUGS_OP_MONTH:
      return query::month;
    case FLUGS_OP_DAY:
      return query::day;
    case FLUGS_OP_DAY_OF_YEAR:
      return query::day_of_year;
    case FLUGS_OP_WEEKDAY:
      return query::weekday;
    case FLUGS_OP_HOUR:
      return query::hour;
    case FLUGS_OP_MINUTE:
      return query::minute;
    case FLUGS_OP_SECOND:
      return query::second;
    case FLUGS_OP_TO_DATE:
      return query::to_date;
    case FLUGS_OP_TO_TIMESTAMP:
      return query::to_timestamp;
    case FLUGS_OP_FIRST_BYTE:
      return query::first_byte;
    case FLUGS_OP_LENGTH:
      return query::length;
    case FLUGS_OP_BYTE_LENGTH:
      return query::byte_length;
    case FLUGS_OP_LOWER:
      return query::lower;
    case FLUGS_OP_UPPER:
      return query::upper;
    case FLUGS_OP_TO_TEXT:
      return query::to_text;
    case FLUGS_OP_TO_DOUBLE:
      return query::to_double;
    case FLUGS_OP_TO_INT64:
      return query::to_int64;
    case FLUGS_OP_ABSOLUTE:
      return query::absolute;
    case FLUGS_OP_FLOOR:
      return query::floor;
    case FLUGS_OP_CEILING:
      return query::ceiling;
    case FLUGS_OP_SQUARE_ROOT:
      return query::square_root;
    case FLUGS_OP_LOGARITHM:
      return query::logarithm;
    case FLUGS_OP_EXPONENTIAL:
      return query::exponential;
    default:
      return nullptr;
  }
}

Arity arity_of(flugs_op op) {
  switch (op) {
    case FLUGS_OP_ROW_ID:
      return {0, 0};
    case FLUGS_OP_NOT:
    case FLUGS_OP_IS_NULL:
    case FLUGS_OP_IS_NOT_NULL:
      return {1, 1};
    case FLUGS_OP_TRIM:
    case FLUGS_OP_ROUND:
      return {1, 2};
    case FLUGS_OP_LIKE:
    case FLUGS_OP_REGEXP_EXTRACT:
      return {2, 3};
    case FLUGS_OP_REGEXP_REPLACE:
      return {3, 4};
    case FLUGS_OP_CONCAT:
      return {1, kMany};
    case FLUGS_OP_BETWEEN:
    case FLUGS_OP_SUBSTRING:
      return {3, 3};
    case FLUGS_OP_AND:
    case FLUGS_OP_OR:
    case FLUGS_OP_IN:
      return {1, kMany};
    case FLUGS_OP_CASE:
      return {2, kMany};
    default:
      return function_of_one(op) != nullptr ? Arity{1, 1} : Arity{2, 2};
  }
}

/// Operations of two arguments that any expressions may be.
Expr binary(flugs_op op, const Expr& a, const Expr& b) {
  switch (op) {
    case FLUGS_OP_EQUAL:
      return a == b;
    case FLUGS_OP_NOT_EQUAL:
      return a != b;
    case FLUGS_OP_LESS:
      return a < b;
    case FLUGS_OP_LESS_EQUAL:
      return a <= b;
    case FLUGS_OP_GREATER:
      return a > b;
    case FLUGS_OP_GREATER_EQUAL:
      return a >= b;
    case FLUGS_OP_AND:
      return a && b;
    case FLUGS_OP_OR:
      return a || b;
    case FLUGS_OP_PLUS:
      return a + b;
    case FLUGS_OP_MINUS:
      return a - b;
    case FLUGS_OP_TIMES:
      return a * b;
    case FLUGS_OP_DIVIDE:
      return a / b;
    case FLUGS_OP_REMAINDER:
      return a % b;
    case FLUGS_OP_POSITION:
      return query::position(a, b);
    case FLUGS_OP_POWER:
      return query::power(a, b);
    case FLUGS_OP_QUOTIENT:
      return query::quotient(a, b);
    default:
      return query::add_months(a, b);
  }
}

Expr unary(flugs_op op, const Expr& a) {
  switch (op) {
    case FLUGS_OP_NOT:
      return !a;
    case FLUGS_OP_IS_NULL:
      return a.is_null();
    case FLUGS_OP_IS_NOT_NULL:
      return a.is_not_null();
    default:
      return function_of_one(op)(a);
  }
}

/// A tree of few levels: an expression has at most 1000.
Expr combined(flugs_op op, const TakenExpressions& of, std::size_t first, std::size_t count) {
  if (count == 1) return of.expression(first);
  const std::size_t left = count / 2;
  return binary(op, combined(op, of, first, left), combined(op, of, first + left, count - left));
}

Expr case_of(const TakenExpressions& of) {
  std::vector<query::WhenThen> cases;
  for (std::size_t i = 0; i + 1 < of.size(); i += 2)
    cases.push_back({of.expression(i), of.expression(i + 1)});
  return query::case_when(std::move(cases),
                          of.size() % 2 == 1 ? of.expression(of.size() - 1) : Expr());
}

bool is_text(const flugs_expr& argument) {
  return argument.constant && !argument.constant->is_null() &&
         (argument.constant->value().type() == Type::kString ||
          argument.constant->value().type() == Type::kBytes);
}

/// The value of a constant that is a 32-bit integer; nullopt: it is none.
std::optional<std::int32_t> integer_of(const flugs_expr& argument) {
  if (!argument.constant || argument.constant->is_null()) return std::nullopt;
  const Value value = argument.constant->value();
  if (value.type() != Type::kInt32 && value.type() != Type::kInt64) return std::nullopt;
  if (value.raw() < INT32_MIN || value.raw() > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(value.raw());
}

std::string_view text_of(const flugs_expr& argument) {
  return argument.constant->value().as_string();
}

Status refused(const char* why) { return Status(StatusCode::kInvalidArgument, why); }

Status substring_of(const TakenExpressions& of, Expr& out) {
  const std::optional<std::int32_t> first = integer_of(of[1]);
  const std::optional<std::int32_t> length = integer_of(of[2]);
  if (!first || !length || *first < 0 || *length < 0)
    return refused("FLUGS_OP_SUBSTRING: first and length must be constant integers from 0 on");
  out = query::substring(of.expression(0), static_cast<std::uint32_t>(*first),
                         static_cast<std::uint32_t>(*length));
  return {};
}

/// FLUGS_OP_TRIM, _ROUND and _TO_DECIMAL, whose second argument is a constant integer. Without it,
/// as only the first two may be, it is `otherwise`.
Status with_integer(flugs_op op, const TakenExpressions& of, std::int32_t otherwise, Expr& out) {
  const std::optional<std::int32_t> number =
      of.size() == 1 ? std::optional(otherwise) : integer_of(of[1]);
  if (!number)
    return refused(
        "FLUGS_OP_TRIM, _ROUND, _TO_DECIMAL: the second argument must be a constant "
        "integer");
  const Expr& a = of.expression(0);
  const std::int32_t most = op == FLUGS_OP_TRIM ? 3 : 18;
  if (op == FLUGS_OP_ROUND) {
    out = query::round(a, *number);
  } else if (*number < (op == FLUGS_OP_TRIM ? 1 : 0) || *number > most) {
    return refused(op == FLUGS_OP_TRIM ? "FLUGS_OP_TRIM: the sides must be 1, 2 or 3"
                                       : "FLUGS_OP_TO_DECIMAL: the scale must be 0 to 18");
  } else if (op == FLUGS_OP_TRIM) {
    out = query::trim(a, static_cast<query::Sides>(*number));
  } else {
    out = query::to_decimal(a, static_cast<std::uint8_t>(*number));
  }
  return {};
}

Status truncated_time(const TakenExpressions& of, Expr& out) {
  const std::optional<query::TimeUnit> unit =
      is_text(of[1]) ? query::time_unit(text_of(of[1])) : std::nullopt;
  if (!unit)
    return refused(
        "FLUGS_OP_TRUNCATE_TIME: the unit must be a constant text: year, quarter, "
        "month, week, day, hour, minute or second");
  out = query::truncate_time(*unit, of.expression(0));
  return {};
}

Status like_of(const TakenExpressions& of, Expr& out) {
  const bool has_escape = of.size() == 3;
  if (!is_text(of[1]) || (has_escape && (!is_text(of[2]) || text_of(of[2]).size() != 1)))
    return refused(
        "FLUGS_OP_LIKE: the pattern must be a constant text, and the escape character "
        "one of a single byte");
  out = of.expression(0).like(text_of(of[1]), has_escape ? text_of(of[2])[0] : '\0');
  return {};
}

Status text_test(flugs_op op, const TakenExpressions& of, Expr& out) {
  if (!is_text(of[1]))
    return refused(
        "FLUGS_OP_STARTS_WITH, _ENDS_WITH, _CONTAINS, _MATCHES: the second argument must be a "
        "constant text");
  const std::string_view text = text_of(of[1]);
  const Expr& a = of.expression(0);
  if (op == FLUGS_OP_STARTS_WITH) out = a.starts_with(text);
  if (op == FLUGS_OP_ENDS_WITH) out = a.ends_with(text);
  if (op == FLUGS_OP_CONTAINS) out = a.contains(text);
  if (op == FLUGS_OP_MATCHES) out = a.matches(text);
  return {};
}

Status extract_of(const TakenExpressions& of, Expr& out) {
  const std::optional<std::int32_t> group = of.size() == 3 ? integer_of(of[2]) : std::optional(0);
  if (!is_text(of[1]) || !group || *group < 0)
    return refused(
        "FLUGS_OP_REGEXP_EXTRACT: the pattern must be a constant text, and the group a constant "
        "integer from 0 on");
  out = query::regexp_extract(of.expression(0), text_of(of[1]), static_cast<std::uint32_t>(*group));
  return {};
}

Status replacement_of(const TakenExpressions& of, Expr& out) {
  const std::optional<std::int32_t> all = of.size() == 4 ? integer_of(of[3]) : std::optional(0);
  if (!is_text(of[1]) || !is_text(of[2]) || !all || *all < 0 || *all > 1)
    return refused(
        "FLUGS_OP_REGEXP_REPLACE: the pattern and the replacement must be constant texts, and the "
        "last argument the constant integer 0 or 1");
  out = query::regexp_replace(of.expression(0), text_of(of[1]), text_of(of[2]),
                              *all == 1 ? query::Replace::kAll : query::Replace::kFirst);
  return {};
}

/// Operations some of whose arguments must be constants.
Status with_constants(flugs_op op, const TakenExpressions& of, Expr& out) {
  switch (op) {
    case FLUGS_OP_SUBSTRING:
      return substring_of(of, out);
    case FLUGS_OP_TRIM:
      return with_integer(op, of, static_cast<int>(query::Sides::kBoth), out);
    case FLUGS_OP_ROUND:
    case FLUGS_OP_TO_DECIMAL:
      return with_integer(op, of, 0, out);
    case FLUGS_OP_TRUNCATE_TIME:
      return truncated_time(of, out);
    case FLUGS_OP_LIKE:
      return like_of(of, out);
    case FLUGS_OP_REGEXP_EXTRACT:
      return extract_of(of, out);
    case FLUGS_OP_REGEXP_REPLACE:
      return replacement_of(of, out);
    default:
      return text_test(op, of, out);
  }
}

}  // namespace

Status operation(flugs_op op, const TakenExpressions& of, Expr& out) {
  if (!of.problem().ok()) return of.problem();
  if (op < FLUGS_OP_EQUAL || op > FLUGS_OP_REGEXP_REPLACE)
    return Status(StatusCode::kInvalidArgument,
                  "no operation has the number " + std::to_string(op));
  const Arity arity = arity_of(op);
  if (of.size() < arity.least || of.size() > arity.most)
    return Status(StatusCode::kInvalidArgument, "operation " + std::to_string(op) +
                                                    " does not have " + std::to_string(of.size()) +
                                                    " arguments");
  switch (op) {
    case FLUGS_OP_STARTS_WITH:
    case FLUGS_OP_ENDS_WITH:
    case FLUGS_OP_CONTAINS:
    case FLUGS_OP_MATCHES:
    case FLUGS_OP_REGEXP_EXTRACT:
    case FLUGS_OP_REGEXP_REPLACE:
    case FLUGS_OP_SUBSTRING:
    case FLUGS_OP_LIKE:
    case FLUGS_OP_TRIM:
    case FLUGS_OP_ROUND:
    case FLUGS_OP_TO_DECIMAL:
    case FLUGS_OP_TRUNCATE_TIME:
      return with_constants(op, of, out);
    case FLUGS_OP_CONCAT:
      out = query::concat(of.as<Expr>(0, of.size()));
      return {};
    case FLUGS_OP_AND:
    case FLUGS_OP_OR:
      out = combined(op, of, 0, of.size());
      return {};
    case FLUGS_OP_BETWEEN:
      out = of.expression(0).between(of.expression(1), of.expression(2));
      return {};
    case FLUGS_OP_IN:
      out = of.expression(0).in(of.as<Expr>(1, of.size() - 1));
      return {};
    case FLUGS_OP_CASE:
      out = case_of(of);
      return {};
    case FLUGS_OP_ROW_ID:
      out = query::row_id();
      return {};
    default:
      out = of.size() == 1 ? unary(op, of.expression(0))
                           : binary(op, of.expression(0), of.expression(1));
      return {};
  }
}

}  // namespace flugs::c
