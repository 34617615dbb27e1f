#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/shared_words.h"
#include "columns/cells/chunk_geometry.h"
#include "columns/cells/decoder.h"
#include "columns/cells/growing_array.h"
#include "columns/dictionary/entry_format.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"

namespace flugs::pmem {
class WarmList;
}

namespace flugs::columns {

struct DictionaryLayout;
class StringHeap;

/// The entries of a dictionary, by ValueID: chunks in the pool, in which an entry never moves and
/// never changes. No durable count exists: entries prove themselves (EntryFormat).
///
/// A ValueID below `count` has been handed out; its entry may not be written yet. Entries below
/// `durable` are known to be durable.
///
/// Thread-safety: any thread, except load, begin_opening, set_end and find_null.
class DictionaryEntries {
 public:
  using Proof = EntryFormat::Proof;
  /// The first chunk has 256 entries; each further one as many as all before it, up to 2^18.
  static constexpr unsigned kFirstChunkBits = 8;
  static constexpr unsigned kChunkBitsMax = 18;
  /// The limit of ValueIDs is well below 32 bits, so that reaching it gives a clear error.
  static constexpr std::uint32_t kEntriesMax = 0xF0000000u;
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// Keeps `decoder` up to date for readers of rows.
  DictionaryEntries(pmem::Pool& pool, DictionaryLayout& layout, StringHeap& heap, Type type,
                    Decoder& decoder, std::string owner);

  // Opening.
  /// Counts of the entries that opening has verified.
  struct RebuildCounts {
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;        ///< torn
    std::uint32_t misplaced = kNone;  ///< an entry with text outside of its strings, or an entry of
                                      ///< NULL that is not the known one
    std::uint32_t end = 0;            ///< behind the last whole entry
  };
  /// Claims the chunks. Fails with kCorrupt.
  Status load();
  /// Finds how many ValueIDs may be in use.
  void begin_opening() noexcept;
  /// Takes the ValueID of NULL from the layout, if the entry is NULL's. Fails with kCorrupt.
  Status find_null();
  /// Verifies entries, clears torn ones, counts the others, and calls visit(id, hash) for each
  /// value. `adopts_null`: an entry of NULL makes its ValueID known; else it must be known.
  template <typename F>
  void verify_range(std::uint32_t first, std::uint32_t end, bool adopts_null, RebuildCounts& counts,
                    F&& visit);
  /// Fails with kCorrupt when one of these entries must not be used.
  Status check(const RebuildCounts& counts) const;
  /// New ValueIDs begin at `end`, from which on no whole entry exists.
  void set_end(std::uint32_t end) noexcept { count_.store(end, std::memory_order_relaxed); }
  /// The entries below `end` have been verified and are durable.
  void finish_opening(const RebuildCounts& counts, std::uint32_t end) noexcept;
  /// Whether the entry exists and has a text where no string of the column lay at opening.
  bool is_misplaced(std::uint32_t id) const noexcept;
  /// Whether opening has cleared torn entries.
  bool has_dropped() const noexcept { return has_dropped_.load(std::memory_order_acquire); }
  /// kCorrupt: the proof of this entry does not fit.
  Status torn_entry(std::uint32_t id) const;
  /// kCorrupt, with the pool and the column in front of `what`.
  Status corrupt(const std::string& what) const;

