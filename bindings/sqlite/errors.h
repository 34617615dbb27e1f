#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "bindings/sqlite/sqlite_api.h"
#include "flugs/status.h"

namespace flugs::sqlite {

/// The result code of SQLite for a failure.
int code_of(const Status& status) noexcept;
/// The message for people: without the code's name where SQLite's code says it.
std::string message_of(const Status& status);
/// Makes `table` say why a call failed, and gives the code.
int fail(sqlite3_vtab* table, const Status& status);
/// Makes the result of a function the failure.
void fail(sqlite3_context* context, const Status& status);

/// `work()`, which returns a result code. No exception leaves into SQLite.
template <typename Work>
int guarded(Work&& work) noexcept {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception&) {
    return SQLITE_ERROR;
  }
}

}  // namespace flugs::sqlite
