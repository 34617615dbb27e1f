#include "bindings/c/origin.h"

#include <pthread.h>

#include <string>

namespace flugs::c {

std::atomic<std::uint32_t> Origin::forks = 0;

Origin::Origin() noexcept : forks_(0) {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  forks_ = forks.load(std::memory_order_relaxed);
}

flugs_error* of_parent(const char* parameter) {
  return misuse(std::string(parameter) + ": it belongs to the process that has forked this one");
}

}  // namespace flugs::c
