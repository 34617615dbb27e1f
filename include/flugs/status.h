#pragma once

#include <cassert>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace flugs {

/// The reason why an operation did not do what was asked. The numeric values are stable and may be
/// stored. A failed call had no effect, unless its function says otherwise.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kNotFound = 1,              ///< No such table, column, key or row is visible to the transaction.
  kAlreadyExists = 2,         ///< A table, or a row with this unique key, exists already.
  kConflict = 3,              ///< Another transaction got there first; abort and retry.
  kConstraintViolated = 4,    ///< A value breaks the schema (NULL where forbidden, type, length).
  kInvalidArgument = 5,       ///< The call itself is wrong; nothing was changed.
  kOutOfSpace = 6,            ///< The pool, the medium or an id space is full; nothing was changed.
  kCorrupt = 7,               ///< Bytes in the pool contradict the format.
  kIncompatible = 8,          ///< No flugs pool, or one of another format version.
  kBusy = 9,                  ///< A second opener, or an open transaction, holds a resource.
  kTooManyTransactions = 10,  ///< Every transaction slot is taken (`OpenOptions::slots_max`).
  kReadOnly = 11,             ///< A write in a read-only transaction or to a read-only file.
  kIoError = 12,              ///< The operating system refused (the message carries its words).
  kCancelled = 13,            ///< The caller asked it to stop.
  kOutOfMemory = 14,  ///< The call reached the bound on DRAM that was set for it, or a query or
                      ///< opening got no memory. Other calls throw std::bad_alloc, or the process
                      ///< ends; no committed data is lost.
  kOverflow = 15,     ///< A computed number does not fit its type.
};

/// The name of `code` as it is written in messages, e.g. "conflict".
std::string_view to_string(StatusCode code) noexcept;

/// The table, or the part of a table, that a failure is about. The names are those at the failure.
struct SchemaPart {
  enum class Kind : std::uint8_t { kTable, kColumn, kKey, kForeignKey, kCheck };

  std::string table{};
  Kind kind = Kind::kTable;
  std::string name{};  ///< of the column, key, foreign key or check; empty for kTable

  static SchemaPart of(std::string_view table) { return {std::string(table)}; }
  static SchemaPart column(std::string_view table, std::string_view name) {
    return {std::string(table), Kind::kColumn, std::string(name)};
  }
  static SchemaPart key(std::string_view table, std::string_view name) {
    return {std::string(table), Kind::kKey, std::string(name)};
  }
  static SchemaPart foreign_key(std::string_view table, std::string_view name) {
    return {std::string(table), Kind::kForeignKey, std::string(name)};
  }
  static SchemaPart check(std::string_view table, std::string_view name) {
    return {std::string(table), Kind::kCheck, std::string(name)};
  }
  bool operator==(const SchemaPart&) const = default;
};
/// "table T, key K", as messages name it.
std::string to_string(const SchemaPart& part);

