#include "bindings/duckdb/errors.h"

namespace flugs::duckdb {

namespace {

// The codes decide the kind of DuckDB's exception. None of them makes DuckDB distrust its own
// database, as an internal or fatal error would.
DUCKDB_V2_ERROR error_code_of(const Status& status) noexcept {
  switch (status.code()) {
    case StatusCode::kAlreadyExists:
    case StatusCode::kConstraintViolated:
      return DUCKDB_V2_ERROR_DATABASE_CONSTRAINT;
    case StatusCode::kConflict:
      return DUCKDB_V2_ERROR_DATABASE_TRANSACTION;
    case StatusCode::kNotFound:
    case StatusCode::kOutOfSpace:
    case StatusCode::kCorrupt:
    case StatusCode::kIncompatible:
    case StatusCode::kBusy:
    case StatusCode::kTooManyTransactions:
    case StatusCode::kReadOnly:
    case StatusCode::kIoError:
    case StatusCode::kCancelled:  // the program has closed the pool: no interrupt of DuckDB's user
      return DUCKDB_V2_ERROR_IO_GENERAL;
    case StatusCode::kOutOfMemory:
      return DUCKDB_V2_ERROR_RESOURCE_OUT_OF_MEMORY;
    case StatusCode::kOverflow:
      return DUCKDB_V2_ERROR_INPUT_OUT_OF_RANGE;
    default:
      return DUCKDB_V2_ERROR_INPUT_INVALID;
  }
}

}  // namespace

void report(duckdb_v2_error_info_handle* slot, DUCKDB_V2_ERROR code,
            std::string_view text) noexcept {
  if (slot == nullptr || *slot == nullptr) return;
  const duckdb_v2_str message = str_of(text);
  duckdb_v2_error_info_set_code(*slot, code);
  duckdb_v2_error_info_set_text(*slot, &message);
}

void report(duckdb_v2_error_info_handle* slot, const Status& status) noexcept {
  try {
    report(slot, error_code_of(status), "flugs: " + status.to_string());
  } catch (const std::exception&) {
    report(slot, DUCKDB_V2_ERROR_RESOURCE_OUT_OF_MEMORY, "flugs got no memory");
  }
}

Status take_failure(duckdb_v2_error_info_handle slot) {
  duckdb_v2_str text = {nullptr, 0};
  // Without the kind of DuckDB's exception, if it knows the text alone.
  if (slot != nullptr) duckdb_v2_error_info_get_raw_text(slot, &text);
  if (slot != nullptr && text.len == 0) duckdb_v2_error_info_get_text(slot, &text);
  Status status(StatusCode::kInvalidArgument,
                text.len == 0 ? std::string("DuckDB gives no reason") : std::string(view_of(text)));
  duckdb_v2_error_info_destroy(&slot);
  return status;
}

}  // namespace flugs::duckdb
