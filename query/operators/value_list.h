#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "query/vectors/run_context.h"

namespace flugs::query {

/// Memory for what aggregates keep of a group beside its state. It counts for the budget, and goes
/// at once. Thread-safety: one thread at a time.
class KeptMemory {
 public:
  explicit KeptMemory(MemoryBudget& budget);
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  /// Room for `bytes`, a multiple of 8, at an address that is one. Fails with kOutOfMemory.
  std::byte* add(std::size_t bytes) {
    if (bytes > left_) add_block(bytes);
    std::byte* const place = next_;
    next_ += bytes;
    left_ -= bytes;
    return place;
  }
  /// Frees all of it.
  void clear() noexcept;

 private:
  void add_block(std::size_t bytes);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t block_bytes_max_;
  Charge charge_;
};

/// Some values of a list. They follow it in memory.
struct ValueChunk {
  ValueChunk* next;
  std::uint32_t used;  ///< values
  std::uint32_t room;

  std::byte* values() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// The values of a group in chunks. `last` is its end, whatever `last->next` is: the list may have
/// been a part of a longer one, which was given up.
struct ValueList {
  ValueChunk* first;
  ValueChunk* last;
};

/// Adds an empty chunk.
void grow(ValueList& list, std::size_t bytes_of_value, KeptMemory& memory);

/// Lists have values of one type each: an int64, a double or a view of a text.
template <typename T>
void append(ValueList& list, const T& value, KeptMemory& memory) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0 && alignof(T) <= 8);
  if (list.last == nullptr || list.last->used == list.last->room) grow(list, sizeof(T), memory);
  ValueChunk& chunk = *list.last;
  std::memcpy(chunk.values() + chunk.used * sizeof(T), &value, sizeof(T));
  ++chunk.used;
}

/// Puts the chunks of a list, which may be empty, behind those of another. Nothing may be appended
/// to `from` afterwards.
void append_list(const ValueList& from, ValueList& into) noexcept;

}  // namespace flugs::query