  // Reading.
  bool is_text() const noexcept { return format_.is_text(); }
  std::uint32_t entry_bytes() const noexcept { return format_.bytes(); }
  std::uint64_t hash_of(const Value& value) const noexcept { return format_.hash_of(value); }
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// 0 for a ValueID that was never given out.
  std::int64_t integer(std::uint32_t id) const noexcept {
    // Most numbers that are worth a dictionary are in the first chunk.
    const std::byte* const first = decoder_.first_entries.load(std::memory_order_acquire);
    if (id < Decoder::kFirstEntries && first != nullptr)
      return format_.integer(first + std::size_t{id} * format_.bytes());
    const std::byte* address = entry(id);
    return address == nullptr ? 0 : format_.integer(address);
  }
  std::string_view text(std::uint32_t id) const noexcept {
    const std::byte* address = entry(id);
    return address == nullptr ? std::string_view() : format_.text(address);
  }
  Value value(std::uint32_t id) const noexcept {
    if (id == null_code()) return Value::null();
    if (is_text()) return Value::from_bytes(format_.type(), text(id));
    return Value::from_raw(format_.type(), integer(id));
  }
  void prefetch(std::uint32_t id) const noexcept { __builtin_prefetch(entry(id)); }
  /// Once opening has cleared torn entries: whether the entry is a value or NULL.
  bool is_present(std::uint32_t id) const noexcept;
  /// Sets `hash` to the value's hash if the entry, below `count`, is a value.
  Proof prove(std::uint32_t id, std::uint64_t& hash) const noexcept {
    return format_.prove(entry(id), id, hash);
  }
  std::uint32_t null_code() const noexcept {
    return decoder_.null_code.load(std::memory_order_acquire);
  }
  /// Makes NULL's ValueID known. Its entry is written.
  void set_null_code(std::uint32_t id) noexcept {
    decoder_.null_code.store(id, std::memory_order_release);
  }
  /// See Dictionary.
  std::vector<std::uint64_t> chunk_bases(std::uint32_t count) const;
  static std::size_t chunk_of(std::uint32_t id) noexcept { return kGeometry.chunk_of(id); }

  // Searching.
  /// Whether the entry, which is whole, holds the value.
  bool holds(std::uint32_t id, const Value& value) const noexcept {
    return is_text() ? text(id) == value.as_string() : integer(id) == value.raw();
  }
  /// Whether the entry is whole and holds the value. It may not exist yet, or be half written.
  bool proves(std::uint32_t id, const Value& value) const noexcept;
  /// The value's ValueID from `first` to before `end`, which is at most count(); kNone if it has
  /// none. Compares the entries themselves.
  std::uint32_t search(const Value& value, std::uint32_t first, std::uint32_t end) const noexcept;
  /// The ValueID of a number that was remembered, if its entry holds `raw`; else kNone. If several
  /// numbers share a place, only the one remembered last is found. Not for texts.
  std::uint32_t remembered(std::int64_t raw) const noexcept {
    if (count() == 0) return kNone;
    const std::uint32_t id = guess(raw).load(std::memory_order_acquire);
    return id != kNone && integer(id) == raw ? id : kNone;
  }
  /// `id` is that of a number, whose entry is whole: so is the entry that `remembered` reads.
  void remember(std::int64_t raw, std::uint32_t id) const noexcept {
    FLUGS_DCHECK(id < count());
    guess(raw).store(id, std::memory_order_release);
  }

  // Writing.
  /// Adds an entry, which will be found by `hash`; calls announce(id) before it is written. Fails
  /// with kOutOfSpace.
  Result<std::uint32_t> append(const Value& value, std::uint64_t hash, pmem::Persister& persister,
                               FunctionRef<void(std::uint32_t id)> announce);
  /// Hands out a ValueID. Fails with kOutOfSpace.
  Result<std::uint32_t> reserve(pmem::Persister& persister);
  /// Writes NULL's entry.
  void store_null(std::uint32_t id) noexcept { format_.store_null(entry(id), id); }
  /// Records NULL's ValueID in the layout.
  void persist_null_code(std::uint32_t id, pmem::Persister& persister, pmem::Label label) noexcept;

  // Becoming durable.
  std::uint32_t durable() const noexcept { return durable_.load(std::memory_order_acquire); }
  /// The same, counted as a read of a word that threads share.
  std::uint32_t durable_shared() const noexcept {
    note_read(SharedWord::kDictionary, &durable_);
    return durable();
  }
  /// Whether all of these entries are whole; `last` is included.
  bool are_written(std::uint32_t first, std::uint32_t last) const noexcept;
  void flush(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
             pmem::Label label) const noexcept;
  /// After the fence: moves the durable prefix to `end`, if it reaches `first`.
  void mark_durable(std::uint32_t first, std::uint32_t end) noexcept;

