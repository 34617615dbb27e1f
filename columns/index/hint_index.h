#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/check.h"
#include "base/mutex.h"
#include "columns/index/hash_index.h"
#include "columns/index/hint_directory.h"
#include "columns/index/hint_growth.h"
#include "columns/index/hint_index_layout.h"
#include "columns/index/hint_locks.h"
#include "columns/index/hint_segments.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"

namespace flugs::columns {

class Unflushed;

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
/// Extendible hashing: a directory (HintDirectory) leads to segments of 4 KB (HintSegments). A
/// look-up ends at the first line that has an unused slot, and a transaction that puts an entry
/// behind full lines makes these lines durable, too.
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
  bool has_much_to_check() const noexcept { return directory_.has_much_to_read(); }
  /// kCorrupt after a word of the directory was read that leads to no segment of this index. At
  /// that word no entry is found or added, and no segment is split any more.
  Status damage() const { return directory_.damage(); }
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
  enum class Space : std::uint8_t { kEnough, kLittle, kNone };

  /// The entries of one hash, while no other thread changes those of its segment. Short-lived; one
  /// at a time per index and thread, and none during make_room.
  class Editor {
   public:
    Editor(HintIndex& index, std::uint64_t hash) noexcept;
    Editor(const Editor&) = delete;
    Editor& operator=(const Editor&) = delete;

    /// Calls visit(payload) for each candidate until it returns true; true if one did. If none did,
    /// sets `free` to the slot for another entry; null: no slot is free. The slot is valid until
    /// something is added.
    template <typename F>
    bool any(F&& visit, std::uint64_t*& free);
    /// Adds an absent entry to a slot from `any`. Nothing may rely on the entry before its lines
    /// are flushed.
    Space insert_at(std::uint64_t* free, std::uint32_t payload) {
      FLUGS_DCHECK(free != nullptr && !hint_slot::is_live(hint_slot::load(*free)));
      return put(free, true, hint_slot::make(fingerprint_, payload), nullptr);
    }
    /// Adds an entry unless it exists. `unflushed`, if not null, takes all that must be flushed
    /// before anything relies on the entry. kNone: it was not added.
    Space insert(std::uint32_t payload, Unflushed* unflushed);
    /// The same, unless refuses(payload) is true for another entry of this hash: then sets
    /// `refused` and changes nothing.
    template <typename F>
    Space insert_unless(F&& refuses, std::uint32_t payload, Unflushed& unflushed, bool& refused);
    /// Adds `successor` next to `payload`. It replaces a second entry with `payload` (see
    /// take_back), or another entry of this hash for which is_obsolete(payload) is true; otherwise
    /// it is added as by `insert`. `found`: whether `payload` exists; if not, nothing changes.
    template <typename F>
    Space succeed(std::uint32_t payload, std::uint32_t successor, F&& is_obsolete,
                  Unflushed& unflushed, bool& found);
    /// Undoes that `successor` was added next to `payload`: its slot gets another entry with
    /// `payload`. The slot may have held an obsolete entry, and a look-up that began before
    /// `payload` existed may find its entry there and nowhere else.
    void take_back(std::uint32_t payload, std::uint32_t successor) noexcept;

   private:
    /// HintSegments::walk_lines, which counts the lines.
    template <typename F>
    bool walk_lines(F&& visit);
    /// `is_new`: the slot was free.
    Space put(std::uint64_t* slot, bool is_new, std::uint64_t value, Unflushed* unflushed);
    /// Whether a look-up of the hash reads many lines, a third of whose taken slots was emptied.
    bool is_walk_thin() const noexcept;

    const HintSegments& segments_;
    std::uint32_t fingerprint_;
    std::uint32_t lines_walked_ = 0;
    HintLock lock_;
  };

  /// Calls edit_function(Editor&), which returns a Space. While that is kNone, makes more room and
  /// calls it again. New room is durable on return. Fails with kOutOfSpace.
  template <typename F>
  Status edit(std::uint64_t hash, pmem::Persister& persister, F&& edit_function);

