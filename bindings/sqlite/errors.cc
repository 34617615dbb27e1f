#include "bindings/sqlite/errors.h"

namespace flugs::sqlite {

int code_of(const Status& status) noexcept {
  switch (status.code()) {
    case StatusCode::kOk:
      return SQLITE_OK;
    case StatusCode::kAlreadyExists:
    case StatusCode::kConstraintViolated:
      return SQLITE_CONSTRAINT;
    case StatusCode::kConflict:
    case StatusCode::kBusy:
    case StatusCode::kTooManyTransactions:
      return SQLITE_BUSY;
    case StatusCode::kOutOfSpace:
      return SQLITE_FULL;
    case StatusCode::kCorrupt:
      return SQLITE_CORRUPT_VTAB;
    case StatusCode::kIncompatible:
      return SQLITE_NOTADB;
    case StatusCode::kReadOnly:
      return SQLITE_READONLY;
    case StatusCode::kIoError:
      return SQLITE_IOERR;
    case StatusCode::kCancelled:
      return SQLITE_ABORT;
    case StatusCode::kOutOfMemory:
      return SQLITE_NOMEM;
    default:
      return SQLITE_ERROR;
  }
}

std::string message_of(const Status& status) {
  if (status.code() == StatusCode::kConstraintViolated && !status.message().empty())
    return std::string(status.message());
  return status.to_string();
}

int fail(sqlite3_vtab* table, const Status& status) {
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", message_of(status).c_str());
  return code_of(status);
}

void fail(sqlite3_context* context, const Status& status) {
  sqlite3_result_error(context, message_of(status).c_str(), -1);
  sqlite3_result_error_code(context, code_of(status));
}

}  // namespace flugs::sqlite
