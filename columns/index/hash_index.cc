#include "columns/index/hash_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/zeroed_memory.h"

namespace flugs::columns {

namespace {

// Small indexes (one per column) must stay small: a first slab of 64 KB holds three segments.
// Large ones want huge pages: slabs double up to 32 MB.
constexpr std::size_t kFirstSlabBytes = std::size_t{64} << 10;
constexpr std::size_t kSlabBytesMax = std::size_t{32} << 20;

// A split that would move less than one entry in 16, or more than 15 in 16, is not worth a segment.
constexpr std::uint32_t kLopsided = 16;
// The aim of `reserve`: 4.2 of 7 slots, so 3 % of the buckets overflow (Poisson).
constexpr double kReserveFill = 4.2;

// Small slabs are mapped like a StableArray. Then the kernel joins neighbouring mappings, and
// 30,000 columns do not use up the 65,530 mappings that a process may have.
void* map_slab(std::size_t bytes) {
  return bytes < kHugePageBytes ? take_zeroed(bytes) : take_huge_pages(bytes);
}

}  // namespace

HashIndex::HashIndex() {
  directories_.push_back(std::make_unique<Directory>(0));
  directories_.back()->segments[0].store(new_segment(0, 0), std::memory_order_relaxed);
  directory_.store(directories_.back().get(), std::memory_order_release);
}

HashIndex::~HashIndex() { release_memory(); }

// The directory stays, because a prefetch follows it to an address; the address need not be mapped.
void HashIndex::release_memory() noexcept {
  const std::lock_guard structure(structure_mutex_);
  const std::lock_guard guard(memory_lock_);
  const std::size_t last_touched = clear_used();
  for (const Slab& slab : slabs_) {
    if (slab.bytes >= kHugePageBytes) {
      give_back_huge_pages(slab.memory, slab.bytes);
    } else {
      const bool is_last = slab.memory == slabs_.back().memory;
      give_back_zeroed(slab.memory, slab.bytes, is_last ? last_touched : slab.bytes);
    }
  }
  slabs_.clear();
  segments_.clear();
  memory_bytes_.store(0, std::memory_order_relaxed);
}

/// How much of the last slab may be other than zero. In a small index, which is one segment and
/// nothing else, few lines are; those are cleared here.
std::size_t HashIndex::clear_used() noexcept {
  if (segments_.size() != 1 || slab_used_ != sizeof(Segment)) return slab_used_;
  Segment& segment = *segments_[0];
  segment.for_each_used([&](std::size_t bucket) {
    std::memset(static_cast<void*>(&segment.buckets[bucket]), 0, sizeof(Bucket));
  });
  std::memset(static_cast<void*>(&segment), 0, offsetof(Segment, buckets));
  return 0;
}

void* HashIndex::allocate_memory(std::size_t bytes) {
  FLUGS_DCHECK(bytes % alignof(Bucket) == 0);
  const std::lock_guard guard(memory_lock_);
  if (slabs_.empty() || slab_used_ + bytes > slabs_.back().bytes) {
    std::size_t slab_bytes = slabs_.empty() ? kFirstSlabBytes : slabs_.back().bytes * 2;
    slab_bytes = std::max(std::min(slab_bytes, kSlabBytesMax), bytes);
    void* memory = map_slab(slab_bytes);
    slabs_.push_back({memory, slab_bytes});
    slab_used_ = 0;
    memory_bytes_.fetch_add(slab_bytes, std::memory_order_relaxed);
  }
  void* result = static_cast<std::byte*>(slabs_.back().memory) + slab_used_;
  slab_used_ += bytes;
  return result;  // fresh from the kernel: zero
}

HashIndex::Segment* HashIndex::new_segment(std::uint32_t depth, std::uint32_t prefix) {
  // Fresh memory is zero, which is an empty segment; constructing it would write all of it again.
  auto* segment = static_cast<Segment*>(allocate_memory(sizeof(Segment)));
  FLUGS_CHECK(depth <= kDepthMax);
  FLUGS_DCHECK((std::uint64_t{prefix} << depth & 0xFFFFFFFFu) == 0);  // only its upper bits
  segment->split_at.store(kSplitAtOverflows, std::memory_order_relaxed);
  segment->depth = depth;
  segment->prefix = prefix;
  segments_.push_back(segment);
  return segment;
}

HashIndex::Bucket* HashIndex::new_overflow_bucket() {
  return static_cast<Bucket*>(allocate_memory(sizeof(Bucket)));
}

void HashIndex::lookup(std::uint64_t hash, Candidates& out) const {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  for (;;) {
    out.clear();
    const Segment* segment = find_segment(fingerprint);
    const Bucket& first = segment->buckets[fingerprint & kBucketMask];
    note_read(SharedWord::kKeyBucket, &first);
    const std::uintptr_t link = first.link.load(std::memory_order_acquire);
    // A split changes the directory before the version: seeing the new version implies that this
    // second look at the directory finds the new segment.
    if (find_segment(fingerprint) != segment) continue;
    const Bucket* bucket = &first;
    Bucket* overflow = Bucket::overflow_in(link);
    for (;;) {
      for (const auto& slot : bucket->slots) {
        // Acquire pairs with the release in insert_slot (the data that the payload names is
        // written), and keeps the load before the second look at the version.
        const std::uint64_t word = slot.load(std::memory_order_acquire);
        if (matches(word, fingerprint)) out.push(payload_of(word));
      }
      if (overflow == nullptr) break;
      bucket = overflow;
      note_read(SharedWord::kKeyBucket, bucket);
      overflow = bucket->overflow();
    }
    // Unchanged: no entry had begun to leave while we looked. (An overflow bucket added meanwhile
    // holds entries inserted meanwhile.)
    if (first.link.load(std::memory_order_relaxed) >> Bucket::kVersionShift ==
        link >> Bucket::kVersionShift)
      return;
  }
}

HashIndex::Segment& HashIndex::lock_bucket(std::uint32_t fingerprint) {
  for (;;) {
    Segment* segment = find_segment(fingerprint);
    Bucket& bucket = segment->buckets[fingerprint & kBucketMask];
    bucket.lock();
    if (find_segment(fingerprint) == segment) return *segment;
    bucket.unlock();  // it was split meanwhile
  }
}

void HashIndex::insert_slot(Segment& segment, Bucket& bucket, std::uint64_t word) {
  segment.note_used(static_cast<std::size_t>(&bucket - segment.buckets.data()));
  Bucket* last = &bucket;
  for (Bucket* b = &bucket; b != nullptr; b = b->overflow()) {
    for (auto& slot : b->slots) {
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      slot.store(word, std::memory_order_release);  // pairs with lookup
      return;
    }
    last = b;
  }
  Bucket* overflow = new_overflow_bucket();
  overflow->slots[0].store(word, std::memory_order_relaxed);
  last->set_overflow(overflow);
  segment.overflows.fetch_add(1, std::memory_order_relaxed);
}

void HashIndex::insert_locked(Segment& segment, Bucket& bucket, std::uint32_t fingerprint,
                              std::uint32_t payload) {
  FLUGS_CHECK(payload != 0xFFFFFFFFu);
  insert_slot(segment, bucket, make_slot(fingerprint, payload));
  if (segment.overflows.load(std::memory_order_relaxed) >=
      segment.split_at.load(std::memory_order_relaxed))
    segment.wants_split.store(true, std::memory_order_relaxed);
}

bool HashIndex::Editor::replace(std::uint32_t payload, std::uint32_t replacement) noexcept {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  for (Bucket* b = &bucket_; b != nullptr; b = b->overflow())
    for (auto& slot : b->slots)
      if (slot.load(std::memory_order_relaxed) == wanted) {
        slot.store(make_slot(fingerprint_, replacement), std::memory_order_release);
        return true;
      }
  return false;
}

bool HashIndex::Editor::erase(std::uint32_t payload) noexcept {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  for (Bucket* b = &bucket_; b != nullptr; b = b->overflow())
    for (auto& slot : b->slots)
      if (slot.load(std::memory_order_relaxed) == wanted) {
        slot.store(0, std::memory_order_release);
        return true;
      }
  return false;
}

void HashIndex::double_directory() {
  const Directory& old = *directory_.load(std::memory_order_relaxed);
  auto doubled = std::make_unique<Directory>(old.depth + 1);
  for (std::size_t i = 0; i < old.segments.size(); ++i) {
    Segment* segment = old.segments[i].load(std::memory_order_relaxed);
    doubled->segments[2 * i].store(segment, std::memory_order_relaxed);
    doubled->segments[2 * i + 1].store(segment, std::memory_order_relaxed);
  }
  directory_.store(doubled.get(), std::memory_order_release);
  directories_.push_back(std::move(doubled));
}

std::uint32_t HashIndex::count_with_bits(const Segment& segment, std::uint32_t bits) noexcept {
  std::uint32_t count = 0;
  for (const Bucket& first : segment.buckets)
    for (const Bucket* b = &first; b != nullptr; b = b->overflow())
      for (const auto& slot : b->slots) {
        const std::uint64_t word = slot.load(std::memory_order_relaxed);
        count += word != 0 && (fingerprint_of(word) & bits) == bits ? 1 : 0;
      }
  return count;
}

// Splits by the next fingerprint bit: entries with the bit set move to a new segment. Readers never
// wait: the copies are in place before the directory shows them, and the directory shows them
// before the version says that the originals may go. Writers to this segment wait.
void HashIndex::split(Segment& segment) {
  const std::lock_guard structure(structure_mutex_);
  if (!segment.wants_split.exchange(false, std::memory_order_relaxed)) return;
  for (Bucket& bucket : segment.buckets) bucket.lock();
  const std::uint32_t bit = std::uint32_t{1} << (31 - segment.depth);
  const std::uint32_t count = count_with_bits(segment, 0);
  const std::uint32_t moving = count_with_bits(segment, bit);
  if (segment.depth >= kDepthMax || std::min(moving, count - moving) < count / kLopsided) {
    // Splitting does not separate many entries of few hashes: let their buckets overflow.
    segment.split_at.store(segment.overflows.load(std::memory_order_relaxed) * 2,
                           std::memory_order_relaxed);
  } else {
    spread(segment, 1);
  }
  for (Bucket& bucket : segment.buckets) bucket.unlock();
}

// Moves entries to new segments by the next `bits` bits of their fingerprints; entries without any
// of these bits stay. All buckets are locked.
void HashIndex::spread(Segment& segment, std::uint32_t bits) {
  FLUGS_CHECK(bits >= 1 && bits <= kSpreadBits);
  const std::uint32_t depth = segment.depth + bits;
  const std::size_t parts = std::size_t{1} << bits;
  const auto part_of = [&](std::uint64_t word) {
    return (fingerprint_of(word) >> (32 - depth)) & (parts - 1);
  };
  const auto for_each_moving = [&](auto&& visit) {
    segment.for_each_used([&](std::size_t i) {
      for (Bucket* b = &segment.buckets[i]; b != nullptr; b = b->overflow())
        for (auto& slot : b->slots)
          if (const std::uint64_t word = slot.load(std::memory_order_relaxed);
              word != 0 && part_of(word) != 0)
            visit(i, slot, word);
    });
  };
  std::array<Segment*, std::size_t{1} << kSpreadBits> siblings;
  for (std::size_t part = 1; part < parts; ++part)
    siblings[part] =
        new_segment(depth, segment.prefix | static_cast<std::uint32_t>(part << (32 - depth)));
  for_each_moving([&](std::size_t i, auto&, std::uint64_t word) {
    Segment& sibling = *siblings[part_of(word)];
    insert_slot(sibling, sibling.buckets[i], word);
  });
  while (directory_.load(std::memory_order_relaxed)->depth < depth) double_directory();
  Directory& directory = *directory_.load(std::memory_order_relaxed);
  FLUGS_DCHECK(directory.depth >= depth);
  const std::size_t span = std::size_t{1} << (directory.depth - depth);
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t first = directory.index_of(siblings[part]->prefix);
    for (std::size_t i = first; i < first + span; ++i)
      directory.segments[i].store(siblings[part], std::memory_order_release);
  }
  segment.depth = depth;
  segment.overflows.store(0, std::memory_order_relaxed);
  segment.wants_split.store(false, std::memory_order_relaxed);
  for (Bucket& bucket : segment.buckets) bucket.next_version();
  for_each_moving(
      [&](std::size_t, auto& slot, std::uint64_t) { slot.store(0, std::memory_order_release); });
}

