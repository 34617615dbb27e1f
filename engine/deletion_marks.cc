#include "engine/deletion_marks.h"

namespace flugs::engine {

// Without a branch per word: which words have marks is anybody's guess.
bool DeletionMarks::clear_settled(std::size_t first_word, std::size_t count, std::uint64_t snapshot,
                                  std::uint64_t* mask) const noexcept {
  std::uint64_t doubtful = 0;
  const Word* words = &words_[first_word];
  for (std::size_t w = 0; w < count; ++w) {
    const std::uint64_t marked = words[w].marked.load(std::memory_order_acquire);
    const std::uint64_t settled = words[w].settled.load(std::memory_order_acquire);
    doubtful |= marked & ~settled;
    mask[w] &= ~settled;
  }
  // The bits before the time-stamp: pairs with settle.
  return doubtful == 0 && settled_at_.load(std::memory_order_acquire) <= snapshot;
}

// The time-stamp before the bits: who sees one of these bits sees the time-stamp, too.
void DeletionMarks::settle(std::span<const std::uint32_t> places,
                           std::uint64_t timestamp) noexcept {
  std::uint64_t known = settled_at_.load(std::memory_order_relaxed);
  while (known < timestamp &&
         !settled_at_.compare_exchange_weak(known, timestamp, std::memory_order_acq_rel)) {
  }
  for (std::size_t i = 0; i < places.size();) {
    const std::size_t word = places[i] / 64;
    std::uint64_t bits = 0;
    for (; i < places.size() && places[i] / 64 == word; ++i) bits |= bit_of(places[i]);
    if (word < word_count_) words_[word].settled.fetch_or(bits, std::memory_order_release);
  }
}

}  // namespace flugs::engine
