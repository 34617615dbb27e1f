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

#include "base/mutex.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"
#include "base/zeroed_memory.h"
#include "columns/chunk_geometry.h"
#include "columns/hash_index.h"
#include "columns/hint_index_layout.h"
#include "columns/hint_line.h"
#include "columns/unflushed.h"
#include "pmem/chunk_list.h"
#include "pmem/pool.h"
#include "pmem/warm_list.h"

namespace flugs::columns {

/// A multimap from 64-bit hashes to 32-bit payloads in the pool, for what must be found at once
/// after a restart, at any size: opening reads nothing that grows with it but the list of slabs.
/// The directory, a word per some 300 entries, is copied to DRAM and checked as it is used.
///
/// Its entries are hints: each is to be verified against the truth (a dictionary entry, a row), as
/// a crash may leave some of what was never committed, and a payload can be given to something else
/// after that. What must not be missed is durable with the commit that needs it: whoever inserts
/// flushes the lines that `insert` or `flush` name, with everything else, and no fence of its own.
///
/// Extendible hashing over segments of 4 KB; within one an entry stands in the line that its
/// fingerprint is at home in or, as long as lines are full, behind it. A full line never has
/// an unused slot again: so a look-up ends at the first line that has one, and whoever puts an
/// entry behind full lines makes these durable, too.
///
/// Thread-safety: look-ups and erasing from any thread take no lock; who adds holds that of a
/// segment. load and recover: nobody else.
class HintIndex {
 public:
  HintIndex(pmem::Pool& pool, HintIndexLayout& layout, std::string owner);

  /// Opening: claims what it has in the pool; fails with kCorrupt. What the directory's words say
  /// is found out later.
  Status load();
  /// Else nothing may be looked up or added; an audit goes on without it.
  bool is_loaded() const noexcept { return is_loaded_; }
  /// Reads the words that nobody has used yet. Fails as damage().
  Status check_directory();
  /// Whether that is more than a moment's work.
  bool has_much_to_check() const noexcept;
  /// kCorrupt when a word of the directory was read that leads to no segment of this index. No
  /// entry is found or added there, and no segment is split any more.
  Status damage() const;
  /// Opening, after claims are finished: ends a change that was interrupted.
  void recover(pmem::Persister& persister);

  /// Replaces `out` by the candidates for `hash`. Sees every insert that happened before. False:
  /// they could not be looked up, because of damage().
  bool lookup(std::uint64_t hash, Candidates& out) const;
  /// Starts loading what `lookup(hash)` will read first.
  void prefetch(std::uint64_t hash) const noexcept;
  /// The same for an Editor: the lock's line, too, which another thread may have had last.
  void prefetch_for_edit(std::uint64_t hash) noexcept;
  /// The same for `erase`.
  void prefetch_for_erase(std::uint64_t hash) const noexcept;

  /// Whether an entry found a slot, and another one would near its home.
  enum class Room : std::uint8_t { kEnough, kLittle, kNone };

  /// The entries of one hash, while nobody else changes those of its segment. Short-lived; one at a
  /// time per index and thread, and none during make_room.
  class Editor {
   public:
    Editor(HintIndex& index, std::uint64_t hash) noexcept;
    ~Editor() { lock_->unlock(); }
    Editor(const Editor&) = delete;
    Editor& operator=(const Editor&) = delete;

    /// Calls visit(payload) for each candidate until it returns true; true if one did. `free`:
    /// where another entry can stand if none did; null, nowhere. The place is good until something
    /// is added.
    template <typename F>
    bool any(F&& visit, std::uint64_t*& free) const;
    /// Adds an entry that is not there to such a place. Nothing relies on it before its lines are
    /// flushed.
    Room insert_at(std::uint64_t* free, std::uint32_t payload) {
      return put(free, true, make_slot(fingerprint_, payload), nullptr);
    }
    /// Adds an entry unless it is there. What must be flushed before anything relies on it goes to
    /// `unflushed`, if not null. kNone: it was not added.
    Room insert(std::uint32_t payload, Unflushed* unflushed);
    /// The same unless refuses(payload) says so of another entry of this hash: then `refused`, and
    /// nothing changed.
    template <typename F>
    Room insert_unless(F&& refuses, std::uint32_t payload, Unflushed& unflushed, bool& refused);
    /// Adds `successor` where `payload` stands, too: in place of a second entry with `payload`
    /// (take_back), of another entry of this hash that is_obsolete(payload) says nobody needs, or
    /// like `insert`. `found`: whether `payload` is there; nothing changed if not.
    template <typename F>
    Room succeed(std::uint32_t payload, std::uint32_t successor, F&& is_obsolete,
                 Unflushed& unflushed, bool& found);
    /// Takes back that `successor` was added where `payload` stands: its place goes to another
    /// entry with `payload`. It may have been that of an entry that was obsolete, and a look-up
    /// under way since before `payload` came may find what it looks for there and nowhere else.
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

