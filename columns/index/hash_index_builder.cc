#include "columns/index/hash_index_builder.h"

#include <bit>

#include "base/check.h"

namespace flugs::columns {

HashIndexBuilder::HashIndexBuilder(HashIndex& index, std::size_t count, std::size_t sources)
    : index_(index), sources_(sources) {
  index_.reserve(count);
  const auto segment_bits = static_cast<unsigned>(std::countr_zero(index_.segment_count()));
  group_bits_ = std::min(segment_bits, kGroupBitsMax);
  make_sources(count);
}

HashIndexBuilder::HashIndexBuilder(InUse /*in_use*/, HashIndex& index, std::size_t count,
                                   std::size_t sources)
    : index_(index), sources_(sources) {
  make_sources(count);
}

void HashIndexBuilder::make_sources(std::size_t count) {
  FLUGS_CHECK(!sources_.empty());
  const std::size_t each = count / groups() / sources_.size();
  for (Source& source : sources_) {
    source.builder_ = this;
    source.groups_.resize(groups());
    for (auto& group : source.groups_) group.reserve(each + each / 8 + 16);
  }
}

void HashIndexBuilder::insert_group(std::size_t group) {
  FLUGS_CHECK(group < groups());
  for (Source& source : sources_) {
    for (const std::uint64_t entry : source.groups_[group]) index_.bulk_insert(entry);
    source.groups_[group] = {};
  }
}

}  // namespace flugs::columns
