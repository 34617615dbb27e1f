#include "flugs/value.h"

#include <fmt/format.h>

#include "base/calendar.h"
#include "base/shown.h"
#include "base/types.h"

namespace flugs {

std::string_view to_string(Type type) noexcept { return facts_of(type).name; }

namespace {

/// The first `bytes_max` bytes of a longer text, which need not be UTF-8. If that cuts a character,
/// the beginning ends before the character, up to three bytes earlier.
std::string_view beginning_of(std::string_view text, std::size_t bytes_max) {
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  std::size_t end = bytes_max;
  while (end > 0 && bytes_max - end < 3 && continues(end)) --end;
  return text.substr(0, continues(end) ? bytes_max : end);
}

std::string decimal_text(std::int64_t units, std::uint8_t scale) {
  const auto magnitude =
      units < 0 ? 0 - static_cast<std::uint64_t>(units) : static_cast<std::uint64_t>(units);
  std::string digits = fmt::format("{:0{}}", magnitude, scale + 1);
  digits.insert(digits.size() - scale, ".");
  return units < 0 ? "-" + digits : digits;
}

}  // namespace

std::string shown(const Value& value) {
  constexpr std::size_t kShownBytesMax = 40;
  const std::string_view text = value.as_string();
  if (value.is_null() || text.size() <= kShownBytesMax) return value.to_string();
  const std::string_view kept = value.type() == Type::kString ? beginning_of(text, kShownBytesMax)
                                                              : text.substr(0, kShownBytesMax);
  const Value beginning = Value::from_bytes(value.type(), kept);
  return fmt::format("{}... of {} bytes", beginning.to_string(), text.size());
}

std::string Value::to_string() const {
  if (is_null()) return "NULL";
  if (type() == Type::kBool) return as_bool() ? "true" : "false";
  if (lane_of(type()) == Lane::kReal) return fmt::format("{}", as_double());
  if (type() == Type::kDate) return date_text(as_int32());
  if (type() == Type::kTimestamp) return timestamp_text(raw_);
  if (type() == Type::kDecimal && scale() > kScaleMax && scale() != kScaleOfColumn)
    return fmt::format("{}e-{}", raw_, scale());
  if (type() == Type::kDecimal && scale() != kScaleOfColumn && scale() != 0)
    return decimal_text(raw_, scale());
  if (lane_of(type()) == Lane::kInt) return fmt::format("{}", raw_);
  if (type() != Type::kBytes) return fmt::format("'{}'", as_string());
  std::string text = "x'";
  for (const char byte : as_string())
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text + "'";
}

}  // namespace flugs
