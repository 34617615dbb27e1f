#pragma once

#include <cstdint>

#include "flugs/value.h"

namespace flugs::bench {

/// The workloads' numbers are never negative; their columns are int32.
inline Value integer(std::uint32_t number) noexcept {
  return Value::int32(static_cast<std::int32_t>(number));
}

}  // namespace flugs::bench
