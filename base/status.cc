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

std::string to_string(const SchemaPart& part) {
  const auto with_name = [&](std::string_view kind) {
    return std::string("table ").append(part.table).append(kind).append(part.name);
  };
  switch (part.kind) {
    case SchemaPart::Kind::kTable:
      break;
    case SchemaPart::Kind::kColumn:
      return with_name(", column ");
    case SchemaPart::Kind::kKey:
      return with_name(", key ");
    case SchemaPart::Kind::kForeignKey:
      return with_name(", foreign key ");
    case SchemaPart::Kind::kCheck:
      return with_name(", check ");
  }
  return "table " + part.table;
}

void Status::DeleteWords::operator()(Words* words) const noexcept { delete words; }

Status::Status(StatusCode code, std::string message)
    : code_(code), words_(new Words{std::move(message), std::nullopt}) {}

Status::Status(StatusCode code, SchemaPart part, std::string_view why) : code_(code) {
  std::string message = flugs::to_string(part);
  if (!why.empty()) message.append(": ").append(why);
  words_.reset(new Words{std::move(message), std::move(part)});
}

Status Status::with_code(StatusCode code) const {
  Status other = *this;
  other.code_ = code;
  return other;
}

Status Status::with_message(std::string message) const {
  Status other(code_, std::move(message));
  if (part() != nullptr) other.words_->part = *part();
  return other;
}

Status Status::with_part(SchemaPart part) const {
  Status other(code_, std::string(message()));
  other.words_->part = std::move(part);
  return other;
}

std::string Status::to_string() const {
  std::string text(flugs::to_string(code_));
  if (!message().empty()) text.append(": ").append(message());
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