  std::uint64_t bytes_in_pool() const noexcept {
    return bytes_in_pool_.load(std::memory_order_relaxed);
  }
  void release_all();
  /// Opening: adds the pages of the entries, the youngest first.
  void add_pages(pmem::WarmList& pages) const;

 private:
  static constexpr ChunkGeometry kGeometry{kFirstChunkBits, kChunkBitsMax};
  static_assert(Decoder::kFirstEntries == kGeometry.elements_in(0));
  static_assert(Decoder::kNoCode == kNone && kEntriesMax < kNone);
  static constexpr std::size_t kSmallChunks = kChunkBitsMax - kFirstChunkBits + 1;
  static constexpr std::size_t kChunksMax = kSmallChunks + (kEntriesMax >> kChunkBitsMax) + 1;
  static_assert(kGeometry.chunk_of(kEntriesMax - 1) < kChunksMax);

  static std::uint32_t first_id_of(std::size_t chunk) noexcept {
    return static_cast<std::uint32_t>(kGeometry.first_of(chunk));
  }
  std::uint64_t chunk_bytes(std::size_t chunk) const noexcept {
    return kGeometry.elements_in(chunk) * format_.bytes();
  }
  /// Null when the chunk does not exist: ValueIDs in rows are not checked one by one.
  std::byte* entry(std::uint32_t id) const noexcept {
    const std::size_t chunk = chunk_of(id);
    if (chunk >= kSmallChunks && id >= entries_end_.load(std::memory_order_acquire)) return nullptr;
    std::byte* const first = chunks_in_dram_[chunk];
    if (first == nullptr) return nullptr;
    return first + std::size_t{id - first_id_of(chunk)} * format_.bytes();
  }
  std::atomic<std::uint32_t>& guess(std::int64_t raw) const noexcept {
    FLUGS_DCHECK(guesses_ != nullptr);
    return guesses_[static_cast<std::uint64_t>(raw) % kGuesses];
  }
  template <typename F>
  std::uint32_t search_words(std::uint32_t first, std::uint32_t end, F&& is_wanted) const noexcept;
  Status grow(std::size_t chunk, pmem::Persister& persister);
  void put_chunk(std::size_t chunk, std::byte* entries) noexcept;
  void clear_torn(std::uint32_t id) noexcept;

  pmem::Pool& pool_;
  DictionaryLayout& layout_;
  StringHeap& heap_;
  Decoder& decoder_;  // holds null_code
  const EntryFormat format_;
  std::string owner_;
  // Written under grow_mutex_, before count_ passes it.
  GrowingArray<std::byte*, kSmallChunks> chunks_in_dram_;
  std::atomic<std::uint32_t> entries_end_{0};  // ids below it are in chunks that exist; see entry
  // For the lowest bits of a number, the ValueID that was found last: frequent small numbers need
  // no look-up. Null for texts, and as long as there is no entry.
  static constexpr std::size_t kGuesses = 128;
  std::unique_ptr<std::atomic<std::uint32_t>[]> guesses_;
  std::atomic<bool> has_dropped_{false};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> durable_{0};
  std::atomic<std::size_t> chunk_count_{0};
  std::atomic<std::uint64_t> bytes_in_pool_{0};
  Mutex grow_mutex_;  // protects chunks_; rank: after a HashIndex bucket
  pmem::ChunkList chunks_;
};

template <typename F>
void DictionaryEntries::verify_range(std::uint32_t first, std::uint32_t end, bool adopts_null,
                                     RebuildCounts& counts, F&& visit) {
  FLUGS_CHECK(first <= end && end <= count());
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
      if (adopts_null) set_null_code(id);
      if (id != null_code()) counts.misplaced = id;
      continue;
    }
    if (is_text() && is_misplaced(id)) counts.misplaced = id;
    visit(id, hash);
  }
}

}  // namespace flugs::columns
