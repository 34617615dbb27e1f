#include "bindings/sqlite/values.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "bindings/sqlite/times.h"

namespace flugs::sqlite {

namespace {

/// Above that a double may stand for several decimals.
constexpr std::int64_t kUnitsExact = 1'000'000'000'000'000;
constexpr double kTwo63 = 9223372036854775808.0;

const char* type_name(int type) noexcept {
  switch (type) {
    case SQLITE_INTEGER:
      return "INTEGER";
    case SQLITE_FLOAT:
      return "REAL";
    case SQLITE_TEXT:
      return "TEXT";
    case SQLITE_BLOB:
      return "BLOB";
    default:
      return "NULL";
  }
}

std::string_view text_of(sqlite3_value* value) noexcept {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

std::string_view bytes_of(sqlite3_value* value) noexcept {
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

Status misfit(const std::string& table, const Column& column, sqlite3_value* from) {
  const int type = sqlite3_value_type(from);
  std::string what = std::string("cannot store ") + type_name(type) + " value ";
  if (type != SQLITE_BLOB) {
    const std::string_view text = text_of(from);
    what += type == SQLITE_TEXT ? "'" : "";
    what += std::string(text.substr(0, 60)) + (text.size() > 60 ? "..." : "");
    what += type == SQLITE_TEXT ? "' " : " ";
  }
  return Status(
      StatusCode::kConstraintViolated,
      what + "in " + sql_type(column.type, column.scale) + " column " + table + "." + column.name);
}

/// The decimal with the fewest digits that is `number`, if 15 digits are enough.
bool decimal_of(double number, Value& out) noexcept {
  std::array<char, 512> text{};
  if (!(std::fabs(number) < 1e18)) return false;
  for (int digits = 0; digits <= Value::kScaleMax; ++digits) {
    const int size = std::snprintf(text.data(), text.size(), "%.*f", digits, number);
    if (std::strtod(text.data(), nullptr) != number) continue;
    Value found;
    if (!Value::parse_decimal({text.data(), static_cast<std::size_t>(size)}, found)) return false;
    if (found.raw() > kUnitsExact || found.raw() < -kUnitsExact) return false;
    out = found;
    return true;
  }
  return false;
}

bool take_integer(sqlite3_value* from, std::int64_t& out) noexcept {
  switch (sqlite3_value_numeric_type(from)) {
    case SQLITE_INTEGER:
      out = sqlite3_value_int64(from);
      return true;
    case SQLITE_FLOAT: {
      const double number = sqlite3_value_double(from);
      if (!(number >= -kTwo63 && number < kTwo63) || std::trunc(number) != number) return false;
      out = static_cast<std::int64_t>(number);
      return true;
    }
    default:
      return false;
  }
}

bool take_decimal(sqlite3_value* from, Value& to) noexcept {
  switch (sqlite3_value_type(from)) {
    case SQLITE_INTEGER:
      to = Value::int64(sqlite3_value_int64(from));
      return true;
    case SQLITE_FLOAT:
      return decimal_of(sqlite3_value_double(from), to);
    case SQLITE_TEXT:
      return Value::parse_decimal(text_of(from), to);
    default:
      return false;
  }
}

bool take_double(sqlite3_value* from, Value& to) noexcept {
  const int type = sqlite3_value_numeric_type(from);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return false;
  to = Value::real(sqlite3_value_double(from));
  return true;
}

bool take_fitting(const Column& column, sqlite3_value* from, Value& to) noexcept {
  std::int64_t number = 0;
  switch (column.type) {
    case Type::kBool:
      if (!take_integer(from, number) || (number != 0 && number != 1)) return false;
      to = Value::boolean(number != 0);
      return true;
    case Type::kInt32:
      if (!take_integer(from, number) || number < INT32_MIN || number > INT32_MAX) return false;
      to = Value::int32(static_cast<std::int32_t>(number));
      return true;
    case Type::kInt64:
      if (!take_integer(from, number)) return false;
      to = Value::int64(number);
      return true;
    case Type::kDouble:
      return take_double(from, to);
    case Type::kDecimal:
      return take_decimal(from, to);
    case Type::kDate:
      return sqlite3_value_type(from) == SQLITE_TEXT && read_date(text_of(from), to);
    case Type::kTimestamp:
      return sqlite3_value_type(from) == SQLITE_TEXT && read_timestamp(text_of(from), to);
    case Type::kString:
      if (sqlite3_value_type(from) == SQLITE_BLOB) return false;
      to = Value::string(text_of(from));
      return true;
    case Type::kBytes:
      if (sqlite3_value_type(from) != SQLITE_BLOB) return false;
      to = Value::bytes(bytes_of(from));
      return true;
  }
  return false;
}

}  // namespace

Status take(const std::string& table, const Column& column, sqlite3_value* from, Value& to) {
  if (sqlite3_value_type(from) == SQLITE_NULL) {
    to = Value::null();
    return {};
  }
  if (take_fitting(column, from, to)) return {};
  return misfit(table, column, from);
}

namespace {

void give_decimal(sqlite3_context* context, Texts& texts, std::uint8_t scale, std::int64_t units) {
  static constexpr std::array<double, 19> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                                     1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                                     1e14, 1e15, 1e16, 1e17, 1e18};
  if (scale == 0)
    sqlite3_result_int64(context, units);
  else if (units <= kUnitsExact && units >= -kUnitsExact)
    // Both numbers are exact, so the quotient is the double nearest to the decimal.
    sqlite3_result_double(context, static_cast<double>(units) / kPowers[scale]);
  else
    texts.give_text(context, Value::decimal(units, scale).to_string());
}

}  // namespace

void give(sqlite3_context* context, Texts& texts, const Column& column, const Value& value) {
  if (value.is_null()) return;  // the result of a call that says nothing
  std::array<char, kTimeTextMax> text;
  switch (column.type) {
    case Type::kDouble:
      sqlite3_result_double(context, value.as_double());
      break;
    case Type::kDecimal:
      give_decimal(context, texts, column.scale, value.raw());
      break;
    case Type::kDate:
      texts.give_text(context, {text.data(), write_date(value.raw(), text.data())});
      break;
    case Type::kTimestamp:
      texts.give_text(context, {text.data(), write_timestamp(value.raw(), text.data())});
      break;
    case Type::kString:
      texts.give_text(context, value.as_string());
      break;
    case Type::kBytes:
      texts.give_blob(context, value.as_string());
      break;
    default:
      sqlite3_result_int64(context, value.raw());
  }
}

namespace {

Comparison nothing() { return {Meaning::kNothing, Compare::kEq, {}}; }
Comparison all_values() { return {Meaning::kNotNull, Compare::kEq, {}}; }
Comparison exact(Compare op, const Value& value) { return {Meaning::kExact, op, value}; }

/// The column's values are all less than what they are compared with, or all greater.
Comparison beyond(Compare op, bool is_less) {
  switch (op) {
    case Compare::kEq:
    case Compare::kIs:
      return nothing();
    case Compare::kNe:
      return all_values();
    case Compare::kLt:
    case Compare::kLe:
      return is_less ? all_values() : nothing();
    default:
      return is_less ? nothing() : all_values();
  }
}

Value integer_value(Type type, std::int64_t number) {
  return type == Type::kInt32 ? Value::int32(static_cast<std::int32_t>(number))
                              : Value::int64(number);
}

Comparison with_integer(Type type, Compare op, std::int64_t number) {
  if (type == Type::kInt32 && (number < INT32_MIN || number > INT32_MAX))
    return beyond(op, number > 0);
  return exact(op, integer_value(type, number));
}

/// An integer column and a number with a fraction, or beyond all integers.
Comparison with_real(Type type, Compare op, double number) {
  if (std::isnan(number)) return nothing();
  if (number >= kTwo63) return beyond(op, true);
  if (number < -kTwo63) return beyond(op, false);
  const double below = std::floor(number);
  const auto whole = static_cast<std::int64_t>(below);
  if (below == number) return with_integer(type, op, whole);
  switch (op) {
    case Compare::kEq:
    case Compare::kIs:
      return nothing();
    case Compare::kNe:
      return all_values();
    case Compare::kLt:
    case Compare::kLe:
      return with_integer(type, Compare::kLe, whole);
    default:
      return with_integer(type, Compare::kGt, whole);
  }
}

bool looks_like_number(sqlite3_value* text) {
  // A copy gets the affinity: the value itself may be in use elsewhere.
  sqlite3_value* copy = sqlite3_value_dup(text);
  const bool is_number = copy == nullptr || sqlite3_value_numeric_type(copy) != SQLITE_TEXT;
  sqlite3_value_free(copy);
  return is_number;
}

Comparison of_integers(Type type, Compare op, sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return with_integer(type, op, sqlite3_value_int64(value));
    case SQLITE_FLOAT:
      return with_real(type, op, sqlite3_value_double(value));
    case SQLITE_TEXT: {
      // A copy gets the affinity: the value itself may be in use elsewhere.
      sqlite3_value* copy = sqlite3_value_dup(value);
      if (copy == nullptr) return {};
      const int found = sqlite3_value_numeric_type(copy);
      const Comparison result =
          found == SQLITE_TEXT ? beyond(op, true) : of_integers(type, op, copy);
      sqlite3_value_free(copy);
      return result;
    }
    default:
      return beyond(op, true);  // a BLOB
  }
}

Comparison of_bools(Compare op, sqlite3_value* value) {
  if (sqlite3_value_type(value) != SQLITE_INTEGER) return {};
  const std::int64_t number = sqlite3_value_int64(value);
  if (number == 0 || number == 1) return exact(op, Value::boolean(number != 0));
  return beyond(op, number > 1);
}

Comparison of_doubles(Compare op, sqlite3_value* value) {
  if (sqlite3_value_type(value) == SQLITE_FLOAT)
    return exact(op, Value::real(sqlite3_value_double(value)));
  if (sqlite3_value_type(value) != SQLITE_INTEGER) return {};
  const std::int64_t number = sqlite3_value_int64(value);
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (number > kExact || number < -kExact) return {};
  return exact(op, Value::real(static_cast<double>(number)));
}

Comparison of_decimals(const Column& column, Compare op, sqlite3_value* value) {
  Value number;
  if (sqlite3_value_type(value) == SQLITE_INTEGER)
    number = Value::decimal(sqlite3_value_int64(value), 0);
  else if (sqlite3_value_type(value) != SQLITE_FLOAT ||
           !decimal_of(sqlite3_value_double(value), number))
    return {};
  // As many units as the column counts, or SQLite may tell.
  std::int64_t units = number.raw();
  for (unsigned i = number.scale(); i < column.scale; ++i)
    if (units > kUnitsExact || units < -kUnitsExact)
      return {};
    else
      units *= 10;
  if (number.scale() > column.scale) return {};
  return exact(op, Value::decimal(units, column.scale));
}

Comparison of_timestamps(Compare op, std::string_view text) {
  Value value;
  if (read_canonical_timestamp(text, value)) return exact(op, value);
  if (!read_date(text, value)) return {};
  // A day is less than each of its moments, as texts are compared.
  const Value midnight = Value::timestamp(value.raw() * kMicrosecondsPerDay);
  switch (op) {
    case Compare::kLt:
    case Compare::kLe:
      return exact(Compare::kLt, midnight);
    case Compare::kGt:
    case Compare::kGe:
      return exact(Compare::kGe, midnight);
    default:
      return {};
  }
}

/// A text may come from a column of a numeric affinity. Then SQLite compares texts that look like
/// numbers as numbers, and a number is less than each text.
Comparison of_texts(Compare op, sqlite3_value* value, bool is_literal) {
  /// Greater than all texts that look like numbers, which begin with a space, a sign or a digit.
  static constexpr std::string_view kNumbersEnd = ":";
  if (sqlite3_value_type(value) != SQLITE_TEXT) return {};
  const std::string_view text = text_of(value);
  if (is_literal || sqlite3_value_frombind(value) != 0 || text >= kNumbersEnd)
    return exact(op, Value::string(text));
  if (looks_like_number(value)) return {};
  if (op == Compare::kLt || op == Compare::kLe)
    return exact(Compare::kLt, Value::string(kNumbersEnd));
  return exact(op, Value::string(text));
}

}  // namespace

Comparison compare(const Column& column, Compare op, sqlite3_value* value, bool is_literal) {
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL)
    return op == Compare::kIs ? exact(Compare::kIs, Value::null()) : nothing();
  if (op == Compare::kIs) op = Compare::kEq;
  switch (column.type) {
    case Type::kInt32:
    case Type::kInt64:
      return of_integers(column.type, op, value);
    case Type::kBool:
      return of_bools(op, value);
    case Type::kDouble:
      return of_doubles(op, value);
    case Type::kDecimal:
      return of_decimals(column, op, value);
    case Type::kDate: {
      Value date;
      if (type != SQLITE_TEXT || !read_date(text_of(value), date)) return {};
      return exact(op, date);
    }
    case Type::kTimestamp:
      return type == SQLITE_TEXT ? of_timestamps(op, text_of(value)) : Comparison();
    case Type::kString:
      return of_texts(op, value, is_literal);
    case Type::kBytes:
      return type == SQLITE_BLOB ? exact(op, Value::bytes(bytes_of(value))) : Comparison();
  }
  return {};
}

}  // namespace flugs::sqlite
