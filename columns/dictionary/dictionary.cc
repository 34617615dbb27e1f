#include "columns/dictionary/dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/types.h"
#include "columns/cells/cell.h"
#include "pmem/medium/flush_run.h"

namespace flugs::columns {

namespace {

// Largest number of other transactions' entries that one transaction verifies and flushes, to keep
// the durable prefix growing. More than a few are behind only when many transactions add values at
// once.
constexpr std::uint32_t kHelpedEntriesMax = 256;
constexpr std::uint64_t kNullSalt = 0x4e554c4c4e554c4cu;

std::uint64_t proof_of(std::uint64_t content_hash, std::uint32_t id, std::uint64_t salt) noexcept {
  return mix64(content_hash ^ salt ^ (std::uint64_t{id} * 0x9e3779b97f4a7c15u)) | 1;
}

std::uint64_t load_word(const std::byte* address) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_ACQUIRE);
}
void store_word(std::byte* address, std::uint64_t word) noexcept {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(address), word, __ATOMIC_RELEASE);
}

}  // namespace

Dictionary::Dictionary(pmem::Pool& pool, DictionaryLayout& layout, Use use, HintIndexLayout* hints,
                       StringHeap& heap, Type type, Decoder& decoder, const std::string& owner)
    : pool_(pool),
      medium_(pool.medium()),
      layout_(layout),
      heap_(heap),
      decoder_(decoder),
      type_(type),
      is_text_(is_text_type(type)),
      entry_bytes_(facts_of(type).entry_bytes),
      is_exact_(entry_bytes_ == 8 && hints == nullptr),
      owner_(owner + ", dictionary"),
      hints_(hints == nullptr ? nullptr
                              : std::make_unique<HintIndex>(pool, *hints, owner_ + " index")),
      chunks_(pool, layout.chunks, owner_) {
  if (use != Use::kNone && hints == nullptr) index_.emplace();
}

void Dictionary::put_chunk(std::size_t chunk, std::byte* entries) noexcept {
  FLUGS_CHECK(chunk < kChunksMax);
  chunks_in_dram_.put(chunk, entries);
  if (chunk == 0 && !is_text_) guesses_ = std::make_unique<std::atomic<std::uint32_t>[]>(kGuesses);
  entries_end_.store(std::min(first_id_of(chunk + 1), kEntriesMax), std::memory_order_release);
  if (chunk == 0) decoder_.first_entries.store(entries, std::memory_order_release);
}

Status Dictionary::load() {
  Status loaded = chunks_.load([&](std::size_t chunk,
                                   std::uint64_t offset) -> Result<std::uint64_t> {
    const std::uint64_t bytes = entries_in(chunk) * entry_bytes_;
    const std::uint64_t pool_bytes = pool_.medium().bytes();
    if (chunk >= kChunksMax || bytes > pool_bytes || offset > pool_bytes - bytes)
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: {}: chunk {} of {} bytes at offset {} lies outside the pool",
                                pool_.path(), owner_, chunk, bytes, offset));
    put_chunk(chunk, pool_.base() + offset);
    bytes_in_pool_.fetch_add(bytes, std::memory_order_relaxed);
    return bytes;
  });
  chunk_count_.store(chunks_.count(), std::memory_order_release);
  if (!loaded.ok() || hints_ == nullptr) return loaded;
  return hints_->load();
}

