#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"
#include "base/zeroed_memory.h"
#include "columns/cells/chunk_geometry.h"
#include "columns/cells/unflushed.h"
#include "columns/index/hash_index.h"
#include "columns/index/hint_index_layout.h"
#include "columns/index/hint_line.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

/// A multimap in the pool from 64-bit hashes to 32-bit payloads, for entries that must be found at
/// once after a restart, at any size: the only part that opening reads and that grows is the list
/// of slabs. The directory has a word per some 300 entries. It is copied to DRAM and checked as it
/// is used.
///
/// Its entries are hints: the caller must verify each against the truth (a dictionary entry, a
/// row). A crash may leave entries that were never committed, and their payloads may be given to
/// something else after that. An entry that must be found is durable with the commit that needs it:
/// the inserting transaction flushes the lines that `insert` or `flush` name together with
/// everything else, without a fence of its own.
///
/// Extendible hashing over segments of 4 KB. Within a segment, the fingerprint chooses an entry's
/// home line; the entry is in this line or, as long as lines are full, behind it. A full line never
/// has an unused slot again. So a look-up ends at the first line that has one, and a transaction
/// that puts an entry behind full lines makes these lines durable, too.
///
/// Thread-safety: look-ups and erasing from any thread take no lock; adding takes the lock of a
/// segment. load and recover: no other thread.
class HintIndex {
 public:
  HintIndex(pmem::Pool& pool, HintIndexLayout& layout, std::string owner);

  /// Opening: claims its extents in the pool; fails with kCorrupt. The words of the directory are
  /// checked later.
  Status load();
  /// If false, the index allows no look-ups and no inserts; an audit goes on without it.
  bool is_loaded() const noexcept { return is_loaded_; }
  /// Reads the words that have not been used yet. Fails as damage().
  Status check_directory();
  /// Whether check_directory takes more than a moment.
  bool has_much_to_check() const noexcept;
  /// kCorrupt after a word of the directory was read that leads to no segment of this index. At
  /// that word no entry is found or added, and no segment is split any more.
  Status damage() const;
  /// Opening, after claims are finished: completes an interrupted change.
  void recover(pmem::Persister& persister);

  /// Replaces `out` by the candidates for `hash`. Finds every entry inserted before. False: they
  /// could not be looked up, because of damage().
  bool lookup(std::uint64_t hash, Candidates& out) const;
  /// Starts loading what `lookup(hash)` will read first.
  void prefetch(std::uint64_t hash) const noexcept;
  /// The same for an Editor, including the line of the lock, which another thread may have had
  /// last.
  void prefetch_for_edit(std::uint64_t hash) noexcept;
  /// The same for `erase`.
  void prefetch_for_erase(std::uint64_t hash) const noexcept;

  /// Whether an entry found a slot, and whether another one would find one near its home.
  enum class Room : std::uint8_t { kEnough, kLittle, kNone };

  /// The entries of one hash, while no other thread changes those of its segment. Short-lived; one
  /// at a time per index and thread, and none during make_room.
  class Editor {
   public:
    Editor(HintIndex& index, std::uint64_t hash) noexcept;
    ~Editor() { lock_->unlock(); }
    Editor(const Editor&) = delete;
    Editor& operator=(const Editor&) = delete;

    /// Calls visit(payload) for each candidate until it returns true; true if one did. If none did,
    /// sets `free` to the slot for another entry; null: no slot is free. The slot is valid until
    /// something is added.
    template <typename F>
    bool any(F&& visit, std::uint64_t*& free) const;
    /// Adds an absent entry to a slot from `any`. Nothing may rely on the entry before its lines
    /// are flushed.
    Room insert_at(std::uint64_t* free, std::uint32_t payload) {
      FLUGS_DCHECK(free != nullptr && !is_live(load(*free)));
      return put(free, true, make_slot(fingerprint_, payload), nullptr);
    }
    /// Adds an entry unless it exists. `unflushed`, if not null, takes all that must be flushed
    /// before anything relies on the entry. kNone: it was not added.
    Room insert(std::uint32_t payload, Unflushed* unflushed);
    /// The same, unless refuses(payload) is true for another entry of this hash: then sets
    /// `refused` and changes nothing.
    template <typename F>
    Room insert_unless(F&& refuses, std::uint32_t payload, Unflushed& unflushed, bool& refused);
    /// Adds `successor` next to `payload`. It replaces a second entry with `payload` (see
    /// take_back), or another entry of this hash for which is_obsolete(payload) is true; otherwise
    /// it is added as by `insert`. `found`: whether `payload` exists; if not, nothing changes.
    template <typename F>
    Room succeed(std::uint32_t payload, std::uint32_t successor, F&& is_obsolete,
                 Unflushed& unflushed, bool& found);
    /// Undoes that `successor` was added next to `payload`: its slot gets another entry with
    /// `payload`. The slot may have held an obsolete entry, and a look-up that began before
    /// `payload` existed may find its entry there and nowhere else.
    void take_back(std::uint32_t payload, std::uint32_t successor) noexcept;

