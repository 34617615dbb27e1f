#pragma once

#include "bindings/python/src/interpreter.h"
#include "flugs/status.h"

namespace flugs::python {

struct TableInfo;

/// What a call that failed was about.
struct Where {
  const TableInfo* table = nullptr;
  const char* key = nullptr;  ///< the name of the key that the call used
  nb::handle values = {};     ///< the values of the key
};

/// Finds the classes of exceptions, which are in flugs/_errors.py.
void load_errors();
/// Throws the exception of the status, which is not ok.
[[noreturn]] void raise(const Status& status, const Where& where = {});
inline void check(const Status& status, const Where& where = {}) {
  if (!status.ok()) raise(status, where);
}
/// The exception of the status, not raised.
nb::object make_error(const Status& status, const Where& where = {});
/// Throws flugs.Closed.
[[noreturn]] void raise_closed(const char* message);
/// The code of a flugs.Error, or kOk for any other exception.
StatusCode code_of(const nb::python_error& error);

template <typename T>
T take(Result<T>&& result, const Where& where = {}) {
  if (!result.ok()) raise(result.status(), where);
  return std::move(result).value();
}

}  // namespace flugs::python