// Protocol rebuild_dictionary, at opening.
//   step  store                            made durable by   power cut just after it: recovery
//   1     zeros over entries whose proof   flush, fence      finds them torn or absent, the others
//         does not fit; no store for the   by the caller     or fewer of them: the same
//         others, but all are flushed
// Must hold:  1 before a transaction refers to an entry. An entry may come from a transaction that
//             aborted, or whose process died before it flushed the entry.
// No durable reference exists to an entry behind the last one that is not all zero: new ValueIDs
// start there.
Status Dictionary::begin_rebuild() {
  if (hints_ != nullptr && !hints_->is_loaded())
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: its index in the pool: expected one that is whole, found a "
                              "damaged one, without which no value is looked for",
                              pool_.path(), owner_));
  const std::size_t chunks = chunk_count_.load(std::memory_order_relaxed);
  std::uint32_t end = first_id_of(chunks);
  for (std::size_t chunk = chunks; chunk > 0 && end == first_id_of(chunk); --chunk) {
    const std::byte* first = chunks_in_dram_[chunk - 1];
    std::size_t words = entries_in(chunk - 1) * entry_bytes_ / 8;
    const auto* data = reinterpret_cast<const std::uint64_t*>(first);
    constexpr std::size_t kBlock = 16;  // most of a chunk is unused; no branch per word
    const auto is_zero = [data](std::size_t first_word) {
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < kBlock; ++i) all |= data[first_word + i];
      return all == 0;
    };
    while (words >= kBlock && is_zero(words - kBlock)) words -= kBlock;
    while (words > 0 && data[words - 1] == 0) --words;
    end = first_id_of(chunk - 1) +
          static_cast<std::uint32_t>((words * 8 + entry_bytes_ - 1) / entry_bytes_);
  }
  count_.store(end, std::memory_order_relaxed);
  if (hints_ != nullptr) return {};
  rebuild_end_ = end;
  is_indexed_.store(end == 0, std::memory_order_relaxed);
  return find_null();
}

// Readers of rows need it before any other entry has been examined.
Status Dictionary::find_null() {
  const std::uint64_t known = layout_.null_code;
  if (known > kEntriesMax)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: ValueID of NULL: expected one below {}, found {}",
                              pool_.path(), owner_, kEntriesMax, known - 1));
  std::uint64_t hash = 0;
  const auto id = static_cast<std::uint32_t>(known - 1);
  if (known != 0 && id < count() && prove(id, hash) == Proof::kNull)
    decoder_.null_code.store(id, std::memory_order_relaxed);
  return {};
}

std::uint32_t Dictionary::count_unproven() const noexcept {
  const std::uint32_t end = count();
  if (hints_ == nullptr) return is_indexed() ? 0 : rebuild_end_;
  return end - static_cast<std::uint32_t>(std::min<std::uint64_t>(kept_end(), end));
}

void Dictionary::rebuild_range(std::uint32_t first, std::uint32_t end,
                               HashIndexBuilder::Source& source, RebuildCounts& counts,
                               pmem::Persister& persister) {
  FLUGS_CHECK(first <= end && end <= rebuild_end_);
  prove_range(first, end, counts,
              [&](std::uint32_t id, std::uint64_t hash) { source.add(hash, id); });
  flush_entries(first, end, persister, "rebuild_dictionary/1");
}

bool Dictionary::is_misplaced(std::uint32_t id) const noexcept {
  const std::byte* address = entry(id);
  if (address == nullptr) return true;
  const std::uint64_t high = load_word(address + 8);
  return text_cell::tag_of(high) == text_cell::kOutOfLine &&
         !heap_.held_at_opening(load_word(address), text_cell::length_of(high));
}

Status Dictionary::check_rebuilt(const RebuildCounts& counts) const {
  const std::uint32_t id = counts.misplaced;
  if (id == kNone) return {};
  std::uint64_t hash = 0;
  if (prove(id, hash) == Proof::kNull)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: ValueID {}: an entry of NULL, whose ValueID is given as {}",
                              pool_.path(), owner_, id, static_cast<std::int32_t>(null_code())));
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: ValueID {}: its text, {} bytes at offset {}, is not where "
                            "strings of this column stand",
                            pool_.path(), owner_, id, text(id).size(),
                            text(id).data() - reinterpret_cast<const char*>(medium_.base())));
}

bool Dictionary::is_present(std::uint32_t code) const noexcept {
  const std::byte* address = code < count() ? entry(code) : nullptr;
  if (address == nullptr) return false;
  // A torn entry is all zero by now, and a proof never is.
  const std::size_t proof = is_text_ ? 16 : entry_bytes_ - 8u;
  return load_word(address + proof) != 0;
}

// Its ValueID stays unused. A damaged code must not find its bytes and take them for a text.
void Dictionary::clear_torn(std::uint32_t id) noexcept {
  std::byte* address = entry(id);
  FLUGS_CHECK(address != nullptr);
  for (std::uint32_t byte = 0; byte < entry_bytes_; byte += 8) store_word(address + byte, 0);
}

