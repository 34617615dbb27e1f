#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

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

/// One value, or NULL. A string or bytes Value is a view. The caller that makes one keeps its bytes
/// alive for the call. A Value that a row returned is valid until its transaction ends or writes to
/// that row.
///
/// The type must be the column's, except that an int32 may stand for an int64. The `as_` functions
/// do not check the type: asking for another type gives an unspecified result.
///
/// Thread-safety: a plain value type.
class Value {
 public:
  /// NULL, for a column of any type.
  constexpr Value() noexcept = default;

  static constexpr Value null() noexcept { return Value(); }
  static constexpr Value boolean(bool v) noexcept { return Value(Type::kBool, v ? 1 : 0); }
  static constexpr Value int32(std::int32_t v) noexcept { return Value(Type::kInt32, v); }
  static constexpr Value int64(std::int64_t v) noexcept { return Value(Type::kInt64, v); }
  static Value real(double v) noexcept {
    std::int64_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    return Value(Type::kDouble, bits);
  }
  /// `units` counts multiples of 10^-scale of the column: 12.34 at scale 2 is 1234.
  static constexpr Value decimal(std::int64_t units) noexcept {
    return Value(Type::kDecimal, units);
  }
  static constexpr Value date(std::int32_t days_since_epoch) noexcept {
    return Value(Type::kDate, days_since_epoch);
  }
  static constexpr Value timestamp(std::int64_t microseconds_since_epoch) noexcept {
    return Value(Type::kTimestamp, microseconds_since_epoch);
  }
  /// At most 2^31 - 1 bytes, as for `bytes`; not copied.
  static constexpr Value string(std::string_view v) noexcept { return Value(Type::kString, v); }
  static constexpr Value bytes(std::string_view v) noexcept { return Value(Type::kBytes, v); }

  constexpr bool is_null() const noexcept { return !present_; }
  /// The type the value was made with; meaningless for NULL.
  constexpr Type type() const noexcept { return type_; }

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

  /// Equal type and payload; NULL equals NULL (this is identity, not SQL's three-valued `=`).
  friend bool operator==(const Value& a, const Value& b) noexcept {
    if (a.present_ != b.present_) return false;
    if (!a.present_) return true;
    return a.type_ == b.type_ && a.raw_ == b.raw_ && a.as_string() == b.as_string();
  }

  /// For people: NULL, 42, 3.5, 'text', x'0aff', ... (a decimal as units, without its scale).
  std::string to_string() const;

  /// The value of `type` whose payload `raw` is; for code that is generic over types.
  static constexpr Value from_raw(Type type, std::int64_t raw) noexcept { return Value(type, raw); }
  static constexpr Value from_bytes(Type type, std::string_view v) noexcept {
    return Value(type, v);
  }

 private:
  constexpr Value(Type type, std::int64_t raw) noexcept : raw_(raw), type_(type), present_(true) {}
  constexpr Value(Type type, std::string_view v) noexcept
      : data_(v.data()), size_(clamped(v.size())), type_(type), present_(true) {}
  // A text that is too long for a column stays too long: 2^32 - 1 is more than any column takes.
  static constexpr std::uint32_t clamped(std::size_t size) noexcept {
    return size < 0xFFFFFFFFu ? static_cast<std::uint32_t>(size) : 0xFFFFFFFFu;
  }

  std::int64_t raw_ = 0;
  const char* data_ = nullptr;
  std::uint32_t size_ = 0;
  Type type_ = Type::kBool;
  bool present_ = false;
};
static_assert(sizeof(Value) == 24 && std::is_trivially_copyable_v<Value>);
static_assert(sizeof(double) == sizeof(std::int64_t));  // a payload
// The payload of a 32-bit type has its sign.
static_assert(Value::int32(-1).raw() == -1 && Value::date(-1).raw() == -1);
static_assert(Value::null().is_null() && !Value::boolean(false).is_null());
static_assert(Value::string("text").as_string().size() == 4);

}  // namespace flugs
