#include "columns/hash_index.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace flugs::columns {

namespace {

// Small indexes (one per column) must stay small: a first slab of 64 KB holds three segments.
// Large ones want huge pages: slabs double up to 32 MB.
constexpr std::size_t kFirstSlabBytes = std::size_t{64} << 10;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kSlabBytesMax = std::size_t{32} << 20;

// A split that would move less than one entry in 16, or all but that, is not worth a segment.
constexpr std::uint32_t kLopsided = 16;
// What `reserve` aims at: 4.2 of 7 slots, 3 % of the buckets overflow (Poisson).
constexpr double kReserveFill = 4.2;

}  // namespace

HashIndex::HashIndex() {
  directories_.push_back(std::make_unique<Directory>(0));
  directories_.back()->segments[0].store(new_segment(0), std::memory_order_relaxed);
  directory_.store(directories_.back().get(), std::memory_order_release);
}

HashIndex::~HashIndex() {
  for (const Slab& slab : slabs_) ::munmap(slab.memory, slab.bytes);
}

void* HashIndex::allocate_memory(std::size_t bytes) {
  const std::lock_guard guard(memory_lock_);
  if (slabs_.empty() || slab_used_ + bytes > slabs_.back().bytes) {
    std::size_t slab_bytes = slabs_.empty() ? kFirstSlabBytes : slabs_.back().bytes * 2;
    slab_bytes = std::max(std::min(slab_bytes, kSlabBytesMax), bytes);
    void* memory = ::mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FLUGS_CHECK(memory != MAP_FAILED);
    if (slab_bytes >= kHugePageBytes) ::madvise(memory, slab_bytes, MADV_HUGEPAGE);
    slabs_.push_back({memory, slab_bytes});
    slab_used_ = 0;
    memory_bytes_.fetch_add(slab_bytes, std::memory_order_relaxed);
  }
  void* result = static_cast<std::byte*>(slabs_.back().memory) + slab_used_;
  slab_used_ += bytes;
  return result;  // fresh from the kernel: zero
}

HashIndex::Segment* HashIndex::new_segment(std::uint32_t depth) {
  auto* segment = new (allocate_memory(sizeof(Segment))) Segment;
  segment->depth = depth;
  segments_.push_back(segment);
  return segment;
}

HashIndex::Bucket* HashIndex::new_overflow_bucket() {
  return new (allocate_memory(sizeof(Bucket))) Bucket;
}

void HashIndex::lookup(std::uint64_t hash, Candidates& out) const {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  for (;;) {
    out.clear();
    const Segment* segment = find_segment(fingerprint);
    const std::uint32_t version = segment->version.load(std::memory_order_acquire);
    // A split changes the directory before the version: seeing the new version implies that this
    // second look at the directory finds the new segment.
    if (find_segment(fingerprint) != segment) continue;
    for (const Bucket* bucket = &segment->buckets[fingerprint & kBucketMask]; bucket != nullptr;
         bucket = bucket->next.load(std::memory_order_acquire)) {
      for (const auto& slot : bucket->slots) {
        // Acquire pairs with the release in insert_slot (what the payload names is written), and
        // keeps the load before the second look at the version.
        const std::uint64_t word = slot.load(std::memory_order_acquire);
        if (matches(word, fingerprint)) out.push(payload_of(word));
      }
    }
    // Unchanged: no entry had begun to leave while we looked.
    if (segment->version.load(std::memory_order_relaxed) == version) return;
  }
}

HashIndex::Segment& HashIndex::lock_segment(std::uint32_t fingerprint) {
  for (;;) {
    Segment* segment = find_segment(fingerprint);
    segment->lock.lock();
    if (find_segment(fingerprint) == segment) return *segment;
    segment->lock.unlock();  // it was split meanwhile
  }
}

void HashIndex::insert_slot(Segment& segment, Bucket& bucket, std::uint64_t word) {
  Bucket* last = &bucket;
  for (Bucket* b = &bucket; b != nullptr; b = b->next.load(std::memory_order_relaxed)) {
    for (auto& slot : b->slots) {
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      slot.store(word, std::memory_order_release);  // pairs with lookup
      ++segment.count;
      return;
    }
    last = b;
  }
  Bucket* overflow = new_overflow_bucket();
  overflow->slots[0].store(word, std::memory_order_relaxed);
  last->next.store(overflow, std::memory_order_release);  // pairs with lookup
  ++segment.count;
}

void HashIndex::insert_locked(Segment& segment, Bucket& bucket, std::uint32_t fingerprint,
                              std::uint32_t payload) {
  FLUGS_CHECK(payload != 0xFFFFFFFFu);
  insert_slot(segment, bucket, make_slot(fingerprint, payload));
  if (segment.count >= segment.split_at && segment.depth < kDepthMax)
    segment.wants_split.store(true, std::memory_order_relaxed);
}

bool HashIndex::Editor::replace(std::uint32_t payload, std::uint32_t replacement) noexcept {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  for (Bucket* b = &bucket_; b != nullptr; b = b->next.load(std::memory_order_relaxed))
    for (auto& slot : b->slots)
      if (slot.load(std::memory_order_relaxed) == wanted) {
        slot.store(make_slot(fingerprint_, replacement), std::memory_order_release);
        return true;
      }
  return false;
}

