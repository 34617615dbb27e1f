#include "base/processors.h"

#include <algorithm>
#include <thread>

namespace flugs {

std::uint32_t processors() noexcept {
  static const std::uint32_t found = std::max(1U, std::thread::hardware_concurrency());
  return found;
}

}  // namespace flugs