Status Dictionary::finish_rebuild(const RebuildCounts& counts) {
  if (Status s = check_rebuilt(counts); !s.ok()) return s;
  has_dropped_.store(counts.dropped != 0, std::memory_order_release);
  // With hints, the entries that `recover` has left; else all that rebuild_range has flushed.
  const std::uint32_t end = hints_ != nullptr ? count() : rebuild_end_;
  std::uint32_t durable = durable_.load(std::memory_order_relaxed);
  while (durable < end &&
         !durable_.compare_exchange_weak(durable, end, std::memory_order_acq_rel)) {
  }
  if (!is_indexed()) index_late_entries();
  return {};
}

std::uint64_t Dictionary::hash_of(const Value& value) const noexcept {
  if (is_text_) return hash_text(value.as_string());
  return entry_bytes_ == 8 ? exact_hash32(static_cast<std::int32_t>(value.raw()))
                           : hash_integer(value.raw());
}

std::int64_t Dictionary::integer(std::uint32_t code) const noexcept {
  const std::byte* address = entry(code);
  if (address == nullptr) return 0;
  if (entry_bytes_ == 8) return static_cast<std::int32_t>(load_word(address));
  return static_cast<std::int64_t>(load_word(address));
}

std::vector<std::uint64_t> Dictionary::chunk_bases(std::uint32_t count) const {
  std::vector<std::uint64_t> bases;
  if (is_text_ || count == 0 || count > entries_end_.load(std::memory_order_acquire)) return bases;
  for (std::size_t chunk = 0; chunk <= chunk_of(count - 1); ++chunk)
    bases.push_back(reinterpret_cast<std::uint64_t>(chunks_in_dram_[chunk]) -
                    std::uint64_t{first_id_of(chunk)} * entry_bytes_);
  return bases;
}

std::string_view Dictionary::text(std::uint32_t code) const noexcept {
  const std::byte* address = entry(code);
  if (address == nullptr) return {};
  return text_cell::view(address, medium_.base(), medium_.bytes());
}

Value Dictionary::value(std::uint32_t code) const noexcept {
  if (code == null_code()) return Value::null();
  if (is_text_) return Value::from_bytes(type_, text(code));
  return Value::from_raw(type_, integer(code));
}

Result<std::uint32_t> Dictionary::encode(const Value& value, Unflushed& unflushed,
                                         pmem::Persister& persister) {
  std::uint32_t id = find(value);
  if (id == kNone) {
    Result<std::uint32_t> added = value.is_null() ? encode_null(persister)
                                  : !is_indexed() ? encode_unindexed(value, persister)
                                                  : encode_new(value, hash_of(value), persister);
    if (!added.ok()) return added;
    id = *added;
  }
  rely_on(id, unflushed);
  return id;
}

// Looks again under the lock, so that a value that two transactions add gets one ValueID.
Result<std::uint32_t> Dictionary::encode_new(const Value& value, std::uint64_t hash,
                                             pmem::Persister& persister) {
  if (hints_ != nullptr) return encode_new_hinted(value, hash, persister);
  FLUGS_DCHECK(index_ && is_indexed());
  return index_->edit(hash, [&](HashIndex::Editor& editor) -> Result<std::uint32_t> {
    std::uint32_t found = kNone;
    editor.any([&](std::uint32_t candidate) {
      if (!is(candidate, value)) return false;
      found = candidate;
      return true;
    });
    if (found != kNone) return found;
    Result<std::uint32_t> fresh = append(value, hash, persister, [](std::uint32_t) {});
    if (fresh.ok()) editor.insert(*fresh);
    return fresh;
  });
}

