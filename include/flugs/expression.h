#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/condition.h"
#include "flugs/value.h"

namespace flugs::query {

struct ExprNode;

/// A value computed for each row of a query: a column, a constant, or a function of expressions. An
/// expression is bound to its columns and types when the query runs; building one never fails. It
/// has at most 1000 levels and 65,536 parts: a function that uses a larger one fails with
/// kInvalidArgument.
///
/// Types. Integers compute in 64 bits. Decimals keep their scale: + and - take the larger scale, *
/// adds the scales (at most 18), and an integer counts as a decimal of scale 0. If a double takes
/// part, and for `/`, the result is a double. A date or timestamp plus or minus an integer moves by
/// days or microseconds; the difference of two is an integer. Numbers compare with numbers, dates
/// with timestamps (midnight), text with text, bool with bool. Comparisons, lists and join keys of
/// numbers of different scales, and of dates with timestamps, are exact for values of any size.
///
/// NULL as in SQL: a function of NULL is NULL; and, or, not know three truth values; a filter takes
/// the rows for which its condition is true. Division by zero and a calendar date that does not
/// exist are NULL. An integer or decimal that does not fit 64 bits fails the query (kOverflow), and
/// so does a date beyond 32 bits of days, or a timestamp beyond 64 bits of microseconds.
///
/// The operators && and || evaluate both sides, in any order. Only case_when evaluates a branch
/// just for the rows that take it.
///
/// Thread-safety: immutable; copies share.
class Expr {
 public:
  /// No expression. A function that takes an optional one says what a missing one means.
  Expr() noexcept = default;

  // Constants. Text is copied.
  Expr(const Value& value);  // NOLINT(google-explicit-constructor)
  /// Anything that converts to a Value. An integer is an int64.
  template <typename T>
    requires(std::constructible_from<Value, const T&> && !std::same_as<T, Value> &&
             (!std::integral<T> || std::same_as<T, bool>))
  Expr(const T& value) : Expr(Value(value)) {}  // NOLINT(google-explicit-constructor)
  template <std::integral Integer>
    requires std::constructible_from<Value, Integer> && (!std::same_as<Integer, bool>)
  Expr(Integer value)  // NOLINT(google-explicit-constructor)
      : Expr(integer(static_cast<std::int64_t>(value))) {}

  explicit Expr(std::shared_ptr<const ExprNode> node) noexcept : node_(std::move(node)) {}

  bool is_given() const noexcept { return node_ != nullptr; }
  const std::shared_ptr<const ExprNode>& node() const noexcept { return node_; }

  /// The same expression under another name, which becomes the name of the result's column. Without
  /// it a column keeps its own name, and every other expression is named by its text (`to_string`).
  Expr as(std::string name) const;
  /// For people; also the name of a result without one.
  std::string to_string() const;

  /// Converts to a condition that a schema can keep (TableSchema::check). The expression may
  /// compare columns with constants and with columns, by all predicates but like and matches, and
  /// combine comparisons; it may not compute. Any other expression gives a condition that
  /// create_table refuses with the reason.
  operator Condition() const;  // NOLINT(google-explicit-constructor)

  Expr is_null() const;
  Expr is_not_null() const;
  /// low <= this and this <= high.
  Expr between(const Expr& low, const Expr& high) const;
  /// True if this equals one of the constants. A NULL among them follows SQL's rule: the result is
  /// then true or NULL, never false.
  Expr in(std::vector<Expr> constants) const;
  // The next three test a text (string or bytes) byte by byte.
  Expr starts_with(std::string_view prefix) const;
  Expr ends_with(std::string_view suffix) const;
  Expr contains(std::string_view part) const;
  /// Tests whether the whole text matches `pattern`. `%` matches any number of bytes, also none.
  /// `_` matches one character, or one byte in a column of bytes. `escape` is one byte; 0 means
  /// none. Behind it the bytes `%`, `_` and `escape` stand for themselves. Any other byte there, or
  /// the end of the pattern, fails the query with kInvalidArgument.
  Expr like(std::string_view pattern, char escape = 0) const;
  /// Tests whether some part of the text matches a regular expression in the syntax of RE2, like
  /// regexp_matches of SQL. `^` and `$` are the ends of the text; behind `(?m)` also those of a
  /// line. `.` matches no end of a line, unless behind `(?s)`. A character is one of UTF-8, or one
  /// byte (Latin-1) in a column of bytes. The pattern is compiled when the query begins. A pattern
  /// that is wrong, or takes more than 8 MB, fails the query with kInvalidArgument.
  Expr matches(std::string_view pattern) const;