std::uint32_t HashIndex::depth_for(std::size_t count) noexcept {
  std::uint32_t depth = 0;
  while (depth<kDepthMax&& static_cast<double>(count)> kReserveFill * kBuckets *
         static_cast<double>(1u << depth))
    ++depth;
  return depth;
}

// Segment by segment, so that no thread waits long.
void HashIndex::make_room(std::size_t count) {
  const std::uint32_t depth = depth_for(count);
  for (std::uint64_t i = 0; i < std::uint64_t{1} << depth; ++i) {
    const auto fingerprint = static_cast<std::uint32_t>(i << (32 - depth));
    for (;;) {
      const std::lock_guard structure(structure_mutex_);
      Segment& segment = *find_segment(fingerprint);
      if (segment.depth >= depth) break;
      for (Bucket& bucket : segment.buckets) bucket.lock();
      spread(segment, std::min(depth - segment.depth, kSpreadBits));
      for (Bucket& bucket : segment.buckets) bucket.unlock();
    }
  }
}

void HashIndex::reserve(std::size_t count) {
  const std::lock_guard structure(structure_mutex_);
  const std::uint32_t depth = depth_for(count);
  if (depth == 0) return;
  FLUGS_CHECK(segments_.size() == 1 && count_with_bits(*segments_[0], 0) == 0);
  auto directory = std::make_unique<Directory>(depth);
  segments_[0]->depth = depth;
  directory->segments[0].store(segments_[0], std::memory_order_relaxed);
  for (std::size_t i = 1; i < directory->segments.size(); ++i)
    directory->segments[i].store(new_segment(depth, static_cast<std::uint32_t>(i << (32 - depth))),
                                 std::memory_order_relaxed);
  directory_.store(directory.get(), std::memory_order_release);
  directories_.push_back(std::move(directory));
}

void HashIndex::bulk_insert(std::uint64_t entry) {
  const std::uint32_t fingerprint = fingerprint_of(entry);
  Segment& segment = *find_segment(fingerprint);
  insert_slot(segment, segment.buckets[fingerprint & kBucketMask], entry);
}

std::size_t HashIndex::size() const {
  const std::lock_guard structure(structure_mutex_);
  std::size_t total = 0;
  for (const Segment* segment : segments_)
    segment->for_each_used([&](std::size_t bucket) {
      for (const Bucket* b = &segment->buckets[bucket]; b != nullptr; b = b->overflow())
        for (const auto& slot : b->slots)
          total += slot.load(std::memory_order_relaxed) != 0 ? 1 : 0;
    });
  return total;
}

}  // namespace flugs::columns