  /// Calls edit_function(Editor&), which returns a Room, and again with more of it while that is
  /// kNone. What is made of room is durable on return. Fails with kOutOfSpace.
  template <typename F>
  Status edit(std::uint64_t hash, pmem::Persister& persister, F&& edit_function);

  /// Takes all entries of the hash with `payload` out, without a lock; false when there is none.
  /// Nobody adds one meanwhile. Need not be made durable: it may come back.
  bool erase(std::uint64_t hash, std::uint32_t payload) noexcept;

  /// Flushes what must be durable for the entry to be found; nothing when it is not there.
  void flush(std::uint64_t hash, std::uint32_t payload, pmem::Persister& persister,
             pmem::Label label) const noexcept;

  /// Calls visit(fingerprint, payload) for every entry. Thread-safety: nobody writes meanwhile.
  void for_each(FunctionRef<void(std::uint32_t fingerprint, std::uint32_t payload)> visit) const;
  static std::uint32_t fingerprint_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32);
  }

  HintIndexLayout& layout() noexcept { return layout_; }
  std::uint64_t bytes_in_pool() const noexcept {
    return bytes_in_pool_.load(std::memory_order_relaxed);
  }
  /// The table was dropped: gives everything back.
  void release_all();
  /// Opening: what look-ups read.
  void add_pages(pmem::WarmList& pages) const;