  /// Removes all entries of the hash with `payload`, without a lock; false when there is none. No
  /// other thread may add one meanwhile. The removal need not become durable: the entry may come
  /// back.
  bool erase(std::uint64_t hash, std::uint32_t payload) noexcept {
    return directory_.erase(fingerprint_of(hash), payload);
  }

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
    return segments_.bytes_in_pool() + directory_.bytes_in_pool();
  }
  /// The table was dropped: gives all extents back.
  void release_all();
  /// Opening: adds the pages that look-ups read.
  void add_pages(pmem::WarmList& pages) const;

 private:
  // An entry further from home than these lines may ask for more room. So may an entry whose
  // look-up reads more lines than these.
  static constexpr std::uint32_t kLinesFar = 4;

  Status make_room(std::uint64_t hash, pmem::Persister& persister);

  HintIndexLayout& layout_;
  bool is_loaded_ = false;
  HintSegments segments_;
  HintDirectory directory_;
  HintLocks locks_;
  // Held for changes of the directory, growth_ and additions to segments_; rank: before locks_.
  Mutex structure_mutex_;
  HintGrowth growth_;
};

template <typename F>
Status HintIndex::edit(std::uint64_t hash, pmem::Persister& persister, F&& edit_function) {
  for (;;) {
    Space room = Space::kNone;
    {
      Editor editor(*this, hash);
      room = edit_function(editor);
    }
    if (room == Space::kEnough) return {};
    Status s = make_room(hash, persister);
    // This entry had room; it is no failure that little is left.
    if (room == Space::kLittle) return {};
    if (!s.ok()) return s;
  }
}

template <typename F>
bool HintIndex::Editor::walk_lines(F&& visit) {
  lines_walked_ = 0;
  return segments_.walk_lines(lock_.word(), fingerprint_,
                              [&](std::uint64_t* slots, const HintLine& line) {
                                ++lines_walked_;
                                return visit(slots, line);
                              });
}

template <typename F>
bool HintIndex::Editor::any(F&& visit, std::uint64_t*& free) {
  free = nullptr;
  return walk_lines([&](std::uint64_t* slots, const HintLine& line) {
    HintSegments::note_free(slots, line, free);
    return line.any(
        [&](std::uint32_t, std::uint64_t value) { return visit(hint_slot::payload_of(value)); });
  });
}

template <typename F>
HintIndex::Space HintIndex::Editor::insert_unless(F&& refuses, std::uint32_t payload,
                                                  Unflushed& unflushed, bool& refused) {
  const std::uint64_t wanted = hint_slot::make(fingerprint_, payload);
  std::uint64_t* present = nullptr;
  std::uint64_t* free = nullptr;
  refused = walk_lines([&](std::uint64_t* slots, const HintLine& line) {
    HintSegments::note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value != wanted) return refuses(hint_slot::payload_of(value));
      present = &slots[i];
      return false;
    });
  });
  if (refused) return Space::kEnough;
  return put(present != nullptr ? present : free, present == nullptr, wanted, &unflushed);
}

template <typename F>
HintIndex::Space HintIndex::Editor::succeed(std::uint32_t payload, std::uint32_t successor,
                                            F&& is_obsolete, Unflushed& unflushed, bool& found) {
  const std::uint64_t wanted = hint_slot::make(fingerprint_, payload);
  std::uint64_t* free = nullptr;
  std::uint64_t* obsolete = nullptr;
  found = false;
  walk_lines([&](std::uint64_t* slots, const HintLine& line) {
    HintSegments::note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) {
        if (found) obsolete = &slots[i];
        found = true;
      } else if (obsolete == nullptr && is_obsolete(hint_slot::payload_of(value))) {
        obsolete = &slots[i];
      }
      return false;
    });
  });
  if (!found) return Space::kEnough;
  const bool is_new = obsolete == nullptr;
  return put(is_new ? free : obsolete, is_new, hint_slot::make(fingerprint_, successor),
             &unflushed);
}

}  // namespace flugs::columns
