#include "bindings/c/errors.h"

#include <cstdlib>
#include <cstring>

#include "flugs/version.h"

namespace flugs::c {

static_assert(static_cast<int>(StatusCode::kOk) == FLUGS_OK);
static_assert(static_cast<int>(StatusCode::kNotFound) == FLUGS_NOT_FOUND);
static_assert(static_cast<int>(StatusCode::kAlreadyExists) == FLUGS_ALREADY_EXISTS);
static_assert(static_cast<int>(StatusCode::kConflict) == FLUGS_CONFLICT);
static_assert(static_cast<int>(StatusCode::kConstraintViolated) == FLUGS_CONSTRAINT_VIOLATED);
static_assert(static_cast<int>(StatusCode::kInvalidArgument) == FLUGS_INVALID_ARGUMENT);
static_assert(static_cast<int>(StatusCode::kOutOfSpace) == FLUGS_OUT_OF_SPACE);
static_assert(static_cast<int>(StatusCode::kCorrupt) == FLUGS_CORRUPT);
static_assert(static_cast<int>(StatusCode::kIncompatible) == FLUGS_INCOMPATIBLE);
static_assert(static_cast<int>(StatusCode::kBusy) == FLUGS_BUSY);
static_assert(static_cast<int>(StatusCode::kTooManyTransactions) == FLUGS_TOO_MANY_TRANSACTIONS);
static_assert(static_cast<int>(StatusCode::kReadOnly) == FLUGS_READ_ONLY);
static_assert(static_cast<int>(StatusCode::kIoError) == FLUGS_IO_ERROR);
static_assert(static_cast<int>(StatusCode::kCancelled) == FLUGS_CANCELLED);
static_assert(static_cast<int>(StatusCode::kOutOfMemory) == FLUGS_OUT_OF_MEMORY);
static_assert(static_cast<int>(StatusCode::kOverflow) == FLUGS_OVERFLOW);

namespace {

About named_by(const SchemaPart& part) {
  About about{.table = part.table};
  switch (part.kind) {
    case SchemaPart::Kind::kTable:
      break;
    case SchemaPart::Kind::kColumn:
      about.column = part.name;
      break;
    case SchemaPart::Kind::kKey:
      about.key = part.name;
      break;
    case SchemaPart::Kind::kForeignKey:
    case SchemaPart::Kind::kCheck:
      about.constraint = part.name;
      break;
  }
  return about;
}

}  // namespace

flugs_error* to_c(const Status& status, About about) {
  if (status.ok()) return nullptr;
  const SchemaPart* const part = status.part();
  if (part != nullptr && (part->kind != SchemaPart::Kind::kTable || part->table != about.table))
    about = named_by(*part);
  // An ordinary outcome has no message, and costs one small allocation.
  std::string message = status.message().empty() ? std::string() : status.to_string();
  return new flugs_error(static_cast<flugs_code>(status.code()), std::move(message),
                         std::move(about));
}

flugs_error* misuse(std::string message) {
  return to_c(Status(StatusCode::kInvalidArgument, std::move(message)));
}

flugs_error* no_handle(const char* parameter) {
  return misuse(std::string(parameter) + ": NULL, freed, or no handle of this kind");
}

flugs_error* no_pointer(const char* parameter) { return misuse(std::string(parameter) + ": NULL"); }

flugs_error* out_of_memory() noexcept {
  static flugs_error error(FLUGS_OUT_OF_MEMORY, {}, {});
  return &error;
}

char* copy_of(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace flugs::c

using flugs::c::is_handle;

extern "C" {

const char* flugs_version(void) {
  static const std::string text = [] {
    const flugs::Version v = flugs::library_version();
    return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
  }();
  return text.c_str();
}

uint32_t flugs_pool_format_version(void) { return flugs::pool_format_version(); }

flugs_code flugs_error_code(const flugs_error* error) {
  if (error == nullptr) return FLUGS_OK;
  return is_handle(error) ? error->code : FLUGS_INVALID_ARGUMENT;
}

const char* flugs_error_message(const flugs_error* error) {
  if (is_handle(error) && !error->message.empty()) return error->message.c_str();
  return flugs_code_name(flugs_error_code(error));
}

const char* flugs_error_table(const flugs_error* error) {
  return is_handle(error) && !error->about.table.empty() ? error->about.table.c_str() : nullptr;
}

const char* flugs_error_key(const flugs_error* error) {
  return is_handle(error) && !error->about.key.empty() ? error->about.key.c_str() : nullptr;
}

const char* flugs_error_column(const flugs_error* error) {
  return is_handle(error) && !error->about.column.empty() ? error->about.column.c_str() : nullptr;
}

const char* flugs_error_constraint(const flugs_error* error) {
  return is_handle(error) && !error->about.constraint.empty() ? error->about.constraint.c_str()
                                                              : nullptr;
}

void flugs_error_free(flugs_error* error) {
  if (is_handle(error) && error != flugs::c::out_of_memory()) delete error;
}

const char* flugs_code_name(flugs_code code) {
  if (code < FLUGS_OK || code > FLUGS_OVERFLOW) return "unknown";
  // Names are constants of the program, which end in a zero byte.
  return flugs::to_string(static_cast<flugs::StatusCode>(code)).data();
}

void flugs_text_free(char* text) { std::free(text); }
}
