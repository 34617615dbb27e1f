#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/schema.h"
#include "flugs/value.h"
#include "test/support/random.h"

namespace flugs::test {

/// A value that owns its bytes, in the form in which the database stores it.
struct ModelValue {
  Type type = Type::kInt64;
  bool null = true;
  std::int64_t raw = 0;
  std::string text;

  static ModelValue of(Type type, const Value& value);
  Value view() const;
  friend bool operator==(const ModelValue& a, const ModelValue& b) {
    return a.null == b.null && (a.null || (a.raw == b.raw && a.text == b.text));
  }
};

/// Order of a key: NULL first, NaN last, text byte by byte.
int compare(const ModelValue& a, const ModelValue& b);

using ModelRow = std::vector<ModelValue>;

/// A random value for `column`: mostly one of `domain` few, now and then an extreme one, a new one
/// that makes cells wider, or NULL.
ModelValue random_value(const ColumnSchema& column, std::uint64_t domain, Random& random);

}  // namespace flugs::test
