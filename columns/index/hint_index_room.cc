// Growth of a HintIndex: its directory and its segments.

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "columns/index/hint_index.h"

namespace flugs::columns {

namespace {

// A segment is split only when this many of its slots are taken, and only if each part gets at
// least one entry in 16: otherwise the entries have few hashes.
constexpr std::size_t kSlotsInSegment = HintSegmentLayout::kLines * HintSegmentLayout::kSlots;
constexpr std::size_t kSplitAt = kSlotsInSegment / 2;
constexpr std::size_t kLopsidedHints = 16;

}  // namespace

Status HintIndex::make_room(std::uint64_t hash, pmem::Persister& persister) {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const std::lock_guard structure(structure_mutex_);
  if (directory_.load(std::memory_order_relaxed) == nullptr)
    if (Status s = begin(persister); !s.ok()) {
      persister.fence("hint_begin/1");
      return s;
    }
  for (;;) {
    bool wants_doubling = false;
    Status s = rearrange(fingerprint, persister, wants_doubling);
    if (s.ok() && !wants_doubling) return s;
    if (s.ok()) s = double_directory(persister);
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
Status HintIndex::begin(pmem::Persister& persister) {
  FLUGS_CHECK(directory_.load(std::memory_order_relaxed) == nullptr);
  Result<pmem::Extent> extent = pool_.allocator().allocate(sizeof(std::uint64_t), persister);
  if (!extent.ok()) return std::move(extent).status();
  Result<std::uint64_t> segment = new_segment(persister);
  if (!segment.ok()) {
    pool_.allocator().release(*extent);
    return std::move(segment).status();
  }
  fill(std::span(&*segment, 1), {});
  store(words_of(extent->offset)[0], *segment);
  persister.flush(segment_at(*segment), kSegmentBytes, "hint_begin/1");
  persister.flush(words_of(extent->offset), sizeof(std::uint64_t), "hint_begin/1");
  persister.fence("hint_begin/1");
  auto copy = std::make_unique<Directory>(0);
  copy->word(0) = *segment;
  is_all_read_ = true;
  publish(extent->offset, std::move(copy), persister, "hint_begin/2");
  return {};
}

void HintIndex::publish(std::uint64_t directory, std::unique_ptr<Directory> copy,
                        pmem::Persister& persister, pmem::Label label) {
  FLUGS_CHECK(copy->depth() == depth_of(directory));
  store(layout_.directory, directory);
  persister.persist(&layout_.directory, sizeof layout_.directory, label);
  bytes_in_pool_.fetch_add(directory_extent(directory).bytes, std::memory_order_relaxed);
  directory_.store(copy.get(), std::memory_order_release);
  directories_.push_back(std::move(copy));
}

// Protocol hint_directory: twice as many words, each named twice.
//   step  store                     made durable by     power cut just after it: recovery
//   1     words of the new one      flush, fence        unreachable: free space
//   2     directory                 persist (8 bytes)   the new one; the old is free space
// Must hold:  1 before 2. No word changes meanwhile (structure_mutex_).
Status HintIndex::double_directory(pmem::Persister& persister) {
  const std::uint64_t old = layout_.directory;
  const std::size_t words = std::size_t{1} << depth_of(old);
  Result<pmem::Extent> extent =
      pool_.allocator().allocate(words * 2 * sizeof(std::uint64_t), persister);
  if (!extent.ok()) return std::move(extent).status();
  read_all();  // also for threads that still use the old directory
  if (Status s = damage(); !s.ok()) {
    pool_.allocator().release(*extent);
    return s;
  }
  const Directory* known = directory_.load(std::memory_order_relaxed);
  const std::uint64_t fresh = extent->offset | (depth_of(old) + 1);
  auto copy = std::make_unique<Directory>(depth_of(fresh));
  for (std::size_t i = 0; i < words * 2; ++i) copy->word(i) = word_of(*known, i / 2);
  std::copy_n(&copy->word(0), words * 2, words_of(fresh));
  persister.flush(words_of(fresh), words * 2 * sizeof(std::uint64_t), "hint_directory/1");
  persister.fence("hint_directory/1");
  publish(fresh, std::move(copy), persister, "hint_directory/2");
  pool_.allocator().release(directory_extent(old));
  bytes_in_pool_.fetch_sub(directory_extent(old).bytes, std::memory_order_relaxed);
  return {};
}

// The pool counts segments without a word of the directory, and records nothing else about them. If
// a crash leaves such a segment, it stays unused for good.
Result<std::uint64_t> HintIndex::new_segment(pmem::Persister& persister) {
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
    put_new_slab({extent->offset, bytes});
  }
  store(layout_.segments_used, number + 1);
  persister.flush(&layout_.segments_used, sizeof layout_.segments_used, "hint_change/1");
  return slab_offsets_[slab] + (number - kSlabs.first_of(slab)) * kSegmentBytes;
}

Result<std::uint64_t> HintIndex::take_unnamed_segment(pmem::Persister& persister) {
  if (unnamed_.empty()) return new_segment(persister);
  const std::uint64_t segment = unnamed_.back();
  unnamed_.pop_back();
  return segment;
}

Result<std::uint64_t> HintIndex::take_segment(pmem::Persister& persister) {
  if (layout_.spare == 0) return take_unnamed_segment(persister);
  const std::uint64_t spare = layout_.spare;
  store(layout_.spare, 0);
  persister.flush(&layout_.spare, sizeof layout_.spare, "hint_change/1");
  return spare;
}

Result<HintIndex::Segments> HintIndex::take_segments(std::size_t count,
                                                     pmem::Persister& persister) {
  Segments taken;
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
void HintIndex::give_back(const Segments& segments, pmem::Persister& persister) {
  if (segments.empty()) return;
  store(layout_.spare, segments.front());
  persister.flush(&layout_.spare, sizeof layout_.spare, "hint_change/1");
  unnamed_.insert(unnamed_.end(), segments.begin() + 1, segments.end());
}

// Puts each slot where an insertion into the empty segments would have put it: in the first line
// from its home on that has an unused slot. Counts per line are kept in DRAM meanwhile, so that no
// line is read. The segments have room for all slots.
void HintIndex::fill(std::span<const std::uint64_t> segments,
                     std::span<const std::uint64_t> slots) noexcept {
  FLUGS_CHECK(slots.size() <= segments.size() * kSlotsInSegment);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    Segment& segment = *segment_at(segments[i]);
    // Word by word: readers that loaded an old directory may still read here.
    for (auto& line : segment.slots)
      for (std::uint64_t& slot : line) store(slot, 0);
    store(segment.next, i + 1 < segments.size() ? segments[i + 1] : 0);
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
    std::uint32_t line = home_of(static_cast<std::uint32_t>(slot >> 32));
    while (taken[line] == Segment::kSlots) line = line + 1 == Segment::kLines ? 0 : line + 1;
    store(segment_at(segments[first])->slots[line][taken[line]++], slot);
    ++in_first;
  }
}

// Entries were copied out of segments that no Editor changes any more. If an entry was erased there
// meanwhile, erases the copy, once it can be found.
void HintIndex::erase_again(const std::vector<Segment*>& replaced,
                            std::span<const std::uint64_t> copied) noexcept {
  FLUGS_CHECK(copied.size() <= replaced.size() * kSlotsInSegment);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < copied.size(); ++i) {
    const std::uint64_t* slots = replaced[i / kSlotsInSegment]->slots[0];
    if (is_live(copied[i]) && load(slots[i % kSlotsInSegment]) == Segment::kEmptied)
      erase(copied[i] & ~std::uint64_t{0xFFFFFFFF}, payload_of(copied[i]));
  }
}

// The slots of segments, in order. All lines are prefetched before the first is read, because they
// come from the pool.
std::vector<std::uint64_t> HintIndex::slots_of(std::span<Segment* const> segments) {
  for (const Segment* segment : segments)
    for (const auto& line : segment->slots) __builtin_prefetch(line);
  std::vector<std::uint64_t> slots;
  slots.reserve(segments.size() * kSlotsInSegment);
  for (const Segment* segment : segments)
    for (const auto& line : segment->slots)
      for (const std::uint64_t& slot : line) slots.push_back(load(slot));
  return slots;
}

// Divides live entries by the bit that distinguishes the two halves of a segment at `depth`.
// Without a branch, because the bit cannot be predicted.
HintIndex::Halves::Halves(std::span<const std::uint64_t> slots, unsigned depth)
    : lower(slots.size()), upper(slots.size()) {
  FLUGS_CHECK(depth <= kDepthMax);
  std::size_t lower_count = 0;
  std::size_t upper_count = 0;
  for (const std::uint64_t slot : slots) {
    const std::uint64_t bit = slot >> (63 - depth) & 1;
    lower[lower_count] = upper[upper_count] = slot;
    lower_count += is_live(slot) & (bit ^ 1);
    upper_count += is_live(slot) & bit;
  }
  FLUGS_DCHECK(lower_count + upper_count <= slots.size());
  lower.resize(lower_count);
  upper.resize(upper_count);
}

void HintIndex::Halves::join() {
  lower.insert(lower.end(), upper.begin(), upper.end());
  upper.clear();
}

std::vector<HintIndex::Segment*> HintIndex::chain_of(std::uint64_t word) const {
  std::vector<Segment*> chain;
  std::uint64_t hops = 0;
  for (Segment* segment = segment_at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    if (chain.size() == kChainMax) return {};
    chain.push_back(segment);
  }
  return chain;
}

HintIndex::Block HintIndex::block_of(const Directory& directory, std::size_t index) const noexcept {
  const std::uint64_t word = word_of(directory, index);
  Block block{index, 1};
  while (block.span < directory.count()) {
    const std::size_t first = index & ~(block.span * 2 - 1);
    for (std::size_t i = first; i < first + block.span * 2; ++i)
      if (word_of(directory, i) != word) return block;
    block = {first, block.span * 2};
  }
  return block;
}

// Makes room at the segment of a fingerprint and the segments that continue it. It splits them by
// the next bit, or rewrites them without emptied slots, or adds a further segment. It changes
// nothing if one more entry has a place near its home. Many entries of one hash cannot be split.
// They may be gone soon (when a key is taken and given up again and again), so other entries among
// them are split from them later, and their emptied slots are reclaimed.
Status HintIndex::rearrange(std::uint32_t fingerprint, pmem::Persister& persister,
                            bool& wants_doubling) {
  const Editor lock(*this, std::uint64_t{fingerprint} << 32);
  const Directory& directory = *directory_.load(std::memory_order_relaxed);
  const Block block = block_of(directory, directory.index_of(fingerprint));
  if (Status s = damage(); !s.ok()) return s;
  const bool is_full = find_free(lock.word_, fingerprint) == nullptr;
  const std::vector<Segment*> chain = chain_of(lock.word_);
  const std::vector<std::uint64_t> found = slots_of(chain);
  const unsigned depth = directory.depth() - static_cast<unsigned>(std::countr_zero(block.span));
  Halves halves(found, depth);
  const std::size_t entries = halves.lower.size() + halves.upper.size();
  const auto emptied = std::count(found.begin(), found.end(), Segment::kEmptied);
  const bool splits =
      depth < kDepthMax && entries >= kSplitAt &&
      std::min(halves.lower.size(), halves.upper.size()) >= entries / kLopsidedHints;
  const bool is_thin = static_cast<std::size_t>(emptied) > entries / 2;
  if (!splits && !is_thin) return is_full ? go_on(*segment_at(lock.word_), persister) : Status();
  if (splits && block.span == 1) {
    wants_doubling = true;
    return {};
  }
  if (!splits) halves.join();
  Status s = change(block, lock.word_, halves.lower, halves.upper, persister);
  if (!s.ok()) return s;
  erase_again(chain, found);
  for (std::size_t i = 1; i < chain.size(); ++i)  // the first one is the spare now
    unnamed_.push_back(static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(chain[i]) - base_));
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
Status HintIndex::change(const Block& block, std::uint64_t old_word,
                         std::span<const std::uint64_t> lower, std::span<const std::uint64_t> upper,
                         pmem::Persister& persister) {
  FLUGS_CHECK(upper.empty() || block.span >= 2);  // else the words have no second half
  // Each half has at least one free slot.
  const std::size_t lower_count = lower.size() / kSlotsInSegment + 1;
  const std::size_t upper_count = upper.empty() ? 0 : upper.size() / kSlotsInSegment + 1;
  Result<Segments> taken = take_segments(lower_count + upper_count, persister);
  if (!taken.ok()) return std::move(taken).status();
  const std::span<const std::uint64_t> segments(*taken);
  // Only a damaged count of segments in use can give one out twice.
  for (std::size_t i = 1; i < segments.size(); ++i)
    if (std::ranges::count(segments.first(i), segments[i]) != 0)
      return corrupt("an offset of a segment taken once", 0, segments[i]);
  fill(segments.first(lower_count), lower);
  if (upper_count != 0) fill(segments.subspan(lower_count), upper);
  for (const std::uint64_t segment : segments)
    persister.flush(segment_at(segment), kSegmentBytes, "hint_change/1");
  persister.fence("hint_change/1");
  const std::uint64_t first = segments.front();
  const std::uint64_t second = upper_count == 0 ? first : segments[lower_count];

  const std::uint64_t number = ((old_word >> kNumberShift) + 1) << kNumberShift;
  HintIndexLayout::Change record{};
  record.directory = layout_.directory;
  record.first = block.first;
  record.span = block.span;
  record.lower = first | number;
  record.upper = second | number;
  record.replaced = old_word & kOffsetMask;
  record.checksum = checksum_of(record);
  layout_.change = record;
  persister.persist(&layout_.change, sizeof layout_.change, "hint_change/2");
  apply(record, persister);
  return {};
}

void HintIndex::apply(const HintIndexLayout::Change& record, pmem::Persister& persister) noexcept {
  std::uint64_t* words = words_of(record.directory) + record.first;
  for (std::size_t i = 0; i < record.span; ++i)
    store(words[i], i * 2 < record.span ? record.lower : record.upper);
  persister.persist(words, record.span * sizeof(std::uint64_t), "hint_change/3");
  Directory& directory = *directory_.load(std::memory_order_relaxed);
  for (std::size_t i = record.first; i < record.first + record.span; ++i)
    store(directory.word(i), words_of(record.directory)[i]);
  store(layout_.spare, record.replaced);
}

// Protocol hint_go_on: a full segment of entries that cannot be separated continues in another one.
//   step  store                           made durable by     power cut just after it: recovery
//   1     zeros of it, segments_used      flush, fence        it is counted, and not used
//   2     next of the last one            persist (8 bytes)   an empty segment behind it
// Must hold:  1 before 2. A transaction that puts an entry there flushes `next` with it.
Status HintIndex::go_on(Segment& segment, pmem::Persister& persister) {
  Segment* last = &segment;
  std::uint64_t hops = 0;
  while (Segment* next = next_of(*last, hops)) last = next;
  // Not the spare segment: recovery may take it for the one that the last change replaced.
  Result<std::uint64_t> fresh = take_unnamed_segment(persister);
  if (!fresh.ok()) return std::move(fresh).status();
  fill(std::span(&*fresh, 1), {});
  persister.flush(segment_at(*fresh), kSegmentBytes, "hint_go_on/1");
  persister.fence("hint_go_on/1");
  store(last->next, *fresh);
  persister.persist(&last->next, sizeof last->next, "hint_go_on/2");
  return {};
}

}  // namespace flugs::columns
