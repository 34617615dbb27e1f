#include "columns/index/hint_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

HintSegments::HintSegments(pmem::Pool& pool, HintIndexLayout& layout, std::string owner)
    : pool_(pool),
      base_(pool.base()),
      layout_(layout),
      owner_(std::move(owner)),
      slabs_(pool, layout.slabs, owner_) {}

Status HintSegments::load() {
  pool_.rely_on(&layout_, sizeof layout_);
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  Status loaded = slabs_.load([&](std::size_t slab, std::uint64_t offset) -> Result<std::uint64_t> {
    const std::uint64_t bytes = kSlabs.elements_in(slab) * kSegmentBytes;
    if (bytes > pool_bytes || offset > pool_bytes - bytes)
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: {}: slab {} of {} bytes at offset {} lies outside the pool",
                                pool_.path(), owner_, slab, bytes, offset));
    put_slab({offset, bytes});
    slabs_in_order_.push_back({offset, bytes});
    return bytes;
  });
  if (!loaded.ok()) return loaded;
  map_slabs();
  if (layout_.segments_used > kSlabs.first_of(slabs_.count()))
    return corrupt("segments in use, at most", kSlabs.first_of(slabs_.count()),
                   layout_.segments_used);
  if (layout_.spare != 0 && !is_segment(layout_.spare))
    return corrupt("the spare segment among those of its slabs, offset", 0, layout_.spare);
  return {};
}

// Lists the slabs that begin or continue in each 2 MB of the pool, so that a word of the directory
// is checked without a search. The list covers only the range where this index has slabs: of
// hundreds of indexes, few have slabs far apart.
void HintSegments::map_slabs() {
  std::sort(slabs_in_order_.begin(), slabs_in_order_.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  slab_at_.clear();
  if (slabs_in_order_.empty()) return;
  const std::uint64_t end = slabs_in_order_.back().offset + slabs_in_order_.back().bytes;
  first_slab_at_ = slabs_in_order_.front().offset >> kSlabMapShift;
  slab_at_.reserve(((end - 1) >> kSlabMapShift) - first_slab_at_ + 1);
  std::uint32_t slab = 0;
  for (std::uint64_t at = first_slab_at_ << kSlabMapShift; at < end;
       at += std::uint64_t{1} << kSlabMapShift) {
    while (slabs_in_order_[slab].offset + slabs_in_order_[slab].bytes <= at) ++slab;
    slab_at_.push_back({slabs_in_order_[slab].offset, slabs_in_order_[slab].bytes, slab});
  }
}

bool HintSegments::is_segment(std::uint64_t offset) const noexcept {
  const std::uint64_t place = (offset >> kSlabMapShift) - first_slab_at_;  // before the first slab:
                                                                           // a huge number
  if (place >= slab_at_.size()) return false;
  const SlabAt& first = slab_at_[place];
  if (offset - first.begin < first.bytes)  // a huge number when it lies before
    return (offset - first.begin) % kSegmentBytes == 0;
  for (std::size_t i = first.number; i < slabs_in_order_.size(); ++i) {
    const pmem::Extent& slab = slabs_in_order_[i];
    if (offset < slab.offset) return false;
    if (offset - slab.offset < slab.bytes) return (offset - slab.offset) % kSegmentBytes == 0;
  }
  return false;
}

bool HintSegments::is_new_segment(std::uint64_t offset) const noexcept {
  for (const NewSlab* slab = newest_slab_.load(std::memory_order_acquire); slab != nullptr;
       slab = slab->older)
    if (offset - slab->extent.offset < slab->extent.bytes)
      return (offset - slab->extent.offset) % kSegmentBytes == 0;
  return false;
}

void HintSegments::put_slab(pmem::Extent slab) {
  FLUGS_CHECK(slab.bytes != 0 && slab.bytes % kSegmentBytes == 0);
  slab_offsets_.push_back(slab.offset);
  bytes_.fetch_add(slab.bytes, std::memory_order_relaxed);
}

// If a crash leaves a segment that is counted and has no word, it stays unused for good.
Result<std::uint64_t> HintSegments::add(pmem::Persister& persister) {
  const std::uint64_t number = layout_.segments_used;
  const std::size_t slab = kSlabs.chunk_of(static_cast<std::uint32_t>(number));
  if (slab >= slabs_.count()) {
    const std::uint64_t bytes = kSlabs.elements_in(slab) * kSegmentBytes;
    Result<pmem::Extent> extent = pool_.allocator().allocate(bytes, persister);
    if (!extent.ok()) return std::move(extent).status();
    if (Status s = slabs_.append(*extent, persister); !s.ok()) {
      pool_.allocator().release(*extent);
      return s;
    }
    put_slab({extent->offset, bytes});
    new_slabs_.push_front({{extent->offset, bytes}, newest_slab_.load(std::memory_order_relaxed)});
    newest_slab_.store(&new_slabs_.front(), std::memory_order_release);
  }
  hint_slot::store(layout_.segments_used, number + 1);
  persister.flush(&layout_.segments_used, sizeof layout_.segments_used, "hint_change/1");
  return slab_offsets_[slab] + (number - kSlabs.first_of(slab)) * kSegmentBytes;
}

HintSegments::Segment* HintSegments::next_of(const Segment& segment,
                                             std::uint64_t& hops) const noexcept {
  const std::uint64_t next = hint_slot::load(segment.next);
  if (next == 0 || ++hops > bytes_in_pool() / kSegmentBytes) return nullptr;
  return is_segment(next) || is_new_segment(next) ? at(next) : nullptr;
}

void HintSegments::chain_of(std::uint64_t word, std::size_t most,
                            std::pmr::vector<Segment*>& chain) const {
  FLUGS_DCHECK(chain.empty());
  std::uint64_t hops = 0;
  for (Segment* segment = at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    if (chain.size() == most) return chain.clear();
    chain.push_back(segment);
  }
}

std::uint64_t* HintSegments::find_free(std::uint64_t word,
                                       std::uint32_t fingerprint) const noexcept {
  std::uint64_t* free = nullptr;
  walk_lines(word, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return free != nullptr;
  });
  return free;
}

Status HintSegments::corrupt(const char* what, std::uint64_t expected, std::uint64_t found) const {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}: {}: expected {}, found {}", pool_.path(),
                                                  owner_, what, expected, found));
}

void HintSegments::add_pages(pmem::WarmList& pages) const {
  for (const pmem::Extent& slab : slabs_in_order_) pages.add(pmem::Heat::kIndexes, slab);
}

void HintSegments::release_all() {
  slabs_.release_all(
      [](std::size_t slab, std::uint64_t) { return kSlabs.elements_in(slab) * kSegmentBytes; });
  bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace flugs::columns
