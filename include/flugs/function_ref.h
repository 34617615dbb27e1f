#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace flugs {

/// A view of a callable, for callbacks that are called before the function they were passed to
/// returns. Two words, never allocates; the callable must outlive the call.
template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable) noexcept  // NOLINT(google-explicit-constructor)
      : object_(address_of(callable)), call_([](void* object, Args... args) -> R {
          // Not static_cast: a plain function is no object.
          return (*reinterpret_cast<std::remove_reference_t<F>*>(object))(
              std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  template <typename F>
  static void* address_of(F& callable) noexcept {
    if constexpr (std::is_function_v<F>)
      return reinterpret_cast<void*>(&callable);
    else
      return const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
  }

  void* object_;
  R (*call_)(void*, Args...);
};
static_assert(sizeof(FunctionRef<void()>) == 2 * sizeof(void*));
static_assert(std::is_trivially_copyable_v<FunctionRef<void()>>);

}  // namespace flugs
