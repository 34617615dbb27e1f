#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "flugs.h"
#include "flugs/status.h"

// What every function of the C ABI begins and ends with. A handle begins with a word that says what
// it is; NULL, a handle of another kind and a freed one, as far as it shows, are refused. No
// exception leaves.

namespace flugs::c {

/// The first word of a handle. Random, so that other memory hardly ever looks like one.
enum class Kind : std::uint64_t {
  kError = 0x7b1f6ac09d3e5511,
  kOptions = 0x7b1f6ac09d3e5522,
  kDatabase = 0x7b1f6ac09d3e5533,
  kSchema = 0x7b1f6ac09d3e5544,
  kTransaction = 0x7b1f6ac09d3e5555,
  kLookup = 0x7b1f6ac09d3e5566,
  kWalk = 0x7b1f6ac09d3e5577,
  kExpr = 0x7b1f6ac09d3e5588,
  kQuery = 0x7b1f6ac09d3e5599,
  kGone = 0x7b1f6ac09d3e55aa,  ///< freed, or an expression that a function has taken over
};

/// The base of a handle.
template <Kind kOwn>
class Handle {
 public:
  Handle() noexcept = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { retire(); }

  bool is_alive() const noexcept { return kind_ == kOwn; }
  /// From now on `is_alive` is false. Volatile: a compiler would drop a store to
  /// memory that is freed next.
  void retire() noexcept { *const_cast<volatile Kind*>(&kind_) = Kind::kGone; }

 private:
  Kind kind_ = kOwn;
};

template <typename H>
bool is_handle(const H* handle) noexcept {
  return handle != nullptr && handle->is_alive();
}

/// What a failed call was about.
struct About {
  std::string table = {};
  std::string key = {};
  std::string column = {};
  std::string constraint = {};
};

/// NULL if the status is ok. The part of the schema that the status names replaces `about`, unless
/// it is the table of `about`.
flugs_error* to_c(const Status& status, About about = {});
/// FLUGS_INVALID_ARGUMENT.
flugs_error* misuse(std::string message);
/// FLUGS_INVALID_ARGUMENT: "transaction: NULL, freed, or no handle of this kind".
flugs_error* no_handle(const char* parameter);
flugs_error* no_pointer(const char* parameter);
/// Needs no memory.
flugs_error* out_of_memory() noexcept;

/// `work()`, which returns a flugs_error*. What it throws becomes one.
template <typename Work>
flugs_error* guarded(Work&& work) noexcept {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    try {
      return to_c(Status(StatusCode::kOutOfMemory, e.what()));  // such as std::length_error
    } catch (...) {
      return out_of_memory();
    }
  }
}

/// A copy that flugs_text_free frees.
char* copy_of(const std::string& text);

}  // namespace flugs::c

struct flugs_error : flugs::c::Handle<flugs::c::Kind::kError> {
  flugs_error(flugs_code why, std::string text, flugs::c::About what)
      : code(why), message(std::move(text)), about(std::move(what)) {}
  flugs_code code;
  std::string message;
  flugs::c::About about;
};
