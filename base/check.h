#pragma once

namespace flugs {
/// Prints file, line and the broken condition to stderr and aborts: for a log-less store an abort
/// is a crash it already survives, whereas running on would make the damage durable.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace flugs

/// An invariant of our own, checked in release builds too. Never for bytes read from a medium.
#define FLUGS_CHECK(condition)                               \
  (__builtin_expect(!!(condition), 1) ? static_cast<void>(0) \
                                      : ::flugs::check_failed(#condition, __FILE__, __LINE__))

/// As FLUGS_CHECK, for inner loops: only in debug builds.
#ifdef NDEBUG
#define FLUGS_DCHECK(condition) static_cast<void>(0)
#else
#define FLUGS_DCHECK(condition) FLUGS_CHECK(condition)
#endif
