#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "bindings/duckdb/api.h"
#include "flugs/status.h"

namespace flugs::duckdb {

/// Puts a failure into the slot of a callback.
void report(duckdb_v2_error_info_handle* slot, const Status& status) noexcept;
void report(duckdb_v2_error_info_handle* slot, DUCKDB_V2_ERROR code,
            std::string_view text) noexcept;
/// The status for a failure that DuckDB has put into `slot`, which is destroyed.
Status take_failure(duckdb_v2_error_info_handle slot);

/// Calls a function of DuckDB with `arguments` and a slot for its error:
///     FLUGS_TRY(ask(duckdb_v2_vector_set_size, vector, rows));
template <typename Function, typename... Arguments>
Status ask(Function* function, Arguments... arguments) {
  duckdb_v2_error_info_handle slot = nullptr;
  if (function(arguments..., &slot) == DUCKDB_V2_ERROR_NONE) return {};
  return take_failure(slot);
}

/// `work()`, which returns a Status, as the body of a callback. No exception leaves into DuckDB.
template <typename Work>
void guarded(duckdb_v2_error_info_handle* slot, Work&& work) noexcept {
  try {
    if (Status s = std::forward<Work>(work)(); !s.ok()) report(slot, s);
  } catch (const std::bad_alloc&) {
    report(slot, DUCKDB_V2_ERROR_RESOURCE_OUT_OF_MEMORY, "flugs got no memory");
  } catch (const std::exception& e) {
    report(slot, DUCKDB_V2_ERROR_INPUT_INVALID, e.what());
  }
}

}  // namespace flugs::duckdb