   private:
    friend class HintIndex;
    /// `is_new`: the slot was free.
    Room put(std::uint64_t* slot, bool is_new, std::uint64_t value, Unflushed* unflushed);

    HintIndex& index_;
    std::uint32_t fingerprint_;
    SpinLock* lock_;
    std::uint64_t word_;  // of the directory
  };

  /// Calls edit_function(Editor&), which returns a Room. While that is kNone, makes more room and
  /// calls it again. New room is durable on return. Fails with kOutOfSpace.
  template <typename F>
  Status edit(std::uint64_t hash, pmem::Persister& persister, F&& edit_function);

  /// Removes all entries of the hash with `payload`, without a lock; false when there is none. No
  /// other thread may add one meanwhile. The removal need not become durable: the entry may come
  /// back.
  bool erase(std::uint64_t hash, std::uint32_t payload) noexcept;

  /// Flushes all that must be durable for the entry to be found; nothing if the entry is absent.
  void flush(std::uint64_t hash, std::uint32_t payload, pmem::Persister& persister,
             pmem::Label label) const noexcept;

  /// Calls visit(fingerprint, payload) for every entry. Thread-safety: no thread writes meanwhile.
  void for_each(FunctionRef<void(std::uint32_t fingerprint, std::uint32_t payload)> visit) const;
  static std::uint32_t fingerprint_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32);
  }

  HintIndexLayout& layout() noexcept { return layout_; }
  std::uint64_t bytes_in_pool() const noexcept {
    return bytes_in_pool_.load(std::memory_order_relaxed);
  }
  /// The table was dropped: gives all extents back.
  void release_all();
  /// Opening: adds the pages that look-ups read.
  void add_pages(pmem::WarmList& pages) const;

 private:
  using Segment = HintSegmentLayout;
  struct alignas(64) Lock : SpinLock {};  // free when all of it is zero
  static constexpr std::uint64_t kSegmentBytes = sizeof(Segment);
  /// 16 per processor, so two threads that write to different segments seldom need the same lock.
  static std::size_t lock_count() noexcept;
  // An entry this many lines from home asks for more room.
  static constexpr std::uint32_t kLinesFar = 4;
  // Longer chains of segments are not rewritten each time that one of their segments wants room.
  static constexpr std::size_t kChainMax = 16;
  static constexpr unsigned kSlabMapShift = 21;
  static constexpr std::uint64_t kNoWord = ~std::uint64_t{0};
  static constexpr unsigned kDepthMax = 24;
  static constexpr std::uint64_t kDepthMask = 63;
  static_assert(kDepthMax <= kDepthMask);
  static constexpr int kNumberShift = 48;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kNumberShift) - 1;
  // Slabs: 4 KB, then doubling, up to 2 MB.
  static constexpr ChunkGeometry kSlabs{0, 9};
  static_assert((kSegmentBytes << kSlabs.largest_log2) == (std::uint64_t{1} << kSlabMapShift));

  /// The copy that look-ups use: the words of the pool's directory, once these are durable. 0: the
  /// word was not read since opening. A directory made after opening has all words.
  class Directory {
   public:
    explicit Directory(unsigned log2_words);
    ~Directory();
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    unsigned depth() const noexcept { return depth_; }
    std::size_t count() const noexcept { return std::size_t{1} << depth_; }
    std::uint64_t& word(std::size_t index) const noexcept {
      FLUGS_DCHECK(index < count());
      return words_[index];
    }
    std::size_t index_of(std::uint32_t fingerprint) const noexcept {
      return static_cast<std::size_t>((std::uint64_t{fingerprint} << depth_) >> 32);
    }

    /// Small pages while single words are read; huge pages only when all are.
    void begin_reading() noexcept {
      if (is_large()) touch_small_pages(words_, bytes());
    }
    void end_reading() const noexcept {
      if (is_large()) join_pages(words_, bytes());
    }

   private:
    std::size_t bytes() const noexcept { return count() * sizeof(std::uint64_t); }
    bool is_large() const noexcept { return bytes() >= kHugePageBytes / 4; }
    unsigned depth_;
    std::uint64_t* words_;  // through load and store
  };

  // HintIndexLayout::directory.
  static unsigned depth_of(std::uint64_t directory) noexcept {
    return static_cast<unsigned>(directory & kDepthMask);
  }
  std::uint64_t* words_of(std::uint64_t directory) const noexcept {
    return reinterpret_cast<std::uint64_t*>(base_ + (directory & ~kDepthMask));
  }
  static std::uint64_t load(const std::uint64_t& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }
  static void store(std::uint64_t& word, std::uint64_t value) noexcept {
    note_write(SharedWord::kHintLine, &word);
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  }
  /// Removes `wanted`, unless the slot holds something else by now. The slot does not become
  /// unused: whether its line was never full is certain only while no thread writes to it.
  static bool empty(std::uint64_t& slot, std::uint64_t wanted) noexcept {
    note_write(SharedWord::kHintLine, &slot);
    return __atomic_compare_exchange_n(&slot, &wanted, Segment::kEmptied, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
  }
  static bool is_live(std::uint64_t slot) noexcept { return static_cast<std::uint32_t>(slot) != 0; }
  static std::uint64_t make_slot(std::uint32_t fingerprint, std::uint32_t payload) noexcept {
    FLUGS_DCHECK(payload != 0xFFFFFFFFu);
    return (std::uint64_t{fingerprint} << 32) | (payload + 1u);
  }
  static std::uint32_t payload_of(std::uint64_t slot) noexcept {
    FLUGS_DCHECK(is_live(slot));
    return static_cast<std::uint32_t>(slot) - 1;
  }
  static std::uint32_t home_of(std::uint32_t fingerprint) noexcept {
    return static_cast<std::uint32_t>(
        (std::uint64_t{fingerprint * 0x9e3779b1u} * Segment::kLines) >> 32);
  }
  Lock& lock_of(std::uint64_t word) noexcept {
    return locks_[(word & kOffsetMask) / kSegmentBytes & lock_mask_];
  }
  Segment* segment_at(std::uint64_t word) const noexcept {
    return reinterpret_cast<Segment*>(base_ + (word & kOffsetMask));
  }
  /// The segment that continues a full one. Null: none, or bytes of the pool that name no segment
  /// of this index. `hops` counts the steps of a walk, from 0: a chain longer than the index has
  /// segments ends.
  Segment* next_of(const Segment& segment, std::uint64_t& hops) const noexcept;

  static pmem::Extent directory_extent(std::uint64_t directory) noexcept {
    return {directory & ~kDepthMask, sizeof(std::uint64_t) << depth_of(directory)};
  }

  enum class Walked : std::uint8_t { kGoOn, kEnd, kFound };
  /// Calls read_line(slots), which returns Walked, for the lines in which an entry may be: kEnd at
  /// a line with an unused slot. True if it returned kFound.
  template <typename F>
  bool walk(std::uint64_t word, std::uint32_t fingerprint, F&& read_line) const;
  /// Calls visit(slots, HintLine) for the same lines, until it returns true.
  template <typename F>
  bool walk_lines(std::uint64_t word, std::uint32_t fingerprint, F&& visit) const;
  std::uint64_t* find_free(std::uint64_t word, std::uint32_t fingerprint) const noexcept;
  /// Sets `free` to a free slot of the line, unless it is set. Prefers a slot that was emptied to
  /// an unused one, since unused slots end look-ups.
  static void note_free(std::uint64_t* slots, const HintLine& line, std::uint64_t*& free) noexcept {
    if (free != nullptr || line.free == 0) return;
    const std::uint32_t emptied = line.free & ~line.unused;
    free = slots + std::countr_zero(emptied != 0 ? emptied : line.free);
  }
  template <typename F>
  void for_each_line_to(std::uint64_t word, std::uint32_t fingerprint, const std::uint64_t* slot,
                        F&& visit) const;

  /// A word of the directory; 0 only if it is damaged.
  std::uint64_t word_of(const Directory& directory, std::size_t index) const noexcept {
    const std::uint64_t word = load(directory.word(index));
    return __builtin_expect(word != 0, 1) ? word : read_word(directory, index);
  }
  std::uint64_t read_word(const Directory& directory, std::size_t index) const noexcept;
  void read_all();
  Status load_slabs();
  Status load_directory();
  bool is_change_valid() const noexcept;
  Status corrupt(const char* what, std::uint64_t expected, std::uint64_t found) const;
  void map_slabs();
  bool is_segment(std::uint64_t offset) const noexcept;
  bool is_new_segment(std::uint64_t offset) const noexcept;
  void put_slab(pmem::Extent slab);
  void put_new_slab(pmem::Extent slab);

  // Growing, in hint_index_room.cc; all but the first function hold structure_mutex_.
  /// Makes room for another entry of `hash` and those beside it. Fails with kOutOfSpace; then
  /// nothing has changed.
  Status make_room(std::uint64_t hash, pmem::Persister& persister);
  /// Words of the directory that name the same segment.
  struct Block {
    std::size_t first = 0;
    std::size_t span = 1;
  };
  Block block_of(const Directory& directory, std::size_t index) const noexcept;
  Status begin(pmem::Persister& persister);
  void publish(std::uint64_t directory, std::unique_ptr<Directory> copy, pmem::Persister& persister,
               pmem::Label label);
  Status double_directory(pmem::Persister& persister);
  Result<std::uint64_t> new_segment(pmem::Persister& persister);
  Result<std::uint64_t> take_unnamed_segment(pmem::Persister& persister);
  Result<std::uint64_t> take_segment(pmem::Persister& persister);
  using Segments = std::vector<std::uint64_t>;  // offsets
  Result<Segments> take_segments(std::size_t count, pmem::Persister& persister);
  void give_back(const Segments& segments, pmem::Persister& persister);
  /// Chains the segments, and makes them hold `slots` and nothing else.
  void fill(std::span<const std::uint64_t> segments, std::span<const std::uint64_t> slots) noexcept;
  /// The segment of a word and those that continue it. None if they are too many to rewrite each
  /// time that room is made.
  std::vector<Segment*> chain_of(std::uint64_t word) const;
  static std::vector<std::uint64_t> slots_of(std::span<Segment* const> segments);
  /// The entries of a segment, divided by the next bit of their fingerprints.
  struct Halves {
    Halves(std::span<const std::uint64_t> slots, unsigned depth);
    void join();  // moves all entries to `lower`

    std::vector<std::uint64_t> lower;
    std::vector<std::uint64_t> upper;
  };
  void erase_again(const std::vector<Segment*>& replaced,
                   std::span<const std::uint64_t> copied) noexcept;
  Status rearrange(std::uint32_t fingerprint, pmem::Persister& persister, bool& wants_doubling);
  Status change(const Block& block, std::uint64_t old_word, std::span<const std::uint64_t> lower,
                std::span<const std::uint64_t> upper, pmem::Persister& persister);
  void apply(const HintIndexLayout::Change& record, pmem::Persister& persister) noexcept;
  Status go_on(Segment& segment, pmem::Persister& persister);
  static std::uint64_t checksum_of(const HintIndexLayout::Change& change) noexcept;

  pmem::Pool& pool_;
  bool is_loaded_ = false;
  std::byte* const base_;  // of the pool
  HintIndexLayout& layout_;
  std::string owner_;
  std::atomic<Directory*> directory_{nullptr};
  // The first damaged word of the directory and the value found there: kept, because both may
  // change.
  mutable std::atomic<std::uint64_t> damaged_word_{kNoWord};
  mutable std::atomic<std::uint64_t> found_there_{0};
  std::atomic<std::uint64_t> bytes_in_pool_{0};
  // Protects everything below and changes of the directory; rank: before locks_.
  Mutex structure_mutex_;
  pmem::ChunkList slabs_;
  std::vector<std::uint64_t> slab_offsets_;
  // Segments that neither the pool nor recovery names: all but the first of a replaced chain, or
  // segments taken in vain. The list is lost at closing, and then they stay unused until the table
  // is dropped.
  Segments unnamed_;
  std::atomic<bool> is_all_read_{false};
  // Slabs found at opening, in the order of their offsets.
  std::vector<pmem::Extent> slabs_in_order_;
  /// For each 2 MB of the pool, from the first slab to the last: the slab with the lowest offset
  /// that begins or continues there, and its number in `slabs_in_order_`.
  struct SlabAt {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::size_t number = 0;
  };
  std::vector<SlabAt> slab_at_;
  std::uint64_t first_slab_at_ = 0;  // number of 2 MB pieces before the first slab
  /// Slabs added after opening, the newest first: read without a lock.
  struct NewSlab {
    pmem::Extent extent;
    const NewSlab* older;
  };
  std::forward_list<NewSlab> new_slabs_;
  std::atomic<const NewSlab*> newest_slab_{nullptr};
  std::vector<std::unique_ptr<Directory>> directories_;  // former ones too: readers may still use
                                                         // them
  // Segments share these locks; innermost, one at a time. There are many indexes, and few are
  // written to, so a page of locks takes memory only when the first of them is taken.
  struct GiveLocksBack {
    void operator()(Lock* locks) const noexcept;
  };
  static Lock* take_locks();
  const std::size_t lock_mask_ = lock_count() - 1;
  const std::unique_ptr<Lock[], GiveLocksBack> locks_{take_locks()};
};

