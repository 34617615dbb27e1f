#include "query/operators/group_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// Slots up to this size lie in the second-level cache, where a prefetch costs more than it saves.
constexpr std::size_t kSlotsInCache = std::size_t{1} << 15;
// Keys from the prefetch of a slot to its use, and from that of the row of its group.
constexpr std::size_t kSlotAhead = 24;
constexpr std::size_t kRowAhead = 12;
// Keys from the prefetch of texts to their comparison.
constexpr std::size_t kTextAhead = 6;

bool is_same_text(std::uint64_t a, std::uint64_t b, std::uint64_t mark) noexcept {
  const std::size_t size = static_cast<std::uint32_t>(mark);
  return a == b || size == 0 ||
         std::memcmp(text_of(a, mark).data(), text_of(b, mark).data(), size) == 0;
}

}  // namespace

std::uint64_t text_size_mark(std::string_view text) {
  if (text.size() > 0xFFFFFFFFu)
    fail(StatusCode::kInvalidArgument, "group by: a text has 4 GB or more");
  return text.size();
}

std::uint64_t text_mark(std::string_view text) {
  return text_size_mark(text) | (hash_text(text) & 0xFFFFFFFF00000000u);
}

GroupTable::GroupTable(KeyShape shape, std::vector<std::uint32_t> ranges)
    : shape_(std::move(shape)),
      word_count_(shape_.words()),
      row_words_(word_count_ + KeyWords::null_words(word_count_)),
      scratch_(row_words_) {
  while (shape_.has_texts &&
         (shape_.is_address[first_address_] == 0 || shape_.is_dependent[first_address_] != 0))
    ++first_address_;
  FLUGS_CHECK(shape_.is_dependent.size() == word_count_ && shape_.is_hashed.size() == word_count_);
  FLUGS_CHECK(ranges.empty() || (ranges.size() == word_count_ && !shape_.has_texts));
  std::uint64_t combinations = ranges.empty() ? kArrayMax + 1 : 1;
  for (const std::uint32_t range : ranges)  // one more for NULL
    combinations = std::min(combinations * (std::uint64_t{range} + 1), kArrayMax + 1);
  if (combinations > kArrayMax) return;
  ranges_ = std::move(ranges);
  array_.assign(combinations, kNoGroup);
}

std::uint64_t GroupTable::hash_of(const std::uint64_t* row) const noexcept {
  std::uint64_t hash = row[word_count_];
  for (std::size_t w = 0; w < word_count_; ++w)
    if (shape_.is_hashed[w] != 0) hash = combine_hashes(hash, row[w]);
  for (std::size_t w = word_count_ + 1; w < row_words_; ++w) hash = combine_hashes(hash, row[w]);
  return hash;
}

void GroupTable::hash(const KeyWords& words, std::size_t rows,
                      std::uint64_t* hashes) const noexcept {
  std::copy_n(words.nulls[0].data(), rows, hashes);
  const auto take = [&](const std::vector<std::uint64_t>& column) {
    for (std::size_t i = 0; i < rows; ++i) hashes[i] = combine_hashes(hashes[i], column[i]);
  };
  for (std::size_t w = 0; w < word_count_; ++w)
    if (shape_.is_hashed[w] != 0) take(words.keys[w]);
  for (std::size_t w = 1; w < words.nulls.size(); ++w) take(words.nulls[w]);
}

bool GroupTable::is_same(const std::uint64_t* a, const std::uint64_t* b) const noexcept {
  if (!shape_.has_texts && !shape_.has_dependent) return std::equal(a, a + row_words_, b);
  for (std::size_t w = 0; w < row_words_; ++w) {
    if (w < word_count_ && shape_.is_dependent[w] != 0) continue;
    if (w >= word_count_ || shape_.is_address[w] == 0) {
      if (a[w] != b[w]) return false;
    } else if (a[w + 1] != b[w + 1] || !is_same_text(a[w], b[w], a[w + 1])) {
      return false;
    }
  }
  return true;
}

void GroupTable::copy_key(const KeyWords& words, std::size_t i) {
  for (std::size_t w = 0; w < word_count_; ++w) scratch_[w] = words.keys[w][i];
  for (std::size_t w = word_count_; w < row_words_; ++w)
    scratch_[w] = words.nulls[w - word_count_][i];
}

void GroupTable::find(const KeyWords& words, std::size_t rows, std::uint32_t* groups) {
  FLUGS_CHECK(words.keys.size() == word_count_ && rows <= words.nulls[0].size());
  if (word_count_ == 0) {
    if (rows != 0 && hashes_.empty()) add(scratch_.data(), hash_of(scratch_.data()));
    std::fill_n(groups, rows, 0u);
  } else if (is_array()) {
    find_by_array(words, rows, groups);
  } else {
    rows_of(words, rows);
    find_by_hash(batch_rows_.data(), row_words_, rows, groups);
  }
}