  friend Expr operator==(const Expr& a, const Expr& b) { return equal(a, b); }
  friend Expr operator!=(const Expr& a, const Expr& b) { return not_equal(a, b); }
  friend Expr operator<(const Expr& a, const Expr& b) { return less(a, b); }
  friend Expr operator<=(const Expr& a, const Expr& b) { return less_equal(a, b); }
  friend Expr operator>(const Expr& a, const Expr& b) { return less(b, a); }
  friend Expr operator>=(const Expr& a, const Expr& b) { return less_equal(b, a); }
  friend Expr operator&&(const Expr& a, const Expr& b) { return both(a, b); }
  friend Expr operator||(const Expr& a, const Expr& b) { return either(a, b); }
  friend Expr operator!(const Expr& a) { return negated(a); }
  friend Expr operator+(const Expr& a, const Expr& b) { return plus(a, b); }
  friend Expr operator-(const Expr& a, const Expr& b) { return minus(a, b); }
  friend Expr operator*(const Expr& a, const Expr& b) { return times(a, b); }
  friend Expr operator/(const Expr& a, const Expr& b) { return divided(a, b); }
  /// Remainder of integers, with the sign of the dividend.
  friend Expr operator%(const Expr& a, const Expr& b) { return remainder(a, b); }

 private:
  static Expr integer(std::int64_t value);
  static Expr equal(const Expr& a, const Expr& b);
  static Expr not_equal(const Expr& a, const Expr& b);
  static Expr less(const Expr& a, const Expr& b);
  static Expr less_equal(const Expr& a, const Expr& b);
  static Expr both(const Expr& a, const Expr& b);
  static Expr either(const Expr& a, const Expr& b);
  static Expr negated(const Expr& a);
  static Expr plus(const Expr& a, const Expr& b);
  static Expr minus(const Expr& a, const Expr& b);
  static Expr times(const Expr& a, const Expr& b);
  static Expr divided(const Expr& a, const Expr& b);
  static Expr remainder(const Expr& a, const Expr& b);

  std::shared_ptr<const ExprNode> node_;
};

/// A column of the query's input, by name.
Expr col(std::string name);
/// The id of a table's row (RowId::value) as an int64. Can be selected from a table; a condition
/// directly behind the table cannot use it.
Expr row_id();
/// A value, or NULL (`Value::null()`, which takes the type that its place needs). Text is copied. A
/// decimal needs a scale of its own (Value::decimal).
Expr constant(const Value& value);
/// Calendar constants, proleptic Gregorian, UTC.
Expr date(int year, unsigned month, unsigned day);
Expr timestamp(int year, unsigned month, unsigned day, unsigned hour = 0, unsigned minute = 0,
               unsigned second = 0);

// Parts of a date or a timestamp, as int64, in UTC. A date counts as its midnight.
Expr year(const Expr& time);
Expr quarter(const Expr& time);      ///< 1 to 4
Expr month(const Expr& time);        ///< 1 to 12
Expr day(const Expr& time);          ///< of the month, 1 to 31
Expr day_of_year(const Expr& time);  ///< 1 to 366
Expr weekday(const Expr& time);      ///< 1 (Monday) to 7 (Sunday), as ISO 8601 counts
Expr hour(const Expr& time);         ///< 0 to 23
Expr minute(const Expr& time);       ///< 0 to 59
Expr second(const Expr& time);       ///< 0 to 59

enum class TimeUnit : std::uint8_t {
  kYear,
  kQuarter,
  kMonth,
  kWeek,  ///< begins on Monday
  kDay,
  kHour,
  kMinute,
  kSecond
};
static_assert(TimeUnit::kDay < TimeUnit::kHour);  // units of whole days come first
/// "year", "quarter" and so on.
std::string_view to_string(TimeUnit unit) noexcept;
/// The unit with that name; nullopt: there is none.
std::optional<TimeUnit> time_unit(std::string_view name) noexcept;
/// Rounds a date or timestamp down to the beginning of its unit, and keeps its type. A date stays
/// as it is for kHour, kMinute and kSecond.
Expr truncate_time(TimeUnit unit, const Expr& time);
/// Adds `months`, an integer, to a date or timestamp; a negative number goes back. The day of the
/// month stays, or becomes the last day of a shorter month. Fails with kOverflow if the result does
/// not fit, or if `months` is beyond 200,000,000 either way.
Expr add_months(const Expr& time, const Expr& months);
/// The day of a timestamp, a date as it is, or the date that a string of the form YYYY-MM-DD names.
/// Any other string gives NULL.
Expr to_date(const Expr& from);
/// The timestamp of a date's midnight; a timestamp as it is. Fails with kOverflow if a date has
/// none.
Expr to_timestamp(const Expr& time);

// Functions of texts, which are strings or bytes. lower, upper, trim, substring and concat give the
// type of their argument; numbers are int64.
/// Up to `length` bytes of a text from byte `first` on. The first byte is 1; 0 fails with
/// kInvalidArgument. Bytes are counted, not characters as by length() and position(), so a cut may
/// divide a character. The result is empty if the text ends before.
Expr substring(const Expr& text, std::uint32_t first, std::uint32_t length);
/// The value of a text's first byte, 0 to 255; 0 for an empty text.
Expr first_byte(const Expr& text);
/// The number of characters (UTF-8) of a string, or of bytes.
Expr length(const Expr& text);
Expr byte_length(const Expr& text);
/// With the letters A to Z small, or a to z large. Other characters stay as they are.
Expr lower(const Expr& text);
Expr upper(const Expr& text);
enum class Sides : std::uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };  // a bit each
static_assert((static_cast<int>(Sides::kLeft) | static_cast<int>(Sides::kRight)) ==
              static_cast<int>(Sides::kBoth));
