#include "columns/index/hint_growth.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory_resource>
#include <utility>

#include "base/check.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::columns {

namespace {

// A segment is split only when this many of its slots are taken, and only if each part gets at
// least one entry in 16: otherwise the entries have few hashes.
constexpr std::size_t kSlotsInSegment = HintSegments::kSlotsInSegment;
constexpr std::size_t kSplitAt = kSlotsInSegment / 2;
constexpr std::size_t kLopsidedHints = 16;
// Longer chains of segments are not rewritten each time that one of their segments wants room.
constexpr std::size_t kChainMax = 16;

// The memory of a change of one segment. A table whose entries come and go allocates nothing; a
// chain of segments takes more from the heap.
class Scratch {
 public:
  std::pmr::memory_resource& memory() noexcept { return memory_; }

 private:
  // The slots, those of either half, and some offsets.
  std::array<std::byte, 3 * sizeof(HintSegmentLayout) + 1024> bytes_;
  std::pmr::monotonic_buffer_resource memory_{bytes_.data(), bytes_.size()};
};

// The slots of segments, in order.
std::pmr::vector<std::uint64_t> slots_of(std::span<HintSegmentLayout* const> segments,
                                         std::pmr::memory_resource& memory) {
  std::pmr::vector<std::uint64_t> slots(&memory);
  slots.reserve(segments.size() * kSlotsInSegment);
  for (const HintSegmentLayout* segment : segments)
    for (const auto& line : segment->slots)
      for (const std::uint64_t& slot : line) slots.push_back(hint_slot::load(slot));
  return slots;
}

/// What decides whether segments are split or rewritten.
struct Census {
  std::size_t entries = 0;
  std::size_t upper = 0;  // entries that a split would move
  std::size_t emptied = 0;
};

// Most often nothing has to be done, so this copies nothing. All lines are prefetched before the
// first is read, because they come from the pool.
Census census_of(std::span<HintSegmentLayout* const> segments, unsigned depth) noexcept {
  FLUGS_CHECK(depth <= HintDirectory::kDepthMax);
  Census census;
  for (const HintSegmentLayout* segment : segments)
    for (const auto& line : segment->slots) __builtin_prefetch(line);
  for (const HintSegmentLayout* segment : segments)
    for (const auto& line : segment->slots)
      for (const std::uint64_t& word : line) {
        const std::uint64_t slot = hint_slot::load(word);
        const bool is_live = hint_slot::is_live(slot);
        census.entries += is_live ? 1 : 0;
        census.upper += is_live ? slot >> (63 - depth) & 1 : 0;
        census.emptied += slot == HintSegmentLayout::kEmptied ? 1 : 0;
      }
  return census;
}

// The entries of a segment, divided by the bit that distinguishes the two halves of a segment at
// `depth`. Without a branch, because the bit cannot be predicted.
struct Halves {
  Halves(std::span<const std::uint64_t> slots, unsigned depth, std::pmr::memory_resource& memory)
      : lower(slots.size(), &memory), upper(slots.size(), &memory) {
    FLUGS_CHECK(depth <= HintDirectory::kDepthMax);
    std::size_t lower_count = 0;
    std::size_t upper_count = 0;
    for (const std::uint64_t slot : slots) {
      const std::uint64_t bit = slot >> (63 - depth) & 1;
      lower[lower_count] = upper[upper_count] = slot;
      lower_count += hint_slot::is_live(slot) & (bit ^ 1);
      upper_count += hint_slot::is_live(slot) & bit;
    }
    FLUGS_DCHECK(lower_count + upper_count <= slots.size());
    lower.resize(lower_count);
    upper.resize(upper_count);
  }
  void join() {  // moves all entries to `lower`
    lower.insert(lower.end(), upper.begin(), upper.end());
    upper.clear();
  }

  std::pmr::vector<std::uint64_t> lower;
  std::pmr::vector<std::uint64_t> upper;
};

}  // namespace

Status HintGrowth::make_room(std::uint32_t fingerprint, pmem::Persister& persister) {
  if (directory_.current() == nullptr)
    if (Status s = begin(persister); !s.ok()) {
      persister.fence("hint_begin/1");
      return s;
    }
  for (;;) {
    bool wants_doubling = false;
    Status s = rearrange(fingerprint, persister, wants_doubling);
    if (s.ok() && !wants_doubling) return s;
    if (s.ok()) s = directory_.double_words(persister);
    if (s.ok()) continue;
    persister.fence("hint_change/1");  // for what was flushed before the failure
    return s;
  }
}

