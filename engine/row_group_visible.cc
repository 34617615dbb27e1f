// Which rows of a group a transaction sees: what scans ask.

#include <algorithm>
#include <array>
#include <bit>

#include "columns/main_blocks.h"
#include "engine/row_group.h"

namespace flugs::engine {

namespace {

bool is_stamped(const mvcc::VersionLayout& version) noexcept {
  return mvcc::load_stamp(version.created) != 1 ||
         mvcc::load_stamp(version.deleted) != mvcc::kNoStamp;
}

// Whether a row that a transaction does not see is deleted in every later snapshot as well; then
// `latest` is at least the time-stamp of its deletion. Of a row that has left the indexes no
// snapshot is left that sees it.
bool is_gone_for_good(const mvcc::VersionLayout& version, std::uint64_t& latest) noexcept {
  const mvcc::Stamp created = mvcc::load_stamp(version.created);
  if (created == mvcc::kNoStamp) return true;
  const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
  if (created != 1 || deleted == mvcc::kNoStamp || mvcc::is_tag(deleted)) return false;
  latest = std::max(latest, deleted);
  return true;
}

// Of the rows that a word of places stores, the one that comes after `before` others.
std::uint32_t stored_bit(std::uint64_t stored, std::uint32_t before) noexcept {
  for (; before != 0 && stored != 0; --before) stored &= stored - 1;
  return stored == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(stored));
}

}  // namespace

/// MVCC entries that are read together, so that the processor waits for all of them at once.
class RowGroup::Doubtful {
 public:
  Doubtful(const RowGroup& group, const mvcc::Visibility& visibility, std::uint32_t first,
           std::uint64_t* mask) noexcept
      : group_(group), visibility_(visibility), first_(first), mask_(mask) {}

  void add(std::uint32_t place) noexcept {
    const mvcc::VersionLayout* version = group_.stamped_version(group_.offset_of(place));
    if (version == nullptr) return;
    __builtin_prefetch(version);
    places_[count_] = place;
    versions_[count_] = version;
    if (++count_ == kTogether) read();
  }
  /// Clears the bits of rows that the transaction does not see.
  void read() noexcept {
    std::array<std::uint32_t, kTogether> gone;
    std::size_t gone_count = 0;
    std::uint64_t latest = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (visibility_.sees(*versions_[i])) continue;
      const std::uint32_t at = places_[i] - first_;
      mask_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
      if (is_gone_for_good(*versions_[i], latest)) gone[gone_count++] = places_[i];
    }
    if (gone_count != 0) group_.marks_->settle(std::span(gone).first(gone_count), latest);
    entries_read_ += std::exchange(count_, 0);
  }
  std::uint64_t entries_read() const noexcept { return entries_read_; }

 private:
  static constexpr std::size_t kTogether = 64;

  const RowGroup& group_;
  const mvcc::Visibility& visibility_;
  const std::uint32_t first_;
  std::uint64_t* const mask_;
  std::size_t count_ = 0;
  std::uint64_t entries_read_ = 0;
  std::array<std::uint32_t, kTogether> places_;
  std::array<const mvcc::VersionLayout*, kTogether> versions_;
};

// A place is not before the word of places with the same number, as a word has 64 rows at most.
std::uint32_t RowGroup::offset_of(std::uint32_t place) const noexcept {
  if (places_ == nullptr) return place;
  const RowPlacesLayout* const end = places_ + place_words(layout_.row_count);
  const RowPlacesLayout* word = std::upper_bound(
      places_ + place / 64 + 1, end, place,
      [](std::uint32_t p, const RowPlacesLayout& w) { return p < w.stored_before; });
  --word;
  const auto first = static_cast<std::uint32_t>(word - places_) * 64;
  // Damaged places: whatever row it is, it is one of the group.
  return std::min(first + stored_bit(word->stored, place - word->stored_before),
                  layout_.row_count - 1);
}

// What is marked twice, by other readers or by a writer, is marked once.
void RowGroup::mark_found() const noexcept {
  std::uint32_t place = 0;
  for (std::uint32_t offset = 0; offset < layout_.row_count; offset += 64) {
    const std::uint64_t stored = stored_mask(offset);
    if (const mvcc::VersionLayout* block = block_with(offset); block != nullptr) {
      const mvcc::VersionLayout* versions = block + offset % RowGroupLayout::kBlockRows;
      for (std::uint64_t bits = stored; bits != 0; bits &= bits - 1)
        if (is_stamped(versions[std::countr_zero(bits)]))
          marks_->mark(place +
                       static_cast<std::uint32_t>(std::popcount(stored & ((bits & -bits) - 1))));
    }
    place += static_cast<std::uint32_t>(std::popcount(stored));
  }
  marks_->set_found();
}

std::uint64_t RowGroup::visible(std::uint32_t first, std::size_t count,
                                const mvcc::Visibility& visibility,
                                std::uint64_t* mask) const noexcept {
  const std::size_t words = (count + 63) / 64;
  const auto fill = [&] {
    std::fill_n(mask, words, ~std::uint64_t{0});
    if (count % 64 != 0) mask[words - 1] = columns::low_bits(count % 64);
  };
  fill();
  if (!has_deletions()) return 0;
  if (!marks_->has_found()) mark_found();
  if (marks_->clear_settled(first / 64, words, visibility.snapshot(), mask)) return 0;
  fill();
  Doubtful doubtful(*this, visibility, first, mask);
  for (std::size_t w = 0; w < words; ++w) {
    const DeletionMarks::Rows rows = marks_->rows(first / 64 + w, visibility.snapshot());
    for (std::uint64_t bits = rows.doubtful & mask[w]; bits != 0; bits &= bits - 1)
      doubtful.add(first + static_cast<std::uint32_t>(w * 64) +
                   static_cast<std::uint32_t>(std::countr_zero(bits)));
    mask[w] &= ~rows.gone;
  }
  doubtful.read();
  return doubtful.entries_read();
}

}  // namespace flugs::engine
