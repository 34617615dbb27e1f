#pragma once

#include <cstddef>
#include <cstring>

namespace flugs::test {

/// Whether each of the `count` bytes is `value`. The C library compares them: a loop of our own
/// takes minutes where tests are not optimised.
inline bool is_filled_with(std::byte value, const std::byte* bytes, std::size_t count) {
  return count == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

}  // namespace flugs::test
