#include "columns/cells/string_heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace flugs::columns {

namespace {

constexpr std::uint64_t kHeader = sizeof(StringHeapChunkLayout);
// The first chunk is one extent of 4 KB, then they double: small columns stay small, and large
// ones allocate rarely.
constexpr std::uint64_t kFirstChunkBytes = std::uint64_t{4} << 10;
constexpr std::uint64_t kChunkBytesMax = std::uint64_t{1} << 20;
// One fence per 4 KB of strings; a crash wastes at most that much.
constexpr std::uint64_t kReservationBytes = std::uint64_t{4} << 10;
constexpr int kOffsetBits = 40;
constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
static_assert(kFirstChunkBytes > kHeader && kChunkBytesMax <= kOffsetMask);

// Places are at least as long, so no two texts begin in the same.
constexpr std::uint64_t kBytesPerBit = TextMarks::kBytesPerKeptBit;
static_assert(kBytesPerBit == text_place::kBytesMin);
// Texts that are kept at a time, so that writers need not wait for all.
constexpr std::size_t kKeptAtOnce = 64;

std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t at_grain(std::uint64_t bytes) noexcept {
  return (bytes + text_place::kGrainBytes - 1) / text_place::kGrainBytes * text_place::kGrainBytes;
}

std::uint64_t checksum_of(const StringHeapChunkLayout& header) noexcept {
  return XXH3_64bits(&header, 16);
}

}  // namespace

StringHeap::StringHeap(pmem::Pool& pool, StringHeapLayout& layout, const std::string& owner)
    : pool_(pool),
      layout_(layout),
      owner_(owner + ", strings"),
      chunks_(pool, layout.chunks, owner_),
      number_(next_number()) {}

Status StringHeap::load() {
  const std::lock_guard guard(mutex_);
  const std::uint64_t end = layout_.reserved_end;
  const std::uint64_t end_chunk = end >> kOffsetBits;
  Status loaded = chunks_.load([&](std::size_t index,
                                   std::uint64_t offset) -> Result<std::uint64_t> {
    const auto* header = pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{offset});
    if (header->magic != StringHeapChunkLayout::kMagic || header->checksum != checksum_of(*header))
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{}: {}: chunk {} at offset {} has a damaged header (checksum "
                      "expected {:016x}, found {:016x})",
                      pool_.path(), owner_, index, offset, checksum_of(*header), header->checksum));
    total_bytes_ += header->bytes;
    note_strings(index, offset, header->bytes);
    if (index == end_chunk && end != 0) {
      current_offset_ = offset;
      current_index_ = index;
      current_bytes_ = header->bytes;
    }
    return header->bytes;
  });
  std::sort(strings_at_opening_.begin(), strings_at_opening_.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  if (!loaded.ok()) return loaded;
  if (end == 0) return {};
  reserved_used_ = used_ = end & kOffsetMask;
  if (current_offset_ == 0 || used_ < kHeader || used_ > current_bytes_)
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: {}: end of the strings: found chunk {}, byte {}, but there are {} chunks, "
                    "and that chunk has {} bytes",
                    pool_.path(), owner_, end_chunk, used_, chunks_.count(), current_bytes_));
  used_ = std::min(at_grain(used_), current_bytes_);
  written_[current_offset_] = {current_offset_ + used_, current_offset_ + current_bytes_, {}};
  return {};
}

/// Records the filled part of a chunk: chunks before the current one are filled to their ends.
void StringHeap::note_strings(std::uint64_t index, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = layout_.reserved_end;
  const std::uint64_t end_chunk = end >> kOffsetBits;
  const std::uint64_t filled = index < end_chunk ? bytes : std::min(bytes, end & kOffsetMask);
  if (end == 0 || index > end_chunk || filled <= kHeader) return;
  strings_at_opening_.push_back({offset + kHeader, filled - kHeader});
}

bool StringHeap::held_at_opening(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const auto behind = std::upper_bound(
      strings_at_opening_.begin(), strings_at_opening_.end(), offset,
      [](std::uint64_t at, const pmem::Extent& chunk) { return at < chunk.offset; });
  if (behind == strings_at_opening_.begin()) return false;
  const pmem::Extent& chunk = *std::prev(behind);
  const std::uint64_t from = offset - chunk.offset;
  return from <= chunk.bytes && bytes <= chunk.bytes - from;
}

