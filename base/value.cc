#include "flugs/value.h"

#include <fmt/format.h>

#include "base/shown.h"

namespace flugs {

std::string_view to_string(Type type) noexcept {
  switch (type) {
    case Type::kBool:
      return "bool";
    case Type::kInt32:
      return "int32";
    case Type::kInt64:
      return "int64";
    case Type::kDouble:
      return "double";
    case Type::kDecimal:
      return "decimal";
    case Type::kDate:
      return "date";
    case Type::kTimestamp:
      return "timestamp";
    case Type::kString:
      return "string";
    case Type::kBytes:
      return "bytes";
  }
  return "unknown";
}

std::string shown(const Value& value) {
  constexpr std::size_t kShownBytesMax = 40;
  const std::string_view text = value.as_string();
  if (value.is_null() || text.size() <= kShownBytesMax) return value.to_string();
  const Value beginning = Value::from_bytes(value.type(), text.substr(0, kShownBytesMax));
  return fmt::format("{}... of {} bytes", beginning.to_string(), text.size());
}

std::string Value::to_string() const {
  if (is_null()) return "NULL";
  switch (type_) {
    case Type::kBool:
      return as_bool() ? "true" : "false";
    case Type::kDouble:
      return fmt::format("{}", as_double());
    case Type::kString:
      return fmt::format("'{}'", as_string());
    case Type::kBytes: {
      std::string text = "x'";
      for (const char byte : as_string())
        text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return text + "'";
    }
    case Type::kInt32:
    case Type::kInt64:
    case Type::kDecimal:
    case Type::kDate:
    case Type::kTimestamp:
      return fmt::format("{}", raw_);
  }
  return "unknown";
}

}  // namespace flugs
