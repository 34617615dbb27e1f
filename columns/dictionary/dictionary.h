#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "columns/cells/cell.h"
#include "columns/cells/chunk_geometry.h"
#include "columns/cells/column_layout.h"
#include "columns/cells/decoder.h"
#include "columns/cells/growing_array.h"
#include "columns/cells/string_heap.h"
#include "columns/cells/unflushed.h"
#include "columns/index/hash_index.h"
#include "columns/index/hash_index_builder.h"
#include "columns/index/hint_index.h"
#include "flugs/function_ref.h"
#include "flugs/value.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

/// A column's persistent dictionary: ValueID -> value in the pool, append-only; value -> ValueID
/// in a DRAM index that is rebuilt at restart, or in a HintIndex in the pool. NULL is an entry like
/// any other.
///
/// Until a rebuild is done everything works, but slower: a look-up searches the entries themselves
/// (columns/dictionary/dictionary_search.cc).
///
/// Each value gets one ValueID: an append happens under the lock of the value's place in the index.
/// A ValueID is valid for reading once `encode` returned it; it may be referred to durably only
/// after a fence that covers its entry, which `encode` arranges through Unflushed.
///
/// Thread-safety: any thread, except load and rebuild.
/// Source: SOFORT (DaMoN 2014), section 2 (PDict. and dictionary index).
class Dictionary {
 public:
  /// The first chunk has 256 entries; each further one as many as all before it, up to 2^18.
  static constexpr unsigned kFirstChunkBits = 8;
  static constexpr unsigned kChunkBitsMax = 18;
  /// The limit of ValueIDs is well below 32 bits, so that reaching it gives a clear error.
  static constexpr std::uint32_t kEntriesMax = 0xF0000000u;
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  /// Roughly the most entries that opening examines when no thread keeps hints.
  static constexpr std::uint32_t kHintTailMax = 64;

  enum class Use : std::uint8_t { kNone, kValues };
  /// `use` kNone: the column holds its values directly; nothing is looked up or added. `hints` is
  /// null for an index in DRAM. The dictionary keeps `decoder` up to date for readers of rows.
  Dictionary(pmem::Pool& pool, DictionaryLayout& layout, Use use, HintIndexLayout* hints,
             StringHeap& heap, Type type, Decoder& decoder, const std::string& owner);

  /// Opening, step 1: claims the chunks and finds how many ValueIDs may be in use.
  Status load();
  /// Opening, step 2: begin_rebuild, once. Then, when the index is in DRAM, at opening or later,
  /// while any thread reads and adds values: rebuild_range for ranges of the ValueIDs below
  /// `rebuild_end` (in parallel), then the builder's groups, then finish_rebuild.
  struct RebuildCounts {
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;        ///< torn
    std::uint32_t misplaced = kNone;  ///< an entry with text outside of its strings, or an entry of
                                      ///< NULL that is not the known one
    std::uint32_t end = 0;            ///< behind the last whole entry
  };
  Status begin_rebuild();
  std::uint32_t rebuild_end() const noexcept { return rebuild_end_; }
  void rebuild_range(std::uint32_t first, std::uint32_t end, HashIndexBuilder::Source& source,
                     RebuildCounts& counts, pmem::Persister& persister);
  /// Only with `use` kValues and without hints.
  HashIndex& index() noexcept {
    FLUGS_CHECK(index_);
    return *index_;
  }
  /// `counts` is the sum over all ranges. Fails with kCorrupt when a range had an entry that must
  /// not be used; then the index is not used either.
  Status finish_rebuild(const RebuildCounts& counts);
  /// Whether the rebuild is done.
  bool is_indexed() const noexcept { return is_indexed_.load(std::memory_order_acquire); }
  /// Whether the index is in the pool.
  bool has_hints() const noexcept { return hints_ != nullptr; }
  /// Opening, after begin_rebuild, for an index in the pool: does all that must be done before the
  /// first answer. Entries from the durable end on may lack hints: keep_hints makes them later, and
  /// until then a look-up searches these entries. Fails with kCorrupt.
  Status recover(RebuildCounts& counts, pmem::Persister& persister);
  bool has_hints_left() const noexcept {
    return hints_left_end_.load(std::memory_order_acquire) != 0;
  }
  /// Checks the parts of the index in the pool that opening has not examined. Fails with kCorrupt.
  Status check_hints() { return hints_ == nullptr ? Status() : hints_->check_directory(); }
  /// Whether check_hints takes more than a moment.
  bool has_much_to_check() const noexcept {
    return hints_ != nullptr && hints_->has_much_to_check();
  }
  /// Verifies up to `at_most` of the entries that opening skipped because their hints are durable;
  /// `has_more`: some are left. Fails with kCorrupt, and then on each call. One thread at a time.
  Status check_entries(std::uint32_t at_most, bool& has_more);
  bool has_entries_to_check() const noexcept {
    return unchecked_.load(std::memory_order_acquire) < unchecked_end_;
  }
  /// Whether opening has cleared torn entries. No committed row names one of them, unless the entry
  /// was damaged.
  bool has_dropped() const noexcept { return has_dropped_.load(std::memory_order_acquire); }
  /// With this many entries whose hints are not known to be durable, committing transactions keep
  /// hints.
  void set_hint_tail_max(std::uint32_t entries) noexcept { hint_tail_max_ = entries; }
  /// Makes the hints of some durable entries durable. Also makes entries durable that are not known
  /// to be, if they are old or none was added since the last call. Returns true if more are left.
  /// While hints are left from opening, makes at most `left_at_most` of these instead.
  /// kHintsKeptMax take a few milliseconds, kHintsEnteredMax of those left about half a
  /// millisecond.
  static constexpr std::uint32_t kHintsKeptMax = 1u << 16;
  static constexpr std::uint32_t kHintsEnteredMax = 64;
  bool keep_hints(pmem::Persister& persister, std::uint32_t at_most = kHintsKeptMax,
                  std::uint32_t left_at_most = kHintsKeptMax) noexcept;
  /// Makes the hints left from opening, after any thread that is already doing it; true: more are
  /// left. If the index has no room for one of them, it and all behind it stay left, and look-ups
  /// search their entries.
  bool enter_left_hints(pmem::Persister& persister, std::uint32_t at_most = kHintsKeptMax) noexcept;
  bool wants_keeping() const noexcept;

