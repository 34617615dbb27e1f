#pragma once

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace flugs {

/// The types a column can have. The numeric values are part of the pool format.
enum class Type : std::uint8_t {
  kBool = 1,       ///< true or false
  kInt32 = 2,      ///< 32-bit signed integer
  kInt64 = 3,      ///< 64-bit signed integer
  kDouble = 4,     ///< IEEE 754 binary64; -0.0 is stored as 0.0, every NaN as one; NaN sorts last
  kDecimal = 5,    ///< 64-bit signed, in units of 10^-scale; scale is the column's, 0 to 18
  kDate = 6,       ///< days since 1970-01-01 (proleptic Gregorian), 32-bit signed
  kTimestamp = 7,  ///< microseconds since 1970-01-01T00:00:00 UTC, 64-bit signed
  kString = 8,     ///< text of any length up to 2^31-1 bytes; compared byte by byte
  kBytes = 9,      ///< bytes of any length up to 2^31-1; compared byte by byte
};

/// "int32", "string", ...
std::string_view to_string(Type type) noexcept;

/// What a value is, without the value itself.
struct ValueKind {
  Type type = Type::kBool;
  std::uint8_t scale = 0;  ///< as Value::scale
  bool is_present = false;
  std::uint8_t zero = 0;

  /// All of it as one number.
  constexpr std::uint32_t word() const noexcept { return std::bit_cast<std::uint32_t>(*this); }
  friend constexpr bool operator==(ValueKind a, ValueKind b) noexcept {
    return a.word() == b.word();
  }
};
static_assert(sizeof(ValueKind) == 4);

/// One value, or NULL. Integers, bool, double, text, std::optional of these, and the calendar types
/// of std::chrono convert to it:
///     transaction.insert(orders, {nullptr, 7, "by air", Value::decimal("12.50"),
///                                 std::chrono::system_clock::now()});
///
/// A string or bytes Value is a view. The caller that makes one keeps its bytes alive for the call;
/// a std::string that is about to be destroyed does not convert. A Value that a row returned is
/// valid until its transaction ends or writes to that row.
///
/// Every function that takes a Value for a column takes any that stands for a value of the column
/// exactly: an integer for an integer, decimal or double; a decimal for a decimal or an integer; a
/// date for a timestamp (midnight); a string for bytes. Others fail, and the message has both.
///
/// Thread-safety: a plain value type.
class Value {
  template <typename T>
  static constexpr bool kIsCharacter =
      std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
      std::same_as<T, char16_t> || std::same_as<T, char32_t>;

 public:
  /// NULL, for a column of any type.
  constexpr Value() noexcept = default;
  constexpr Value(std::nullptr_t) noexcept {}           // NOLINT(google-explicit-constructor)
  constexpr Value(std::nullopt_t) noexcept {}           // NOLINT(google-explicit-constructor)
  template <std::same_as<bool> T>                       // so that pointers do not convert
  constexpr Value(T v) noexcept : Value(boolean(v)) {}  // NOLINT(google-explicit-constructor)
  /// An int32 if the type has 32 bits or fewer, unless its values need more. An unsigned integer of
  /// 64 bits does not convert, since not all of its values fit.
  template <std::integral T>
    requires(!std::same_as<T, bool> && !kIsCharacter<T> &&
             (sizeof(T) < 8 || (sizeof(T) == 8 && std::is_signed_v<T>)))
  constexpr Value(T v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(sizeof(T) + std::is_unsigned_v<T> <= 4 ? Type::kInt32 : Type::kInt64,
              static_cast<std::int64_t>(v)) {}
  template <std::floating_point T>
    requires(sizeof(T) <= sizeof(double))
  Value(T v) noexcept : Value(real(v)) {}       // NOLINT(google-explicit-constructor)
  constexpr Value(std::string_view v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(Type::kString, v) {}
  /// A null pointer is NULL.
  constexpr Value(const char* v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(v == nullptr ? Value() : Value(Type::kString, std::string_view(v))) {}
  Value(const std::string& v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(Type::kString, std::string_view(v)) {}
  Value(std::string&&) = delete;  // the view would outlive the text
  Value(const std::string&&) = delete;
  /// The value, or NULL.
  template <typename T>
    requires std::constructible_from<Value, const T&>
  constexpr Value(const std::optional<T>& v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(v.has_value() ? Value(*v) : Value()) {}
  Value(std::optional<std::string>&&) = delete;
  constexpr Value(std::chrono::year_month_day v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(date(v)) {}
  constexpr Value(std::chrono::sys_days v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(date(v)) {}
  /// A timestamp, in whole microseconds, rounded down.
  template <typename Duration>
    requires(!std::same_as<Duration, std::chrono::days>)
  constexpr Value(
      std::chrono::sys_time<Duration> v) noexcept  // NOLINT(google-explicit-constructor)
      : Value(timestamp(v)) {}

  static constexpr Value null() noexcept { return Value(); }
  static constexpr Value boolean(bool v) noexcept { return Value(Type::kBool, v ? 1 : 0); }
  static constexpr Value int32(std::int32_t v) noexcept { return Value(Type::kInt32, v); }
  static constexpr Value int64(std::int64_t v) noexcept { return Value(Type::kInt64, v); }
  static Value real(double v) noexcept {
    std::int64_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    return Value(Type::kDouble, bits);
  }
  /// Digits after the point that a decimal can have.
  static constexpr std::uint8_t kScaleMax = 18;
  /// 12.34 is decimal(1234, 2). Every call refuses a value whose scale is above kScaleMax.
  static constexpr Value decimal(std::int64_t units, std::uint8_t scale) noexcept {
    return Value(Type::kDecimal, units).with_scale(scale);
  }
  /// Reads a constant of the program, "-12.34"; its scale is the number of digits after the point.
  /// A text that is no decimal of 64 bits does not compile: for other texts there is parse_decimal.
  template <std::size_t kSize>
  static consteval Value decimal(const char (&text)[kSize]) {
    Value v;
    if (!read_decimal({text, kSize - 1}, v)) not_a_decimal();
    return v;
  }
  /// As decimal; false: `text` is no decimal of 64 bits with at most 18 digits after the point, and
  /// `out` stays as it is.
  static constexpr bool parse_decimal(std::string_view text, Value& out) noexcept {
    return read_decimal(text, out);
  }
  /// `units` counts multiples of 10^-scale of the column in whose place the value stands.
  static constexpr Value decimal_units(std::int64_t units) noexcept {
    return Value(Type::kDecimal, units).with_scale(kScaleOfColumn);
  }
  static constexpr Value date(std::int32_t days_since_epoch) noexcept {
    return Value(Type::kDate, days_since_epoch);
  }
  static constexpr Value date(std::chrono::sys_days v) noexcept {
    return date(static_cast<std::int32_t>(v.time_since_epoch().count()));
  }
  static constexpr Value timestamp(std::int64_t microseconds_since_epoch) noexcept {
    return Value(Type::kTimestamp, microseconds_since_epoch);
  }
  template <typename Duration>
  static constexpr Value timestamp(std::chrono::sys_time<Duration> v) noexcept {
    return timestamp(std::chrono::floor<std::chrono::microseconds>(v).time_since_epoch().count());
  }
  /// At most 2^31 - 1 bytes, as for `bytes`; not copied.
  static constexpr Value string(std::string_view v) noexcept { return Value(Type::kString, v); }
  static constexpr Value bytes(std::string_view v) noexcept { return Value(Type::kBytes, v); }
  template <std::same_as<std::string> T>
  static Value string(T&&) = delete;  // the view would outlive the text
  template <std::same_as<std::string> T>
  static Value bytes(T&&) = delete;

  constexpr bool is_null() const noexcept { return !kind_.is_present; }
  /// The type the value was made with; meaningless for NULL.
  constexpr Type type() const noexcept { return kind_.type; }
  /// Digits after the point of a decimal; 0 for any other type; kScaleOfColumn: see decimal_units.
  constexpr std::uint8_t scale() const noexcept { return kind_.scale; }
  static constexpr std::uint8_t kScaleOfColumn = 0xFF;

  // The next functions do not check the type: asking for another type gives an unspecified result.

  /// The 64-bit payload of every type but string and bytes (a double's bit pattern).
  constexpr std::int64_t raw() const noexcept { return raw_; }
  constexpr bool as_bool() const noexcept { return raw_ != 0; }
  constexpr std::int32_t as_int32() const noexcept { return static_cast<std::int32_t>(raw_); }
  constexpr std::int64_t as_int64() const noexcept { return raw_; }
  double as_double() const noexcept {
    double v = 0;
    std::memcpy(&v, &raw_, sizeof v);
    return v;
  }
  /// Text or bytes; empty for any other type.
  constexpr std::string_view as_string() const noexcept { return {data_, size_}; }
  constexpr std::chrono::sys_days as_date() const noexcept {
    return std::chrono::sys_days(std::chrono::days(raw_));
  }
  constexpr std::chrono::sys_time<std::chrono::microseconds> as_timestamp() const noexcept {
    return std::chrono::sys_time<std::chrono::microseconds>(std::chrono::microseconds(raw_));
  }

  /// Equal type and payload; NULL equals NULL (this is identity, not SQL's three-valued `=`).
  /// Decimals of different scales are equal if they are the same number.
  friend bool operator==(const Value& a, const Value& b) noexcept {
    if (a.kind_ != b.kind_) return equal_kinds_aside(a, b);
    return a.is_null() || (a.raw_ == b.raw_ && a.as_string() == b.as_string());
  }

  /// For people: NULL, 42, 12.34, 3.5, 'text', x'0aff', 2026-11-25, 2026-11-25 18:45:00.000001, ...
  /// (decimal_units as a plain integer).
  std::string to_string() const;

  /// The value of `type` whose payload `raw` is; for code that is generic over types. A decimal has
  /// the scale of its column.
  static constexpr Value from_raw(Type type, std::int64_t raw) noexcept {
    return Value(kind_in_column(type), raw);
  }
  static constexpr Value from_raw(ValueKind kind, std::int64_t raw) noexcept {
    return Value(kind, raw);
  }
  constexpr ValueKind kind() const noexcept { return kind_; }
  /// The kind of a value of `type` that has the scale of its column.
  static constexpr ValueKind kind_in_column(Type type) noexcept {
    return {type, type == Type::kDecimal ? kScaleOfColumn : std::uint8_t{0}, true};
  }
  static constexpr Value from_bytes(Type type, std::string_view v) noexcept {
    return Value(type, v);
  }
  /// The same units, read at another scale.
  constexpr Value with_scale(std::uint8_t scale) const noexcept {
    Value v = *this;
    v.kind_.scale = scale;
    return v;
  }

 private:
  constexpr Value(Type type, std::int64_t raw) noexcept : raw_(raw), kind_{type, 0, true} {}
  constexpr Value(ValueKind kind, std::int64_t raw) noexcept : raw_(raw), kind_(kind) {}
  constexpr Value(Type type, std::string_view v) noexcept
      : data_(v.data()), size_(clamped(v.size())), kind_{type, 0, true} {}
  // A text that is too long for a column stays too long: 2^32 - 1 is more than any column takes.
  static constexpr std::uint32_t clamped(std::size_t size) noexcept {
    return size < 0xFFFFFFFFu ? static_cast<std::uint32_t>(size) : 0xFFFFFFFFu;
  }
  static constexpr bool read_decimal(std::string_view text, Value& out) noexcept;
  /// For values of different kinds: whether they are decimals and the same number.
  static bool equal_kinds_aside(const Value& a, const Value& b) noexcept;
  static void not_a_decimal() noexcept;  // not constexpr: calling it does not compile

  std::int64_t raw_ = 0;
  const char* data_ = nullptr;
  std::uint32_t size_ = 0;
  ValueKind kind_;
};
static_assert(sizeof(Value) == 24 && std::is_trivially_copyable_v<Value>);

constexpr bool Value::read_decimal(std::string_view text, Value& out) noexcept {
  const bool is_negative = !text.empty() && text.front() == '-';
  if (is_negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  std::int64_t units = 0;  // below 0: the least number has no opposite
  int scale = -1;          // before the point
  bool has_digits = false;
  for (const char c : text) {
    if (c == '.' && scale < 0) {
      scale = 0;
      continue;
    }
    if (c < '0' || c > '9' || scale == kScaleMax) return false;
    const int digit = c - '0';
    if (units < (INT64_MIN + digit) / 10) return false;
    units = units * 10 - digit;
    has_digits = true;
    if (scale >= 0) ++scale;
  }
  if (!has_digits || (!is_negative && units == INT64_MIN)) return false;
  out = decimal(is_negative ? units : -units, static_cast<std::uint8_t>(scale < 0 ? 0 : scale));
  return true;
}

static_assert(sizeof(double) == sizeof(std::int64_t));  // a payload
// The payload of a 32-bit type has its sign.
static_assert(Value::int32(-1).raw() == -1 && Value::date(-1).raw() == -1);
static_assert(Value::null().is_null() && !Value::boolean(false).is_null());
static_assert(Value::string("text").as_string().size() == 4);
static_assert(!std::is_constructible_v<Value, std::string> &&
              !std::is_constructible_v<Value, void*>);
static_assert(Value(7).type() == Type::kInt32 && Value(7u).type() == Type::kInt64);
static_assert(!std::is_constructible_v<Value, std::uint64_t> &&
              !std::is_constructible_v<Value, char> &&
              !std::is_constructible_v<Value, long double> &&
              !std::is_constructible_v<Value, std::optional<std::uint64_t>>);
static_assert(Value(true).type() == Type::kBool && Value("t").type() == Type::kString);
static_assert(Value::decimal("-12.34").raw() == -1234 && Value::decimal("-12.34").scale() == 2);

}  // namespace flugs
