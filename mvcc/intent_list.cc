#include "mvcc/intent_list.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace flugs::mvcc {

namespace {

// Up to here a word for each write is no burden, and nothing needs to be sorted.
constexpr std::size_t kPlainMax = 64;
constexpr std::uint32_t kRowsOfMask = 64;

/// The same word for all rows that one mask can name.
Intent head_of(Intent intent) noexcept { return intent & ~Intent{kRowsOfMask - 1}; }
Intent bit_of(Intent intent) noexcept { return Intent{1} << (intent_row(intent) % kRowsOfMask); }

/// In place: two words for neighbours, if these are more than two.
void mask(std::vector<Intent>& words) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < words.size();) {
    const Intent head = head_of(words[i]);
    Intent bits = 0;
    std::size_t end = i;
    for (; end < words.size() && head_of(words[end]) == head; ++end) bits |= bit_of(words[end]);
    if (end - i > 2) {
      words[kept++] = with_mask(head);
      words[kept++] = bits;
    } else {
      for (std::size_t k = i; k < end; ++k) words[kept++] = words[k];
    }
    i = end;
  }
  words.resize(kept);
}

}  // namespace

std::vector<Intent> intents_of(std::span<const Write> writes) {
  std::vector<Intent> words;
  words.reserve(writes.size());
  for (const Write& write : writes)
    words.push_back(make_intent(write.deletes, write.table, write.row));
  if (words.size() <= kPlainMax) return words;
  if (!std::is_sorted(words.begin(), words.end())) std::sort(words.begin(), words.end());
  mask(words);
  return words;
}

void for_each_intent(std::span<const Intent> words, FunctionRef<void(Intent)> visit) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_intent(words[i])) continue;
    if (!has_mask(words[i])) {
      visit(words[i]);
      continue;
    }
    const Intent head = head_of(without_mask(words[i]));
    if (++i == words.size()) return;
    for (Intent bits = words[i]; bits != 0; bits &= bits - 1)
      visit(head | static_cast<Intent>(std::countr_zero(bits)));
  }
}

}  // namespace flugs::mvcc
