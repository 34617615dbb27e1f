#include "flugs/value.h"

#include <fmt/format.h>

#include "base/shown.h"
#include "base/types.h"

namespace flugs {

std::string_view to_string(Type type) noexcept { return facts_of(type).name; }

std::string shown(const Value& value) {
  constexpr std::size_t kShownBytesMax = 40;
  const std::string_view text = value.as_string();
  if (value.is_null() || text.size() <= kShownBytesMax) return value.to_string();
  const Value beginning = Value::from_bytes(value.type(), text.substr(0, kShownBytesMax));
  return fmt::format("{}... of {} bytes", beginning.to_string(), text.size());
}

std::string Value::to_string() const {
  if (is_null()) return "NULL";
  if (type_ == Type::kBool) return as_bool() ? "true" : "false";
  if (lane_of(type_) == Lane::kReal) return fmt::format("{}", as_double());
  if (lane_of(type_) == Lane::kInt) return fmt::format("{}", raw_);
  if (type_ != Type::kBytes) return fmt::format("'{}'", as_string());
  std::string text = "x'";
  for (const char byte : as_string())
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text + "'";
}

}  // namespace flugs
