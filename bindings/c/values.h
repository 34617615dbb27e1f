#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "bindings/c/errors.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::c {

/// Fails with: kInvalidArgument (no type, a number that does not fit the type, a text at NULL).
/// `position` is for the message.
Status from_c(const flugs_value& given, std::size_t position, Value& out);
/// A text is a view of the value's.
flugs_value to_c(const Value& value) noexcept;
/// False: no column has this type.
bool type_of(flugs_type given, Type& out) noexcept;

/// Values of a call, in place unless there are many.
class ValueBuffer {
 public:
  static constexpr std::size_t kInPlace = 24;

  /// `count` values, which the caller sets.
  std::span<Value> make(std::size_t count) {
    Value* values = reinterpret_cast<Value*>(in_place_.data());
    if (count > kInPlace) {
      more_ = std::make_unique_for_overwrite<Value[]>(count);
      return {more_.get(), count};
    }
    std::uninitialized_default_construct_n(values, count);
    return {values, count};
  }
  /// Converts an array of the caller's. Fails with: kInvalidArgument.
  Status take(const flugs_value* given, std::size_t count, std::span<const Value>& out) {
    if (given == nullptr && count > 0) return Status(StatusCode::kInvalidArgument, "values: NULL");
    const std::span<Value> values = make(count);
    for (std::size_t i = 0; i < count; ++i)
      if (Status s = from_c(given[i], i, values[i]); !s.ok()) return s;
    out = values;
    return {};
  }

 private:
  // Not initialised: most calls have few values.
  alignas(Value) std::array<std::byte, kInPlace * sizeof(Value)> in_place_;
  std::unique_ptr<Value[]> more_;
};

}  // namespace flugs::c