void GroupTable::find_rows(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                           std::uint32_t* groups) {
  FLUGS_DCHECK(stride >= row_words_ && rows <= kBatchRows);
  if (word_count_ == 0) {
    if (rows != 0 && hashes_.empty()) add(key_rows, hash_of(key_rows));
    std::fill_n(groups, rows, 0u);
  } else if (is_array()) {
    for (std::size_t i = 0; i < rows; ++i)
      groups[i] = find_at(index_of(key_rows + i * stride), key_rows + i * stride);
  } else {
    find_by_hash(key_rows, stride, rows, groups);
  }
}

void GroupTable::find_by_array(const KeyWords& words, std::size_t rows, std::uint32_t* groups) {
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t index = 0;
    for (std::size_t k = 0; k < word_count_; ++k) {
      const bool null = words.is_null(k, i);
      FLUGS_DCHECK(null || words.keys[k][i] < ranges_[k]);
      index = index * (std::uint64_t{ranges_[k]} + 1) + (null ? ranges_[k] : words.keys[k][i]);
    }
    std::uint32_t group = array_[index];
    if (group == kNoGroup) {
      copy_key(words, i);
      group = find_at(index, scratch_.data());
    }
    groups[i] = group;
  }
}

std::uint64_t GroupTable::index_of(const std::uint64_t* row) const noexcept {
  std::uint64_t index = 0;
  for (std::size_t k = 0; k < word_count_; ++k) {
    const bool null = (row[word_count_ + k / 64] >> k % 64 & 1) != 0;
    FLUGS_DCHECK(null || row[k] < ranges_[k]);
    index = index * (std::uint64_t{ranges_[k]} + 1) + (null ? ranges_[k] : row[k]);
  }
  return index;
}

std::uint32_t GroupTable::find_at(std::uint64_t index, const std::uint64_t* row) {
  FLUGS_DCHECK(index < array_.size());
  std::uint32_t& group = array_[index];
  if (group == kNoGroup) group = add(row, hash_of(row));
  return group;
}

void GroupTable::find_codes(const std::uint32_t* codes, std::size_t rows, std::uint32_t* groups) {
  FLUGS_CHECK(is_array() && word_count_ == 1);
  for (std::size_t i = 0; i < rows; ++i) {
    FLUGS_DCHECK(codes[i] < ranges_[0]);
    std::uint32_t& group = array_[codes[i]];
    if (group == kNoGroup) {
      scratch_ = {codes[i], 0};
      group = add(scratch_.data(), hash_of(scratch_.data()));
    }
    groups[i] = group;
  }
}

void GroupTable::find_by_hash(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                              std::uint32_t* groups) {
  make_room(rows);
  hash_rows(key_rows, stride, rows);
  if (row_words_ == 2 && !shape_.has_texts)  // most keys
    find_each(key_rows, stride, rows, groups, [](const std::uint64_t* a, const std::uint64_t* b) {
      return a[0] == b[0] && a[1] == b[1];
    });
  else
    find_each(key_rows, stride, rows, groups,
              [this](const std::uint64_t* a, const std::uint64_t* b) { return is_same(a, b); });
}

// The hashes are in batch_hashes_.
template <typename Same>
void GroupTable::find_each(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                           std::uint32_t* groups, Same same) {
  const std::uint64_t* hashes = batch_hashes_.data();
  if (slots_.size() <= kSlotsInCache && !shape_.has_texts) {
    for (std::size_t i = 0; i < rows; ++i)
      groups[i] = find_row(key_rows + i * stride, hashes[i], same);
    return;
  }
  for (std::size_t i = 0; i < std::min(kSlotAhead, rows); ++i) prefetch_slot(hashes[i]);
  for (std::size_t i = 0; i < rows; ++i) {
    if (i + kSlotAhead < rows) prefetch_slot(hashes[i + kSlotAhead]);
    if (i + kRowAhead < rows) prefetch_row(hashes[i + kRowAhead]);
    if (shape_.has_texts && i + kTextAhead < rows)
      prefetch_text(key_rows + (i + kTextAhead) * stride, hashes[i + kTextAhead]);
    groups[i] = find_row(key_rows + i * stride, hashes[i], same);
  }
}

void GroupTable::prefetch_slot(std::uint64_t hash) const noexcept {
  __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
}

void GroupTable::prefetch_row(std::uint64_t hash) const noexcept {
  const std::uint32_t group = slots_[hash & (slots_.size() - 1)].group;
  if (group != kNoGroup) __builtin_prefetch(key_row(group));
}

// Both texts, if they are likely to be compared.
void GroupTable::prefetch_text(const std::uint64_t* row, std::uint64_t hash) const noexcept {
  const Slot slot = slots_[hash & (slots_.size() - 1)];
  if (slot.group == kNoGroup || slot.tag != static_cast<std::uint32_t>(hash >> 32)) return;
  const std::uint64_t known = key_row(slot.group)[first_address_];
  if (known == row[first_address_]) return;
  __builtin_prefetch(reinterpret_cast<const char*>(known));
  __builtin_prefetch(reinterpret_cast<const char*>(row[first_address_]));
}

