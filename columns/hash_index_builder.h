#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/hash_index.h"

namespace flugs::columns {

/// Fills a HashIndex with many entries by several threads, without a cache miss per entry: every
/// thread first scatters its entries by segment group, then each group is inserted by one thread,
/// while its segments stay in the second-level cache.
///
/// Use: one Source per producing task, made up front; when all are done, insert_group for every
/// group (in parallel), once.
class HashIndexBuilder {
 public:
  /// Entries a task adds. Thread-safety: one thread at a time.
  class Source {
   public:
    void add(std::uint64_t hash, std::uint32_t payload) {
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

  Source& source(std::size_t i) noexcept { return sources_[i]; }
  std::size_t groups() const noexcept { return groups_; }
  /// Inserts a group's entries and frees their memory.
  void insert_group(std::size_t group);

 private:
  std::size_t group_of(std::uint64_t entry) const noexcept {
    return index_.segment_of(entry) >> segments_per_group_log2_;
  }

  HashIndex& index_;
  unsigned segments_per_group_log2_ = 0;
  std::size_t groups_ = 1;
  std::vector<Source> sources_;
};

}  // namespace flugs::columns
