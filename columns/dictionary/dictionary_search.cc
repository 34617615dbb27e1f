// Finds a value among the entries, which are the truth: where the index does not exist yet, lacks
// hints, or proposes.

#include <algorithm>

#include "columns/dictionary/dictionary_entries.h"

namespace flugs::columns {

// A hint may name an entry that does not exist yet, or is half written. The entry of NULL, which
// null_code() may not know yet, differs from 0 or an empty text only by its proof.
bool DictionaryEntries::proves(std::uint32_t id, const Value& value) const noexcept {
  if (id >= count()) return false;
  std::uint64_t hash = 0;
  if (is_text())
    return (value.as_string().empty() ? prove(id, hash) == Proof::kValue : is_present(id)) &&
           text(id) == value.as_string();
  // As the entry keeps it: a payload may be wider than its type (Value::from_raw).
  const bool is_cut = entry_bytes() == 8;
  const std::int64_t raw = is_cut ? static_cast<std::int32_t>(value.raw()) : value.raw();
  if (integer(id) != raw) return false;
  // An absent entry is all zero. Any other 8-byte entry is whole, and so is a durable one.
  const bool is_whole = entry_bytes() == 8 || id < durable();
  return (is_whole && raw != 0) || prove(id, hash) == Proof::kValue;
}

// Calls is_wanted(words, id) for the entries with ValueIDs from `first` to before `end`, which is
// at most count(), until it returns true.
template <typename F>
std::uint32_t DictionaryEntries::search_words(std::uint32_t first, std::uint32_t end,
                                              F&& is_wanted) const noexcept {
  FLUGS_DCHECK(end <= count());
  while (first < end) {
    const std::uint32_t chunk_end = std::min(end, first_id_of(chunk_of(first) + 1));
    const auto* words = reinterpret_cast<const std::uint64_t*>(entry(first));
    for (; first < chunk_end; ++first, words += entry_bytes() / sizeof *words)
      if (__builtin_expect(is_wanted(words, first), 0)) return first;
  }
  return kNone;
}

// Entries whose words fit are verified.
std::uint32_t DictionaryEntries::search(const Value& value, std::uint32_t first,
                                        std::uint32_t end) const noexcept {
  const auto word = [](const std::uint64_t* address) {
    return __atomic_load_n(address, __ATOMIC_RELAXED);
  };
  const auto is_entry = [&](std::uint32_t id) {
    std::uint64_t hash = 0;
    return prove(id, hash) == Proof::kValue && (!is_text() || text(id) == value.as_string());
  };
  if (is_text()) {
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
  if (entry_bytes() == 8)
    return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
      return static_cast<std::uint32_t>(word(words)) == static_cast<std::uint32_t>(raw) &&
             is_entry(id);
    });
  return search_words(first, end, [&](const std::uint64_t* words, std::uint32_t id) {
    return word(words) == raw && is_entry(id);
  });
}

}  // namespace flugs::columns
