#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "flugs/value.h"
#include "pmem/medium/medium.h"

namespace flugs::columns {

/// How an entry of a dictionary lies in the pool (DictionaryLayout), and how it proves itself: by a
/// hash of its value and its ValueID (decision 0003).
/// Thread-safety: any thread; one thread at a time writes an entry.
class EntryFormat {
 public:
  enum class Proof : std::uint8_t { kAbsent, kTorn, kValue, kNull };

  EntryFormat(Type type, const pmem::Medium& medium) noexcept;

  Type type() const noexcept { return type_; }
  bool is_text() const noexcept { return is_text_; }
  /// The size of an entry: 8, 16 or 32.
  std::uint32_t bytes() const noexcept { return bytes_; }
  std::uint64_t hash_of(const Value& value) const noexcept;

  /// Payload of a fixed-width type; 0 for NULL.
  std::int64_t integer(const std::byte* entry) const noexcept {
    if (bytes_ == 8) return static_cast<std::int32_t>(load_word(entry));
    return static_cast<std::int64_t>(load_word(entry));
  }
  std::string_view text(const std::byte* entry) const noexcept {
    return text_cell::view(entry, medium_.base(), medium_.bytes());
  }
  /// The two words of a text's cell.
  Cell text_words(const std::byte* entry) const noexcept {
    FLUGS_DCHECK(is_text_);
    return {load_word(entry), load_word(entry + 8), false};
  }
  /// Whether an entry that is not torn is a value or NULL.
  bool is_present(const std::byte* entry) const noexcept {
    return load_word(entry + (is_text_ ? 16 : bytes_ - 8u)) != 0;
  }
  /// Sets `hash` to the value's hash if the entry is a value.
  Proof prove(const std::byte* entry, std::uint32_t id, std::uint64_t& hash) const noexcept;

  /// `hash` is that of the value in `cell`.
  void store(std::byte* entry, std::uint32_t id, const Cell& cell,
             std::uint64_t hash) const noexcept;
  void store_null(std::byte* entry, std::uint32_t id) const noexcept;
  void clear(std::byte* entry) const noexcept;

 private:
  static std::uint64_t load_word(const std::byte* address) noexcept {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_ACQUIRE);
  }
  void store_words(std::byte* entry, const Cell& cell, std::uint64_t proof) const noexcept;

  const pmem::Medium& medium_;
  Type type_;
  bool is_text_;
  std::uint32_t bytes_;
};

}  // namespace flugs::columns