  /// The value's ValueID; appends a new value. `unflushed` takes what must be flushed before the
  /// ValueID is referred to durably. Fails with kOutOfSpace.
  Result<std::uint32_t> encode(const Value& value, Unflushed& unflushed,
                               pmem::Persister& persister);
  /// As encode for every `stride`-th of `values` from `first` on; the ValueIDs go to the same
  /// places of `cells`. The cache misses of the look-ups overlap. At most kBatchMax values.
  static constexpr std::size_t kBatchMax = 64;
  Status encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                     std::span<Cell> cells, Unflushed& unflushed, pmem::Persister& persister);
  /// The value's ValueID, kNone if it has none.
  std::uint32_t find(const Value& value) const;

  /// Payload of a fixed-width type, without checking for NULL; 0 for a ValueID that was never given
  /// out.
  std::int64_t integer(std::uint32_t code) const noexcept;
  std::string_view text(std::uint32_t code) const noexcept;
  Value value(std::uint32_t code) const noexcept;
  /// Starts loading the entry that the three above read.
  void prefetch(std::uint32_t code) const noexcept { __builtin_prefetch(entry(code)); }
  /// When it is indexed: whether a ValueID names a value, or NULL.
  bool is_present(std::uint32_t code) const noexcept;
  std::uint32_t null_code() const noexcept {
    return decoder_.null_code.load(std::memory_order_acquire);
  }

  /// For reading many entries of fixed-width values: entry `code`, below `count`, is at
  /// bases[chunk_of(code)] + code * entry_bytes(). Empty when the entries cannot be read that way.
  std::vector<std::uint64_t> chunk_bases(std::uint32_t count) const;
  static std::size_t chunk_of(std::uint32_t id) noexcept { return kGeometry.chunk_of(id); }
  std::uint32_t entry_bytes() const noexcept { return entry_bytes_; }

  /// After begin_rebuild: the number of entries to verify.
  std::uint32_t count_unproven() const noexcept;
  /// ValueIDs below it have been handed out.
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  std::uint64_t bytes_in_pool() const noexcept {
    return bytes_in_pool_.load(std::memory_order_relaxed);
  }
  /// In DRAM.
  std::size_t index_bytes() const noexcept { return index_ ? index_->memory_bytes() : 0; }
  std::uint64_t hint_bytes() const noexcept {
    return hints_ == nullptr ? 0 : hints_->bytes_in_pool();
  }
  /// Full audit of an indexed dictionary: every entry is whole, and the index finds it under its
  /// own ValueID only.
  Status verify() const;
  void release_all();
  /// Opening: adds the pages of its entries, the youngest first, and of its index in the pool.
  void add_pages(pmem::WarmList& pages) const;

 private:
  friend class Unflushed;
  enum class Proof : std::uint8_t { kAbsent, kTorn, kValue, kNull };

  static constexpr ChunkGeometry kGeometry{kFirstChunkBits, kChunkBitsMax};
  static_assert(Decoder::kFirstEntries == kGeometry.elements_in(0));
  static_assert(Decoder::kNoCode == kNone && kEntriesMax < kNone);
  static std::uint32_t first_id_of(std::size_t chunk) noexcept {
    return static_cast<std::uint32_t>(kGeometry.first_of(chunk));
  }
  static std::uint64_t entries_in(std::size_t chunk) noexcept {
    return kGeometry.elements_in(chunk);
  }
  /// Null when the chunk does not exist: ValueIDs in rows are not checked one by one.
  std::byte* entry(std::uint32_t id) const noexcept {
    const std::size_t chunk = chunk_of(id);
    if (chunk >= kSmallChunks && id >= entries_end_.load(std::memory_order_acquire)) return nullptr;
    std::byte* const first = chunks_in_dram_[chunk];
    if (first == nullptr) return nullptr;
    return first + std::size_t{id - first_id_of(chunk)} * entry_bytes_;
  }

  /// Calls announce(id) before the entry is written.
  Result<std::uint32_t> append(const Value& value, std::uint64_t hash, pmem::Persister& persister,
                               FunctionRef<void(std::uint32_t id)> announce);
  Result<std::uint32_t> reserve_id(pmem::Persister& persister);
  Result<std::uint32_t> encode_null(pmem::Persister& persister);
  Status encode_each(std::span<const Value> values, std::size_t first, std::size_t stride,
                     std::span<Cell> cells, Unflushed& unflushed, pmem::Persister& persister);
  Result<std::uint32_t> encode_unindexed(const Value& value, pmem::Persister& persister);
  std::uint32_t search(const Value& value, std::uint32_t first, std::uint32_t end) const noexcept;
  template <typename F>
  std::uint32_t search_words(std::uint32_t first, std::uint32_t end, F&& is_wanted) const noexcept;
  Status grow(std::size_t chunk, pmem::Persister& persister);
  void put_chunk(std::size_t chunk, std::byte* entries) noexcept;
  bool is_misplaced(std::uint32_t id) const noexcept;
  Status check_rebuilt(const RebuildCounts& counts) const;
  Status torn_entry(std::uint32_t id) const;
  Status find_null();
  void index_late_entries();
  /// Opening: verifies entries, clears torn ones, counts the others, and calls visit(id, hash) for
  /// each value.
  template <typename F>
  void prove_range(std::uint32_t first, std::uint32_t end, RebuildCounts& counts, F&& visit);
  void clear_torn(std::uint32_t id) noexcept;
  void write_entry(std::uint32_t id, const Cell& cell, std::uint64_t proof) noexcept;
  /// Sets `hash` to the value's hash if the entry is a value.
  Proof prove(std::uint32_t id, std::uint64_t& hash) const noexcept;
  Result<std::uint32_t> encode_new(const Value& value, std::uint64_t hash,
                                   pmem::Persister& persister);
  Result<std::uint32_t> encode_new_hinted(const Value& value, std::uint64_t hash,
                                          pmem::Persister& persister);
  std::uint32_t add_hints(std::uint32_t first, std::uint32_t end,
                          pmem::Persister& persister) noexcept;
  bool keep_left(pmem::Persister& persister, std::uint32_t at_most) noexcept;
  void publish_hints(std::uint32_t first, std::uint32_t end, pmem::Persister& persister) noexcept;
  /// False: the index is damaged at this hash.
  bool lookup(std::uint64_t hash, Candidates& out) const {
    FLUGS_DCHECK(hints_ != nullptr || index_);
    if (hints_ != nullptr) return hints_->lookup(hash, out);
    index_->lookup(hash, out);
    return true;
  }
  void prefetch_index(std::uint64_t hash) const noexcept {
    if (!is_indexed()) return;
    if (hints_ != nullptr) return hints_->prefetch(hash);
    index_->prefetch(hash);
  }
  void rely_on(std::uint32_t id, Unflushed& unflushed);
  bool keep_entries(pmem::Persister& persister, std::uint32_t at_most) noexcept;
  bool all_written(std::uint32_t first, std::uint32_t last) const noexcept;
  void flush_entries(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                     pmem::Label label) const noexcept;
  void flush_hints(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                   pmem::Label label) const noexcept;
  void mark_durable(std::uint32_t first, std::uint32_t end) noexcept;
  bool is(std::uint32_t id, const Value& value) const noexcept;
  bool is_hinted(std::uint32_t id, const Value& value) const noexcept;
  bool is_certain(std::uint32_t id, std::int64_t raw) const noexcept;
  Status recover_null(std::uint32_t durable_end);
  Status check_youngest_texts(std::uint32_t end) const;
  std::uint64_t kept_end() const noexcept;
  std::uint64_t hash_of(const Value& value) const noexcept;
  std::atomic<std::uint32_t>& guess(std::int64_t raw) const noexcept {
    return guesses_[static_cast<std::uint64_t>(raw) % kGuesses];
  }
  std::uint32_t find(const Value& value, std::uint64_t hash) const;

  pmem::Pool& pool_;
  const pmem::Medium& medium_;
  DictionaryLayout& layout_;
  StringHeap& heap_;
  Decoder& decoder_;  // holds null_code
  Type type_;
  bool is_text_;
  std::uint32_t entry_bytes_;
  bool is_exact_;  // the index in DRAM distinguishes values by their hashes alone
  std::string owner_;
  static constexpr std::size_t kSmallChunks = kChunkBitsMax - kFirstChunkBits + 1;
  static constexpr std::size_t kChunksMax = kSmallChunks + (kEntriesMax >> kChunkBitsMax) + 1;
  static_assert(kGeometry.chunk_of(kEntriesMax - 1) < kChunksMax);
  // Written under grow_mutex_, before count_ passes it.
  GrowingArray<std::byte*, kSmallChunks> chunks_in_dram_;
  std::atomic<std::uint32_t> entries_end_{0};  // ids below it are in chunks that exist; see entry
  // For the lowest bits of a number, the ValueID that was found last: frequent small numbers need
  // no look-up. Null for texts, and as long as there is no entry.
  static constexpr std::size_t kGuesses = 128;
  std::unique_ptr<std::atomic<std::uint32_t>[]> guesses_;
  std::optional<HashIndex> index_;  // absent with hints or Use::kNone; in use when is_indexed_
  std::atomic<bool> is_indexed_{true};
  std::uint32_t rebuild_end_ = 0;  // end of the entries that existed at opening; constant after
                                   // begin_rebuild
  std::atomic<bool> has_dropped_{false};
  std::atomic<std::uint32_t> unchecked_{0};  // entries from here to unchecked_end_ are not verified
  std::uint32_t unchecked_end_ = 0;          // constant after recover
  std::unique_ptr<HintIndex> hints_;
  std::atomic<std::uint32_t> hint_tail_max_{kHintTailMax};
  // Entries from durable_end to here may lack hints, since opening; 0: none does. Set to 0, under
  // keep_mutex_, when all have theirs.
  std::atomic<std::uint32_t> hints_left_end_{0};
  Mutex keep_mutex_;               // held in keep_hints; rank: before a HintIndex
  std::uint32_t quiet_count_ = 0;  // under keep_mutex_: `count` at the last call of keep_entries
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> durable_{0};  // entries below it are known to be durable
  std::atomic<std::size_t> chunk_count_{0};
  std::atomic<std::uint64_t> bytes_in_pool_{0};
  Mutex null_mutex_;  // makes NULL's entry once; rank: before grow_mutex_
  Mutex late_mutex_;  // held to add a value until is_indexed_; rank: before a HashIndex bucket
  Mutex grow_mutex_;  // protects chunks_; rank: after a HashIndex bucket
  pmem::ChunkList chunks_;
};

template <typename F>
void Dictionary::prove_range(std::uint32_t first, std::uint32_t end, RebuildCounts& counts,
                             F&& visit) {
  for (std::uint32_t id = first; id < end; ++id) {
    std::uint64_t hash = 0;
    const Proof proof = prove(id, hash);
    if (proof == Proof::kAbsent) continue;
    if (proof == Proof::kTorn) {
      clear_torn(id);
      ++counts.dropped;
      continue;
    }
    ++counts.entries;
    counts.end = id + 1;
    if (proof == Proof::kNull) {
      if (hints_ != nullptr) decoder_.null_code.store(id, std::memory_order_relaxed);
      if (id != null_code()) counts.misplaced = id;
      continue;
    }
    if (is_text_ && is_misplaced(id)) counts.misplaced = id;
    visit(id, hash);
  }
}

}  // namespace flugs::columns
