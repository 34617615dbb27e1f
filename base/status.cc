#include "flugs/status.h"

#include <cstdio>

namespace flugs {

std::string_view to_string(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kConflict:
      return "conflict";
    case StatusCode::kConstraintViolated:
      return "constraint violated";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kOutOfSpace:
      return "out of space";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kIncompatible:
      return "incompatible";
    case StatusCode::kBusy:
      return "busy";
    case StatusCode::kTooManyTransactions:
      return "too many transactions";
    case StatusCode::kReadOnly:
      return "read only";
    case StatusCode::kIoError:
      return "i/o error";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kOverflow:
      return "overflow";
  }
  return "unknown";
}

std::string Status::to_string() const {
  std::string text(flugs::to_string(code_));
  if (message_ && !message_->empty()) text.append(": ").append(*message_);
  return text;
}

namespace detail {
void bad_result_access(const Status& status) noexcept {
  std::fprintf(stderr, "flugs: value() was called on a Result that holds an error: %s\n",
               status.to_string().c_str());
  std::abort();
}
}  // namespace detail

}  // namespace flugs
