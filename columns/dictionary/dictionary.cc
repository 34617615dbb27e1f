#include "columns/dictionary/dictionary.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/check.h"
#include "columns/cells/unflushed.h"

namespace flugs::columns {

namespace {

// Largest number of other transactions' entries that one transaction verifies and flushes, to keep
// the durable prefix growing. More than a few are behind only when many transactions add values at
// once.
constexpr std::uint32_t kHelpedEntriesMax = 256;

}  // namespace

Dictionary::Dictionary(pmem::Pool& pool, DictionaryLayout& layout, Use use, HintIndexLayout* hints,
                       StringHeap& heap, Type type, Decoder& decoder, const std::string& owner)
    : entries_(pool, layout, heap, type, decoder, owner + ", dictionary"),
      index_(pool, entries_, use != Use::kNone, hints, owner + ", dictionary") {}

Status Dictionary::load() {
  if (Status s = entries_.load(); !s.ok()) return s;
  return index_.load();
}

Value Dictionary::value(std::uint32_t code) const noexcept { return entries_.value(code); }

bool Dictionary::is_present(std::uint32_t code) const noexcept { return entries_.is_present(code); }

std::uint32_t Dictionary::find(const Value& value) const {
  if (value.is_null()) return null_code();
  const bool may_remember = !entries_.is_text() && count() != 0;
  if (may_remember)
    if (const std::uint32_t id = entries_.remembered(value.raw()); id != kNone) return id;
  const std::uint32_t id = index_.find(value);
  if (may_remember && id != kNone) entries_.remember(value.raw(), id);
  return id;
}

Result<std::uint32_t> Dictionary::encode(const Value& value, Unflushed& unflushed,
                                         pmem::Persister& persister) {
  std::uint32_t id = find(value);
  if (id == kNone) {
    Result<std::uint32_t> added =
        value.is_null() ? encode_null(persister)
        : !is_indexed() ? index_.find_or_add_late(value, persister)
                        : index_.find_or_add(value, entries_.hash_of(value), persister);
    if (!added.ok()) return added;
    id = *added;
  }
  rely_on(id, unflushed);
  return id;
}

Status Dictionary::encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                               std::span<Cell> cells, Unflushed& unflushed,
                               pmem::Persister& persister) {
  if (!is_indexed()) return encode_each(values, first, stride, cells, unflushed, persister);
  std::array<std::uint64_t, kBatchMax> hashes;
  std::array<std::uint32_t, kBatchMax> guesses;
  FLUGS_DCHECK(stride != 0 && cells.size() >= values.size());
  Candidates candidates;
  bool are_misses_new = index_.has_all_hints();  // asked before the look-ups
  std::size_t n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    FLUGS_DCHECK(n < kBatchMax);
    hashes[n] = values[i].is_null() ? 0 : entries_.hash_of(values[i]);
    index_.prefetch(hashes[n]);
  }
  n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    are_misses_new &= index_.lookup(hashes[n], candidates);
    guesses[n] = candidates.view().empty() ? kNone : candidates.view().front();
    if (guesses[n] != kNone && !index_.is_exact()) prefetch(guesses[n]);
  }
  n = 0;
  for (std::size_t i = first; i < values.size(); i += stride, ++n) {
    const Value& value = values[i];
    if (guesses[n] != kNone && !value.is_null() && index_.is_value(guesses[n], value)) {
      cells[i] = {guesses[n], 0, false};
      rely_on(guesses[n], unflushed);
      continue;
    }
    Result<std::uint32_t> id = guesses[n] == kNone && !value.is_null() && are_misses_new
                                   ? index_.find_or_add(value, hashes[n], persister)
                                   : encode(value, unflushed, persister);
    if (!id.ok()) return std::move(id).status();
    rely_on(*id, unflushed);
    cells[i] = {*id, 0, false};
  }
  return {};
}

