#include "columns/index/hint_index.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <thread>
#include <type_traits>

#include "base/check.h"

namespace flugs::columns {

HintIndex::HintIndex(pmem::Pool& pool, HintIndexLayout& layout, std::string owner)
    : pool_(pool),
      base_(pool.base()),
      layout_(layout),
      owner_(std::move(owner)),
      slabs_(pool, layout.slabs, owner_) {}

std::size_t HintIndex::lock_count() noexcept {
  constexpr std::size_t kLocksMin = 64;
  constexpr std::size_t kLocksMax = 16'384;
  constexpr std::size_t kLocksPerProcessor = 16;
  static const std::size_t count = std::bit_ceil(
      std::clamp(kLocksPerProcessor * std::thread::hardware_concurrency(), kLocksMin, kLocksMax));
  return count;
}

HintIndex::Lock* HintIndex::take_locks() {
  static_assert(std::is_trivially_destructible_v<Lock>);
  void* memory = try_take_zeroed(lock_count() * sizeof(Lock));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Lock*>(memory);
}

void HintIndex::GiveLocksBack::operator()(Lock* locks) const noexcept {
  give_back_zeroed(locks, lock_count() * sizeof(Lock), 0);  // all are free, so all is zero
}

std::uint64_t HintIndex::checksum_of(const HintIndexLayout::Change& change) noexcept {
  return XXH3_64bits(&change, offsetof(HintIndexLayout::Change, checksum));
}

// Lists the slabs that begin or continue in each 2 MB of the pool, so that a word of the directory
// is checked without a search. The list covers only the range where this index has slabs: of
// hundreds of indexes, few have slabs far apart.
void HintIndex::map_slabs() {
  std::sort(slabs_in_order_.begin(), slabs_in_order_.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  slab_at_.clear();
  if (slabs_in_order_.empty()) return;
  const std::uint64_t end = slabs_in_order_.back().offset + slabs_in_order_.back().bytes;
  first_slab_at_ = slabs_in_order_.front().offset >> kSlabMapShift;
  slab_at_.reserve(((end - 1) >> kSlabMapShift) - first_slab_at_ + 1);
  std::uint32_t slab = 0;
  for (std::uint64_t at = first_slab_at_ << kSlabMapShift; at < end;
       at += std::uint64_t{1} << kSlabMapShift) {
    while (slabs_in_order_[slab].offset + slabs_in_order_[slab].bytes <= at) ++slab;
    slab_at_.push_back({slabs_in_order_[slab].offset, slabs_in_order_[slab].bytes, slab});
  }
}

bool HintIndex::is_segment(std::uint64_t offset) const noexcept {
  const std::uint64_t place = (offset >> kSlabMapShift) - first_slab_at_;  // before the first slab:
                                                                           // a huge number
  if (place >= slab_at_.size()) return false;
  const SlabAt& first = slab_at_[place];
  if (offset - first.begin < first.bytes)  // a huge number when it lies before
    return (offset - first.begin) % kSegmentBytes == 0;
  for (std::size_t i = first.number; i < slabs_in_order_.size(); ++i) {
    const pmem::Extent& slab = slabs_in_order_[i];
    if (offset < slab.offset) return false;
    if (offset - slab.offset < slab.bytes) return (offset - slab.offset) % kSegmentBytes == 0;
  }
  return false;
}

void HintIndex::put_slab(pmem::Extent slab) {
  FLUGS_CHECK(slab.bytes != 0 && slab.bytes % kSegmentBytes == 0);
  slab_offsets_.push_back(slab.offset);
  bytes_in_pool_.fetch_add(slab.bytes, std::memory_order_relaxed);
}

// Holds structure_mutex_.
void HintIndex::put_new_slab(pmem::Extent slab) {
  put_slab(slab);
  new_slabs_.push_front({slab, newest_slab_.load(std::memory_order_relaxed)});
  newest_slab_.store(&new_slabs_.front(), std::memory_order_release);
}

// A large directory is filled at once: with small pages each would cost a page fault, and later a
// TLB miss.
HintIndex::Directory::Directory(unsigned log2_words) : depth_(log2_words) {
  FLUGS_CHECK(log2_words <= kDepthMax);
  words_ = static_cast<std::uint64_t*>(is_large() ? take_huge_pages(bytes())
                                                  : std::calloc(count(), sizeof(std::uint64_t)));
  FLUGS_CHECK(words_ != nullptr);
}

HintIndex::Directory::~Directory() {
  if (is_large())
    give_back_huge_pages(words_, bytes());
  else
    std::free(words_);
}

// ------------------------------------------------------------------------------------- opening

Status HintIndex::load() {
  Status s = load_slabs();
  if (s.ok() && layout_.directory != 0) s = load_directory();
  is_loaded_ = s.ok();
  return s;
}

Status HintIndex::load_slabs() {
  pool_.rely_on(&layout_, sizeof layout_);
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  Status loaded = slabs_.load([&](std::size_t slab, std::uint64_t offset) -> Result<std::uint64_t> {
    const std::uint64_t bytes = kSlabs.elements_in(slab) * kSegmentBytes;
    if (bytes > pool_bytes || offset > pool_bytes - bytes)
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: {}: slab {} of {} bytes at offset {} lies outside the pool",
                                pool_.path(), owner_, slab, bytes, offset));
    put_slab({offset, bytes});
    slabs_in_order_.push_back({offset, bytes});
    return bytes;
  });
  if (!loaded.ok()) return loaded;
  map_slabs();
  if (layout_.segments_used > kSlabs.first_of(slabs_.count()))
    return corrupt("segments in use, at most", kSlabs.first_of(slabs_.count()),
                   layout_.segments_used);
  if (layout_.spare != 0 && !is_segment(layout_.spare))
    return corrupt("the spare segment among those of its slabs, offset", 0, layout_.spare);
  return {};
}