template <typename Same>
std::uint32_t GroupTable::find_row(const std::uint64_t* row, std::uint64_t hash, Same same) {
  const std::size_t mask = slots_.size() - 1;
  FLUGS_DCHECK((slots_.size() & mask) == 0 && hashes_.size() < slots_.size());
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.group == kNoGroup) {
      slot = {tag, add(row, hash)};
      return slot.group;
    }
    if (slot.tag == tag && same(row, key_row(slot.group))) return slot.group;
  }
}

std::uint32_t GroupTable::add(const std::uint64_t* row, std::uint64_t hash) {
  if (hashes_.size() == kNoGroup) fail(StatusCode::kOutOfMemory, "group by: 2^32 groups");
  rows_.insert(rows_.end(), row, row + row_words_);
  hashes_.push_back(hash);
  FLUGS_DCHECK(rows_.size() == hashes_.size() * row_words_);
  return static_cast<std::uint32_t>(hashes_.size() - 1);
}

// Slots for as many more groups as the rows may have, half of them free.
void GroupTable::make_room(std::size_t rows) {
  if (batch_hashes_.empty()) batch_hashes_.resize(kBatchRows);
  FLUGS_DCHECK(rows <= batch_hashes_.size());
  std::size_t wanted = std::max<std::size_t>(slots_.size(), 256);
  while ((hashes_.size() + rows) * 2 > wanted) wanted *= 2;
  if (wanted != slots_.size()) set_slots(wanted);
}

void GroupTable::reserve(std::size_t groups) {
  if (word_count_ == 0 || is_array()) return;
  std::size_t wanted = std::max<std::size_t>(slots_.size(), 256);
  while (groups * 2 > wanted) wanted *= 2;
  rows_.reserve(groups * row_words_);
  hashes_.reserve(groups);
  if (wanted != slots_.size()) set_slots(wanted);
}

void GroupTable::set_slots(std::size_t count) {
  FLUGS_DCHECK((count & (count - 1)) == 0 && count > hashes_.size());
  slots_.assign(count, Slot{0, kNoGroup});
  const std::size_t mask = count - 1;
  for (std::uint32_t group = 0; group < hashes_.size(); ++group) {
    std::size_t at = hashes_[group] & mask;
    while (slots_[at].group != kNoGroup) at = (at + 1) & mask;
    slots_[at] = {static_cast<std::uint32_t>(hashes_[group] >> 32), group};
  }
}

void GroupTable::hash_rows(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows) {
  std::uint64_t* hashes = batch_hashes_.data();
  if (word_count_ == 1) {  // as hash_of, without its loops
    for (std::size_t i = 0; i < rows; ++i)
      hashes[i] = combine_hashes(key_rows[i * stride + 1], key_rows[i * stride]);
  } else {
    for (std::size_t i = 0; i < rows; ++i) hashes[i] = hash_of(key_rows + i * stride);
  }
}

// Into batch_rows_.
void GroupTable::rows_of(const KeyWords& words, std::size_t rows) {
  FLUGS_DCHECK(rows <= kBatchRows);
  if (batch_rows_.empty()) batch_rows_.resize(kBatchRows * row_words_);
  for (std::size_t w = 0; w < row_words_; ++w) {
    const std::uint64_t* column =
        w < word_count_ ? words.keys[w].data() : words.nulls[w - word_count_].data();
    std::uint64_t* to = batch_rows_.data() + w;
    for (std::size_t i = 0; i < rows; ++i) to[i * row_words_] = column[i];
  }
}

void GroupTable::clear() {
  rows_.clear();
  hashes_.clear();
  std::fill(slots_.begin(), slots_.end(), Slot{0, kNoGroup});
  std::fill(array_.begin(), array_.end(), kNoGroup);
}

bool DistinctSet::insert(std::uint32_t group, std::uint64_t word, std::uint64_t mark) {
  FLUGS_DCHECK(group != kNoGroup);  // marks a free entry
  if ((size_ + 1) * 2 > entries_.size()) grow();
  const std::size_t mask = entries_.size() - 1;
  const std::uint64_t hashed = has_texts_ ? mark : word;
  for (std::size_t at = mix64(hashed + group * 0x9e3779b97f4a7c15u) & mask;; at = (at + 1) & mask) {
    Entry& entry = entries_[at];
    if (entry.group == kNoGroup) {
      entry = {word, mark, group};
      ++size_;
      return true;
    }
    if (entry.mark != mark || entry.group != group) continue;
    if (has_texts_ ? is_same_text(entry.word, word, mark) : entry.word == word) return false;
  }
}

void DistinctSet::grow() {
  std::vector<Entry> old(std::max<std::size_t>(entries_.size() * 2, 256), Entry{0, 0, kNoGroup});
  old.swap(entries_);
  size_ = 0;
  for (const Entry& entry : old)
    if (entry.group != kNoGroup) insert(entry.group, entry.word, entry.mark);
}

void DistinctSet::clear() {
  std::fill(entries_.begin(), entries_.end(), Entry{0, 0, kNoGroup});
  size_ = 0;
}

}  // namespace flugs::query