template <typename F>
bool HintIndex::walk(std::uint64_t word, std::uint32_t fingerprint, F&& read_line) const {
  if (word == 0) return false;
  std::uint32_t line = home_of(fingerprint);
  std::uint64_t hops = 0;
  for (Segment* segment = segment_at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    for (std::uint32_t walked = 0; walked < Segment::kLines; ++walked) {
      const Walked next = read_line(segment->slots[line]);
      if (next != Walked::kGoOn) return next == Walked::kFound;
      line = line + 1 == Segment::kLines ? 0 : line + 1;
    }
  }
  return false;
}

template <typename F>
bool HintIndex::walk_lines(std::uint64_t word, std::uint32_t fingerprint, F&& visit) const {
  return walk(word, fingerprint, [&](std::uint64_t* slots) {
    const HintLine line = read_hint_line(slots, fingerprint);
    if (visit(slots, line)) return Walked::kFound;
    return line.unused != 0 ? Walked::kEnd : Walked::kGoOn;
  });
}

template <typename F>
Status HintIndex::edit(std::uint64_t hash, pmem::Persister& persister, F&& edit_function) {
  for (;;) {
    Room room = Room::kNone;
    {
      Editor editor(*this, hash);
      room = edit_function(editor);
    }
    if (room == Room::kEnough) return {};
    Status s = make_room(hash, persister);
    // This entry had room; it is no failure that little is left.
    if (room == Room::kLittle) return {};
    if (!s.ok()) return s;
  }
}

