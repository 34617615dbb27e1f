#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace flugs::query {

class MemoryBudget;

/// Tells of an integer whether it may be among the keys of a join's right side. The scan of the
/// left side asks it before it reads the other columns of a row. Source: B. Bloom, "Space/time
/// trade-offs in hash coding with allowable errors" (1970), with the bits of a key in one word.
/// Thread-safety: immutable.
class KeyFilter {
 public:
  /// Of these keys, but for those that are marked in `is_null`. Null if there is no memory for it.
  static std::shared_ptr<const KeyFilter> make(std::span<const std::int64_t> keys,
                                               std::span<const std::uint8_t> is_null,
                                               MemoryBudget& budget);
  KeyFilter(const KeyFilter&) = delete;
  KeyFilter& operator=(const KeyFilter&) = delete;
  ~KeyFilter();

  /// out[i] is 1 if values[i] may be a key, else 0.
  void find(const std::int64_t* values, std::size_t count, std::int64_t* out) const noexcept;
  /// Has a bit for each integer from the least key to the greatest, so it never errs.
  bool is_exact() const noexcept { return is_exact_; }
  bool is_empty() const noexcept { return words_.empty(); }
  std::int64_t least() const noexcept { return least_; }
  std::int64_t greatest() const noexcept { return greatest_; }
  /// Different keys; of a filter that may err, all.
  std::uint64_t key_count() const noexcept { return key_count_; }

 private:
  explicit KeyFilter(MemoryBudget& budget) noexcept : budget_(budget) {}
  bool reserve(std::uint64_t words);
  void set_bits(std::span<const std::int64_t> keys, std::span<const std::uint8_t> is_null);
  void set_hashes(std::span<const std::int64_t> keys, std::span<const std::uint8_t> is_null);
  std::uint64_t place_of(std::int64_t value) const noexcept {
    return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(least_);
  }

  std::vector<std::uint64_t> words_;  // none: there is no key
  std::int64_t least_ = 0;
  std::int64_t greatest_ = 0;
  std::uint64_t key_count_ = 0;
  bool is_exact_ = false;
  std::uint64_t charged_ = 0;
  MemoryBudget& budget_;
};

}  // namespace flugs::query