// Protocol string_heap. The bytes themselves are made durable by the transaction's first fence.
//   step  store                           made durable by    power cut just after it: recovery
//   1     header of a new chunk           fence in append    chunk unreachable: free space
//   2     pointer to the chunk            chunk_list/4       claims it, still fills the former one
//   3     reserved_end                    persist (8 bytes)  appends behind it
//   4     bytes below reserved_end        commit/1           nothing durable refers to them: waste
// Must hold:  3 before 4, else strings of a later process could be written over committed ones.
// The rest of the former chunk is used, too, but not before 3: opening takes all chunks before that
// of reserved_end for filled.
Status StringHeap::grow(std::uint64_t text_bytes, pmem::Persister& persister) {
  FLUGS_DCHECK(text_bytes == text_place::bytes_for(text_bytes));
  // After a crash between steps 2 and 3 the list has a chunk without any string.
  const std::uint64_t next = current_offset_ == 0 ? 0 : current_index_ + 1;
  const bool has_next = next < chunks_.count();
  if (has_next) {
    const auto* header = pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{chunks_.offset(next)});
    if (header->bytes - kHeader >= text_bytes) {
      begin_chunk(next);
      return {};
    }
  }
  const std::uint64_t least = std::max(kFirstChunkBytes, text_bytes + kHeader);
  std::uint64_t bytes = std::max(std::min(current_bytes_ * 2, kChunkBytesMax), least);
  Status added = add_chunk(bytes, persister);
  // A pool that is nearly full may have a smaller piece.
  while (added.code() == StatusCode::kOutOfSpace && bytes > least) {
    bytes = std::max(bytes / 2, least);
    added = add_chunk(bytes, persister);
  }
  if (!added.ok()) return added;
  begin_chunk(chunks_.count() - 1);
  return {};
}

Status StringHeap::add_chunk(std::uint64_t bytes, pmem::Persister& persister) {
  Result<pmem::Extent> extent = pool_.allocator().allocate(bytes, persister);
  if (!extent.ok()) return std::move(extent).status();
  auto* header = pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{extent->offset});
  header->magic = StringHeapChunkLayout::kMagic;
  header->bytes = extent->bytes;
  header->checksum = checksum_of(*header);
  persister.flush(header, sizeof *header, "string_heap/1");
  if (Status s = chunks_.append(*extent, persister); !s.ok()) {
    persister.fence("string_heap/1");  // no flush may stay behind unfenced
    pool_.allocator().release(*extent);
    return s;
  }
  total_bytes_ += extent->bytes;
  return {};
}

void StringHeap::begin_chunk(std::uint64_t index) {
  if (current_offset_ != 0) free_.add(current_offset_ + used_, current_bytes_ - used_);
  current_index_ = index;
  current_offset_ = chunks_.offset(index);
  current_bytes_ = pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{current_offset_})->bytes;
  used_ = kHeader;
  reserved_used_ = 0;
  written_[current_offset_] = {current_offset_ + used_, current_offset_ + current_bytes_, {}};
}

Status StringHeap::extend_reservation(std::uint64_t end, pmem::Persister& persister) {
  if (end <= reserved_used_) return {};
  reserved_used_ = std::min(current_bytes_, std::max(end, used_ + kReservationBytes));
  std::atomic_ref(layout_.reserved_end)
      .store((current_index_ << kOffsetBits) | reserved_used_, std::memory_order_relaxed);
  persister.persist(&layout_.reserved_end, sizeof layout_.reserved_end, "string_heap/3");
  return {};
}

Result<Cell> StringHeap::append(std::string_view text, pmem::Persister& persister) {
  FLUGS_CHECK(text.size() > text_cell::kInlineBytesMax);
  const std::uint64_t bytes = text_place::bytes_for(text.size());
  std::byte* target = nullptr;
  {
    const std::lock_guard guard(mutex_);
    // Before a place is taken, which would be lost if there were no memory for its note.
    if (is_swept_ && taken_.size() == taken_.capacity()) taken_.reserve(2 * taken_.size() + 64);
    const std::uint64_t place = free_.empty() ? 0 : free_.take(bytes);
    if (place != 0) {
      target = pool_.base() + place;
    } else {
      if (current_offset_ == 0 || current_bytes_ - used_ < bytes)
        if (Status s = grow(bytes, persister); !s.ok()) return s;
      if (Status s = extend_reservation(used_ + bytes, persister); !s.ok()) return s;
      target = pool_.base() + current_offset_ + used_;
      used_ += bytes;
    }
    if (is_swept_) taken_.push_back({static_cast<std::uint64_t>(target - pool_.base()), bytes});
  }
  std::memcpy(target, text.data(), text.size());
  return text_cell::make_out_of_line(static_cast<std::uint64_t>(target - pool_.base()),
                                     static_cast<std::uint32_t>(text.size()));
}

StringHeap::Written* StringHeap::written_with(std::uint64_t offset, std::uint64_t& chunk) noexcept {
  const auto behind = written_.upper_bound(offset);
  if (behind == written_.begin()) return nullptr;
  const auto found = std::prev(behind);
  chunk = found->first;
  Written& written = found->second;
  return offset >= written.from && offset < written.end ? &written : nullptr;
}

