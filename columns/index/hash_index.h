#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"

namespace flugs::columns {

/// The result of a look-up: payloads whose fingerprint fits. The caller verifies each against the
/// truth (the dictionary, the row).
class Candidates {
 public:
  void clear() noexcept { count_ = 0; }
  void push(std::uint32_t payload) {
    if (count_ < inline_.size()) {
      inline_[count_++] = payload;
      return;
    }
    if (count_ == inline_.size()) spill_.assign(inline_.begin(), inline_.end());
    spill_.push_back(payload);
    ++count_;
  }
  /// Removes the payloads for which `keep` is false.
  template <typename F>
  void keep_if(F&& keep) {
    std::uint32_t* all = count_ <= inline_.size() ? inline_.data() : spill_.data();
    const std::size_t kept = static_cast<std::size_t>(
        std::remove_if(all, all + count_, [&](std::uint32_t payload) { return !keep(payload); }) -
        all);
    // Their number tells where they are.
    if (count_ > inline_.size()) spill_.resize(kept);
    if (count_ > inline_.size() && kept <= inline_.size())
      std::copy(spill_.begin(), spill_.end(), inline_.begin());
    count_ = kept;
  }
  std::span<const std::uint32_t> view() const noexcept {
    return count_ <= inline_.size() ? std::span<const std::uint32_t>(inline_.data(), count_)
                                    : std::span<const std::uint32_t>(spill_);
  }

 private:
  std::size_t count_ = 0;
  std::array<std::uint32_t, 14> inline_;  // two buckets
  std::vector<std::uint32_t> spill_;
};

/// A DRAM multimap from 64-bit hashes to 32-bit payloads: extendible hashing over segments of
/// 256 one-line buckets. A look-up costs one cache miss and takes no lock; writers lock one
/// bucket, by a bit in its line; growing splits one segment at a time, and only writers to that
/// segment wait for it.
///
/// Layout, in one place:
///   slot    8 bytes = fingerprint (hash bits 32..63) in the upper half, payload + 1 in the lower;
///           0 is empty
///   bucket  64 bytes = 7 slots and a link: address of an overflow bucket (bits 1..47), bit 0 the
///           lock, bits 48..63 the version
///   segment fingerprint bits 0..7 choose the bucket; the segment holds the fingerprints that
///           share their upper `depth` bits
///   directory  2^depth segment pointers, indexed by the upper bits of the fingerprint
///
/// Payloads up to 2^32 - 2. Thread-safety: look-ups and edits from any thread; bulk functions as
/// they say.
class HashIndex {
  struct Bucket;
  struct Segment;

 public:
  HashIndex();
  ~HashIndex();
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  /// Replaces `out` by the candidates for `hash`. Finds every entry inserted before.
  void lookup(std::uint64_t hash, Candidates& out) const;

  /// Starts loading the cache line that `lookup(hash)` will read.
  void prefetch(std::uint64_t hash) const noexcept {
    const std::uint32_t fingerprint = fingerprint_of(hash);
    const Segment* segment = find_segment(fingerprint);
    __builtin_prefetch(&segment->buckets[fingerprint & kBucketMask]);
  }
  /// The same for `edit(hash)`.
  void prefetch_for_edit(std::uint64_t hash) noexcept {
    const std::uint32_t fingerprint = fingerprint_of(hash);
    __builtin_prefetch(&find_segment(fingerprint)->buckets[fingerprint & kBucketMask], 1);
  }

  /// The entries of one hash while its bucket is locked against other writers.
  class Editor {
   public:
    /// Calls visit(payload) for each candidate until it returns true; true if one did.
    template <typename F>
    bool any(F&& visit) const {
      for (const Bucket* b = &bucket_; b != nullptr; b = b->overflow())
        for (const auto& slot : b->slots) {
          const std::uint64_t word = slot.load(std::memory_order_relaxed);
          if (matches(word, fingerprint_) && visit(payload_of(word))) return true;
        }
      return false;
    }
    void insert(std::uint32_t payload) {
      inserted_ = true;
      index_.insert_locked(segment_, bucket_, fingerprint_, payload);
    }
    /// Both return false when there is no entry with `payload`.
    bool replace(std::uint32_t payload, std::uint32_t replacement) noexcept;
    bool erase(std::uint32_t payload) noexcept;

   private:
    friend class HashIndex;
    Editor(HashIndex& index, Segment& segment, std::uint32_t fingerprint) noexcept
        : index_(index),
          segment_(segment),
          bucket_(segment.buckets[fingerprint & kBucketMask]),
          fingerprint_(fingerprint) {}
    HashIndex& index_;
    Segment& segment_;
    Bucket& bucket_;
    std::uint32_t fingerprint_;
    bool inserted_ = false;
  };

