#include "columns/dictionary/dictionary_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "columns/cells/column_layout.h"
#include "columns/cells/string_heap.h"
#include "pmem/medium/flush_run.h"
#include "pmem/space/warm_list.h"

namespace flugs::columns {

DictionaryEntries::DictionaryEntries(pmem::Pool& pool, DictionaryLayout& layout, StringHeap& heap,
                                     Type type, Decoder& decoder, std::string owner)
    : pool_(pool),
      layout_(layout),
      heap_(heap),
      decoder_(decoder),
      format_(type, pool.medium()),
      owner_(std::move(owner)),
      chunks_(pool, layout.chunks, owner_) {}

void DictionaryEntries::put_chunk(std::size_t chunk, std::byte* entries) noexcept {
  FLUGS_CHECK(chunk < kChunksMax);
  chunks_in_dram_.put(chunk, entries);
  if (chunk == 0 && !is_text()) {
    guesses_ = std::make_unique<std::atomic<std::uint32_t>[]>(kGuesses);
    for (std::size_t i = 0; i < kGuesses; ++i) guesses_[i].store(kNone, std::memory_order_relaxed);
  }
  entries_end_.store(std::min(first_id_of(chunk + 1), kEntriesMax), std::memory_order_release);
  if (chunk == 0) decoder_.first_entries.store(entries, std::memory_order_release);
}

// ------------------------------------------------------------------------------------- opening

Status DictionaryEntries::load() {
  Status loaded =
      chunks_.load([&](std::size_t chunk, std::uint64_t offset) -> Result<std::uint64_t> {
        const std::uint64_t bytes = chunk_bytes(chunk);
        const std::uint64_t pool_bytes = pool_.medium().bytes();
        if (chunk >= kChunksMax || bytes > pool_bytes || offset > pool_bytes - bytes)
          return corrupt(fmt::format("chunk {} of {} bytes at offset {} lies outside the pool",
                                     chunk, bytes, offset));
        put_chunk(chunk, pool_.base() + offset);
        bytes_in_pool_.fetch_add(bytes, std::memory_order_relaxed);
        return bytes;
      });
  chunk_count_.store(chunks_.count(), std::memory_order_release);
  return loaded;
}

// No durable reference exists to an entry behind the last one that is not all zero: new ValueIDs
// start there.
void DictionaryEntries::begin_opening() noexcept {
  const std::size_t chunks = chunk_count_.load(std::memory_order_relaxed);
  std::uint32_t end = first_id_of(chunks);
  for (std::size_t chunk = chunks; chunk > 0 && end == first_id_of(chunk); --chunk) {
    std::size_t words = chunk_bytes(chunk - 1) / 8;
    const auto* data = reinterpret_cast<const std::uint64_t*>(chunks_in_dram_[chunk - 1]);
    constexpr std::size_t kBlock = 16;  // most of a chunk is unused; no branch per word
    const auto is_zero = [data](std::size_t first_word) {
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < kBlock; ++i) all |= data[first_word + i];
      return all == 0;
    };
    while (words >= kBlock && is_zero(words - kBlock)) words -= kBlock;
    while (words > 0 && data[words - 1] == 0) --words;
    end = first_id_of(chunk - 1) +
          static_cast<std::uint32_t>((words * 8 + entry_bytes() - 1) / entry_bytes());
  }
  set_end(end);
}

// Readers of rows need it before any other entry has been examined.
Status DictionaryEntries::find_null() {
  const std::uint64_t known = layout_.null_code;
  if (known > kEntriesMax)
    return corrupt(fmt::format("ValueID of NULL: expected a ValueID below {}, found {}",
                               kEntriesMax, known - 1));
  std::uint64_t hash = 0;
  const auto id = static_cast<std::uint32_t>(known - 1);
  if (known != 0 && id < count() && prove(id, hash) == Proof::kNull) set_null_code(id);
  return {};
}

bool DictionaryEntries::is_misplaced(std::uint32_t id) const noexcept {
  const std::byte* address = entry(id);
  if (address == nullptr) return true;
  const Cell words = format_.text_words(address);
  return text_cell::tag_of(words.high) == text_cell::kOutOfLine &&
         !heap_.held_at_opening(words.low, text_cell::length_of(words.high));
}

Status DictionaryEntries::check(const RebuildCounts& counts) const {
  const std::uint32_t id = counts.misplaced;
  if (id == kNone) return {};
  std::uint64_t hash = 0;
  if (prove(id, hash) == Proof::kNull)
    return corrupt(fmt::format("ValueID {}: expected a value, found NULL, which has ValueID {}", id,
                               static_cast<std::int32_t>(null_code())));
  return corrupt(fmt::format(
      "ValueID {}: expected a text in the strings of this column, found {} bytes at offset {}", id,
      text(id).size(), text(id).data() - reinterpret_cast<const char*>(pool_.base())));
}

void DictionaryEntries::finish_opening(const RebuildCounts& counts, std::uint32_t end) noexcept {
  has_dropped_.store(counts.dropped != 0, std::memory_order_release);
  std::uint32_t durable = durable_.load(std::memory_order_relaxed);
  while (durable < end &&
         !durable_.compare_exchange_weak(durable, end, std::memory_order_acq_rel)) {
  }
}

// Its ValueID stays unused. A damaged code must not find its bytes and take them for a text.
void DictionaryEntries::clear_torn(std::uint32_t id) noexcept {
  std::byte* address = entry(id);
  FLUGS_CHECK(address != nullptr);
  format_.clear(address);
}