/// The text without the spaces (bytes of value 32) at these sides.
Expr trim(const Expr& text, Sides sides = Sides::kBoth);
/// Joins texts of one type, string or bytes. NULL if a text is NULL. No text at all fails with
/// kInvalidArgument.
Expr concat(std::vector<Expr> texts);
/// Where `part` first occurs in `text`: the number of the character, or byte, at which it begins.
/// The first is 1; 0: it does not occur. An empty part is at 1.
Expr position(const Expr& text, const Expr& part);
/// What the first match of a regular expression (Expr::matches) has for a group: 0 is all of the
/// match, 1 to 9 the groups in the order of their opening brackets. Empty if nothing matches, or if
/// the match does not have the group. A group that the pattern has not fails with kInvalidArgument.
Expr regexp_extract(const Expr& text, std::string_view pattern, std::uint32_t group = 0);
enum class Replace : std::uint8_t { kFirst, kAll };  ///< matches
/// The text with the first match of a regular expression, or all of them, replaced. In the
/// replacement `\0` stands for the match, `\1` to `\9` for its groups, and `\\` for a backslash.
/// A group that the pattern has not, or any other backslash, fails with kInvalidArgument.
Expr regexp_replace(const Expr& text, std::string_view pattern, std::string_view replacement,
                    Replace which = Replace::kFirst);
/// A number, truth value, date or timestamp as a string: 12.50, true, 2026-11-30. A string as it
/// is; bytes fail with kInvalidArgument.
Expr to_text(const Expr& value);

// Functions of numbers. A root or logarithm outside its domain, a power without a real value, and a
// quotient by 0 are NULL. An integer or decimal that does not fit fails with kOverflow; NaN and
// infinity do not fit. A double that is too large becomes infinity.
/// The number without its sign, in the argument's type; integers give int64.
Expr absolute(const Expr& number);
/// The greatest integer that is not above the number. An int64; of a double, a double.
Expr floor(const Expr& number);
/// The least integer that is not below the number. Types as for floor().
Expr ceiling(const Expr& number);
/// Rounds to `places` digits behind the point, half away from zero; -2 rounds to hundreds. Gives an
/// int64 for integers, and a double for doubles. For decimals it gives a decimal whose scale is
/// `places`, at least 0 and at most the argument's scale.
Expr round(const Expr& number, int places = 0);
// The next four take any number and give a double.
Expr square_root(const Expr& number);
Expr logarithm(const Expr& number);  ///< the natural one
Expr exponential(const Expr& number);
Expr power(const Expr& base, const Expr& exponent);
/// Divides integers and drops the fraction: -7 by 2 is -3. NULL for a divisor of 0. Other numbers
/// fail with kInvalidArgument.
Expr quotient(const Expr& dividend, const Expr& divisor);
/// A number as a double. A string converts if all of it is a number like "-1.5e3" ("inf" and "nan",
/// too). Any other string, also with spaces, a + in front or a value out of range, gives NULL.
Expr to_double(const Expr& from);
/// A number without its fraction. A string converts if all of it is an integer of 64 bits; any
/// other string gives NULL.
Expr to_int64(const Expr& from);
/// A number as a decimal of this scale, 0 to 18, rounded half away from zero.
Expr to_decimal(const Expr& number, std::uint8_t scale);