Status HintIndex::load_directory() {
  const std::uint64_t directory = layout_.directory;
  const std::uint64_t offset = directory & ~kDepthMask;
  const std::uint64_t words = std::uint64_t{1} << depth_of(directory);
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  if (depth_of(directory) > kDepthMax)
    return corrupt("depth up to", kDepthMax, depth_of(directory));
  if (offset > pool_bytes || pool_bytes - offset < words * 8)
    return corrupt("directory inside the pool of bytes", pool_bytes, offset);
  if (Status s = pool_.allocator().claim({offset, words * 8}, owner_); !s.ok()) return s;
  bytes_in_pool_.fetch_add(words * 8, std::memory_order_relaxed);
  directories_.push_back(std::make_unique<Directory>(depth_of(directory)));
  directories_.back()->begin_reading();
  directory_.store(directories_.back().get(), std::memory_order_release);
  const HintIndexLayout::Change& change = layout_.change;
  if (!is_change_valid()) return {};
  if (change.first >= words || change.span > words - change.first || change.span == 0 ||
      !is_segment(change.lower & kOffsetMask) || !is_segment(change.upper & kOffsetMask) ||
      (change.replaced != 0 && !is_segment(change.replaced)))
    return corrupt("a change inside the directory of words", words, change.first);
  return {};
}

// A thread that changes a word, or doubles the directory, has read the word before, and stored it
// in DRAM before it changes the pool. So a word that does not look like one from opening is damaged
// only if the word in DRAM is still 0 after it was loaded.
std::uint64_t HintIndex::read_word(const Directory& directory, std::size_t index) const noexcept {
  const std::uint64_t found = load(words_of(load(layout_.directory))[index]);
  std::uint64_t known = 0;
  if (is_segment(found & kOffsetMask)) {
    __atomic_compare_exchange_n(&directory.word(index), &known, found, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return known != 0 ? known : found;
  }
  known = load(directory.word(index));
  if (known == 0) {
    found_there_.store(found, std::memory_order_relaxed);
    damaged_word_.store(index, std::memory_order_release);
  }
  return known;
}

Status HintIndex::damage() const {
  const std::uint64_t index = damaged_word_.load(std::memory_order_acquire);
  if (index == kNoWord) return {};
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: word {} of the directory: expected an offset of a segment, "
                            "found {:#x}",
                            pool_.path(), owner_, index, found_there_.load()));
}