// Protocol hint_begin: the first segment, in a directory of one word.
//   step  store                         made durable by     power cut just after it: recovery
//   1     segment, word that names it,  flush, fence        no directory: empty; the segment is
//         segments_used                                     counted, and not used
//   2     directory                     persist (8 bytes)   an empty index
// Must hold:  1 before 2, else the word would be noise.
Status HintGrowth::begin(pmem::Persister& persister) {
  FLUGS_CHECK(directory_.current() == nullptr);
  pmem::ExtentAllocator& allocator = segments_.pool().allocator();
  Result<pmem::Extent> words = allocator.allocate(sizeof(std::uint64_t), persister);
  if (!words.ok()) return std::move(words).status();
  Result<std::uint64_t> segment = segments_.add(persister);
  if (!segment.ok()) {
    allocator.release(*words);
    return std::move(segment).status();
  }
  fill(std::span(&*segment, 1), {});
  persister.flush(segments_.at(*segment), HintSegments::kSegmentBytes, "hint_begin/1");
  directory_.create(*words, *segment, persister);
  return {};
}

Result<std::uint64_t> HintGrowth::take_unnamed_segment(pmem::Persister& persister) {
  if (unnamed_.empty()) return segments_.add(persister);
  const std::uint64_t segment = unnamed_.back();
  unnamed_.pop_back();
  return segment;
}

Result<std::uint64_t> HintGrowth::take_segment(pmem::Persister& persister) {
  if (layout_.spare == 0) return take_unnamed_segment(persister);
  const std::uint64_t spare = layout_.spare;
  hint_slot::store(layout_.spare, 0);
  persister.flush(&layout_.spare, sizeof layout_.spare, "hint_change/1");
  return spare;
}

Result<HintGrowth::Segments> HintGrowth::take_segments(std::size_t count,
                                                       pmem::Persister& persister,
                                                       std::pmr::memory_resource& memory) {
  Segments taken(&memory);
  taken.reserve(count);
  while (taken.size() < count) {
    Result<std::uint64_t> segment = take_segment(persister);
    if (!segment.ok()) {
      give_back(taken, persister);
      return std::move(segment).status();
    }
    taken.push_back(*segment);
  }
  return taken;
}

// The spare segment was taken first; recovery may make it the spare one again.
void HintGrowth::give_back(std::span<const std::uint64_t> segments, pmem::Persister& persister) {
  if (segments.empty()) return;
  hint_slot::store(layout_.spare, segments.front());
  persister.flush(&layout_.spare, sizeof layout_.spare, "hint_change/1");
  unnamed_.insert(unnamed_.end(), segments.begin() + 1, segments.end());
}

// Puts each slot where an insertion into the empty segments would have put it: in the first line
// from its home on that has an unused slot. Counts per line are kept in DRAM meanwhile, so that no
// line is read. The segments have room for all slots.
void HintGrowth::fill(std::span<const std::uint64_t> segments,
                      std::span<const std::uint64_t> slots) noexcept {
  FLUGS_CHECK(slots.size() <= segments.size() * kSlotsInSegment);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    Segment& segment = *segments_.at(segments[i]);
    // Word by word: readers that loaded an old directory may still read here.
    for (auto& line : segment.slots)
      for (std::uint64_t& slot : line) hint_slot::store(slot, 0);
    hint_slot::store(segment.next, i + 1 < segments.size() ? segments[i + 1] : 0);
  }
  std::size_t first = 0;  // the segments before it are full
  std::size_t in_first = 0;
  std::array<std::uint8_t, Segment::kLines> taken{};
  for (const std::uint64_t slot : slots) {
    if (in_first == kSlotsInSegment) {
      ++first;
      in_first = 0;
      taken.fill(0);
    }
    std::uint32_t line = hint_slot::home_of(hint_slot::fingerprint_of(slot));
    while (taken[line] == Segment::kSlots) line = line + 1 == Segment::kLines ? 0 : line + 1;
    hint_slot::store(segments_.at(segments[first])->slots[line][taken[line]++], slot);
    ++in_first;
  }
}

// Entries were copied out of segments that no Editor changes any more. If an entry was erased there
// meanwhile, erases the copy, once it can be found.
void HintGrowth::erase_again(std::span<Segment* const> replaced,
                             std::span<const std::uint64_t> copied) noexcept {
  FLUGS_CHECK(copied.size() <= replaced.size() * kSlotsInSegment);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < copied.size(); ++i) {
    const std::uint64_t* slots = replaced[i / kSlotsInSegment]->slots[0];
    if (hint_slot::is_live(copied[i]) &&
        hint_slot::load(slots[i % kSlotsInSegment]) == Segment::kEmptied)
      directory_.erase(hint_slot::fingerprint_of(copied[i]), hint_slot::payload_of(copied[i]));
  }
}