// Protocol reuse_text: a text that no row needs leaves its place to another one.
//   step  store                            made durable by           power cut just after it
//   1     deletion of the last version     commit/2 of its           completes the deletion: no row
//         of a row that has the text       transaction               that is read has the text
//   2     another text in its place        commit/1 of the other     nothing durable refers to the
//                                          transaction               text: the place is waste
// A sweep finds the texts that no transaction has given back: those from before opening, and those
// that a group had.
// Must hold:  1 before 2, else opening would bring the row back with other bytes. No snapshot that
//             sees the row may be left at step 2, and no row group may have the text: its columns
//             are sorted by their texts, and have those of dead rows.
// The text of a transaction that was undone was never in a row that opening brings back: no step 1.
void StringHeap::give_back(std::uint64_t offset, std::uint32_t bytes,
                           std::uint64_t since) noexcept {
  const std::lock_guard guard(mutex_);
  if (since != 0 && since <= swept_until_) return;
  std::uint64_t chunk = 0;
  const Written* const written = written_with(offset, chunk);
  if (written == nullptr) return;  // from before opening: its length is not trusted that much
  const std::uint64_t bit = (offset - chunk) / kBytesPerBit;
  if (bit / 64 < written->kept.size() && (written->kept[bit / 64] >> (bit % 64) & 1) != 0) return;
  FLUGS_DCHECK(offset + text_place::bytes_for(bytes) <= written->end);
  free_.add(offset, text_place::bytes_for(bytes));
  given_back_until_ = std::max(given_back_until_, since);
}

void StringHeap::keep(std::span<const Cell> texts) {
  while (!texts.empty()) {
    const std::span<const Cell> some = texts.first(std::min(texts.size(), kKeptAtOnce));
    const std::lock_guard guard(mutex_);
    for (const Cell& text : some) {
      if (text_cell::tag_of(text.high) != text_cell::kOutOfLine) continue;
      std::uint64_t chunk = 0;
      Written* const written = written_with(text.low, chunk);
      if (written == nullptr) continue;
      const std::uint64_t bit = (text.low - chunk) / kBytesPerBit;
      if (written->kept.empty())
        written->kept.resize((written->end - chunk) / kBytesPerBit / 64 + 1);
      written->kept[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
    texts = texts.subspan(some.size());
  }
}

// Marks the filled part of the chunks. The rest of the current chunk takes strings meanwhile.
TextMarks StringHeap::begin_sweep() {
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(!is_swept_);
  std::vector<TextMarks::Chunk> chunks;
  for (std::size_t i = 0; current_offset_ != 0 && i <= current_index_; ++i) {
    const std::uint64_t offset = chunks_.offset(i);
    const std::uint64_t bytes = pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{offset})->bytes;
    const std::uint64_t end = offset + (i == current_index_ ? used_ : bytes);
    TextMarks::Chunk& chunk = chunks.emplace_back();
    chunk.offset = offset;
    chunk.begin = offset + kHeader;
    chunk.end = chunk.written_from = end;
    if (const auto written = written_.find(offset); written != written_.end()) {
      chunk.written_from = std::min(written->second.from, end);
      chunk.was_kept = written->second.kept;
    }
  }
  is_swept_ = true;
  taken_.clear();
  return TextMarks(std::move(chunks));
}

// Places in the swept part that became free meanwhile are found once more, as gaps.
void StringHeap::end_sweep(TextMarks& marks, std::uint64_t since) {
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(std::exchange(is_swept_, false));
  for (const pmem::Extent& place : taken_) marks.mark(place.offset, place.bytes, false);
  taken_ = {};
  free_.remove_if([&](std::uint64_t offset) { return marks.covers(offset); });
  marks.for_each_gap([&](std::uint64_t offset, std::uint64_t bytes) { free_.add(offset, bytes); });
  for (const TextMarks::Chunk& chunk : marks.chunks()) {
    Written& written = written_[chunk.offset];
    written.from = chunk.begin;
    written.end = std::max(written.end, chunk.end);
    written.kept = chunk.kept;
    written.kept.resize((written.end - chunk.offset) / kBytesPerBit / 64 + 1);
  }
  given_back_until_ = std::max(given_back_until_, since);
  swept_until_ = since;
}

void StringHeap::give_up_sweep() noexcept {
  const std::lock_guard guard(mutex_);
  is_swept_ = false;
  taken_ = {};
}

std::uint64_t StringHeap::given_back_until() const {
  const std::lock_guard guard(mutex_);
  return given_back_until_;
}

std::uint64_t StringHeap::bytes_reusable() const {
  const std::lock_guard guard(mutex_);
  return free_.bytes();
}

std::uint64_t StringHeap::bytes_in_pool() const {
  const std::lock_guard guard(mutex_);
  return total_bytes_;
}

void StringHeap::add_pages(pmem::WarmList& pages) const {
  for (std::size_t i = chunks_.count(); i > 0; --i) {
    const std::uint64_t offset = chunks_.offset(i - 1);
    const auto& chunk = *pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{offset});
    pages.add(pmem::Heat::kTexts, {offset, chunk.bytes});
  }
}

void StringHeap::release_all() {
  const std::lock_guard guard(mutex_);
  free_.clear();
  written_.clear();
  chunks_.release_all([&](std::size_t, std::uint64_t offset) {
    return pool_.at(pmem::OffsetPtr<StringHeapChunkLayout>{offset})->bytes;
  });
}

}  // namespace flugs::columns