// Holds structure_mutex_.
void HintIndex::read_all() {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  FLUGS_CHECK(directory != nullptr);
  for (std::size_t i = 0; !is_all_read_ && i < directory->count(); ++i) word_of(*directory, i);
  is_all_read_ = true;
}

// In pieces, because other threads want the mutex. If the table is dropped meanwhile, the directory
// is gone.
Status HintIndex::check_directory() {
  constexpr std::size_t kWordsAtOnce = 4096;
  for (std::size_t first = 0;; first += kWordsAtOnce) {
    const std::lock_guard structure(structure_mutex_);
    const Directory* directory = directory_.load(std::memory_order_relaxed);
    if (directory == nullptr || is_all_read_) break;
    const std::size_t end = std::min(first + kWordsAtOnce, directory->count());
    for (std::size_t i = first; i < end; ++i) word_of(*directory, i);
    is_all_read_ = end == directory->count();
    if (is_all_read_) directory->end_reading();
  }
  return damage();
}

bool HintIndex::has_much_to_check() const noexcept {
  constexpr std::size_t kMuch = 512;  // a page
  const Directory* directory = directory_.load(std::memory_order_acquire);
  return directory != nullptr && !is_all_read_ && directory->count() > kMuch;
}

bool HintIndex::is_change_valid() const noexcept {
  return layout_.change.directory == layout_.directory && layout_.directory != 0 &&
         layout_.change.checksum == checksum_of(layout_.change);
}

Status HintIndex::corrupt(const char* what, std::uint64_t expected, std::uint64_t found) const {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}: {}: expected {}, found {}", pool_.path(),
                                                  owner_, what, expected, found));
}

void HintIndex::recover(pmem::Persister& persister) {
  FLUGS_CHECK(is_loaded_);
  if (!is_change_valid()) return;
  persister.persist(&layout_.change, sizeof layout_.change, "hint_change/2");
  apply(layout_.change, persister);
}

// ------------------------------------------------------------------------------------- look-ups

HintIndex::Segment* HintIndex::next_of(const Segment& segment, std::uint64_t& hops) const noexcept {
  const std::uint64_t next = load(segment.next);
  if (next == 0 || ++hops > bytes_in_pool() / kSegmentBytes) return nullptr;
  return is_segment(next) || is_new_segment(next) ? segment_at(next) : nullptr;
}

bool HintIndex::is_new_segment(std::uint64_t offset) const noexcept {
  for (const NewSlab* slab = newest_slab_.load(std::memory_order_acquire); slab != nullptr;
       slab = slab->older)
    if (offset - slab->extent.offset < slab->extent.bytes)
      return (offset - slab->extent.offset) % kSegmentBytes == 0;
  return false;
}

bool HintIndex::lookup(std::uint64_t hash, Candidates& out) const {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  for (;;) {
    out.clear();
    Directory* directory = directory_.load(std::memory_order_acquire);
    if (directory == nullptr) return true;
    const std::size_t index = directory->index_of(fingerprint);
    const std::uint64_t seen = word_of(*directory, index);
    // With branches, one per slot: the processor can predict them while the line is on its way.
    walk(seen, fingerprint, [&](std::uint64_t* slots) {
      note_read(SharedWord::kHintLine, slots);
      bool has_unused = false;
      for (std::uint32_t i = 0; i < Segment::kSlots; ++i) {
        const std::uint64_t slot = load(slots[i]);
        has_unused |= slot == 0;
        if ((slot >> 32) == fingerprint && is_live(slot)) out.push(payload_of(slot));
      }
      return has_unused ? Walked::kEnd : Walked::kGoOn;
    });
    // A segment is reused only after the word had changed.
    if (load(directory->word(index)) == seen &&
        directory_.load(std::memory_order_acquire) == directory)
      return seen != 0;
  }
}