/// A column's new value in a write by condition (Transaction::update_where): an expression of the
/// columns of the row as it was before.
struct Assignment {
  std::string column;
  Expr value;
};

struct WhenThen {
  Expr when;
  Expr then;
};
/// The value of the first case whose condition is true, else `otherwise` (NULL if not given). All
/// values have one type, or are numbers.
Expr case_when(std::vector<WhenThen> cases, const Expr& otherwise = {});

/// An expression, or the name of a column. Lists of outputs and of keys consist of items.
///     query.select({"id", (col("price") * col("quantity")).as("value")})
class Item {
 public:
  Item(Expr expr) : expr_(std::move(expr)) {}       // NOLINT(google-explicit-constructor)
  Item(const char* column) : expr_(col(column)) {}  // NOLINT(google-explicit-constructor)
  Item(std::string column)
      : expr_(col(std::move(column))) {}  // NOLINT(google-explicit-constructor)
  const Expr& expr() const noexcept { return expr_; }

 private:
  Expr expr_;
};

enum class AggregateKind : std::uint8_t {
  kCountRows,
  kCount,
  kCountDistinct,
  kSum,
  kMin,
  kMax,
  kAvg,
  kVariance,
  kStddev,
  kQuantile,
  kMedian,
  kApproxCountDistinct,
};

/// One figure per group. All but count() leave NULLs out. Over NULLs only, or over no row, a count
/// is 0 and every other aggregate NULL.
struct Aggregate {
  AggregateKind kind = AggregateKind::kCountRows;
  Expr of;           ///< the argument; count() has none
  std::string name;  ///< name of the result's column; empty: like "sum(price)"
  double q = 0;      ///< quantile()

  Aggregate as(std::string result_name) const { return {kind, of, std::move(result_name), q}; }
  /// The same over the rows for which `condition` is true; for count(), their number. The name
  /// becomes "sum(price) where size > 1": call as() behind it to set another.
  Aggregate where(const Expr& condition) const;
};

/// Counts rows.
Aggregate count();
/// Counts values that are not NULL. Counts are int64.
Aggregate count(const Item& of);
Aggregate count_distinct(const Item& of);
/// About as many as count_distinct: with a standard error of 1.6 %, so that one of 20 results is
/// wrong by more than 3.3 %. Few values are counted nearly exactly. Takes at most 4 KB per group
/// and thread (HyperLogLog). The result is the same for the same values, however many threads run.
Aggregate approx_count_distinct(const Item& of);
/// The sum of integers is int64, and of decimals a decimal of the same scale; both are exact
/// (kOverflow beyond 64 bits). The sum of doubles is a double, whose last digits may depend on the
/// order of addition.
Aggregate sum(const Item& of);
/// The argument may have any type; text compares byte by byte, NaN is above all numbers.
Aggregate min(const Item& of);
Aggregate max(const Item& of);
/// A double; for integers and decimals the exact sum divided by the count.
Aggregate avg(const Item& of);
/// The variance of a sample (divided by n - 1), a double; NULL for fewer than two values.
Aggregate variance(const Item& of);
Aggregate stddev(const Item& of);
/// The first value, in ascending order, with at least the part `q` of all values at it or before
/// it: a value of the group, in the argument's type, which may be any. 0 is the least one, 1 the
/// greatest. Order and equality are those of min() and max(). The values are kept in memory until
/// the groups are complete. Another `q` than 0 to 1 fails with kInvalidArgument. quantile_disc of
/// SQL.
Aggregate quantile(const Item& of, double q);
/// The value in the middle of numbers, or the mean of the two values there; a double. Keeps values
/// as quantile() does.
Aggregate median(const Item& of);
static_assert(std::is_nothrow_move_constructible_v<Expr>);

}  // namespace flugs::query
