// What a dictionary does whose index is not there yet, or lacks hints: its entries are the truth.

#include <mutex>

#include "columns/dictionary.h"

namespace flugs::columns {

// Calls is_wanted(words) with each entry's words, of ValueIDs from `first` to before `end`, which
// is at most count(), until it is.
template <typename F>
std::uint32_t Dictionary::search_words(std::uint32_t first, std::uint32_t end,
                                       F&& is_wanted) const noexcept {
  while (first < end) {
    const std::uint32_t chunk_end = std::min(end, first_id_of(chunk_of(first) + 1));
    const auto* words = reinterpret_cast<const std::uint64_t*>(entry(first));
    for (; first < chunk_end; ++first, words += entry_bytes_ / sizeof *words)
      if (__builtin_expect(is_wanted(words, first), 0)) return first;
  }
  return kNone;
}

// The value's ValueID, by looking at these entries: those whose words fit are proven.
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
    // Where it stands is in the lower word, its length and first bytes in the upper one.
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

// One at a time: what one adds the next one finds. Entries that are added now stand behind
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

// Whoever adds a value meanwhile waits; an entry of NULL, who does not, has no place in the index.
void Dictionary::index_late_entries() {
  const std::lock_guard guard(late_mutex_);
  const std::uint32_t end = count();
  for (std::uint32_t id = rebuild_end_; id < end; ++id) {
    std::uint64_t hash = 0;
    if (prove(id, hash) == Proof::kValue)
      index_.edit(hash, [&](HashIndex::Editor& editor) { editor.insert(id); });
  }
  is_indexed_.store(true, std::memory_order_release);
}

}  // namespace flugs::columns
