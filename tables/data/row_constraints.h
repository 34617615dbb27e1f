#pragma once

#include <atomic>
#include <cstdint>

namespace flugs::engine {

/// Which checks a table makes of rows besides types, NULL and unique keys. Most tables make none:
/// one load tells a statement that it has nothing to do here.
/// Thread-safety: any thread.
class RowConstraints final {
 public:
  enum Constraint : std::uint8_t {
    kChecked = 1,     ///< the schema has check conditions
    kNumbered = 2,    ///< a column is auto-increment
    kReferring = 4,   ///< the table has foreign keys
    kReferenced = 8,  ///< foreign keys of any table lead here
    kAltered = 16     ///< columns were added or dropped since the table was made
  };

  bool any() const noexcept {
    return __builtin_expect(bits_.load(std::memory_order_acquire) != 0, 0);
  }
  /// Whether one of these is there at least.
  bool any_of(std::uint8_t constraints) const noexcept {
    return (bits_.load(std::memory_order_acquire) & constraints) != 0;
  }
  void add(std::uint8_t constraints) noexcept {
    bits_.fetch_or(constraints, std::memory_order_release);
  }
  void remove(std::uint8_t constraints) noexcept {
    bits_.fetch_and(static_cast<std::uint8_t>(~constraints), std::memory_order_release);
  }

 private:
  std::atomic<std::uint8_t> bits_{0};
};

}  // namespace flugs::engine
