#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "columns/index/hash_index.h"

namespace flugs::columns {

/// Fills a HashIndex with many entries by several threads, without a cache miss per entry. Every
/// thread first scatters its entries by segment group. Then one thread inserts each group, while
/// its segments stay in the second-level cache.
///
/// Use: make all sources first, one per producing task. When all tasks are done, call insert_group
/// once for every group (in parallel).
class HashIndexBuilder {
 public:
  /// The entries that a task adds. Thread-safety: one thread at a time.
  class Source {
   public:
    void add(std::uint64_t hash, std::uint32_t payload) {
      FLUGS_DCHECK(builder_ != nullptr);
      const std::uint64_t entry = HashIndex::make_entry(hash, payload);
      groups_[builder_->group_of(entry)].push_back(entry);
    }

   private:
    friend class HashIndexBuilder;
    const HashIndexBuilder* builder_ = nullptr;
    std::vector<std::vector<std::uint64_t>> groups_;
  };

  /// Makes room for `count` entries in the empty `index`.
  HashIndexBuilder(HashIndex& index, std::size_t count, std::size_t sources);
  /// For an index that other threads use meanwhile. It has room, and gets some `count` entries by
  /// for_each_in_group.
  struct InUse {};
  HashIndexBuilder(InUse in_use, HashIndex& index, std::size_t count, std::size_t sources);

  Source& source(std::size_t i) noexcept {
    FLUGS_CHECK(i < sources_.size());
    return sources_[i];
  }
  std::size_t groups() const noexcept { return std::size_t{1} << group_bits_; }
  /// Inserts a group's entries and frees their memory.
  void insert_group(std::size_t group);
  /// Calls insert(hash, payload) for each of the group's entries instead, after prefetching the
  /// line that `edit(hash)` reads. `hash` has the bits that `edit` needs.
  template <typename F>
  void for_each_in_group(std::size_t group, F&& insert) {
    FLUGS_CHECK(group < groups());
    constexpr std::size_t kAhead = 8;
    for (Source& source : sources_) {
      const std::vector<std::uint64_t>& entries = source.groups_[group];
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::uint64_t later = entries[std::min(i + kAhead, entries.size() - 1)];
        index_.prefetch_for_edit(HashIndex::hash_in(later));
        insert(HashIndex::hash_in(entries[i]), HashIndex::payload_in(entries[i]));
      }
      source.groups_[group] = {};
    }
  }

 private:
  // 256 groups: the ends of 256 vectors fit the first-level cache, and a group of an index of 10 M
  // entries (32 segments, 512 KB) fits the second-level one.
  static constexpr unsigned kGroupBitsMax = 8;

  void make_sources(std::size_t count);
  std::size_t group_of(std::uint64_t entry) const noexcept {
    return entry >> (64 - kGroupBitsMax) >> (kGroupBitsMax - group_bits_);
  }

  HashIndex& index_;
  unsigned group_bits_ = kGroupBitsMax;  // of the fingerprint, the upper ones
  std::vector<Source> sources_;
};

}  // namespace flugs::columns
