// Finds the ValueID of a value: by the index, or, where the index does not exist yet or lacks
// hints, among the entries, which are the truth.

#include <mutex>

#include "base/check.h"
#include "columns/dictionary/dictionary.h"

namespace flugs::columns {

// A hint may name an entry that does not exist yet, or is half written. The entry of NULL, which
// null_code() may not know yet, differs from 0 or an empty text only by its proof.
bool Dictionary::is_hinted(std::uint32_t id, const Value& value) const noexcept {
  if (id >= count()) return false;
  std::uint64_t hash = 0;
  if (is_text_)
    return (value.as_string().empty() ? prove(id, hash) == Proof::kValue : is_present(id)) &&
           text(id) == value.as_string();
  if (integer(id) != value.raw()) return false;
  // An absent entry is all zero. Any other 8-byte entry is whole, and so is a durable one.
  const bool is_whole = entry_bytes_ == 8 || id < durable_.load(std::memory_order_acquire);
  return (is_whole && value.raw() != 0) || prove(id, hash) == Proof::kValue;
}

// Checks a candidate of the index. With exact hashes it is the value, so its entry, which is likely
// to be out of the caches, is not read.
bool Dictionary::is(std::uint32_t id, const Value& value) const noexcept {
  if (is_exact_) return true;
  if (hints_ != nullptr) return is_hinted(id, value);
  return is_text_ ? text(id) == value.as_string() : integer(id) == value.raw();
}

// Whether the entry is whole and holds the number `raw`.
bool Dictionary::is_certain(std::uint32_t id, std::int64_t raw) const noexcept {
  if (id >= count() || integer(id) != raw) return false;
  std::uint64_t hash = 0;
  return (raw != 0 && id < durable_.load(std::memory_order_acquire)) ||
         prove(id, hash) == Proof::kValue;
}

std::uint32_t Dictionary::find(const Value& value) const {
  if (value.is_null()) return null_code();
  const bool may_guess = !is_text_ && count() != 0;
  if (may_guess) {
    const std::uint32_t id = guess(value.raw()).load(std::memory_order_relaxed);
    if (is_certain(id, value.raw())) return id;
  }
  const std::uint32_t id =
      __builtin_expect(is_indexed(), 1) ? find(value, hash_of(value)) : search(value, 0, count());
  if (may_guess && id != kNone) guess(value.raw()).store(id, std::memory_order_relaxed);
  return id;
}

std::uint32_t Dictionary::find(const Value& value, std::uint64_t hash) const {
  // Before the look-up: entries that get their hints after that are searched.
  const std::uint32_t left_end = hints_left_end_.load(std::memory_order_acquire);
  const auto left = left_end == 0 ? 0 : static_cast<std::uint32_t>(kept_end());
  Candidates candidates;
  const bool is_found_out = lookup(hash, candidates);
  for (const std::uint32_t id : candidates.view())
    if (is(id, value)) return id;
  if (__builtin_expect(left < left_end, 0))
    if (const std::uint32_t id = search(value, left, left_end); id != kNone) return id;
  // Without the index the entries are still the truth.
  if (!is_found_out)
    for (std::uint32_t id = 0; id < count(); ++id)
      if (is(id, value)) return id;
  return kNone;
}

// Calls is_wanted(words, id) for the entries with ValueIDs from `first` to before `end`, which is
// at most count(), until it returns true.
template <typename F>
std::uint32_t Dictionary::search_words(std::uint32_t first, std::uint32_t end,
                                       F&& is_wanted) const noexcept {
  FLUGS_DCHECK(end <= count());
  while (first < end) {
    const std::uint32_t chunk_end = std::min(end, first_id_of(chunk_of(first) + 1));
    const auto* words = reinterpret_cast<const std::uint64_t*>(entry(first));
    for (; first < chunk_end; ++first, words += entry_bytes_ / sizeof *words)
      if (__builtin_expect(is_wanted(words, first), 0)) return first;
  }
  return kNone;
}

// The value's ValueID, by searching these entries: entries whose words fit are verified.
std::uint32_t Dictionary::search(const Value& value, std::uint32_t first,
                                 std::uint32_t end) const noexcept {
  const auto word = [](const std::uint64_t* address) {
    return __atomic_load_n(address, __ATOMIC_RELAXED);
  };
  const auto is_entry = [&](std::uint32_t id) {
    std::uint64_t hash = 0;
    return prove(id, hash) == Proof::kValue && (!is_text_ || text(id) == value.as_string());
  };
  if (is_text_) {
    const std::string_view wanted = value.as_string();
    if (wanted.size() <= text_cell::kInlineBytesMax) {
      const Cell cell = text_cell::make_inline(wanted);
      return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
        return word(words) == cell.low && word(words + 1) == cell.high && is_entry(id);
      });
    }
    // The lower word holds the text's place, the upper one its length and first bytes.
    return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
      const std::uint64_t high = word(words + 1);
      return text_cell::tag_of(high) == text_cell::kOutOfLine &&
             text_cell::length_of(high) == wanted.size() && is_entry(id);
    });
  }
  const auto raw = static_cast<std::uint64_t>(value.raw());
  if (entry_bytes_ == 8)
    return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
      return static_cast<std::uint32_t>(word(words)) == static_cast<std::uint32_t>(raw) &&
             is_entry(id);
    });
  return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
    return word(words) == raw && is_entry(id);
  });
}

// One thread at a time, so that each finds the values that others added. New entries lie behind
// rebuild_end(), where the rebuild does not look: finish_rebuild indexes them.
Result<std::uint32_t> Dictionary::encode_unindexed(const Value& value, pmem::Persister& persister) {
  const std::lock_guard guard(late_mutex_);
  const std::uint64_t hash = hash_of(value);
  if (is_indexed()) return encode_new(value, hash, persister);
  if (const std::uint32_t found = search(value, 0, count()); found != kNone) return found;
  return append(value, hash, persister, [](std::uint32_t) {});
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

// Threads that add a value wait meanwhile. NULL can be added without waiting; its entry has no
// place in the index.
void Dictionary::index_late_entries() {
  const std::lock_guard guard(late_mutex_);
  FLUGS_CHECK(index_.has_value());
  const std::uint32_t end = count();
  for (std::uint32_t id = rebuild_end_; id < end; ++id) {
    std::uint64_t hash = 0;
    if (prove(id, hash) == Proof::kValue)
      index_->edit(hash, [&](HashIndex::Editor& editor) { editor.insert(id); });
  }
  is_indexed_.store(true, std::memory_order_release);
}

}  // namespace flugs::columns