// Makes room at the segment of a fingerprint and the segments that continue it. It splits them by
// the next bit, or rewrites them without emptied slots, or adds a further segment. It changes
// nothing if one more entry has a place near its home. Many entries of one hash cannot be split.
// They may be gone soon (when a key is taken and given up again and again), so other entries among
// them are split from them later, and their emptied slots are reclaimed.
Status HintGrowth::rearrange(std::uint32_t fingerprint, pmem::Persister& persister,
                             bool& wants_doubling) {
  const HintLock lock(directory_, locks_, fingerprint);
  const HintDirectory::Copy& directory = *directory_.current();
  const HintDirectory::Block block =
      directory_.block_of(directory, directory.index_of(fingerprint));
  if (Status s = directory_.damage(); !s.ok()) return s;
  const bool is_full = segments_.find_free(lock.word(), fingerprint) == nullptr;
  Scratch scratch;
  std::pmr::vector<Segment*> chain(&scratch.memory());
  segments_.chain_of(lock.word(), kChainMax, chain);
  const unsigned depth = directory.depth() - static_cast<unsigned>(std::countr_zero(block.span));
  const Census census = census_of(chain, depth);
  const std::size_t smaller = std::min(census.upper, census.entries - census.upper);
  const bool splits = depth < HintDirectory::kDepthMax && census.entries >= kSplitAt &&
                      smaller >= census.entries / kLopsidedHints;
  const bool is_thin = census.emptied > census.entries / 2;
  if (!splits && !is_thin) return is_full ? go_on(*segments_.at(lock.word()), persister) : Status();
  if (splits && block.span == 1) {
    wants_doubling = true;
    return {};
  }
  const std::pmr::vector<std::uint64_t> found = slots_of(chain, scratch.memory());
  Halves halves(found, depth, scratch.memory());
  if (!splits) halves.join();
  Status s = change(block, lock.word(), halves.lower, halves.upper, persister, scratch.memory());
  if (!s.ok()) return s;
  erase_again(chain, found);
  for (std::size_t i = 1; i < chain.size(); ++i)  // the first one is the spare now
    unnamed_.push_back(segments_.offset_of(*chain[i]));
  return {};
}

// Protocol hint_change: one or two segments, with those that continue them, replace another. They
// are found after 3.
//   step  store                            made durable by   power cut just after it: recovery
//   1     their entries; segments_used,    flush, fence      nothing names them; the spare one is
//         spare := 0                                         that of the last change
//   2     what is to change, a checksum    flush, fence      does step 3 again
//   3     words of the directory, then     flush, fence      does it again
//         their copies in DRAM
//   4     spare := the one that was        with the next     the same, from what step 2 wrote
//         replaced                         change
// Must hold:  1 before 2, else entries would be lost. 2 before 3, because words are changed one by
//             one, and all must be. 3 before the next change, which overwrites the record of step 2
//             and may use the replaced segment. Copied entries were perhaps not durable at their
//             former place: 1 before 3 makes them durable before look-ups find them here.
Status HintGrowth::change(const HintDirectory::Block& block, std::uint64_t old_word,
                          std::span<const std::uint64_t> lower,
                          std::span<const std::uint64_t> upper, pmem::Persister& persister,
                          std::pmr::memory_resource& memory) {
  FLUGS_CHECK(upper.empty() || block.span >= 2);  // else the words have no second half
  // Each half has at least one free slot.
  const std::size_t lower_count = lower.size() / kSlotsInSegment + 1;
  const std::size_t upper_count = upper.empty() ? 0 : upper.size() / kSlotsInSegment + 1;
  Result<Segments> taken = take_segments(lower_count + upper_count, persister, memory);
  if (!taken.ok()) return std::move(taken).status();
  const std::span<const std::uint64_t> segments(*taken);
  // Only a damaged count of segments in use can give one out twice.
  for (std::size_t i = 1; i < segments.size(); ++i)
    if (std::ranges::count(segments.first(i), segments[i]) != 0)
      return segments_.corrupt("an offset of a segment taken once", 0, segments[i]);
  fill(segments.first(lower_count), lower);
  if (upper_count != 0) fill(segments.subspan(lower_count), upper);
  for (const std::uint64_t segment : segments)
    persister.flush(segments_.at(segment), HintSegments::kSegmentBytes, "hint_change/1");
  persister.fence("hint_change/1");
  const std::uint64_t first = segments.front();
  const std::uint64_t second = upper_count == 0 ? first : segments[lower_count];
  directory_.change(block, old_word, first, second, persister);
  return {};
}

// Protocol hint_go_on: a full segment of entries that cannot be separated continues in another one.
//   step  store                           made durable by     power cut just after it: recovery
//   1     zeros of it, segments_used      flush, fence        it is counted, and not used
//   2     next of the last one            persist (8 bytes)   an empty segment behind it
// Must hold:  1 before 2. A transaction that puts an entry there flushes `next` with it.
Status HintGrowth::go_on(Segment& segment, pmem::Persister& persister) {
  Segment* last = &segment;
  std::uint64_t hops = 0;
  while (Segment* next = segments_.next_of(*last, hops)) last = next;
  // Not the spare segment: recovery may take it for the one that the last change replaced.
  Result<std::uint64_t> fresh = take_unnamed_segment(persister);
  if (!fresh.ok()) return std::move(fresh).status();
  fill(std::span(&*fresh, 1), {});
  persister.flush(segments_.at(*fresh), HintSegments::kSegmentBytes, "hint_go_on/1");
  persister.fence("hint_go_on/1");
  hint_slot::store(last->next, *fresh);
  persister.persist(&last->next, sizeof last->next, "hint_go_on/2");
  return {};
}

}  // namespace flugs::columns
