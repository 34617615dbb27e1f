#include "columns/index/hint_directory.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "pmem/space/warm_list.h"

namespace flugs::columns {

// A large directory is filled at once: with small pages each would cost a page fault, and later a
// TLB miss.
HintDirectory::Copy::Copy(unsigned log2_words) : depth_(log2_words) {
  FLUGS_CHECK(log2_words <= kDepthMax);
  words_ = static_cast<std::uint64_t*>(is_large() ? take_huge_pages(bytes())
                                                  : std::calloc(count(), sizeof(std::uint64_t)));
  FLUGS_CHECK(words_ != nullptr);
}

HintDirectory::Copy::~Copy() {
  if (is_large())
    give_back_huge_pages(words_, bytes());
  else
    std::free(words_);
}

// ------------------------------------------------------------------------------------- opening

Status HintDirectory::load() {
  const std::uint64_t directory = layout_.directory;
  if (directory == 0) return {};
  const std::uint64_t offset = directory & ~kDepthMask;
  const std::uint64_t words = std::uint64_t{1} << depth_of(directory);
  const std::uint64_t pool_bytes = segments_.pool().medium().bytes();
  if (depth_of(directory) > kDepthMax)
    return segments_.corrupt("depth up to", kDepthMax, depth_of(directory));
  if (offset > pool_bytes || pool_bytes - offset < words * 8)
    return segments_.corrupt("directory inside the pool of bytes", pool_bytes, offset);
  if (Status s = segments_.pool().allocator().claim({offset, words * 8}, segments_.owner());
      !s.ok())
    return s;
  bytes_.fetch_add(words * 8, std::memory_order_relaxed);
  copies_.push_back(std::make_unique<Copy>(depth_of(directory)));
  copies_.back()->begin_reading();
  current_.store(copies_.back().get(), std::memory_order_release);
  const HintIndexLayout::Change& change = layout_.change;
  if (!is_change_valid()) return {};
  if (change.first >= words || change.span > words - change.first || change.span == 0 ||
      !segments_.is_segment(hint_word::offset_of(change.lower)) ||
      !segments_.is_segment(hint_word::offset_of(change.upper)) ||
      (change.replaced != 0 && !segments_.is_segment(change.replaced)))
    return segments_.corrupt("a change inside the directory of words", words, change.first);
  return {};
}

void HintDirectory::recover(pmem::Persister& persister) {
  if (!is_change_valid()) return;
  persister.persist(&layout_.change, sizeof layout_.change, "hint_change/2");
  apply(layout_.change, persister);
}

std::uint64_t HintDirectory::checksum_of(const HintIndexLayout::Change& change) noexcept {
  return XXH3_64bits(&change, offsetof(HintIndexLayout::Change, checksum));
}

bool HintDirectory::is_change_valid() const noexcept {
  return layout_.change.directory == layout_.directory && layout_.directory != 0 &&
         layout_.change.checksum == checksum_of(layout_.change);
}

// ------------------------------------------------------------------------------------- reading

// A thread that changes a word, or doubles the directory, has read the word before, and stored it
// in DRAM before it changes the pool. So a word that does not look like one from opening is damaged
// only if the word in DRAM is still 0 after it was loaded.
std::uint64_t HintDirectory::read_word(const Copy& copy, std::size_t index) const noexcept {
  const std::uint64_t found = hint_slot::load(words_of(hint_slot::load(layout_.directory))[index]);
  std::uint64_t known = 0;
  if (segments_.is_segment(hint_word::offset_of(found))) {
    __atomic_compare_exchange_n(&copy.word(index), &known, found, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return known != 0 ? known : found;
  }
  known = hint_slot::load(copy.word(index));
  if (known == 0) {
    found_there_.store(found, std::memory_order_relaxed);
    damaged_word_.store(index, std::memory_order_release);
  }
  return known;
}

Status HintDirectory::damage() const {
  const std::uint64_t index = damaged_word_.load(std::memory_order_acquire);
  if (index == kNoWord) return {};
  return Status(
      StatusCode::kCorrupt,
      fmt::format("{}: {}: word {} of the directory: expected an offset of a segment, "
                  "found {:#x}",
                  segments_.pool().path(), segments_.owner(), index, found_there_.load()));
}

void HintDirectory::read_all() {
  const Copy* copy = current_.load(std::memory_order_relaxed);
  FLUGS_CHECK(copy != nullptr);
  for (std::size_t i = 0; !is_all_read_ && i < copy->count(); ++i) word_of(*copy, i);
  is_all_read_ = true;
}

// If the table is dropped meanwhile, the directory is gone.
bool HintDirectory::read_some(std::size_t& first) {
  constexpr std::size_t kWordsAtOnce = 4096;
  const Copy* copy = current_.load(std::memory_order_relaxed);
  if (copy == nullptr || is_all_read_) return false;
  const std::size_t end = std::min(first + kWordsAtOnce, copy->count());
  for (; first < end; ++first) word_of(*copy, first);
  is_all_read_ = end == copy->count();
  if (is_all_read_) copy->end_reading();
  return !is_all_read_;
}

bool HintDirectory::has_much_to_read() const noexcept {
  constexpr std::size_t kMuch = 512;  // a page
  const Copy* copy = current();
  return copy != nullptr && !is_all_read_ && copy->count() > kMuch;
}

HintDirectory::Block HintDirectory::block_of(const Copy& copy, std::size_t index) const noexcept {
  const std::uint64_t word = word_of(copy, index);
  Block block{index, 1};
  while (block.span < copy.count()) {
    const std::size_t first = index & ~(block.span * 2 - 1);
    for (std::size_t i = first; i < first + block.span * 2; ++i)
      if (word_of(copy, i) != word) return block;
    block = {first, block.span * 2};
  }
  return block;
}

// While a change of the directory has copied an entry but not yet published the copy, erase removes
// only the original. Behind the new words, the changing thread looks at the originals again
// (HintGrowth::erase_again); erase looks at the word again behind the slot. So at least one of them
// sees what the other wrote.
bool HintDirectory::erase(std::uint32_t fingerprint, std::uint32_t payload) noexcept {
  const std::uint64_t wanted = hint_slot::make(fingerprint, payload);
  bool is_found = false;
  for (;;) {
    const Copy* copy = current();
    if (copy == nullptr) return false;
    const std::size_t index = copy->index_of(fingerprint);
    const std::uint64_t seen = word_of(*copy, index);
    segments_.walk_lines(seen, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
      return line.any([&](std::uint32_t i, std::uint64_t value) {
        if (value == wanted) is_found |= hint_slot::empty(slots[i], wanted);
        return false;  // an erased one may have come back with a crash
      });
    });
    if (__atomic_load_n(&copy->word(index), __ATOMIC_SEQ_CST) == seen &&
        current_.load(std::memory_order_seq_cst) == copy)
      return is_found;
  }
}

// ------------------------------------------------------------------------------------- changes

// The last store of step 1 of hint_begin, and step 2: the table is above HintGrowth::begin.
void HintDirectory::create(pmem::Extent words, std::uint64_t segment, pmem::Persister& persister) {
  FLUGS_CHECK(current_.load(std::memory_order_relaxed) == nullptr);
  hint_slot::store(words_of(words.offset)[0], segment);
  persister.flush(words_of(words.offset), sizeof(std::uint64_t), "hint_begin/1");
  persister.fence("hint_begin/1");
  auto copy = std::make_unique<Copy>(0);
  copy->word(0) = segment;
  is_all_read_ = true;
  publish(words.offset, std::move(copy), persister, "hint_begin/2");
}

void HintDirectory::publish(std::uint64_t directory, std::unique_ptr<Copy> copy,
                            pmem::Persister& persister, pmem::Label label) {
  FLUGS_CHECK(copy->depth() == depth_of(directory));
  hint_slot::store(layout_.directory, directory);
  persister.persist(&layout_.directory, sizeof layout_.directory, label);
  bytes_.fetch_add(extent_of(directory).bytes, std::memory_order_relaxed);
  current_.store(copy.get(), std::memory_order_release);
  copies_.push_back(std::move(copy));
}

// Protocol hint_directory: twice as many words, each named twice.
//   step  store                     made durable by     power cut just after it: recovery
//   1     words of the new one      flush, fence        unreachable: free space
//   2     directory                 persist (8 bytes)   the new one; the old is free space
// Must hold:  1 before 2. No word changes meanwhile (HintIndex::structure_mutex_).
Status HintDirectory::double_words(pmem::Persister& persister) {
  const std::uint64_t old = layout_.directory;
  const std::size_t words = std::size_t{1} << depth_of(old);
  pmem::ExtentAllocator& allocator = segments_.pool().allocator();
  Result<pmem::Extent> extent = allocator.allocate(words * 2 * sizeof(std::uint64_t), persister);
  if (!extent.ok()) return std::move(extent).status();
  read_all();  // also for threads that still use the old directory
  if (Status s = damage(); !s.ok()) {
    allocator.release(*extent);
    return s;
  }
  const Copy* known = current_.load(std::memory_order_relaxed);
  const std::uint64_t fresh = extent->offset | (depth_of(old) + 1);
  auto copy = std::make_unique<Copy>(depth_of(fresh));
  for (std::size_t i = 0; i < words * 2; ++i) copy->word(i) = word_of(*known, i / 2);
  std::copy_n(&copy->word(0), words * 2, words_of(fresh));
  persister.flush(words_of(fresh), words * 2 * sizeof(std::uint64_t), "hint_directory/1");
  persister.fence("hint_directory/1");
  publish(fresh, std::move(copy), persister, "hint_directory/2");
  allocator.release(extent_of(old));
  bytes_.fetch_sub(extent_of(old).bytes, std::memory_order_relaxed);
  return {};
}

// Steps 2 to 4 of hint_change: the table is above HintGrowth::change.
void HintDirectory::change(const Block& block, std::uint64_t old_word, std::uint64_t lower,
                           std::uint64_t upper, pmem::Persister& persister) noexcept {
  const std::uint64_t number = (hint_word::number_of(old_word) + 1) << hint_word::kNumberShift;
  HintIndexLayout::Change record{};
  record.directory = layout_.directory;
  record.first = block.first;
  record.span = block.span;
  record.lower = lower | number;
  record.upper = upper | number;
  record.replaced = hint_word::offset_of(old_word);
  record.checksum = checksum_of(record);
  layout_.change = record;
  persister.persist(&layout_.change, sizeof layout_.change, "hint_change/2");
  apply(record, persister);
}

void HintDirectory::apply(const HintIndexLayout::Change& record,
                          pmem::Persister& persister) noexcept {
  std::uint64_t* words = words_of(record.directory) + record.first;
  for (std::size_t i = 0; i < record.span; ++i)
    hint_slot::store(words[i], i * 2 < record.span ? record.lower : record.upper);
  persister.persist(words, record.span * sizeof(std::uint64_t), "hint_change/3");
  Copy& copy = *current_.load(std::memory_order_relaxed);
  for (std::size_t i = record.first; i < record.first + record.span; ++i)
    hint_slot::store(copy.word(i), words_of(record.directory)[i]);
  hint_slot::store(layout_.spare, record.replaced);
}

void HintDirectory::add_pages(pmem::WarmList& pages) const {
  if (layout_.directory != 0) pages.add(pmem::Heat::kIndexes, extent_of(layout_.directory));
}

void HintDirectory::release_all() {
  damaged_word_.store(kNoWord, std::memory_order_release);
  if (current_.exchange(nullptr) != nullptr)
    segments_.pool().allocator().release(extent_of(layout_.directory));
  bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace flugs::columns
