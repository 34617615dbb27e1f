#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "columns/dictionary/dictionary_entries.h"
#include "columns/dictionary/dictionary_index.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::columns {

class Unflushed;

/// A column's persistent dictionary: ValueID -> value in the pool, append-only (DictionaryEntries);
/// value -> ValueID in a DRAM index that is rebuilt at restart, or in a HintIndex in the pool
/// (DictionaryIndex). NULL is an entry like any other.
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
  static constexpr unsigned kFirstChunkBits = DictionaryEntries::kFirstChunkBits;
  static constexpr unsigned kChunkBitsMax = DictionaryEntries::kChunkBitsMax;
  static constexpr std::uint32_t kEntriesMax = DictionaryEntries::kEntriesMax;
  static constexpr std::uint32_t kNone = DictionaryEntries::kNone;

  enum class Use : std::uint8_t { kNone, kValues };
  /// `use` kNone: the column holds its values directly; nothing is looked up or added. `hints` is
  /// null for an index in DRAM. The dictionary keeps `decoder` up to date for readers of rows.
  Dictionary(pmem::Pool& pool, DictionaryLayout& layout, Use use, HintIndexLayout* hints,
             StringHeap& heap, Type type, Decoder& decoder, const std::string& owner);

  /// Opening, step 1: claims the chunks and finds how many ValueIDs may be in use.
  Status load();
  /// Opening, step 2: begin_rebuild, once. Then, when the index is in DRAM, at opening or later,
  /// while any thread reads and adds values: rebuild_range for ranges of the ValueIDs below
  /// `rebuild_end` (in parallel), then the builder's groups, then finish_rebuild. With hints,
  /// DictionaryHints::recover takes the place of rebuild_range.
  using RebuildCounts = DictionaryEntries::RebuildCounts;
  Status begin_rebuild() { return index_.begin_rebuild(); }
  std::uint32_t rebuild_end() const noexcept { return index_.rebuild_end(); }
  void rebuild_range(std::uint32_t first, std::uint32_t end, HashIndexBuilder::Source& source,
                     RebuildCounts& counts, pmem::Persister& persister) {
    index_.rebuild_range(first, end, source, counts, persister);
  }
  /// Only with `use` kValues and without hints.
  HashIndex& index() noexcept { return index_.in_dram(); }
  /// `counts` is the sum over all ranges. Fails with kCorrupt when a range had an entry that must
  /// not be used; then the index is not used either.
  Status finish_rebuild(const RebuildCounts& counts) { return index_.finish_rebuild(counts); }
  /// Whether the rebuild is done.
  bool is_indexed() const noexcept { return index_.is_complete(); }
  /// After begin_rebuild: the number of entries to verify.
  std::uint32_t count_unproven() const noexcept { return index_.count_unproven(); }
  /// Whether opening has cleared torn entries. No committed row names one of them, unless the entry
  /// was damaged.
  bool has_dropped() const noexcept { return entries_.has_dropped(); }

  /// The index in the pool; null when the index is in DRAM.
  DictionaryHints* hints() noexcept { return index_.hints(); }
  const DictionaryHints* hints() const noexcept { return index_.hints(); }
  bool has_hints() const noexcept { return hints() != nullptr; }

  /// The value's ValueID; appends a new value. `unflushed` takes what must be flushed before the
  /// ValueID is referred to durably. Fails with kOutOfSpace.
  Result<std::uint32_t> encode(const Value& value, Unflushed& unflushed,
                               pmem::Persister& persister);
  /// The same for a number, by its payload, that was encoded not long ago and whose entry is
  /// durable; kNone: ask encode.
  std::uint32_t encoded_lately(std::int64_t raw) const noexcept {
    const std::uint32_t id = entries_.remembered(raw);
    return id < entries_.durable_shared() ? id : kNone;
  }
  std::uint32_t durable_null_code() const noexcept {
    const std::uint32_t id = null_code();
    return id < entries_.durable_shared() ? id : kNone;
  }
  /// As encode for every `stride`-th of `values` from `first` on; the ValueIDs go to the same
  /// places of `cells`. The cache misses of the look-ups overlap. At most kBatchMax values.
  static constexpr std::size_t kBatchMax = 64;
  Status encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                     std::span<Cell> cells, Unflushed& unflushed, pmem::Persister& persister);
  /// As encode_many, for values that are not NULL, one for each cell; but adds nothing: the cell of
  /// a value without a ValueID gets kNone. Returns the number of these.
  std::size_t find_many(std::span<const Value> values, std::span<Cell> cells, Unflushed& unflushed);
  /// The value's ValueID, kNone if it has none.
  std::uint32_t find(const Value& value) const;

  /// Payload of a fixed-width type, without checking for NULL; 0 for a ValueID that was never given
  /// out.
  std::int64_t integer(std::uint32_t code) const noexcept { return entries_.integer(code); }
  std::string_view text(std::uint32_t code) const noexcept { return entries_.text(code); }
  Value value(std::uint32_t code) const noexcept;
  /// Starts loading the entry that the three above read.
  void prefetch(std::uint32_t code) const noexcept { entries_.prefetch(code); }
  /// When it is indexed: whether a ValueID names a value, or NULL.
  bool is_present(std::uint32_t code) const noexcept;
  std::uint32_t null_code() const noexcept { return entries_.null_code(); }

  /// For reading many entries of fixed-width values: entry `code`, below `count`, is at
  /// bases[chunk_of(code)] + code * entry_bytes(). Empty when the entries cannot be read that way.
  std::vector<std::uint64_t> chunk_bases(std::uint32_t count) const {
    return entries_.chunk_bases(count);
  }
  static std::size_t chunk_of(std::uint32_t id) noexcept { return DictionaryEntries::chunk_of(id); }
  std::uint32_t entry_bytes() const noexcept { return entries_.entry_bytes(); }

  /// ValueIDs below it have been handed out.
  std::uint32_t count() const noexcept { return entries_.count(); }
  std::uint64_t bytes_in_pool() const noexcept { return entries_.bytes_in_pool(); }
  /// In DRAM.
  std::size_t index_bytes() const noexcept { return index_.memory_bytes(); }
  std::uint64_t hint_bytes() const noexcept { return has_hints() ? hints()->bytes_in_pool() : 0; }
  /// Full audit of an indexed dictionary: every entry is whole, and the index finds it under its
  /// own ValueID only.
  Status verify() const { return index_.verify(); }
  void release_all();
  /// Opening: adds the pages of its entries, the youngest first, and of its index in the pool.
  void add_pages(pmem::WarmList& pages) const;

  // For Unflushed, which lists entries that a transaction relies on.
  void flush_entries(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                     pmem::Label label) const noexcept {
    entries_.flush(first, end, persister, label);
  }
  void mark_durable(std::uint32_t first, std::uint32_t end) noexcept {
    entries_.mark_durable(first, end);
  }

 private:
  Result<std::uint32_t> encode_null(pmem::Persister& persister);
  Status encode_each(std::span<const Value> values, std::size_t first, std::size_t stride,
                     std::span<Cell> cells, Unflushed& unflushed, pmem::Persister& persister);
  void rely_on(std::uint32_t id, Unflushed& unflushed);

  DictionaryEntries entries_;
  DictionaryIndex index_;
  Mutex null_mutex_;  // makes NULL's entry once; rank: before DictionaryEntries::grow_mutex_
};

}  // namespace flugs::columns