 private:
  using Segment = HintSegmentLayout;
  struct alignas(64) Lock : SpinLock {};  // free when all of it is zero
  static constexpr std::uint64_t kSegmentBytes = sizeof(Segment);
  /// 16 per processor, so that two that write to different segments seldom meet.
  static std::size_t lock_count() noexcept;
  // An entry so many lines from home wishes for more room.
  static constexpr std::uint32_t kLinesFar = 4;
  // Longer chains of segments are not gone through each time that one of them wants room.
  static constexpr std::size_t kChainMax = 16;
  static constexpr unsigned kSlabMapShift = 21;
  static constexpr std::uint64_t kNoWord = ~std::uint64_t{0};
  static constexpr unsigned kDepthMax = 24;
  static constexpr std::uint64_t kDepthMask = 63;
  static constexpr int kNumberShift = 48;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kNumberShift) - 1;
  // Slabs: 4 KB, then doubling, up to 2 MB.
  static constexpr ChunkGeometry kSlabs{0, 9};

  /// What look-ups go by: the words of the pool's directory, once these are durable. 0: that word
  /// was not read since opening. Words of another directory than that of opening are all read.
  class Directory {
   public:
    explicit Directory(unsigned log2_words);
    ~Directory();
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    unsigned depth() const noexcept { return depth_; }
    std::size_t count() const noexcept { return std::size_t{1} << depth_; }
    std::uint64_t& word(std::size_t index) const noexcept { return words_[index]; }
    std::size_t index_of(std::uint32_t fingerprint) const noexcept {
      return static_cast<std::size_t>((std::uint64_t{fingerprint} << depth_) >> 32);
    }

    /// Before words are read here and there; and when all are: huge pages only then.
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
  /// Takes out `wanted`, unless the slot holds something else by now. Never unused: only a line
  /// that nobody writes to can be known not to be full.
  static bool empty(std::uint64_t& slot, std::uint64_t wanted) noexcept {
    note_write(SharedWord::kHintLine, &slot);
    return __atomic_compare_exchange_n(&slot, &wanted, Segment::kEmptied, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
  }
  static bool is_live(std::uint64_t slot) noexcept { return static_cast<std::uint32_t>(slot) != 0; }
  static std::uint64_t make_slot(std::uint32_t fingerprint, std::uint32_t payload) noexcept {
    return (std::uint64_t{fingerprint} << 32) | (payload + 1u);
  }
  static std::uint32_t payload_of(std::uint64_t slot) noexcept {
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
  /// The segment behind one that is full; null: none, or bytes of the pool that name none of this
  /// index. `hops`, of a walk, at first 0: a chain that is longer than there is room for ends.
  Segment* next_of(const Segment& segment, std::uint64_t& hops) const noexcept;

  static pmem::Extent directory_extent(std::uint64_t directory) noexcept {
    return {directory & ~kDepthMask, sizeof(std::uint64_t) << depth_of(directory)};
  }

  enum class Walked : std::uint8_t { kGoOn, kEnd, kFound };
  /// Calls read_line(slots), which returns Walked, for the lines in which an entry may be: kEnd at
  /// one with an unused slot. True if it was kFound.
  template <typename F>
  bool walk(std::uint64_t word, std::uint32_t fingerprint, F&& read_line) const;
  /// Calls visit(slots, HintLine) for the same lines, until it returns true.
  template <typename F>
  bool walk_lines(std::uint64_t word, std::uint32_t fingerprint, F&& visit) const;
  std::uint64_t* find_free(std::uint64_t word, std::uint32_t fingerprint) const noexcept;
  /// The first place that is free, unless one is known; where an entry was before in the line
  /// rather than where none has been, as the latter ends look-ups.
  static void note_free(std::uint64_t* slots, const HintLine& line, std::uint64_t*& free) noexcept {
    if (free != nullptr || line.free == 0) return;
    const std::uint32_t emptied = line.free & ~line.unused;
    free = slots + std::countr_zero(emptied != 0 ? emptied : line.free);
  }
  template <typename F>
  void for_each_line_to(std::uint64_t word, std::uint32_t fingerprint, const std::uint64_t* slot,
                        F&& visit) const;

  /// A word of the directory, not 0 but when it is damaged.
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

  // Growing: hint_index_room.cc; all but the first under structure_mutex_.
  /// Makes room for another entry of `hash` and those beside it. Fails with kOutOfSpace; nothing
  /// changed then.
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
  /// Makes segments, of which each goes on in the next, hold `slots` and nothing else.
  void fill(std::span<const std::uint64_t> segments, std::span<const std::uint64_t> slots) noexcept;
  /// The segment of a word and those that it goes on in; none, when they are too many to go through
  /// each time that room is made.
  std::vector<Segment*> chain_of(std::uint64_t word) const;
  static std::vector<std::uint64_t> slots_of(std::span<Segment* const> segments);
  /// The entries of a segment, divided by the next bit of their fingerprints.
  struct Halves {
    Halves(std::span<const std::uint64_t> slots, unsigned depth);
    void join();  // all entries are in `lower` then

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
  // Of the directory, and what stood there: kept, as neither is there for ever.
  mutable std::atomic<std::uint64_t> damaged_word_{kNoWord};
  mutable std::atomic<std::uint64_t> found_there_{0};
  std::atomic<std::uint64_t> bytes_in_pool_{0};
  // Protects everything below and changes of the directory; rank: before locks_.
  Mutex structure_mutex_;
  pmem::ChunkList slabs_;
  std::vector<std::uint64_t> slab_offsets_;
  // Nothing in the pool leads to these, nor does recovery: those of a chain but the first, or that
  // were taken in vain. Forgotten at the end, and then unused until the table is dropped.
  Segments unnamed_;
  std::atomic<bool> is_all_read_{false};
  // Those that were found at opening, in the order of their offsets.
  std::vector<pmem::Extent> slabs_in_order_;
  /// For each 2 MB of the pool, from those with the first slab to those with the last: the slab
  /// that begins first of those in it, or goes on, and its number in `slabs_in_order_`.
  struct SlabAt {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::size_t number = 0;
  };
  std::vector<SlabAt> slab_at_;
  std::uint64_t first_slab_at_ = 0;  // of how many 2 MB before them there is none
  /// Those that came after opening, the newest first: read without a lock.
  struct NewSlab {
    pmem::Extent extent;
    const NewSlab* older;
  };
  std::forward_list<NewSlab> new_slabs_;
  std::atomic<const NewSlab*> newest_slab_{nullptr};
  std::vector<std::unique_ptr<Directory>> directories_;  // former ones too: readers may be in them
  // Each of segments that share it; innermost, one at a time. As there are many indexes, of which
  // few are written to, a page of locks takes memory when the first of them is taken.
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
    // There was room for this one; that there is little left is no reason to fail.
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