/// The outcome of an operation: ok, or a code with a message for people.
///
/// Outcomes that are part of ordinary work (not found, conflict) carry a message only where it
/// costs nothing; a Status without a message never allocates. A message is for people and may
/// change; programs look at the code.
///
/// Thread-safety: a plain value type. The same holds for Result.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  explicit Status(StatusCode code) noexcept : code_(code) {}
  Status(StatusCode code, std::string message);
  /// With the message "table T, key K: why", or "table T, key K" without `why`.
  Status(StatusCode code, SchemaPart part, std::string_view why = {});
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other)
      : code_(other.code_), words_(other.words_ ? new Words(*other.words_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }
  ~Status() = default;
  /// What a function returns that has succeeded; the same as Status().
  static Status success() noexcept { return {}; }

  bool ok() const noexcept { return code_ == StatusCode::kOk; }
  explicit operator bool() const noexcept { return ok(); }
  StatusCode code() const noexcept { return code_; }
  /// The message, without the code; empty when there is none.
  std::string_view message() const noexcept {
    return words_ ? std::string_view(words_->message) : std::string_view();
  }
  /// The part of the schema that the failure is about. Null if it is about none. Some failures
  /// name their part in the message only. Owned by the Status.
  const SchemaPart* part() const noexcept {
    return words_ && words_->part ? &*words_->part : nullptr;
  }
  /// The same failure with another code, with another message, or with the part that it is about.
  Status with_code(StatusCode code) const;
  Status with_message(std::string message) const;
  Status with_part(SchemaPart part) const;
  /// "code: message", for logs and terminals.
  std::string to_string() const;

 private:
  struct Words {
    std::string message;
    std::optional<SchemaPart> part;
  };
  // Not inline: a caller destroys a Status without words by a comparison with null.
  struct DeleteWords {
    void operator()(Words* words) const noexcept;
  };
  StatusCode code_ = StatusCode::kOk;
  std::unique_ptr<Words, DeleteWords> words_;
};
static_assert(StatusCode() == StatusCode::kOk);
static_assert(sizeof(Status) == 2 * sizeof(void*));
static_assert(std::is_nothrow_default_constructible_v<Status>);
static_assert(std::is_nothrow_move_constructible_v<Status> &&
              std::is_nothrow_move_assignable_v<Status>);

namespace detail {
/// Whether a value of type U contains a T, to which it converts without loss.
template <typename U, typename T>
inline constexpr bool kContains = false;
/// Ends the process: a value was taken out of a failed Result.
[[noreturn]] void bad_result_access(const Status& status) noexcept;
}  // namespace detail

/// A `T`, or the Status that says why there is none. Taking the value of a failed Result ends the
/// process: check it first.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) detail::bad_result_access(status_);
  }
  /// From a Result whose value contains this one: a Result<Inserted> is also a Result<RowId>.
  template <typename U>
    requires detail::kContains<U, T>
  Result(Result<U> other) {  // NOLINT(google-explicit-constructor)
    if (other.ok())
      value_.emplace(std::move(other).value());
    else
      status_ = std::move(other).status();
  }

  bool ok() const noexcept { return status_.ok(); }
  explicit operator bool() const noexcept { return ok(); }
  StatusCode code() const noexcept { return status_.code(); }
  const Status& status() const& noexcept { return status_; }
  Status status() && noexcept { return std::move(status_); }

  /// The value. A failed Result ends the process and prints the status on stderr.
  T& value() & {
    if (!ok()) detail::bad_result_access(status_);
    return *value_;
  }
  const T& value() const& {
    if (!ok()) detail::bad_result_access(status_);
    return *value_;
  }
  /// By value, so that `for (auto& c : database.schema(t).value().columns)` does not refer to a
  /// vector that was destroyed with the Result.
  T value() && {
    if (!ok()) detail::bad_result_access(status_);
    return std::move(*value_);
  }
  const T& value() const&& = delete;
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  const T& operator*() const&& = delete;
  /// For a Result that is kept. `make()->member` would refer to a value that is destroyed with the
  /// Result: write make().value().member.
  T* operator->() & { return &value(); }
  const T* operator->() const& { return &value(); }
  const T* operator->() const&& = delete;

  /// The value, or another one if there is none.
  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? *value_ : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return ok() ? std::move(*value_) : static_cast<T>(std::forward<U>(other));
  }
  /// `next(value)`, which returns a Status or a Result; or the failure, without calling `next`.
  template <typename F>
  std::invoke_result_t<F, T&> and_then(F&& next) & {
    if (!ok()) return status_;
    return std::forward<F>(next)(*value_);
  }
  template <typename F>
  std::invoke_result_t<F, const T&> and_then(F&& next) const& {
    if (!ok()) return status_;
    return std::forward<F>(next)(*value_);
  }
  template <typename F>
  std::invoke_result_t<F, T> and_then(F&& next) && {
    if (!ok()) return std::move(status_);
    return std::forward<F>(next)(std::move(*value_));
  }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace flugs
