#include "bindings/c/values.h"

#include <cstdint>
#include <limits>
#include <string>

namespace flugs::c {

static_assert(static_cast<int>(Type::kBool) == FLUGS_BOOL);
static_assert(static_cast<int>(Type::kInt32) == FLUGS_INT32);
static_assert(static_cast<int>(Type::kInt64) == FLUGS_INT64);
static_assert(static_cast<int>(Type::kDouble) == FLUGS_DOUBLE);
static_assert(static_cast<int>(Type::kDecimal) == FLUGS_DECIMAL);
static_assert(static_cast<int>(Type::kDate) == FLUGS_DATE);
static_assert(static_cast<int>(Type::kTimestamp) == FLUGS_TIMESTAMP);
static_assert(static_cast<int>(Type::kString) == FLUGS_STRING);
static_assert(static_cast<int>(Type::kBytes) == FLUGS_BYTES);
static_assert(sizeof(flugs_value) == 24 && offsetof(flugs_value, number) == 8 &&
              offsetof(flugs_value, size) == 16);

namespace {

constexpr std::int32_t kScaleOfColumn = -1;

Status wrong_value(std::size_t position, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "value " + std::to_string(position) + ": " + what);
}

bool is_of_32_bits(std::int64_t number) {
  return number >= std::numeric_limits<std::int32_t>::min() &&
         number <= std::numeric_limits<std::int32_t>::max();
}

Status decimal_from_c(const flugs_value& given, std::size_t position, Value& out) {
  if (given.scale == kScaleOfColumn) {
    out = Value::decimal_units(given.number);
    return {};
  }
  if (given.scale < 0 || given.scale > Value::kScaleMax)
    return wrong_value(position, "no decimal has scale " + std::to_string(given.scale));
  out = Value::decimal(given.number, static_cast<std::uint8_t>(given.scale));
  return {};
}

Status text_from_c(const flugs_value& given, std::size_t position, Value& out) {
  if (given.data == nullptr && given.size > 0) return wrong_value(position, "data is NULL");
  const std::string_view text(given.data == nullptr ? "" : given.data, given.size);
  out = given.type == FLUGS_STRING ? Value::string(text) : Value::bytes(text);
  return {};
}

}  // namespace

Status from_c(const flugs_value& given, std::size_t position, Value& out) {
  switch (given.type) {
    case FLUGS_NULL:
      out = Value::null();
      return {};
    case FLUGS_BOOL:
      out = Value::boolean(given.number != 0);
      return {};
    case FLUGS_INT64:
      out = Value::int64(given.number);
      return {};
    case FLUGS_INT32:
    case FLUGS_DATE:
      if (!is_of_32_bits(given.number))
        return wrong_value(position, std::to_string(given.number) + " does not fit 32 bits");
      out = Value::from_raw(static_cast<Type>(given.type), given.number);
      return {};
    case FLUGS_DOUBLE:
      out = Value::real(given.real);
      return {};
    case FLUGS_DECIMAL:
      return decimal_from_c(given, position, out);
    case FLUGS_TIMESTAMP:
      out = Value::timestamp(given.number);
      return {};
    case FLUGS_STRING:
    case FLUGS_BYTES:
      return text_from_c(given, position, out);
    default:
      return wrong_value(position, "no type has the number " + std::to_string(given.type));
  }
}

flugs_value to_c(const Value& value) noexcept {
  flugs_value out;
  out.type = value.is_null() ? FLUGS_NULL : static_cast<flugs_type>(value.type());
  out.scale = value.scale() == Value::kScaleOfColumn ? kScaleOfColumn : value.scale();
  out.size = 0;
  if (value.is_null()) {
    out.scale = 0;
    out.number = 0;
  } else if (value.type() == Type::kString || value.type() == Type::kBytes) {
    out.data = value.as_string().data();
    out.size = value.as_string().size();
  } else {
    out.number = value.raw();  // of a double: its bits
  }
  return out;
}

bool type_of(flugs_type given, Type& out) noexcept {
  if (given < FLUGS_BOOL || given > FLUGS_BYTES) return false;
  out = static_cast<Type>(given);
  return true;
}

}  // namespace flugs::c
