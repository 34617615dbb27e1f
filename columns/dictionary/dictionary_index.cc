#include "columns/dictionary/dictionary_index.h"

#include <fmt/format.h>

#include <mutex>

namespace flugs::columns {

DictionaryIndex::DictionaryIndex(pmem::Pool& pool, DictionaryEntries& entries, bool is_used,
                                 HintIndexLayout* hints, const std::string& owner)
    : entries_(entries),
      hints_(hints == nullptr ? nullptr
                              : std::make_unique<DictionaryHints>(pool, *hints, entries, owner)),
      is_exact_(entries.entry_bytes() == 8 && hints == nullptr) {
  if (is_used && hints == nullptr) in_dram_.emplace();
}

// ------------------------------------------------------------------------------------- opening

// Protocol rebuild_dictionary, at opening.
//   step  store                            made durable by   power cut just after it: recovery
//   1     zeros over entries whose proof   flush, fence      finds them torn or absent, the others
//         does not fit; no store for the   by the caller     or fewer of them: the same
//         others, but all are flushed
// Must hold:  1 before a transaction refers to an entry. An entry may come from a transaction that
//             aborted, or whose process died before it flushed the entry.
Status DictionaryIndex::begin_rebuild() {
  if (hints_ != nullptr)
    if (Status s = hints_->check_loaded(); !s.ok()) return s;
  entries_.begin_opening();
  if (hints_ != nullptr) return {};
  rebuild_end_ = entries_.count();
  is_complete_.store(rebuild_end_ == 0, std::memory_order_relaxed);
  return entries_.find_null();
}

void DictionaryIndex::rebuild_range(std::uint32_t first, std::uint32_t end,
                                    HashIndexBuilder::Source& source, RebuildCounts& counts,
                                    pmem::Persister& persister) {
  FLUGS_CHECK(first <= end && end <= rebuild_end_);
  entries_.verify_range(first, end, false, counts,
                        [&](std::uint32_t id, std::uint64_t hash) { source.add(hash, id); });
  entries_.flush(first, end, persister, "rebuild_dictionary/1");
}

Status DictionaryIndex::finish_rebuild(const RebuildCounts& counts) {
  if (Status s = entries_.check(counts); !s.ok()) return s;
  // With hints, the entries that `recover` has left; else all that rebuild_range has flushed.
  entries_.finish_opening(counts, hints_ != nullptr ? entries_.count() : rebuild_end_);
  if (!is_complete()) add_late_entries();
  return {};
}

// Threads that add a value wait meanwhile. NULL can be added without waiting; its entry has no
// place in the index.
void DictionaryIndex::add_late_entries() {
  const std::lock_guard guard(late_mutex_);
  FLUGS_CHECK(in_dram_.has_value());
  const std::uint32_t end = entries_.count();
  for (std::uint32_t id = rebuild_end_; id < end; ++id) {
    std::uint64_t hash = 0;
    if (entries_.prove(id, hash) == Proof::kValue)
      in_dram_->edit(hash, [&](HashIndex::Editor& editor) { editor.insert(id); });
  }
  is_complete_.store(true, std::memory_order_release);
}

std::uint32_t DictionaryIndex::count_unproven() const noexcept {
  if (hints_ != nullptr) return hints_->count_unproven();
  return is_complete() ? 0 : rebuild_end_;
}

// ------------------------------------------------------------------------------------- look-ups

std::uint32_t DictionaryIndex::find(const Value& value) const {
  return __builtin_expect(is_complete(), 1) ? find(value, entries_.hash_of(value))
                                            : entries_.search(value, 0, entries_.count());
}

std::uint32_t DictionaryIndex::find(const Value& value, std::uint64_t hash) const {
  // Before the look-up: entries that get their hints after that are searched.
  const std::uint32_t left_end = hints_ == nullptr ? 0 : hints_->left_end();
  const auto left = left_end == 0 ? 0 : static_cast<std::uint32_t>(hints_->kept_end());
  Candidates candidates;
  const bool is_found_out = lookup(hash, candidates);
  for (const std::uint32_t id : candidates.view())
    if (is_value(id, value)) return id;
  if (__builtin_expect(left < left_end, 0))
    if (const std::uint32_t id = entries_.search(value, left, left_end); id != kNone) return id;
  // Without the index the entries are still the truth.
  if (!is_found_out)
    for (std::uint32_t id = 0; id < entries_.count(); ++id)
      if (is_value(id, value)) return id;
  return kNone;
}

// ------------------------------------------------------------------------------------- adding

// Looks again under the lock, so that a value that two transactions add gets one ValueID.
Result<std::uint32_t> DictionaryIndex::find_or_add(const Value& value, std::uint64_t hash,
                                                   pmem::Persister& persister) {
  if (hints_ != nullptr) return hints_->find_or_add(value, hash, persister);
  FLUGS_DCHECK(in_dram_ && is_complete());
  return in_dram_->edit(hash, [&](HashIndex::Editor& editor) -> Result<std::uint32_t> {
    std::uint32_t found = kNone;
    editor.any([&](std::uint32_t candidate) {
      if (!is_value(candidate, value)) return false;
      found = candidate;
      return true;
    });
    if (found != kNone) return found;
    Result<std::uint32_t> fresh = entries_.append(value, hash, persister, [](std::uint32_t) {});
    if (fresh.ok()) editor.insert(*fresh);
    return fresh;
  });
}

// One thread at a time, so that each finds the values that others added. New entries lie behind
// rebuild_end(), where the rebuild does not look: finish_rebuild indexes them.
Result<std::uint32_t> DictionaryIndex::find_or_add_late(const Value& value,
                                                        pmem::Persister& persister) {
  const std::lock_guard guard(late_mutex_);
  const std::uint64_t hash = entries_.hash_of(value);
  if (is_complete()) return find_or_add(value, hash, persister);
  const std::uint32_t found = entries_.search(value, 0, entries_.count());
  if (found != kNone) return found;
  return entries_.append(value, hash, persister, [](std::uint32_t) {});
}

// ------------------------------------------------------------------------------------- audit

Status DictionaryIndex::verify() const {
  const std::uint32_t end = entries_.count();
  std::uint64_t values = 0;
  for (std::uint32_t id = 0; id < end; ++id) {
    std::uint64_t hash = 0;
    const Proof proof = entries_.prove(id, hash);
    if (proof == Proof::kTorn) return entries_.torn_entry(id);
    if (proof != Proof::kValue) continue;
    ++values;
    const Value value = entries_.value(id);
    if (const std::uint32_t found = find(value, hash); found != id)
      return entries_.corrupt(fmt::format("the value {} of ValueID {} is indexed under ValueID {}",
                                          value.to_string(), id, found));
  }
  if (!in_dram_) return {};
  if (const std::size_t indexed = in_dram_->size(); indexed != values)
    return entries_.corrupt(fmt::format("{} entries, but {} in the index", values, indexed));
  return {};
}

void DictionaryIndex::release_all() {
  if (hints_ != nullptr) hints_->release_all();
  if (in_dram_) in_dram_->release_memory();
}

}  // namespace flugs::columns