Status Dictionary::encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                               std::span<Cell> cells, Unflushed& unflushed,
                               pmem::Persister& persister) {
  if (!is_indexed()) return encode_each(values, first, stride, cells, unflushed, persister);
  std::array<std::uint64_t, kBatchMax> hashes;
  std::array<std::uint32_t, kBatchMax> guesses;
  FLUGS_DCHECK(stride != 0 && cells.size() >= values.size());
  Candidates candidates;
  bool are_misses_new = !has_hints_left();  // asked before the look-ups
  std::size_t n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    FLUGS_DCHECK(n < kBatchMax);
    hashes[n] = values[i].is_null() ? 0 : hash_of(values[i]);
    prefetch_index(hashes[n]);
  }
  n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    are_misses_new &= lookup(hashes[n], candidates);
    guesses[n] = candidates.view().empty() ? kNone : candidates.view().front();
    if (guesses[n] != kNone && !is_exact_) __builtin_prefetch(entry(guesses[n]));
  }
  n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    const Value& value = values[i];
    if (guesses[n] != kNone && !value.is_null() && is(guesses[n], value)) {
      cells[i] = {guesses[n], 0, false};
      rely_on(guesses[n], unflushed);
      continue;
    }
    Result<std::uint32_t> id = guesses[n] == kNone && !value.is_null() && are_misses_new
                                   ? encode_new(value, hashes[n], persister)
                                   : encode(value, unflushed, persister);
    if (!id.ok()) return std::move(id).status();
    rely_on(*id, unflushed);
    cells[i] = {*id, 0, false};
  }
  return {};
}

// Protocol dictionary_null, when the index is in DRAM; with hints the word is theirs.
//   step  store                  made durable by     power cut just after it: recovery
//   1     null_code              persist (8 bytes)   the entry it names is not NULL's: it has none
//   2     the entry, as          commit/1            takes the word's
//         dictionary/3
// Must hold:  1 before 2: rows are read before entries are looked for.
Result<std::uint32_t> Dictionary::encode_null(pmem::Persister& persister) {
  const std::lock_guard guard(null_mutex_);
  if (const std::uint32_t known = null_code(); known != kNone) return known;
  Result<std::uint32_t> id = reserve_id(persister);
  if (!id.ok()) return id;
  const Cell zero = is_text_ ? text_cell::make_inline({}) : Cell{};
  // Before the entry, as with hints: once the entry is durable, keep_hints may make this word
  // durable.
  if (hints_ != nullptr) {
    std::atomic_ref(hints_->layout().null_code).store(*id + 1, std::memory_order_release);
  } else {
    std::atomic_ref(layout_.null_code).store(*id + 1, std::memory_order_relaxed);
    persister.persist(&layout_.null_code, sizeof layout_.null_code, "dictionary_null/1");
  }
  write_entry(*id, zero, proof_of(0, *id, kNullSalt));
  decoder_.null_code.store(*id, std::memory_order_release);
  return id;
}

// Protocol dictionary. An entry may be referred to durably after step 3.
//   step  store                        made durable by      power cut just after it: recovery
//   1     zeros of a new chunk         chunk_list/3         chunk unreachable: free space
//   2     pointer to the chunk         chunk_list/4         finds no entries in it
//   3     value, then its proof;       commit/1 of every    entry proven: indexed; torn: dropped,
//         before, its hint             transaction that     and no committed row refers to it. A
//                                      uses the entry       hint without entry misleads nobody
// Must hold:  3 before commit/2 of each transaction that uses the ValueID, also when another one
//             wrote the entry: rely_on puts it on the user's own list of entries to flush.
//             One ValueID per value: entries are appended under the lock of the value's place in
//             the index.
Result<std::uint32_t> Dictionary::append(const Value& value, std::uint64_t hash,
                                         pmem::Persister& persister,
                                         FunctionRef<void(std::uint32_t id)> announce) {
  Cell cell;
  if (!is_text_) {
    cell.low = static_cast<std::uint64_t>(value.raw());
  } else if (value.as_string().size() <= text_cell::kInlineBytesMax) {
    cell = text_cell::make_inline(value.as_string());
  } else {
    Result<Cell> stored = heap_.append(value.as_string(), persister);
    if (!stored.ok()) return std::move(stored).status();
    cell = *stored;
  }
  Result<std::uint32_t> id = reserve_id(persister);
  if (!id.ok()) return id;
  announce(*id);
  write_entry(*id, cell, proof_of(hash, *id, cell.high));
  return id;
}