  /// Calls edit(Editor&) with the bucket of `hash` locked, and returns what it returns. `edit`
  /// must not call the same index again and should be short.
  template <typename F>
  auto edit(std::uint64_t hash, F&& edit_function) {
    const std::uint32_t fingerprint = fingerprint_of(hash);
    Segment& segment = lock_bucket(fingerprint);
    struct Unlock {
      HashIndex& index;
      Segment& segment;
      Bucket& bucket;
      bool may_split = false;
      ~Unlock() {
        bucket.unlock();
        if (may_split && segment.wants_split.load(std::memory_order_relaxed)) index.split(segment);
      }
    } unlock{*this, segment, segment.buckets[fingerprint & kBucketMask]};
    Editor editor(*this, segment, fingerprint);
    // Only an insert reads the segment's header, which is another cache line.
    struct NoteInsert {
      Unlock& unlock;
      Editor& editor;
      ~NoteInsert() { unlock.may_split = editor.inserted_; }
    } note{unlock, editor};
    return edit_function(editor);
  }

  /// Makes room for `count` entries at once. The index must be empty and unused by other threads.
  void reserve(std::size_t count);
  /// The same for an index in use by any number of threads.
  void make_room(std::size_t count);
  /// For a rebuild after `reserve` (HashIndexBuilder): an entry in its final form, and its
  /// insertion without a lock. Threads must work on disjoint sets of segments.
  static std::uint64_t make_entry(std::uint64_t hash, std::uint32_t payload) noexcept {
    return make_slot(fingerprint_of(hash), payload);
  }
  void bulk_insert(std::uint64_t entry);
  /// The part of an entry's hash that `edit` needs, and its payload.
  static std::uint64_t hash_in(std::uint64_t entry) noexcept { return entry >> 32 << 32; }
  static std::uint32_t payload_in(std::uint64_t entry) noexcept { return payload_of(entry); }
  /// A power of two.
  std::size_t segment_count() const noexcept {
    return directory_.load(std::memory_order_acquire)->segments.size();
  }

  /// Calls visit(payload) for every entry; no thread may write meanwhile.
  template <typename F>
  void for_each(F&& visit) const {
    for (const Segment* segment : segments_)
      segment->for_each_used([&](std::size_t bucket) {
        for (const Bucket* b = &segment->buckets[bucket]; b != nullptr; b = b->overflow())
          for (const auto& slot : b->slots)
            if (const std::uint64_t word = slot.load(std::memory_order_relaxed); word != 0)
              visit(payload_of(word));
      });
  }

  /// Gives the memory back, for good: from then on the index may only be prefetched and destroyed.
  /// Thread-safety: no other thread uses the index, except for prefetching.
  void release_memory() noexcept;

