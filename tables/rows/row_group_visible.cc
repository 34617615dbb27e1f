// Which rows of a group a transaction sees, for scans.

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "base/check.h"
#include "tables/rows/row_group.h"

namespace flugs::engine {

namespace {

// The row that comes after `before` others among those that a word of places stores.
std::uint32_t stored_bit(std::uint64_t stored, std::uint32_t before) noexcept {
  for (; before != 0 && stored != 0; --before) stored &= stored - 1;
  return stored == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(stored));
}

}  // namespace

/// MVCC entries that are read together, so that the processor waits for all of them at once.
class RowGroup::Entries {
 public:
  Entries(const RowGroup& group, const mvcc::Visibility& visibility, std::uint32_t first,
          std::uint64_t* mask) noexcept
      : group_(group), visibility_(visibility), first_(first), mask_(mask) {}

  void add(std::uint32_t place) noexcept {
    const mvcc::VersionLayout* version = group_.stamped_version(group_.offset_of(place));
    if (version == nullptr) return;
    FLUGS_DCHECK(place >= first_ && count_ < kTogether);
    __builtin_prefetch(version);
    places_[count_] = place;
    versions_[count_] = version;
    if (++count_ == kTogether) read();
  }
  /// Clears the bits of rows that the transaction does not see.
  void read() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (visibility_.sees(*versions_[i])) continue;
      const std::uint32_t at = places_[i] - first_;
      mask_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
    }
    read_ += std::exchange(count_, 0);
  }
  std::uint64_t count_read() const noexcept { return read_; }

 private:
  static constexpr std::size_t kTogether = 64;

  const RowGroup& group_;
  const mvcc::Visibility& visibility_;
  const std::uint32_t first_;
  std::uint64_t* const mask_;
  std::size_t count_ = 0;
  std::uint64_t read_ = 0;
  std::array<std::uint32_t, kTogether> places_;
  std::array<const mvcc::VersionLayout*, kTogether> versions_;
};

// The word of a place has at least the index place / 64, as a word has 64 rows at most.
std::uint32_t RowGroup::offset_of(std::uint32_t place) const noexcept {
  if (places_ == nullptr) return place;
  const RowPlacesLayout* const end = places_ + place_words(layout_.row_count);
  const RowPlacesLayout* word = std::upper_bound(
      places_ + place / 64 + 1, end, place,
      [](std::uint32_t p, const RowPlacesLayout& w) { return p < w.stored_before; });
  --word;
  const auto first = static_cast<std::uint32_t>(word - places_) * 64;
  // With damaged places it may be a wrong row, but it is one of the group.
  return std::min(first + stored_bit(word->stored, place - word->stored_before),
                  layout_.row_count - 1);
}

// No snapshot sees a row that has left the indexes (created 0). A tag is never of a transaction
// that committed before opening, as opening has completed its stamps. A transaction of this process
// marks the row itself.
bool RowGroup::note_found(std::uint32_t place, const mvcc::VersionLayout& version) const noexcept {
  const mvcc::Stamp created = mvcc::load_stamp(version.created);
  const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
  if (created == mvcc::kNoStamp)
    marks_->note(place, 0);
  else if (deleted != mvcc::kNoStamp && !mvcc::is_tag(deleted))
    marks_->note(place, deleted);
  else if (created != 1)
    marks_->mark(place);  // damage: the entry decides
  else
    return false;
  return true;
}

// Other readers or a writer may note the same row too; it counts once.
std::uint64_t RowGroup::note_all_found() const noexcept {
  FLUGS_DCHECK(marks_ != nullptr);
  std::uint32_t place = 0;
  std::uint64_t found = 0;
  for (std::uint32_t offset = 0; offset < layout_.row_count; offset += 64) {
    const std::uint64_t stored = stored_mask(offset);
    if (const mvcc::VersionLayout* block = block_with(offset); block != nullptr) {
      const mvcc::VersionLayout* versions = block + offset % RowGroupLayout::kBlockRows;
      for (std::uint64_t bits = stored; bits != 0; bits &= bits - 1)
        found += note_found(
            place + static_cast<std::uint32_t>(std::popcount(stored & ((bits & -bits) - 1))),
            versions[std::countr_zero(bits)]);
    }
    place += static_cast<std::uint32_t>(std::popcount(stored));
  }
  marks_->set_found();
  return found;
}

std::uint32_t RowGroup::deleted_rows() const noexcept {
  if (!has_deletions()) return 0;
  if (!marks_->has_found()) note_all_found();
  return marks_->noted();
}

std::uint64_t RowGroup::visible(std::uint32_t first, std::size_t count,
                                const mvcc::Visibility& visibility,
                                std::uint64_t* mask) const noexcept {
  FLUGS_DCHECK(first % 64 == 0);
  if (!has_deletions()) {
    DeletionMarks::set_bits(mask, count);
    return 0;
  }
  const std::uint64_t found = marks_->has_found() ? 0 : note_all_found();
  Entries entries(*this, visibility, first, mask);
  marks_->clear_unseen(first, count, visibility.snapshot(), mask,
                       [&](std::uint32_t place) { entries.add(place); });
  entries.read();
  return found + entries.count_read();
}

std::shared_ptr<const SeenRows> RowGroup::seen_rows(const mvcc::Visibility& visibility,
                                                    std::uint64_t& read) const noexcept {
  FLUGS_DCHECK(has_deletions());
  if (!marks_->has_found()) read += note_all_found();
  try {
    return marks_->seen_from(visibility.snapshot());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace flugs::engine