void Dictionary::write_entry(std::uint32_t id, const Cell& cell, std::uint64_t proof) noexcept {
  std::byte* address = entry(id);
  FLUGS_DCHECK(address != nullptr && proof != 0);
  if (entry_bytes_ == 8) {
    store_word(address, (cell.low & 0xFFFFFFFFu) | (proof << 32));
    return;
  }
  store_word(address, cell.low);
  if (is_text_) store_word(address + 8, cell.high);
  store_word(address + (is_text_ ? 16 : 8), proof);
}

Dictionary::Proof Dictionary::prove(std::uint32_t id, std::uint64_t& hash) const noexcept {
  const std::byte* address = entry(id);
  FLUGS_DCHECK(address != nullptr);
  const std::uint64_t low = load_word(address);
  if (entry_bytes_ == 8) {
    if (low == 0) return Proof::kAbsent;
    const std::uint64_t found = low >> 32;
    hash = exact_hash32(static_cast<std::int32_t>(low));
    if (found == (proof_of(hash, id, 0) & 0xFFFFFFFFu)) return Proof::kValue;
    const bool is_null =
        (low & 0xFFFFFFFFu) == 0 && found == (proof_of(0, id, kNullSalt) & 0xFFFFFFFFu);
    return is_null ? Proof::kNull : Proof::kTorn;
  }
  const std::uint64_t high = is_text_ ? load_word(address + 8) : 0;
  const std::uint64_t proof = load_word(address + (is_text_ ? 16 : 8));
  if (low == 0 && high == 0 && proof == 0) return Proof::kAbsent;
  if (proof == 0) return Proof::kTorn;
  if (proof == proof_of(0, id, kNullSalt))
    return low == 0 && high == 0 ? Proof::kNull : Proof::kTorn;
  if (!is_text_) {
    hash = hash_integer(static_cast<std::int64_t>(low));
    return proof == proof_of(hash, id, 0) ? Proof::kValue : Proof::kTorn;
  }
  if (!text_cell::is_plausible(low, high, pool_.medium().bytes())) return Proof::kTorn;
  // The words that were read: the writer of the entry may have gone on meanwhile.
  const std::uint64_t words[] = {low, high};
  const std::string_view bytes = text_cell::view(reinterpret_cast<const std::byte*>(words),
                                                 pool_.base(), pool_.medium().bytes());
  // The proof covers text and upper word; the padding of the lower word must be zero.
  if (text_cell::tag_of(high) != text_cell::kOutOfLine && low != text_cell::make_inline(bytes).low)
    return Proof::kTorn;
  hash = hash_text(bytes);
  return proof == proof_of(hash, id, high) ? Proof::kValue : Proof::kTorn;
}

Result<std::uint32_t> Dictionary::reserve_id(pmem::Persister& persister) {
  for (;;) {
    std::uint32_t id = count_.load(std::memory_order_acquire);
    if (id >= kEntriesMax)
      return Status(StatusCode::kOutOfSpace,
                    fmt::format("{}: {}: all {} ValueIDs are in use", pool_.path(), owner_, id));
    const std::size_t chunk = chunk_of(id);
    if (chunk >= chunk_count_.load(std::memory_order_acquire)) {
      if (Status s = grow(chunk, persister); !s.ok()) return s;
      continue;
    }
    note_write(SharedWord::kDictionary, &count_);
    if (count_.compare_exchange_weak(id, id + 1, std::memory_order_acq_rel)) return id;
  }
}

Status Dictionary::grow(std::size_t chunk, pmem::Persister& persister) {
  const std::lock_guard guard(grow_mutex_);
  if (chunk < chunks_.count()) return {};
  FLUGS_CHECK(chunk == chunks_.count());
  const std::uint64_t bytes = entries_in(chunk) * entry_bytes_;
  Result<pmem::Extent> extent = pool_.allocator().allocate(bytes, persister);
  if (!extent.ok()) return std::move(extent).status();
  put_chunk(chunk, pool_.base() + extent->offset);
  if (Status s = chunks_.append(*extent, persister); !s.ok()) {
    pool_.allocator().release(*extent);
    return s;
  }
  bytes_in_pool_.fetch_add(bytes, std::memory_order_relaxed);
  chunk_count_.store(chunk + 1, std::memory_order_release);
  return {};
}