  /// Number of entries; exact when no thread writes.
  std::size_t size() const;
  std::size_t memory_bytes() const noexcept {
    return memory_bytes_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kBuckets = 256;
  static constexpr std::uint32_t kBucketMask = kBuckets - 1;
  static constexpr std::size_t kSlots = 7;
  // One bucket in ten overflows when buckets hold 4.7 entries on average (Poisson).
  static constexpr std::uint32_t kSplitAtOverflows = kBuckets / 10;
  static constexpr std::uint32_t kDepthMax = 24;   // 32 fingerprint bits less 8 that choose buckets
  static constexpr std::uint32_t kSpreadBits = 4;  // split in one step: 16 segments from one
  static_assert((std::uint64_t{kBuckets} << kDepthMax) == (std::uint64_t{1} << 32));

  struct alignas(64) Bucket {
    std::array<std::atomic<std::uint64_t>, kSlots> slots;
    std::atomic<std::uintptr_t> link;

    // Lock and version are used in the links of a segment's own buckets. The version grows when a
    // split has moved entries away; it is in the bucket so that a look-up needs no other line. It
    // wraps only after 2^16 splits of one segment; there are at most kDepthMax.
    static constexpr std::uintptr_t kLocked = 1;
    static constexpr int kVersionShift = 48;
    static constexpr std::uintptr_t kAddress =
        ((std::uintptr_t{1} << kVersionShift) - 1) & ~kLocked;

    static Bucket* overflow_in(std::uintptr_t link_word) noexcept {
      return reinterpret_cast<Bucket*>(link_word & kAddress);
    }
    Bucket* overflow() const noexcept { return overflow_in(link.load(std::memory_order_acquire)); }
    void set_overflow(Bucket* bucket) noexcept {
      FLUGS_DCHECK((reinterpret_cast<std::uintptr_t>(bucket) & ~kAddress) == 0);
      const std::uintptr_t rest = link.load(std::memory_order_relaxed) & ~kAddress;
      link.store(reinterpret_cast<std::uintptr_t>(bucket) | rest, std::memory_order_release);
    }
    void next_version() noexcept {
      FLUGS_DCHECK((link.load(std::memory_order_relaxed) & kLocked) != 0);
      link.store(link.load(std::memory_order_relaxed) + (std::uintptr_t{1} << kVersionShift),
                 std::memory_order_release);
    }
    void lock() noexcept {
      note_write(SharedWord::kKeyBucket, this);
      SpinWait wait;
      for (;;) {
        std::uintptr_t seen = link.load(std::memory_order_relaxed);
        if ((seen & kLocked) == 0 &&
            link.compare_exchange_weak(seen, seen | kLocked, std::memory_order_acquire))
          return;
        wait.once();
      }
    }
    void unlock() noexcept {
      FLUGS_DCHECK((link.load(std::memory_order_relaxed) & kLocked) != 0);
      link.store(link.load(std::memory_order_relaxed) & ~kLocked, std::memory_order_release);
    }
  };
  static_assert(sizeof(Bucket) == 64);

  struct alignas(64) Segment {
    // A bucket's lock protects its slots and overflow buckets; all of them together protect the
    // segment's place in the directory. Rank: innermost, in ascending order of buckets.
    std::atomic<std::uint32_t> overflows{0};  // overflow buckets made since the last split
    std::atomic<std::uint32_t> split_at{kSplitAtOverflows};
    std::uint32_t depth = 0;   // upper fingerprint bits that its entries share
    std::uint32_t prefix = 0;  // those bits, all others 0
    std::atomic<bool> wants_split{false};
    // Per bucket: whether it ever got an entry. A walk over all entries of a small index need not
    // read 16 KB. A bucket's first insert writes to this line, later ones do not.
    std::array<std::atomic<std::uint64_t>, kBuckets / 64> used{};
    std::array<Bucket, kBuckets> buckets;

    void note_used(std::size_t bucket) noexcept {
      FLUGS_DCHECK(bucket < kBuckets);
      std::atomic<std::uint64_t>& word = used[bucket / 64];
      const std::uint64_t bit = std::uint64_t{1} << (bucket % 64);
      if ((word.load(std::memory_order_relaxed) & bit) == 0)
        word.fetch_or(bit, std::memory_order_relaxed);
    }
    template <typename F>
    void for_each_used(F&& visit) const {
      for (std::size_t i = 0; i < used.size(); ++i)
        for (std::uint64_t left = used[i].load(std::memory_order_relaxed); left != 0;
             left &= left - 1)
          visit(i * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }
  };
  static_assert(offsetof(Segment, buckets) == 64);

  struct Directory {
    explicit Directory(std::uint32_t directory_depth)
        : depth(directory_depth), segments(std::size_t{1} << directory_depth) {}
    std::uint32_t depth;
    std::vector<std::atomic<Segment*>> segments;
    std::size_t index_of(std::uint32_t fingerprint) const noexcept {
      return static_cast<std::size_t>(std::uint64_t{fingerprint} >> (32 - depth));
    }
  };

  static std::uint32_t fingerprint_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32);
  }
  static bool matches(std::uint64_t word, std::uint32_t fingerprint) noexcept {
    return (word >> 32) == fingerprint && word != 0;
  }
  static std::uint32_t payload_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word) - 1;
  }
  static std::uint64_t make_slot(std::uint32_t fingerprint, std::uint32_t payload) noexcept {
    FLUGS_DCHECK(payload != 0xFFFFFFFFu);
    return (std::uint64_t{fingerprint} << 32) | (payload + 1);
  }

  Segment* find_segment(std::uint32_t fingerprint) const noexcept {
    const Directory* directory = directory_.load(std::memory_order_acquire);
    return directory->segments[directory->index_of(fingerprint)].load(std::memory_order_acquire);
  }
  Segment& lock_bucket(std::uint32_t fingerprint);
  void insert_locked(Segment& segment, Bucket& bucket, std::uint32_t fingerprint,
                     std::uint32_t payload);
  void insert_slot(Segment& segment, Bucket& bucket, std::uint64_t word);
  void split(Segment& segment);
  void spread(Segment& segment, std::uint32_t bits);
  static std::uint32_t depth_for(std::size_t count) noexcept;
  static std::uint32_t count_with_bits(const Segment& segment, std::uint32_t bits) noexcept;
  void double_directory();
  Segment* new_segment(std::uint32_t depth, std::uint32_t prefix);
  Bucket* new_overflow_bucket();
  void* allocate_memory(std::size_t bytes);
  std::size_t clear_used() noexcept;

  std::atomic<Directory*> directory_;
  // Protects directory changes, segments_ and depths; rank: before a bucket's lock.
  mutable Mutex structure_mutex_;
  std::vector<std::unique_ptr<Directory>> directories_;  // old ones too: readers may still use them
  std::vector<Segment*> segments_;
  SpinLock memory_lock_;  // protects the slab below; rank: after a bucket's lock
  struct Slab {
    void* memory;
    std::size_t bytes;
  };
  std::vector<Slab> slabs_;
  std::size_t slab_used_ = 0;
  std::atomic<std::size_t> memory_bytes_{0};
};

}  // namespace flugs::columns