template <typename F>
bool HintIndex::Editor::any(F&& visit, std::uint64_t*& free) const {
  free = nullptr;
  return index_.walk_lines(word_, fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return line.any([&](std::uint32_t, std::uint64_t value) { return visit(payload_of(value)); });
  });
}

template <typename F>
HintIndex::Room HintIndex::Editor::insert_unless(F&& refuses, std::uint32_t payload,
                                                 Unflushed& unflushed, bool& refused) {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  std::uint64_t* present = nullptr;
  std::uint64_t* free = nullptr;
  refused = index_.walk_lines(word_, fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value != wanted) return refuses(payload_of(value));
      present = &slots[i];
      return false;
    });
  });
  if (refused) return Room::kEnough;
  return put(present != nullptr ? present : free, present == nullptr, wanted, &unflushed);
}

template <typename F>
HintIndex::Room HintIndex::Editor::succeed(std::uint32_t payload, std::uint32_t successor,
                                           F&& is_obsolete, Unflushed& unflushed, bool& found) {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  std::uint64_t* free = nullptr;
  std::uint64_t* obsolete = nullptr;
  found = false;
  index_.walk_lines(word_, fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) {
        if (found) obsolete = &slots[i];
        found = true;
      } else if (obsolete == nullptr && is_obsolete(payload_of(value))) {
        obsolete = &slots[i];
      }
      return false;
    });
  });
  if (!found) return Room::kEnough;
  const bool is_new = obsolete == nullptr;
  return put(is_new ? free : obsolete, is_new, make_slot(fingerprint_, successor), &unflushed);
}

}  // namespace flugs::columns
