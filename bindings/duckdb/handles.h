#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/duckdb/errors.h"
#include "flugs/try.h"

namespace flugs::duckdb {

/// A handle of DuckDB that is destroyed with its owner.
template <typename Handle, typename Destroy>
class Owned {
 public:
  Owned() noexcept = default;
  explicit Owned(Handle handle) noexcept : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) Destroy()(&handle_);
  }

  Handle get() const noexcept { return handle_; }
  /// For a function of DuckDB that makes the handle. There must be none yet.
  Handle* out() noexcept { return &handle_; }

 private:
  Handle handle_ = nullptr;
};

struct DestroyValue {
  void operator()(duckdb_v2_value_handle* h) const noexcept { duckdb_v2_value_destroy(h); }
};
struct DestroyType {
  void operator()(duckdb_v2_logical_type_handle* h) const noexcept {
    duckdb_v2_logical_type_destroy(h);
  }
};
struct DestroyName {
  void operator()(duckdb_v2_qname_handle* h) const noexcept { duckdb_v2_qname_destroy(h); }
};
using OwnedValue = Owned<duckdb_v2_value_handle, DestroyValue>;
using OwnedType = Owned<duckdb_v2_logical_type_handle, DestroyType>;
using OwnedName = Owned<duckdb_v2_qname_handle, DestroyName>;

/// What DuckDB keeps for the callbacks: a T that it destroys.
template <typename T>
duckdb_v2_opaque opaque_of(T* owned) noexcept {
  return {owned, [](void* data) { delete static_cast<T*>(data); }, nullptr};
}

/// A pointer that a function of DuckDB gives, such as the bind data. Fails if there is none.
template <typename T, typename Function, typename Info>
Result<T*> kept(Function* function, Info info) {
  void* data = nullptr;
  FLUGS_TRY(ask(function, info, &data));
  if (data == nullptr) return Status(StatusCode::kInvalidArgument, "DuckDB has lost its data");
  return static_cast<T*>(data);
}

Result<duckdb_v2_factory_handle> factory_of(duckdb_v2_context_handle context);
/// A type by its name in SQL.
Result<OwnedType> make_type(duckdb_v2_factory_handle factory, std::string_view name);
Result<OwnedValue> make_text(duckdb_v2_factory_handle factory, std::string_view text);
Result<bool> is_null(duckdb_v2_value_handle value);
/// A copy of a VARCHAR.
Result<std::string> text_of(duckdb_v2_value_handle value);
Result<std::string> name_of(duckdb_v2_logical_type_handle type);

}  // namespace flugs::duckdb
