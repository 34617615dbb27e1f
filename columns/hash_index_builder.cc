#include "columns/hash_index_builder.h"

namespace flugs::columns {

namespace {

// 256 groups: the ends of 256 vectors fit the first-level cache, and a group of an index of 10 M
// entries (32 segments, 512 KB) the second-level one.
constexpr std::size_t kGroupsMax = 256;

}  // namespace

HashIndexBuilder::HashIndexBuilder(HashIndex& index, std::size_t count, std::size_t sources)
    : index_(index), sources_(sources) {
  index_.reserve(count);
  groups_ = index_.segment_count();
  while (groups_ > kGroupsMax) {
    groups_ /= 2;
    ++segments_per_group_log2_;
  }
  const std::size_t expected = count / groups_ / sources + count / groups_ / sources / 8 + 16;
  for (Source& source : sources_) {
    source.builder_ = this;
    source.groups_.resize(groups_);
    for (auto& group : source.groups_) group.reserve(expected);
  }
}

void HashIndexBuilder::insert_group(std::size_t group) {
  for (Source& source : sources_) {
    for (const std::uint64_t entry : source.groups_[group]) index_.bulk_insert(entry);
    source.groups_[group] = {};
  }
}

}  // namespace flugs::columns