bool Dictionary::all_written(std::uint32_t first, std::uint32_t last) const noexcept {
  for (std::uint32_t id = first; id <= last; ++id) {
    std::uint64_t hash = 0;
    const Proof proof = prove(id, hash);
    if (proof != Proof::kValue && proof != Proof::kNull) return false;
  }
  return true;
}

// The entry may be another transaction's, which has not flushed it yet. Entries are listed as
// ranges. A range that begins at or below the durable prefix moves that prefix to its end after the
// fence.
void Dictionary::rely_on(std::uint32_t id, Unflushed& unflushed) {
  FLUGS_DCHECK(id < count());
  note_read(SharedWord::kDictionary, &durable_);
  const std::uint32_t durable = durable_.load(std::memory_order_acquire);
  if (id < durable) return;
  if (Unflushed::Last* last = unflushed.last(*this); last != nullptr) {
    Unflushed::Entries& range = unflushed.entries(last->index);
    if (id >= range.first && id < range.end) return;
    if (id >= range.end && id - range.end < kHelpedEntriesMax && all_written(range.end, id)) {
      range.end = id + 1;
      return;
    }
  } else if (id - durable < kHelpedEntriesMax && all_written(durable, id)) {
    unflushed.add_entries(*this, durable, id + 1);
    return;
  }
  // Gaps between the ranges of several transactions, or the range of an aborted one, would stop the
  // prefix: move it on.
  const Unflushed::Last* last = unflushed.last(*this);
  const std::uint32_t behind = std::max(durable, last != nullptr ? last->helped_until : 0);
  const std::uint32_t ahead = std::min(behind + kHelpedEntriesMax, id);
  if (behind < ahead && all_written(behind, ahead - 1)) {
    unflushed.add_entries(*this, behind, ahead);
    unflushed.last(*this)->helped_until = ahead;
  }
  unflushed.add_entries(*this, id, id + 1);
}

void Dictionary::flush_entries(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                               pmem::Label label) const noexcept {
  FLUGS_DCHECK(end <= count());
  while (first < end) {
    const std::size_t chunk = chunk_of(first);
    const std::uint32_t chunk_end = std::min(end, first_id_of(chunk + 1));
    persister.flush(entry(first), std::size_t{chunk_end - first} * entry_bytes_, label);
    pmem::FlushRun texts(persister, label);
    for (std::uint32_t id = first; is_text_ && id < chunk_end; ++id)
      if (const std::string_view bytes = text(id); bytes.size() > text_cell::kInlineBytesMax)
        texts.add(bytes.data(), bytes.size());
    first = chunk_end;
  }
}

void Dictionary::mark_durable(std::uint32_t first, std::uint32_t end) noexcept {
  FLUGS_DCHECK(first < end && end <= count());
  note_write(SharedWord::kDictionary, &durable_);
  std::uint32_t durable = durable_.load(std::memory_order_relaxed);
  while (first <= durable && durable < end &&
         !durable_.compare_exchange_weak(durable, end, std::memory_order_acq_rel)) {
  }
}

void Dictionary::release_all() {
  chunks_.release_all(
      [&](std::size_t chunk, std::uint64_t) { return entries_in(chunk) * entry_bytes_; });
  if (hints_ != nullptr) hints_->release_all();
  if (index_) index_->release_memory();
}

void Unflushed::flush(pmem::Persister& persister, pmem::Label label) const noexcept {
  for (const Range& range : ranges_) persister.flush(range.address, range.bytes, label);
  for (const Entries& entries : entries_)
    entries.dictionary->flush_entries(entries.first, entries.end, persister, label);
}

void Unflushed::keep_hints(pmem::Persister& persister) const noexcept {
  for (const Entries& entries : entries_)
    while (entries.dictionary->wants_keeping() && entries.dictionary->keep_hints(persister)) {
    }
}

void Unflushed::mark_durable() noexcept {
  for (const Entries& entries : entries_)
    entries.dictionary->mark_durable(entries.first, entries.end);
}

}  // namespace flugs::columns
