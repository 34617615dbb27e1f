#pragma once

#include <utility>

#include "flugs/status.h"

/// Handing failures on. In a function that returns a Status or a Result:
///
///     FLUGS_TRY(transaction.remove(orders, row));
///     FLUGS_ASSIGN(const Row row, transaction.find(key, {7}));
///
/// FLUGS_TRY evaluates an expression that gives a Status or a Result, and returns its status if it
/// failed. FLUGS_ASSIGN does the same with a Result, and initialises or assigns its first argument
/// with the value. It consists of several statements, so it cannot be the body of an `if` without
/// braces. A structured binding has commas, which a macro takes for the next argument: assign the
/// whole value first.
#define FLUGS_TRY(expression) \
  FLUGS_DETAIL_TRY(FLUGS_DETAIL_JOIN(flugs_status_, __LINE__), expression)

#define FLUGS_ASSIGN(target, expression) \
  FLUGS_DETAIL_ASSIGN(FLUGS_DETAIL_JOIN(flugs_result_, __LINE__), target, expression)
// Names and declarations cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define FLUGS_DETAIL_TRY(status, expression)                                             \
  do {                                                                                   \
    if (::flugs::Status status = ::flugs::detail::status_of((expression)); !status.ok()) \
      return status;                                                                     \
  } while (false)
#define FLUGS_DETAIL_ASSIGN(result, target, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return std::move(result).status();  \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
#define FLUGS_DETAIL_JOIN(a, b) FLUGS_DETAIL_JOIN_NOW(a, b)
#define FLUGS_DETAIL_JOIN_NOW(a, b) a##b

namespace flugs::detail {
inline Status status_of(Status&& status) noexcept { return std::move(status); }
inline const Status& status_of(const Status& status) noexcept { return status; }
template <typename T>
Status status_of(Result<T>&& result) noexcept {
  return std::move(result).status();
}
template <typename T>
const Status& status_of(const Result<T>& result) noexcept {
  return result.status();
}
}  // namespace flugs::detail