void HintIndex::prefetch(std::uint64_t hash) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const std::uint64_t word = word_of(*directory, directory->index_of(fingerprint));
  if (word == 0) return;
  __builtin_prefetch(segment_at(word)->slots[home_of(fingerprint)]);
}

void HintIndex::prefetch_for_edit(std::uint64_t hash) noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const std::uint64_t word = word_of(*directory, directory->index_of(fingerprint));
  if (word == 0) return;
  __builtin_prefetch(&lock_of(word), 1);
  __builtin_prefetch(segment_at(word)->slots[home_of(fingerprint)], 1);
}

void HintIndex::prefetch_for_erase(std::uint64_t hash) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const std::uint64_t word = word_of(*directory, directory->index_of(fingerprint));
  if (word != 0) __builtin_prefetch(segment_at(word)->slots[home_of(fingerprint)], 1);
}

// ------------------------------------------------------------------------------------- editing

HintIndex::Editor::Editor(HintIndex& index, std::uint64_t hash) noexcept
    : index_(index), fingerprint_(fingerprint_of(hash)) {
  for (;;) {
    Directory* directory = index.directory_.load(std::memory_order_acquire);
    const std::size_t place = directory == nullptr ? 0 : directory->index_of(fingerprint_);
    word_ = directory == nullptr ? 0 : index.word_of(*directory, place);
    lock_ = &index.lock_of(word_);
    note_write(SharedWord::kHintLock, lock_);
    lock_->lock();
    if (index.directory_.load(std::memory_order_acquire) == directory &&
        (directory == nullptr || load(directory->word(place)) == word_))
      return;
    lock_->unlock();
  }
}

std::uint64_t* HintIndex::find_free(std::uint64_t word, std::uint32_t fingerprint) const noexcept {
  std::uint64_t* free = nullptr;
  walk_lines(word, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return free != nullptr;
  });
  return free;
}

// Visits every line from home to that of the slot, and the links of full segments.
template <typename F>
void HintIndex::for_each_line_to(std::uint64_t word, std::uint32_t fingerprint,
                                 const std::uint64_t* slot, F&& visit) const {
  std::uint32_t line = home_of(fingerprint);
  std::uint64_t hops = 0;
  for (Segment* segment = segment_at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    for (std::uint32_t walked = 0; walked < Segment::kLines; ++walked) {
      const std::uint64_t* slots = segment->slots[line];
      visit(slots);
      if (slot >= slots && slot < slots + Segment::kSlots) return;
      line = line + 1 == Segment::kLines ? 0 : line + 1;
    }
    visit(&segment->next);
  }
}

// A null slot means that there is no room.
HintIndex::Room HintIndex::Editor::put(std::uint64_t* slot, bool is_new, std::uint64_t value,
                                       Unflushed* unflushed) {
  if (slot == nullptr) return Room::kNone;
  FLUGS_DCHECK(word_ != 0 && is_live(value));
  store(*slot, value);
  std::uint32_t lines = 0;
  index_.for_each_line_to(word_, fingerprint_, slot, [&](const void* line) {
    if (unflushed != nullptr) unflushed->add(line, pmem::kLineBytes);
    ++lines;
  });
  // Only one entry per line asks for room: the one that fills the line's last slot. By then other
  // entries have filled the beginning of the line.
  const bool is_last = reinterpret_cast<std::uintptr_t>(slot + 1) % pmem::kLineBytes == 0;
  return lines > kLinesFar && is_last && is_new ? Room::kLittle : Room::kEnough;
}

