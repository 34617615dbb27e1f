#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/key_kinds.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/index_run_layout.h"

namespace flugs::engine {

/// What a run stores of one key of the table.
struct KeyShape {
  bool is_hashed = false;
  bool is_ordered = false;
  bool is_dropped = false;  ///< no reader looks at the run's entries of it
  bool is_added = false;    ///< after the table's creation: an earlier run lacks it

  static KeyShape of(const KeyKinds& kinds, bool is_dropped, bool is_added) noexcept {
    return {facts_of(kinds.for_lookups).is_in_runs, facts_of(kinds.for_ranges).is_in_runs,
            is_dropped, is_added};
  }
};

/// A run of key indexes, in the pool. Opening checks neither the rows that it names nor their
/// order: the reader of a row id must check that the table has such a row, and compare the key with
/// the row.
/// Thread-safety: any thread.
class IndexRun {
 public:
  static constexpr std::size_t kSlotsPerLine = 8;
  static constexpr std::size_t kEntriesPerFence = 64;
  static_assert(kSlotsPerLine * sizeof(std::uint64_t) == 64);

  /// Checks the header of the run at `offset`, so that reading entries is safe. Claims nothing.
  /// Fails with kCorrupt.
  static Result<std::unique_ptr<const IndexRun>> load(pmem::Pool& pool, std::uint64_t offset,
                                                      std::uint32_t table_id,
                                                      std::span<const KeyShape> keys,
                                                      std::uint32_t key_additions,
                                                      const std::string& owner);
  static std::uint64_t checksum_of(const IndexRunLayout& layout) noexcept;
  static std::uint64_t checksum_of(const IndexRunKeyLayout& key, const std::byte* run) noexcept;

  pmem::Extent extent() const noexcept { return {offset_, layout_.bytes}; }
  std::span<const std::byte> memory() const noexcept { return {base(), layout_.bytes}; }
  /// The number of entries of the key that has most.
  std::uint64_t entries() const noexcept { return entries_; }

  static std::uint64_t home_of(std::uint64_t fingerprint, std::uint64_t home_lines) noexcept {
    FLUGS_DCHECK(fingerprint >> 32 == 0);
    return ((fingerprint * home_lines) >> 32) * kSlotsPerLine;
  }
  /// Calls visit(row id) for each row that may have the hash, until it returns true; true if one
  /// did.
  template <typename F>
  bool any(std::size_t key, std::uint64_t hash, F&& visit) const {
    const std::uint64_t fingerprint = hash >> 32;
    const std::span<const std::uint64_t> slots = keys_[key].slots;
    for (std::uint64_t i = home_of(fingerprint, keys_[key].home_lines); i < slots.size(); ++i) {
      const std::uint64_t found = slots[i] >> 32;
      if (slots[i] == 0 || found > fingerprint) return false;
      if (found == fingerprint && visit(row_of(slots[i]))) return true;
    }
    return false;
  }
  static std::uint32_t row_of(std::uint64_t slot) noexcept {
    return static_cast<std::uint32_t>(slot) - 1;
  }

  std::uint32_t key_additions() const noexcept { return layout_.key_additions; }
  std::uint64_t home_lines(std::size_t key) const noexcept { return keys_[key].home_lines; }
  /// With empty ones.
  std::span<const std::uint64_t> slots(std::size_t key) const noexcept { return keys_[key].slots; }
  /// Side by side, in the order of keys.
  std::span<const std::uint64_t> prefixes(std::size_t key) const noexcept {
    return keys_[key].prefixes;
  }
  std::span<const std::uint32_t> ordered_rows(std::size_t key) const noexcept {
    return keys_[key].rows;
  }
  static std::uint64_t fences_for(std::uint64_t entries) noexcept {
    return (entries + kEntriesPerFence - 1) / kEntriesPerFence;
  }
  /// The first position whose prefix is not below `prefix`.
  std::size_t first_not_below(std::size_t key, std::uint64_t prefix) const noexcept;

  /// Checks the checksums of all keys' entries, and the order of slots.
  Status audit() const;

 private:
  struct Key {
    bool is_loaded = false;
    std::uint64_t home_lines = 0;
    std::span<const std::uint64_t> slots;
    std::span<const std::uint64_t> prefixes;
    std::span<const std::uint32_t> rows;
    std::span<const std::uint64_t> fences;
  };

  IndexRun(pmem::Pool& pool, std::uint64_t offset, std::string owner);
  Status check_header(std::uint32_t table_id, std::size_t keys, std::uint32_t key_additions) const;
  Status load_key(std::size_t index, const KeyShape& shape);
  Status audit_slots(std::size_t key) const;
  Status corrupt(const std::string& what, std::uint64_t expected, std::uint64_t found) const;
  const std::byte* base() const noexcept { return reinterpret_cast<const std::byte*>(&layout_); }
  const IndexRunKeyLayout& key_layout(std::size_t key) const noexcept {
    return reinterpret_cast<const IndexRunKeyLayout*>(&layout_ + 1)[key];
  }

  pmem::Pool& pool_;
  const std::uint64_t offset_;
  const IndexRunLayout& layout_;
  std::string owner_;
  std::array<Key, kKeysMax> keys_;  // empty for a key that was added later
  std::uint64_t entries_ = 0;
};

}  // namespace flugs::engine
