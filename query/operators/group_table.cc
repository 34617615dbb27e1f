#include "query/operators/group_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "query/vectors/failure.h"

namespace flugs::query {

GroupTable::GroupTable(std::size_t key_count, std::vector<std::uint32_t> ranges)
    : key_count_(key_count),
      row_words_(key_count + KeyWords::null_words(key_count)),
      scratch_(row_words_) {
  FLUGS_CHECK(ranges.empty() || ranges.size() == key_count);
  std::uint64_t combinations = ranges.empty() ? kArrayMax + 1 : 1;
  for (const std::uint32_t range : ranges)  // one more for NULL
    combinations = std::min(combinations * (std::uint64_t{range} + 1), kArrayMax + 1);
  if (combinations > kArrayMax) return;
  ranges_ = std::move(ranges);
  array_.assign(combinations, kNoGroup);
}

std::uint64_t GroupTable::hash_of(const std::uint64_t* row) const noexcept {
  std::uint64_t hash = row[key_count_];
  for (std::size_t k = 0; k < key_count_; ++k) hash = mix64(hash * 0x9e3779b97f4a7c15u + row[k]);
  for (std::size_t w = key_count_ + 1; w < row_words_; ++w)
    hash = mix64(hash * 0x9e3779b97f4a7c15u + row[w]);
  return hash;
}

void GroupTable::copy_key(const KeyWords& words, std::size_t i) {
  for (std::size_t k = 0; k < key_count_; ++k) scratch_[k] = words.keys[k][i];
  for (std::size_t w = key_count_; w < row_words_; ++w)
    scratch_[w] = words.nulls[w - key_count_][i];
}

void GroupTable::find(const KeyWords& words, std::size_t rows, std::uint32_t* groups) {
  FLUGS_CHECK(words.keys.size() == key_count_ && rows <= words.nulls[0].size());
  if (key_count_ == 0) {
    if (rows != 0 && hashes_.empty()) add(scratch_.data(), hash_of(scratch_.data()));
    std::fill_n(groups, rows, 0u);
  } else if (is_array()) {
    find_by_array(words, rows, groups);
  } else {
    find_by_hash(words, rows, groups);
  }
}

void GroupTable::find_by_array(const KeyWords& words, std::size_t rows, std::uint32_t* groups) {
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t index = 0;
    for (std::size_t k = 0; k < key_count_; ++k) {
      const bool null = words.is_null(k, i);
      FLUGS_DCHECK(null || words.keys[k][i] < ranges_[k]);
      index = index * (std::uint64_t{ranges_[k]} + 1) + (null ? ranges_[k] : words.keys[k][i]);
    }
    std::uint32_t group = array_[index];
    if (group == kNoGroup) {
      copy_key(words, i);
      group = array_[index] = add(scratch_.data(), hash_of(scratch_.data()));
    }
    groups[i] = group;
  }
}

void GroupTable::find_codes(const std::uint32_t* codes, std::size_t rows, std::uint32_t* groups) {
  FLUGS_CHECK(is_array() && key_count_ == 1);
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

void GroupTable::find_by_hash(const KeyWords& words, std::size_t rows, std::uint32_t* groups) {
  for (std::size_t i = 0; i < rows; ++i) {
    copy_key(words, i);
    groups[i] = find_row(scratch_.data(), hash_of(scratch_.data()));
  }
}

std::uint32_t GroupTable::find(const std::uint64_t* key_row, std::uint64_t hash) {
  FLUGS_DCHECK(hash == hash_of(key_row));
  return find_row(key_row, hash);
}

std::uint32_t GroupTable::find_row(const std::uint64_t* row, std::uint64_t hash) {
  if ((hashes_.size() + 1) * 2 > slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  FLUGS_DCHECK((slots_.size() & mask) == 0);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.group == kNoGroup) {
      slot = {tag, add(row, hash)};
      return slot.group;
    }
    if (slot.tag == tag && std::equal(row, row + row_words_, key_row(slot.group)))
      return slot.group;
  }
}

std::uint32_t GroupTable::add(const std::uint64_t* row, std::uint64_t hash) {
  if (hashes_.size() == kNoGroup) fail(StatusCode::kOutOfMemory, "group by: 2^32 groups");
  rows_.insert(rows_.end(), row, row + row_words_);
  hashes_.push_back(hash);
  FLUGS_DCHECK(rows_.size() == hashes_.size() * row_words_);
  return static_cast<std::uint32_t>(hashes_.size() - 1);
}

void GroupTable::grow() {
  slots_.assign(std::max<std::size_t>(slots_.size() * 2, 256), Slot{0, kNoGroup});
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t group = 0; group < hashes_.size(); ++group) {
    std::size_t at = hashes_[group] & mask;
    while (slots_[at].group != kNoGroup) at = (at + 1) & mask;
    slots_[at] = {static_cast<std::uint32_t>(hashes_[group] >> 32), group};
  }
}

bool DistinctSet::insert(std::uint32_t group, std::uint64_t word) {
  FLUGS_DCHECK(group != kNoGroup);  // marks a free entry
  if ((size_ + 1) * 2 > entries_.size()) grow();
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = mix64(word + group * 0x9e3779b97f4a7c15u) & mask;; at = (at + 1) & mask) {
    Entry& entry = entries_[at];
    if (entry.group == kNoGroup) {
      entry = {word, group};
      ++size_;
      return true;
    }
    if (entry.word == word && entry.group == group) return false;
  }
}

void DistinctSet::grow() {
  std::vector<Entry> old(std::max<std::size_t>(entries_.size() * 2, 256), Entry{0, kNoGroup});
  old.swap(entries_);
  size_ = 0;
  for (const Entry& entry : old)
    if (entry.group != kNoGroup) insert(entry.group, entry.word);
}

}  // namespace flugs::query
