#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flugs/expression.h"
#include "flugs/value.h"
#include "query/vectors/data_type.h"

namespace flugs::query {

enum class Op : std::uint8_t {
  kColumn,
  kConstant,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kAnd,
  kOr,
  kNot,
  kIsNull,
  kIsNotNull,
  kIn,
  kStartsWith,
  kEndsWith,
  kContains,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kYear,
  kMonth,
  kDay,
  kSubstring,
  kFirstByte,
  kToDouble,
  kLike,           ///< `text` is the pattern, `first` the escape character or 0
  kMatches,        ///< `text` is the regular expression, as of the next two
  kRegexpExtract,  ///< `first`: the group
  kRegexpReplace,  ///< args[1]: the replacement, a constant; `first`: a Replace
  kLower,
  kUpper,
  kTrim,    ///< `first`: the sides (Sides)
  kConcat,  ///< any number of texts
  kLength,
  kByteLength,
  kPosition,  ///< of the second text in the first
  kToText,
  kAbsolute,
  kFloor,
  kCeiling,
  kRound,  ///< `first`: decimal places, as an int32
  kSquareRoot,
  kLogarithm,
  kExponential,
  kPower,
  kQuotient,
  kToInteger,
  kToDecimal,  ///< `first`: the scale
  kToDate,
  kToTimestamp,
  kHour,
  kMinute,
  kSecond,
  kWeekday,
  kDayOfYear,
  kQuarter,
  kTruncateTime,  ///< `first`: a TimeUnit
  kAddMonths,
  kCase,       ///< condition, value, condition, value, ..., otherwise
  kRescale,    ///< an exact number times 10^first; only the binder makes it and those below it
  kToInstant,  ///< a date as a timestamp
  kCoarsen,    ///< a value in a unit that is factors[0] times its own; NULL if the result is not
               ///< whole
  kLookup,     ///< an expression of one column, by the column's code
  kIsKey,      ///< whether a value may be a key of a join's right side
  kKeepText,   ///< a computed text, in memory that outlives the batch
};
/// The operators whose result the evaluator computes from two numbers.
constexpr bool is_arithmetic(Op op) noexcept { return op >= Op::kAdd && op <= Op::kRemainder; }
static_assert(is_arithmetic(Op::kSubtract) && is_arithmetic(Op::kMultiply) &&
              is_arithmetic(Op::kDivide));
static_assert(!is_arithmetic(Op::kContains) && !is_arithmetic(Op::kYear));

/// A constant with its bytes. `value` is NULL or views `text`.
struct Literal {
  DataType type;
  Value value;
  std::string text;
  bool is_untyped_null = false;

  Literal() = default;
  Literal(const Value& from, std::uint8_t scale) { assign(from, scale); }
  Literal(const Literal& other) : Literal(other.value, other.type.scale) {}
  Literal& operator=(const Literal& other) {
    if (this != &other) assign(other.value, other.type.scale);
    return *this;
  }

 private:
  void assign(const Value& from, std::uint8_t scale);
};

/// An expression as the user wrote it. Columns are names, types are unknown.
///
/// Every function that walks an expression is recursive, its destructor too. So no expression has
/// more levels than kLevelsMax: beyond that, the functions of flugs/expression.h return a node
/// without arguments whose `error` says why, and so does each function that gets such a node.
/// kNodesMax limits loops of `e = e + e`, where one node is the argument of many.
struct ExprNode {
  static constexpr std::uint32_t kLevelsMax = 1000;
  static constexpr std::uint32_t kNodesMax = 1u << 16;

  Op op = Op::kConstant;
  std::vector<Expr> args;
  std::string name;          ///< given by as()
  std::string text;          ///< a column's name; a pattern
  std::string error;         ///< why there is no such expression; then it has no arguments
  Literal literal;           ///< kConstant
  std::uint32_t first = 0;   ///< kSubstring, and as Op says
  std::uint32_t length = 0;  ///< kSubstring
  std::uint32_t levels = 1;  ///< this level and those below it
  std::uint32_t nodes = 1;   ///< nodes of the whole expression, each counted as often as it is an
                             ///< argument
};

/// An expression whose use fails with kInvalidArgument and the reason `why`.
Expr wrong(std::string why);
/// Makes every expression that has arguments, or one that is wrong: too large, or with a wrong
/// argument.
Expr make_expr(ExprNode made);

/// The name of an output: given by as(), or a column's own, or the expression as text.
std::string output_name(const Expr& expr);
/// The column that row_id() names.
std::string row_id_name();
std::string output_name(const Aggregate& aggregate);

}  // namespace flugs::query
