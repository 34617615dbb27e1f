#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "base/check.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/key_index.h"

namespace flugs::engine {

/// A set of keys of a table: a bit for each, by its place (KeyId::index).
using KeyMask = std::uint16_t;
inline constexpr KeyMask kEveryKey = 0xFFFF;
static_assert(kKeysMax == 16);

/// The places in a mask, in ascending order.
class KeySet {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::size_t*;
    using reference = std::size_t;

    explicit Iterator(unsigned left) noexcept : left_(left) {}
    std::size_t operator*() const noexcept {
      return static_cast<std::size_t>(std::countr_zero(left_));
    }
    Iterator& operator++() noexcept {
      left_ &= left_ - 1;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) noexcept = default;

   private:
    unsigned left_;
  };
  explicit KeySet(KeyMask mask) noexcept : mask_(mask) {}
  Iterator begin() const noexcept { return Iterator(mask_); }
  Iterator end() const noexcept { return Iterator(0); }

 private:
  KeyMask mask_;
};

/// The keys of a table, by place. The place of a key never changes, and a dropped key leaves its
/// place empty. Writers maintain the keys in `kept`, which they read once per statement; look-ups
/// use those in `can_find`. A key that is made while transactions run is kept first, and found when
/// it is complete. A dropped key is neither, but stays in its place as long as a transaction may be
/// left that began with it and may undo changes to it or still read it.
///
/// Thread-safety: any thread reads; changes need the database's ddl_mutex_.
class TableKeys {
 public:
  TableKeys() = default;
  TableKeys(const TableKeys&) = delete;
  TableKeys& operator=(const TableKeys&) = delete;

  /// Pairs with the stores below.
  KeyMask kept() const noexcept { return kept_.load(std::memory_order_acquire); }
  bool empty() const noexcept { return kept() == 0; }
  bool can_find(std::size_t place) const noexcept {
    return place < kKeysMax && (found_.load(std::memory_order_acquire) >> place & 1) != 0;
  }
  /// Number of places in the schema, empty ones included.
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  /// The key of a place that is in `kept`, or was there when the caller's transaction began. For
  /// other places null, or a key whose memory has been freed.
  KeyIndex* operator[](std::size_t place) const noexcept {
    FLUGS_DCHECK(place < kKeysMax);
    return places_[place].load(std::memory_order_relaxed);
  }

  /// Visits the keys in `kept`.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = KeyIndex*;
    using difference_type = std::ptrdiff_t;
    using pointer = KeyIndex* const*;
    using reference = KeyIndex*;

    Iterator(const TableKeys& keys, KeySet::Iterator at) noexcept : keys_(&keys), at_(at) {}
    KeyIndex* operator*() const noexcept { return (*keys_)[*at_]; }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) noexcept = default;

   private:
    const TableKeys* keys_;
    KeySet::Iterator at_;
  };
  Iterator begin() const noexcept { return {*this, KeySet(kept()).begin()}; }
  Iterator end() const noexcept { return {*this, KeySet(0).end()}; }

  /// Adds a complete key, at creation and opening.
  void add(std::size_t place, std::unique_ptr<KeyIndex> key) {
    begin_making(place, std::move(key));
    finish_making(place);
  }
  /// Adds a key that is made from now on, in a place that is_free.
  void begin_making(std::size_t place, std::unique_ptr<KeyIndex> key) {
    FLUGS_CHECK(place < kKeysMax && key != nullptr && is_free(place));
    FLUGS_CHECK((kept() & bit(place)) == 0);
    places_[place].store(key.get(), std::memory_order_relaxed);
    owned_.push_back(std::move(key));
    kept_.fetch_or(bit(place), std::memory_order_seq_cst);
  }
  void finish_making(std::size_t place) {
    FLUGS_CHECK((kept() & bit(place)) != 0);
    set_size(place + 1);
    found_.fetch_or(bit(place), std::memory_order_seq_cst);
  }
  /// The schema has this many places. The last one may be empty.
  void set_size(std::size_t size) noexcept {
    if (size > size_.load(std::memory_order_relaxed)) size_.store(size, std::memory_order_relaxed);
  }
  /// From their next statement on, transactions do not use the key.
  void withdraw(std::size_t place) noexcept {
    FLUGS_CHECK((kept() & bit(place)) != 0);
    found_.fetch_and(static_cast<KeyMask>(~bit(place)), std::memory_order_seq_cst);
    kept_.fetch_and(static_cast<KeyMask>(~bit(place)), std::memory_order_seq_cst);
    withdrawn_ |= bit(place);
  }
  /// Transactions that began before `time`, a time after withdraw, may still use the key.
  void keep_until(std::size_t place, std::uint64_t time) noexcept { known_until_[place] = time; }
  /// Whether no withdrawn key is left there that a transaction may still use.
  bool is_free(std::size_t place) const noexcept { return (withdrawn_ >> place & 1) == 0; }
  /// Frees the withdrawn keys that no transaction that began at `oldest` or later uses. What
  /// prefetching and the destructor need stays.
  void release_withdrawn(std::uint64_t oldest) noexcept {
    for (const std::size_t place : KeySet(withdrawn_)) {
      if (known_until_[place] > oldest) continue;
      (*this)[place]->entries().release_memory();
      withdrawn_ &= static_cast<KeyMask>(~bit(place));
    }
  }
  /// Called when the table is dropped: no transaction uses a key any more.
  void release_all() noexcept {
    for (const std::size_t place : KeySet(static_cast<KeyMask>(kept() | withdrawn_)))
      (*this)[place]->entries().release_memory();
    withdrawn_ = 0;
  }

 private:
  static constexpr KeyMask bit(std::size_t place) noexcept {
    return static_cast<KeyMask>(1U << place);
  }

  std::atomic<KeyMask> kept_{0};
  std::atomic<KeyMask> found_{0};
  std::array<std::atomic<KeyIndex*>, kKeysMax> places_{};
  std::atomic<std::size_t> size_{0};
  KeyMask withdrawn_ = 0;
  std::array<std::uint64_t, kKeysMax> known_until_{};
  std::vector<std::unique_ptr<KeyIndex>> owned_;  // with dropped keys: look-ups may prefetch them
};

}  // namespace flugs::engine