Status DictionaryEntries::corrupt(const std::string& what) const {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}: {}", pool_.path(), owner_, what));
}

Status DictionaryEntries::torn_entry(std::uint32_t id) const {
  return corrupt(
      fmt::format("ValueID {} at offset {}: expected an entry with a valid "
                  "proof, found an invalid proof",
                  id, entry(id) - pool_.base()));
}

// ------------------------------------------------------------------------------------- reading

bool DictionaryEntries::is_present(std::uint32_t id) const noexcept {
  const std::byte* address = id < count() ? entry(id) : nullptr;
  // A torn entry is all zero by now, and a proof never is.
  return address != nullptr && format_.is_present(address);
}

std::vector<std::uint64_t> DictionaryEntries::chunk_bases(std::uint32_t count) const {
  std::vector<std::uint64_t> bases;
  if (is_text() || count == 0 || count > entries_end_.load(std::memory_order_acquire)) return bases;
  for (std::size_t chunk = 0; chunk <= chunk_of(count - 1); ++chunk)
    bases.push_back(reinterpret_cast<std::uint64_t>(chunks_in_dram_[chunk]) -
                    std::uint64_t{first_id_of(chunk)} * entry_bytes());
  return bases;
}

// ------------------------------------------------------------------------------------- writing

// Protocol dictionary. An entry may be referred to durably after step 3.
//   step  store                        made durable by      power cut just after it: recovery
//   1     zeros of a new chunk         chunk_list/3         chunk unreachable: free space
//   2     pointer to the chunk         chunk_list/4         finds no entries in it
//   3     value, then its proof;       commit/1 of every    entry proven: indexed; torn: dropped,
//         before, its hint             transaction that     and no committed row refers to it. A
//                                      uses the entry       hint without entry is harmless
// Must hold:  3 before commit/2 of each transaction that uses the ValueID, also when another one
//             wrote the entry: Dictionary::rely_on puts it on the user's own list of entries to
//             flush.
//             One ValueID per value: entries are appended under the lock of the value's place in
//             the index.
Result<std::uint32_t> DictionaryEntries::append(const Value& value, std::uint64_t hash,
                                                pmem::Persister& persister,
                                                FunctionRef<void(std::uint32_t id)> announce) {
  Cell cell;
  if (!is_text()) {
    cell.low = static_cast<std::uint64_t>(value.raw());
  } else if (value.as_string().size() <= text_cell::kInlineBytesMax) {
    cell = text_cell::make_inline(value.as_string());
  } else {
    Result<Cell> stored = heap_.append(value.as_string(), persister);
    if (!stored.ok()) return std::move(stored).status();
    cell = *stored;
  }
  Result<std::uint32_t> id = reserve(persister);
  if (!id.ok()) return id;
  announce(*id);
  format_.store(entry(*id), *id, cell, hash);
  return id;
}

Result<std::uint32_t> DictionaryEntries::reserve(pmem::Persister& persister) {
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

Status DictionaryEntries::grow(std::size_t chunk, pmem::Persister& persister) {
  const std::lock_guard guard(grow_mutex_);
  if (chunk < chunks_.count()) return {};
  FLUGS_CHECK(chunk == chunks_.count());
  const std::uint64_t bytes = chunk_bytes(chunk);
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

void DictionaryEntries::persist_null_code(std::uint32_t id, pmem::Persister& persister,
                                          pmem::Label label) noexcept {
  FLUGS_DCHECK(id < count());
  std::atomic_ref(layout_.null_code).store(id + 1, std::memory_order_relaxed);
  persister.persist(&layout_.null_code, sizeof layout_.null_code, label);
}

// ---------------------------------------------------------------------------- becoming durable

bool DictionaryEntries::are_written(std::uint32_t first, std::uint32_t last) const noexcept {
  for (std::uint32_t id = first; id <= last; ++id) {
    std::uint64_t hash = 0;
    const Proof proof = prove(id, hash);
    if (proof != Proof::kValue && proof != Proof::kNull) return false;
  }
  return true;
}

void DictionaryEntries::flush(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                              pmem::Label label) const noexcept {
  FLUGS_DCHECK(end <= count());
  while (first < end) {
    const std::uint32_t chunk_end = std::min(end, first_id_of(chunk_of(first) + 1));
    persister.flush(entry(first), std::size_t{chunk_end - first} * entry_bytes(), label);
    pmem::FlushRun texts(persister, label);
    for (std::uint32_t id = first; is_text() && id < chunk_end; ++id)
      if (const std::string_view bytes = text(id); bytes.size() > text_cell::kInlineBytesMax)
        texts.add(bytes.data(), bytes.size());
    first = chunk_end;
  }
}

void DictionaryEntries::mark_durable(std::uint32_t first, std::uint32_t end) noexcept {
  FLUGS_DCHECK(first < end && end <= count());
  note_write(SharedWord::kDictionary, &durable_);
  std::uint32_t durable = durable_.load(std::memory_order_relaxed);
  while (first <= durable && durable < end &&
         !durable_.compare_exchange_weak(durable, end, std::memory_order_acq_rel)) {
  }
}

void DictionaryEntries::release_all() {
  chunks_.release_all([&](std::size_t chunk, std::uint64_t) { return chunk_bytes(chunk); });
}

void DictionaryEntries::add_pages(pmem::WarmList& pages) const {
  for (std::size_t i = chunk_count_.load(std::memory_order_relaxed); i > 0; --i)
    pages.add(pmem::Heat::kValues,
              {pool_.offset_of(chunks_in_dram_[i - 1]).offset, chunk_bytes(i - 1)});
}

}  // namespace flugs::columns