std::size_t Dictionary::find_many(std::span<const Value> values, std::span<Cell> cells,
                                  Unflushed& unflushed) {
  FLUGS_DCHECK(values.size() <= kBatchMax && cells.size() >= values.size());
  std::array<std::uint64_t, kBatchMax> hashes;
  const bool is_complete = is_indexed();
  for (std::size_t i = 0; is_complete && i < values.size(); ++i) {
    hashes[i] = entries_.hash_of(values[i]);
    index_.prefetch(hashes[i]);
  }
  Candidates candidates;
  for (std::size_t i = 0; i < values.size(); ++i) {
    cells[i] = {kNone, 0, false};
    if (!is_complete) continue;
    index_.lookup(hashes[i], candidates);
    if (candidates.view().empty()) continue;
    cells[i].low = candidates.view().front();
    if (!index_.is_exact()) prefetch(candidates.view().front());
  }
  std::size_t absent = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto id = static_cast<std::uint32_t>(cells[i].low);
    if (id == kNone || !index_.is_value(id, values[i])) id = find(values[i]);
    cells[i].low = id;
    if (id == kNone) {
      ++absent;
    } else {
      rely_on(id, unflushed);
    }
  }
  return absent;
}

Status Dictionary::encode_each(std::span<const Value> values, std::size_t first, std::size_t stride,
                               std::span<Cell> cells, Unflushed& unflushed,
                               pmem::Persister& persister) {
  for (std::size_t i = first; i < values.size(); i += stride) {
    Result<std::uint32_t> id = encode(values[i], unflushed, persister);
    if (!id.ok()) return std::move(id).status();
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
  Result<std::uint32_t> id = entries_.reserve(persister);
  if (!id.ok()) return id;
  // Before the entry, as with hints: once the entry is durable, keeping hints may make this word
  // durable.
  if (has_hints()) {
    hints()->store_null_code(*id);
  } else {
    entries_.persist_null_code(*id, persister, "dictionary_null/1");
  }
  entries_.store_null(*id);
  entries_.set_null_code(*id);
  return id;
}

// The entry may be another transaction's, which has not flushed it yet. Entries are listed as
// ranges. A range that begins at or below the durable prefix moves that prefix to its end after the
// fence.
void Dictionary::rely_on(std::uint32_t id, Unflushed& unflushed) {
  FLUGS_DCHECK(id < count());
  const std::uint32_t durable = entries_.durable_shared();
  if (id < durable) return;
  if (Unflushed::Last* last = unflushed.last(*this); last != nullptr) {
    Unflushed::Entries& range = unflushed.entries(last->index);
    if (id >= range.first && id < range.end) return;
    if (id >= range.end && id - range.end < kHelpedEntriesMax &&
        entries_.are_written(range.end, id)) {
      range.end = id + 1;
      return;
    }
  } else if (id - durable < kHelpedEntriesMax && entries_.are_written(durable, id)) {
    unflushed.add_entries(*this, durable, id + 1);
    return;
  }
  // Gaps between the ranges of several transactions, or the range of an aborted one, would stop the
  // prefix: move it on.
  const Unflushed::Last* last = unflushed.last(*this);
  const std::uint32_t behind = std::max(durable, last != nullptr ? last->helped_until : 0);
  const std::uint32_t ahead = std::min(behind + kHelpedEntriesMax, id);
  if (behind < ahead && entries_.are_written(behind, ahead - 1)) {
    unflushed.add_entries(*this, behind, ahead);
    unflushed.last(*this)->helped_until = ahead;
  }
  unflushed.add_entries(*this, id, id + 1);
}

void Dictionary::release_all() {
  entries_.release_all();
  index_.release_all();
}

void Dictionary::add_pages(pmem::WarmList& pages) const {
  if (has_hints()) hints()->add_pages(pages);
  entries_.add_pages(pages);
}

void Unflushed::flush(pmem::Persister& persister, pmem::Label label) const noexcept {
  for (const Range& range : ranges_) persister.flush(range.address, range.bytes, label);
  for (const Entries& entries : entries_)
    entries.dictionary->flush_entries(entries.first, entries.end, persister, label);
}

void Unflushed::keep_hints(pmem::Persister& persister) const noexcept {
  for (const Entries& entries : entries_) {
    DictionaryHints* hints = entries.dictionary->hints();
    while (hints != nullptr && hints->wants_keeping() && hints->keep(persister)) {
    }
  }
}

void Unflushed::mark_durable() noexcept {
  for (const Entries& entries : entries_)
    entries.dictionary->mark_durable(entries.first, entries.end);
}

}  // namespace flugs::columns
