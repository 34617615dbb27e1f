#include "tables/rows/deletion_marks.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/shared_words.h"

namespace flugs::engine {

namespace {

// For the thread that holds the lock.
template <typename T>
void store(std::atomic<T>& word, T value) noexcept {
  word.store(value, std::memory_order_release);
}
template <typename T>
T load(const std::atomic<T>& word) noexcept {
  return word.load(std::memory_order_relaxed);
}

}  // namespace

// Damaged places may lead outside the group.
void DeletionMarks::set_doubt(std::uint32_t place, bool is_doubtful) noexcept {
  if (place / 64 >= word_count_) return;
  Word& word = words_[place / 64];
  const std::uint64_t before = load(word);
  if (((before & bit_of(place)) != 0) == is_doubtful) return;
  FLUGS_DCHECK(is_doubtful || load(doubtful_) != 0);
  store(word, before ^ bit_of(place));
  store(doubtful_, is_doubtful ? load(doubtful_) + 1 : load(doubtful_) - 1);
}

void DeletionMarks::mark(std::uint32_t place) noexcept {
  note_write(SharedWord::kRowStamps, &lock_);
  std::shared_ptr<const SeenRows> former;  // freed without the lock
  const std::lock_guard guard(lock_);
  former.swap(seen_);
  set_doubt(place, true);
}

void DeletionMarks::take_back(std::uint32_t place) noexcept {
  note_write(SharedWord::kRowStamps, &lock_);
  std::shared_ptr<const SeenRows> former;  // freed without the lock
  const std::lock_guard guard(lock_);
  former.swap(seen_);
  set_doubt(place, false);
}

// Enters the row in the list before it leaves doubt: a reader that no longer finds it in doubt
// finds it in the list.
void DeletionMarks::note(std::uint32_t place, std::uint64_t timestamp) noexcept {
  if (place / 64 >= word_count_) return;
  note_write(SharedWord::kRowStamps, &lock_);
  std::shared_ptr<const SeenRows> former;
  const std::lock_guard guard(lock_);
  former.swap(seen_);
  if (load(recent_count_) == kRecentMax) settle_older_half();
  const std::uint32_t last = load(recent_count_);
  FLUGS_DCHECK(last < kRecentMax);
  store(recent_[last].timestamp, timestamp);
  store(recent_[last].place, place);
  store(recent_count_, last + 1);
  store(noted_, load(noted_) + 1);
  set_doubt(place, false);
}

// A reader that sees one of these stores also sees the first one, and gives up. Rows are settled
// before they leave the list: a reader that misses a row in the list finds it settled.
void DeletionMarks::settle_older_half() noexcept {
  constexpr std::size_t kHalf = kRecentMax / 2;
  FLUGS_DCHECK(load(recent_count_) == kRecentMax);
  FLUGS_DCHECK(load(settlings_) % 2 == 0);
  store(settlings_, load(settlings_) + 1);
  std::uint64_t latest = load(settled_at_);
  for (std::size_t i = 0; i < kHalf; ++i) latest = std::max(latest, load(recent_[i].timestamp));
  store(settled_at_, latest);
  for (std::size_t i = 0; i < kHalf; ++i) {
    const std::uint32_t place = load(recent_[i].place);
    Word& word = settled_words()[place / 64];
    store(word, load(word) | bit_of(place));
  }
  for (std::size_t i = 0; i < kHalf; ++i) {
    store(recent_[i].timestamp, load(recent_[kHalf + i].timestamp));
    store(recent_[i].place, load(recent_[kHalf + i].place));
  }
  store(recent_count_, static_cast<std::uint32_t>(kHalf));
  store(settlings_, load(settlings_) + 1);
}

// With the lock.
void DeletionMarks::fill(SeenRows& seen) const noexcept {
  FLUGS_DCHECK(load(doubtful_) == 0 && seen.words.size() == word_count_);
  set_bits(seen.words.data(), places_);
  seen.since = load(settled_at_);
  for (std::size_t w = 0; w < word_count_; ++w) seen.words[w] &= ~load(settled_words()[w]);
  for (std::size_t i = 0; i < load(recent_count_); ++i) {
    const std::uint32_t place = load(recent_[i].place);
    seen.words[place / 64] &= ~bit_of(place);
    seen.since = std::max(seen.since, load(recent_[i].timestamp));
  }
  for (const std::uint64_t word : seen.words)
    seen.count += static_cast<std::uint32_t>(std::popcount(word));
}

// A deletion that the snapshot may see was marked, with the lock, before its commit began. So what
// was made since the last change has it.
std::shared_ptr<const SeenRows> DeletionMarks::seen_from(std::uint64_t snapshot) {
  for (std::shared_ptr<SeenRows> made;;) {
    {
      const std::lock_guard guard(lock_);
      if (load(doubtful_) != 0) return nullptr;
      if (seen_ == nullptr && made != nullptr) {
        fill(*made);
        seen_ = std::move(made);
      }
      if (seen_ != nullptr) return seen_->since <= snapshot ? seen_ : nullptr;
    }
    made = std::make_shared<SeenRows>();
    made->words.resize(word_count_);
  }
}

void DeletionMarks::set_bits(std::uint64_t* mask, std::size_t count) noexcept {
  std::fill_n(mask, (count + 63) / 64, ~std::uint64_t{0});
  if (count % 64 != 0) mask[count / 64] = (std::uint64_t{1} << (count % 64)) - 1;
}

// No branch per word: which words have marks cannot be predicted.
bool DeletionMarks::clear_deleted(std::size_t first_word, std::size_t count, std::uint64_t snapshot,
                                  std::uint64_t* mask) const noexcept {
  FLUGS_DCHECK(first_word + count <= word_count_);
  const std::uint64_t settlings = settlings_.load(std::memory_order_acquire);
  const std::size_t recent = recent_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < recent; ++i) {
    const std::uint64_t timestamp = recent_[i].timestamp.load(std::memory_order_acquire);
    const std::uint32_t place = recent_[i].place.load(std::memory_order_acquire);
    if (timestamp <= snapshot && place / 64 - first_word < count)
      mask[place / 64 - first_word] &= ~bit_of(place);
  }
  const Word* settled = settled_words() + first_word;
  for (std::size_t w = 0; w < count; ++w) mask[w] &= ~settled[w].load(std::memory_order_acquire);
  return settled_at_.load(std::memory_order_acquire) <= snapshot && settlings % 2 == 0 &&
         settlings_.load(std::memory_order_relaxed) == settlings;
}

}  // namespace flugs::engine