bool HashIndex::Editor::erase(std::uint32_t payload) noexcept {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  for (Bucket* b = &bucket_; b != nullptr; b = b->next.load(std::memory_order_relaxed))
    for (auto& slot : b->slots)
      if (slot.load(std::memory_order_relaxed) == wanted) {
        slot.store(0, std::memory_order_release);
        --segment_.count;
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

std::uint32_t HashIndex::count_with_bit(const Segment& segment, std::uint32_t bit) noexcept {
  std::uint32_t count = 0;
  for (const Bucket& first : segment.buckets)
    for (const Bucket* b = &first; b != nullptr; b = b->next.load(std::memory_order_relaxed))
      for (const auto& slot : b->slots)
        count += (fingerprint_of(slot.load(std::memory_order_relaxed)) & bit) != 0 ? 1 : 0;
  return count;
}

// Splits by the next fingerprint bit: entries with the bit set move to a new segment. Readers are
// never held up: the copies are in place before the directory shows them, the directory shows them
// before the version says that the originals may go.
void HashIndex::split(Segment& segment) {
  const std::lock_guard structure(structure_mutex_);
  const std::lock_guard guard(segment.lock);
  if (!segment.wants_split.load(std::memory_order_relaxed)) return;
  segment.wants_split.store(false, std::memory_order_relaxed);

  const std::uint32_t bit = std::uint32_t{1} << (31 - segment.depth);
  const std::uint32_t moving = count_with_bit(segment, bit);
  // Many entries of few hashes do not come apart by splitting: let their buckets overflow.
  if (std::min(moving, segment.count - moving) < segment.count / kLopsided) {
    segment.split_at = segment.count * 2;
    return;
  }
  Segment* sibling = new_segment(segment.depth + 1);
  std::uint32_t prefix = 0;  // of the sibling; from any entry that moves
  for (std::size_t i = 0; i < kBuckets; ++i)
    for (Bucket* b = &segment.buckets[i]; b != nullptr; b = b->next.load(std::memory_order_relaxed))
      for (auto& slot : b->slots) {
        const std::uint64_t word = slot.load(std::memory_order_relaxed);
        if (word == 0 || (fingerprint_of(word) & bit) == 0) continue;
        insert_slot(*sibling, sibling->buckets[i], word);
        prefix = fingerprint_of(word);
      }
  if (directory_.load(std::memory_order_relaxed)->depth == segment.depth) double_directory();
  Directory& directory = *directory_.load(std::memory_order_relaxed);
  const std::size_t span = std::size_t{1} << (directory.depth - segment.depth - 1);
  const std::size_t first = directory.index_of(prefix) & ~(span - 1);
  for (std::size_t i = first; i < first + span; ++i)
    directory.segments[i].store(sibling, std::memory_order_release);
  ++segment.depth;
  segment.version.fetch_add(1, std::memory_order_release);
  for (std::size_t i = 0; i < kBuckets; ++i)
    for (Bucket* b = &segment.buckets[i]; b != nullptr; b = b->next.load(std::memory_order_relaxed))
      for (auto& slot : b->slots) {
        const std::uint64_t word = slot.load(std::memory_order_relaxed);
        if (word == 0 || (fingerprint_of(word) & bit) == 0) continue;
        slot.store(0, std::memory_order_release);
        --segment.count;
      }
}

void HashIndex::reserve(std::size_t count) {
  const std::lock_guard structure(structure_mutex_);
  FLUGS_CHECK(segments_.size() == 1 && segments_[0]->count == 0);
  std::uint32_t depth = 0;
  while (depth < kDepthMax &&
         static_cast<double>(count) > kReserveFill * kBuckets * static_cast<double>(1u << depth))
    ++depth;
  if (depth == 0) return;
  auto directory = std::make_unique<Directory>(depth);
  segments_[0]->depth = depth;
  directory->segments[0].store(segments_[0], std::memory_order_relaxed);
  for (std::size_t i = 1; i < directory->segments.size(); ++i)
    directory->segments[i].store(new_segment(depth), std::memory_order_relaxed);
  directory_.store(directory.get(), std::memory_order_release);
  directories_.push_back(std::move(directory));
}

bool HashIndex::can_partition(std::uint32_t partitions) const noexcept {
  const Directory& directory = *directory_.load(std::memory_order_acquire);
  // partition_of is the floor of fingerprint * partitions / 2^32: aligned to segments only for
  // powers of two not above the number of segments.
  return (partitions & (partitions - 1)) == 0 && directory.segments.size() >= partitions &&
         segments_.size() == directory.segments.size();
}

void HashIndex::bulk_insert(std::uint64_t hash, std::uint32_t payload) {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  Segment& segment = *find_segment(fingerprint);
  insert_slot(segment, segment.buckets[fingerprint & kBucketMask],
              make_slot(fingerprint, payload));
}

std::size_t HashIndex::size() const {
  const std::lock_guard structure(structure_mutex_);
  std::size_t total = 0;
  for (Segment* segment : segments_) {
    const std::lock_guard guard(segment->lock);
    total += segment->count;
  }
  return total;
}

}  // namespace flugs::columns