HintIndex::Room HintIndex::Editor::insert(std::uint32_t payload, Unflushed* unflushed) {
  const std::uint64_t wanted = make_slot(fingerprint_, payload);
  std::uint64_t* found = nullptr;
  std::uint64_t* free = nullptr;
  index_.walk_lines(word_, fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) found = &slots[i];
      return found != nullptr;
    });
  });
  return put(found != nullptr ? found : free, found == nullptr, wanted, unflushed);
}

void HintIndex::Editor::take_back(std::uint32_t payload, std::uint32_t successor) noexcept {
  FLUGS_DCHECK(payload != successor);
  const std::uint64_t wanted = make_slot(fingerprint_, successor);
  index_.walk_lines(word_, fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) store(slots[i], make_slot(fingerprint_, payload));
      return false;
    });
  });
}

// While a change of the directory has copied an entry but not yet published the copy, erase removes
// only the original. Behind the new words, the changing thread looks at the originals again
// (erase_again); erase looks at the word again behind the slot. So at least one of them sees what
// the other wrote.
bool HintIndex::erase(std::uint64_t hash, std::uint32_t payload) noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const std::uint64_t wanted = make_slot(fingerprint, payload);
  bool is_found = false;
  for (;;) {
    const Directory* directory = directory_.load(std::memory_order_acquire);
    if (directory == nullptr) return false;
    const std::size_t index = directory->index_of(fingerprint);
    const std::uint64_t seen = word_of(*directory, index);
    walk_lines(seen, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
      return line.any([&](std::uint32_t i, std::uint64_t value) {
        if (value == wanted) is_found |= empty(slots[i], wanted);
        return false;  // an erased one may have come back with a crash
      });
    });
    if (__atomic_load_n(&directory->word(index), __ATOMIC_SEQ_CST) == seen &&
        directory_.load(std::memory_order_seq_cst) == directory)
      return is_found;
  }
}

void HintIndex::flush(std::uint64_t hash, std::uint32_t payload, pmem::Persister& persister,
                      pmem::Label label) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  // If the entry moves meanwhile, its new place is durable before look-ups find it there.
  const std::uint64_t word = word_of(*directory, directory->index_of(fingerprint));
  const std::uint64_t wanted = make_slot(fingerprint, payload);
  const std::uint64_t* found = nullptr;
  walk_lines(word, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) found = &slots[i];
      return found != nullptr;
    });
  });
  if (found == nullptr) return;
  for_each_line_to(word, fingerprint, found,
                   [&](const void* line) { persister.flush(line, pmem::kLineBytes, label); });
}

void HintIndex::for_each(FunctionRef<void(std::uint32_t, std::uint32_t)> visit) const {
  const Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  for (std::size_t i = 0; i < directory->count(); i += block_of(*directory, i).span) {
    const std::uint64_t word = word_of(*directory, i);
    std::uint64_t hops = 0;
    for (const Segment* s = word == 0 ? nullptr : segment_at(word); s != nullptr;
         s = next_of(*s, hops))
      for (const auto& line : s->slots)
        for (const std::uint64_t& slot : line)
          if (const std::uint64_t value = load(slot); is_live(value))
            visit(static_cast<std::uint32_t>(value >> 32), payload_of(value));
  }
}

void HintIndex::add_pages(pmem::WarmList& pages) const {
  if (layout_.directory != 0) pages.add(pmem::Heat::kIndexes, directory_extent(layout_.directory));
  for (const pmem::Extent& slab : slabs_in_order_) pages.add(pmem::Heat::kIndexes, slab);
}

void HintIndex::release_all() {
  const std::lock_guard structure(structure_mutex_);
  damaged_word_.store(kNoWord, std::memory_order_release);
  if (directory_.exchange(nullptr) != nullptr)
    pool_.allocator().release(directory_extent(layout_.directory));
  slabs_.release_all(
      [](std::size_t slab, std::uint64_t) { return kSlabs.elements_in(slab) * kSegmentBytes; });
  unnamed_.clear();
  bytes_in_pool_.store(0, std::memory_order_relaxed);
}

}  // namespace flugs::columns
