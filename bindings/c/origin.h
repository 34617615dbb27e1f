#pragma once

#include <atomic>
#include <cstdint>

#include "bindings/c/errors.h"

namespace flugs::c {

/// The process in which an object was made. In a forked child, mutexes of the parent may be locked
/// for ever: so a call looks here before it takes one.
class Origin {
 public:
  Origin() noexcept;
  /// False in a child of the process that made the object.
  bool is_here() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::uint32_t>
      forks;  // between the first process with a database and this one
  std::uint32_t forks_;
};

/// FLUGS_INVALID_ARGUMENT.
flugs_error* of_parent(const char* parameter);

}  // namespace flugs::c
