#include "columns/dictionary/dictionary_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/check.h"

namespace flugs::columns {

namespace {

// Younger entries are left to the transactions that added them.
constexpr std::uint32_t kEntriesLeftMax = 1u << 15;

}  // namespace

DictionaryHints::DictionaryHints(pmem::Pool& pool, HintIndexLayout& layout,
                                 DictionaryEntries& entries, const std::string& owner)
    : entries_(entries), layout_(layout), index_(pool, layout, owner + " index") {}

Status DictionaryHints::check_loaded() const {
  if (index_.is_loaded()) return {};
  return entries_.corrupt(
      "expected an intact index in the pool, found a damaged one: no value can be looked up");
}

std::uint32_t DictionaryHints::count_unproven() const noexcept {
  const std::uint32_t end = entries_.count();
  return end - static_cast<std::uint32_t>(std::min<std::uint64_t>(kept_end(), end));
}

void DictionaryHints::store_null_code(std::uint32_t id) noexcept {
  std::atomic_ref(layout_.null_code).store(id + 1, std::memory_order_release);
}

Result<std::uint32_t> DictionaryHints::find_or_add(const Value& value, std::uint64_t hash,
                                                   pmem::Persister& persister) {
  Result<std::uint32_t> id = kNone;
  Status s = index_.edit(hash, persister, [&](HintIndex::Editor& editor) {
    const auto is_wanted = [&](std::uint32_t candidate) {
      if (entries_.proves(candidate, value)) id = candidate;
      return *id != kNone;
    };
    HintIndex::Space room = HintIndex::Space::kEnough;
    std::uint64_t* free = nullptr;
    if (editor.any(is_wanted, free)) return room;
    if (free == nullptr) return HintIndex::Space::kNone;
    id = entries_.append(value, hash, persister,
                         [&](std::uint32_t fresh) { room = editor.insert_at(free, fresh); });
    return room;
  });
  if (!s.ok()) return s;
  return id;
}

// In blocks, because entry by entry each would wait for the line of its hint.
void DictionaryHints::flush(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
                            pmem::Label label) const noexcept {
  constexpr std::uint32_t kAtATime = 32;
  std::array<std::uint64_t, kAtATime> hashes;
  std::array<std::uint32_t, kAtATime> ids;
  while (first < end) {
    std::size_t count = 0;
    const std::uint32_t block_end = first + std::min(kAtATime, end - first);
    for (std::uint32_t id = first; id < block_end; ++id) {
      std::uint64_t hash = 0;
      if (entries_.prove(id, hash) != Proof::kValue) continue;
      index_.prefetch(hash);
      hashes[count] = hash;
      ids[count++] = id;
    }
    for (std::size_t i = 0; i < count; ++i) index_.flush(hashes[i], ids[i], persister, label);
    first = block_end;
  }
}

// Committing transactions do not make the hints left from opening, unless no thread does.
bool DictionaryHints::wants_keeping() const noexcept {
  const std::uint32_t durable = entries_.durable();
  const std::uint64_t kept =
      std::max<std::uint64_t>(kept_end(), left_end_.load(std::memory_order_relaxed));
  return durable >= kept + tail_max_.load(std::memory_order_relaxed) ||
         entries_.count() > durable + 2 * kEntriesLeftMax;
}

std::uint64_t DictionaryHints::kept_end() const noexcept {
  return std::atomic_ref(layout_.durable_end).load(std::memory_order_acquire);
}

// Some entries lie between those of other transactions, or belong to an aborted one. They are known
// to be durable only once a new transaction relies on later ones. Large transactions that add only
// new values leave more entries behind than they help on. Opening would have to examine the hints
// of all these entries. So keep_entries makes them durable when no more are added, or many were
// added since.
//
// Protocol keep_entries.
//   step  store                          made durable by    power cut just after it: recovery
//   1     entries from the durable       flush, fence       verifies them like others: they are
//         prefix on that are whole                          values without a user yet
// Must hold:  1 before the prefix moves: entries below it are not flushed any more.
bool DictionaryHints::keep_entries(pmem::Persister& persister, std::uint32_t at_most) noexcept {
  const std::uint32_t count_now = entries_.count();
  const bool is_quiet = std::exchange(quiet_count_, count_now) == count_now;
  const std::uint32_t first = entries_.durable();
  const std::uint32_t old = is_quiet ? count_now : count_now - std::min(count_now, kEntriesLeftMax);
  if (old <= first) return false;
  const std::uint32_t end = first + std::min(old - first, at_most);
  std::uint32_t whole = first;
  while (whole < end && entries_.are_written(whole, whole)) ++whole;
  if (whole == first) return false;
  entries_.flush(first, whole, persister, "keep_entries/1");
  persister.fence("keep_entries/1");
  entries_.mark_durable(first, whole);
  return whole == end && end < old;
}

// Protocol keep_hints.
//   step  store                          made durable by    power cut just after it: recovery
//   1     hints of entries that are      flush, fence       leaves those of entries from
//         durable, those that opening                       durable_end on to the next time
//         left first; null_code
//   2     durable_end                    persist (8 bytes)  begins there
// Must hold:  1 before 2: below durable_end nothing is examined. Hints are written before their
//             entries, so a durable entry has its hint, unless it was there at opening: an entry in
//             flight when durable_ is read is not below it.
// The entries begin at durable_end = `first`.
void DictionaryHints::publish(std::uint32_t first, std::uint32_t end,
                              pmem::Persister& persister) noexcept {
  FLUGS_CHECK(first < end && end <= entries_.durable());
  flush(first, end, persister, "keep_hints/1");
  persister.flush(&layout_.null_code, sizeof layout_.null_code, "keep_hints/1");
  persister.fence("keep_hints/1");
  std::atomic_ref<std::uint64_t>(layout_.durable_end).store(end, std::memory_order_release);
  persister.persist(&layout_.durable_end, sizeof layout_.durable_end, "keep_hints/2");
}

bool DictionaryHints::keep(pmem::Persister& persister, std::uint32_t at_most,
                           std::uint32_t left_at_most) noexcept {
  // Called for every column a hundred times a second.
  if (entries_.count() == kept_end()) return false;
  const std::unique_lock only(keep_mutex_, std::try_to_lock);
  if (!only.owns_lock()) return false;
  if (has_left()) return keep_left(persister, left_at_most);
  const bool has_more_entries = keep_entries(persister, at_most);
  const auto first = static_cast<std::uint32_t>(kept_end());
  const std::uint32_t durable = entries_.durable();
  if (durable <= first) return has_more_entries;
  const std::uint32_t end = first + std::min(durable - first, at_most);
  publish(first, end, persister);
  return has_more_entries || end < durable;
}

// Makes some of the hints left from opening, under keep_mutex_. False: the next one has no room, or
// all durable entries have hints.
bool DictionaryHints::keep_left(pmem::Persister& persister, std::uint32_t at_most) noexcept {
  const auto first = static_cast<std::uint32_t>(kept_end());
  const std::uint32_t last = left_end();
  const std::uint32_t wanted = first + std::min(last - first, at_most);
  const std::uint32_t end = add(first, wanted, persister);
  if (end != first) publish(first, end, persister);
  if (end == last) left_end_.store(0, std::memory_order_release);
  return end == wanted && end < entries_.durable();
}

bool DictionaryHints::enter_left(pmem::Persister& persister, std::uint32_t at_most) noexcept {
  if (!has_left()) return false;
  const std::lock_guard only(keep_mutex_);
  return has_left() && keep_left(persister, at_most) && has_left();
}

// Protocol recover_dictionary, at opening, when the index is in the pool: as rebuild_dictionary,
// but only from durable_end on. Hints of these entries may be missing after a power cut. keep_hints
// makes them later, because each lies on a page of its own.
//   step  store                            made durable by   power cut just after it: recovery
//   1     zeros over entries whose proof   flush, fence      finds them torn or absent, the others
//         does not fit; no store for the                     or fewer of them: the same
//         others, but all are flushed;
//         null_code
// Must hold:  1 before a transaction refers to an entry.
// No durable reference exists to an entry behind the last whole one: new ValueIDs start there.
Status DictionaryHints::recover(DictionaryEntries::RebuildCounts& counts,
                                pmem::Persister& persister) {
  index_.recover(persister);
  const std::uint32_t end = entries_.count();
  if (layout_.durable_end > end)
    return entries_.corrupt(
        fmt::format("durable entries: expected at most {}, found {}", end, layout_.durable_end));
  const auto first = static_cast<std::uint32_t>(layout_.durable_end);
  if (Status s = recover_null(first); !s.ok()) return s;
  if (Status s = check_youngest_texts(first); !s.ok()) return s;
  unchecked_end_ = first;
  counts.end = first;
  entries_.verify_range(first, end, true, counts, [](std::uint32_t, std::uint64_t) {});
  if (const std::uint32_t null = entries_.null_code(); null != kNone) layout_.null_code = null + 1;
  entries_.flush(first, end, persister, "recover_dictionary/1");
  persister.flush(&layout_.null_code, sizeof layout_.null_code, "recover_dictionary/1");
  persister.fence("recover_dictionary/1");
  // A later opening would not find the damage again.
  if (Status s = entries_.check(counts); !s.ok()) return s;
  // Zeros follow, so the next opening would not know that there had been more entries.
  entries_.set_end(counts.end);
  left_end_.store(counts.end == first ? 0 : counts.end, std::memory_order_release);
  return {};
}

// Entries below durable_end are not examined. But if the end of strings is damaged and lies before
// the youngest of their texts, the next text would overwrite it.
Status DictionaryHints::check_youngest_texts(std::uint32_t end) const {
  constexpr std::uint32_t kChecked = 128;  // a page
  DictionaryEntries::RebuildCounts counts;
  for (std::uint32_t id = end - std::min(end, kChecked); entries_.is_text() && id < end; ++id)
    if (entries_.is_present(id) && entries_.is_misplaced(id)) counts.misplaced = id;
  return entries_.check(counts);
}

// Adopts the pool's word for NULL's entry. A crash may have lost the entry if no transaction relied
// on it.
Status DictionaryHints::recover_null(std::uint32_t durable_end) {
  std::uint64_t& known = layout_.null_code;
  if (known == 0) return {};
  const std::uint64_t id = known - 1;
  std::uint64_t hash = 0;
  if (id < entries_.count() &&
      entries_.prove(static_cast<std::uint32_t>(id), hash) == Proof::kNull) {
    entries_.set_null_code(static_cast<std::uint32_t>(id));
  } else if (id < durable_end) {
    return entries_.corrupt(
        fmt::format("ValueID {}: expected the entry of NULL, found the entry of a value", id));
  } else {
    known = 0;
  }
  return {};
}

// Returns the entry at which it stopped because its hint has no room. It goes on where a look-up of
// the value reports damage, since such a look-up searches all entries. In other parts of a damaged
// index, which gets no more room, a missing hint would go unnoticed.
std::uint32_t DictionaryHints::add(std::uint32_t first, std::uint32_t end,
                                   pmem::Persister& persister) noexcept {
  FLUGS_DCHECK(end <= entries_.count());
  for (std::uint32_t id = first; id < end; ++id) {
    std::uint64_t hash = 0;
    if (entries_.prove(id, hash) != Proof::kValue) continue;
    try {
      const Status s = index_.edit(
          hash, persister, [&](HintIndex::Editor& editor) { return editor.insert(id, nullptr); });
      Candidates unused;
      if (!s.ok() && index_.lookup(hash, unused)) return id;
    } catch (const std::bad_alloc&) {
      return id;
    }
  }
  return end;
}

Status DictionaryHints::check_entries(std::uint32_t at_most, bool& has_more) {
  const std::uint32_t first = unchecked_.load(std::memory_order_relaxed);
  FLUGS_CHECK(first <= unchecked_end_ && unchecked_end_ <= entries_.count());
  const std::uint32_t end = first + std::min(at_most, unchecked_end_ - first);
  for (std::uint32_t id = first; id < end; ++id) {
    std::uint64_t hash = 0;
    if (entries_.prove(id, hash) != Proof::kTorn) continue;
    unchecked_.store(id, std::memory_order_release);  // the next call must find it again
    return entries_.torn_entry(id);
  }
  unchecked_.store(end, std::memory_order_release);
  has_more = end < unchecked_end_;
  return {};
}

}  // namespace flugs::columns
