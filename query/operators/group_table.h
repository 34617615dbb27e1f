#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "query/vectors/vec.h"

namespace flugs::query {

inline constexpr std::uint32_t kNoGroup = 0xFFFFFFFFu;

/// The keys of a batch: a word per key and row (a payload, a double's bits or a code), and for each
/// 64 keys a word per row with a bit for each key that is NULL. The word of a NULL key is 0.
struct KeyWords {
  /// Words for the NULLs of a row.
  static constexpr std::size_t null_words(std::size_t key_count) noexcept {
    return key_count / 64 + (key_count % 64 != 0 || key_count == 0 ? 1 : 0);
  }

  explicit KeyWords(std::size_t key_count)
      : keys(key_count, std::vector<std::uint64_t>(kBatchRows)),
        nulls(null_words(key_count), std::vector<std::uint64_t>(kBatchRows)) {}

  /// No key of the first rows is NULL.
  void clear_nulls(std::size_t rows) {
    for (std::vector<std::uint64_t>& words : nulls) std::fill_n(words.begin(), rows, 0);
  }
  void note_null(std::size_t key, std::size_t row, bool is_null = true) noexcept {
    nulls[key / 64][row] |= std::uint64_t{is_null} << key % 64;
  }
  bool is_null(std::size_t key, std::size_t row) const noexcept {
    return (nulls[key / 64][row] >> key % 64 & 1) != 0;
  }

  std::vector<std::vector<std::uint64_t>> keys;
  std::vector<std::vector<std::uint64_t>> nulls;
};

/// Numbers distinct keys from 0 on, in the order in which they come.
class GroupTable {
 public:
  /// The words of each key that are not NULL are below `ranges`, which the caller sees to; empty:
  /// unknown. With few combinations the number comes from an array, else from a hash table.
  GroupTable(std::size_t key_count, std::vector<std::uint32_t> ranges);

  bool is_array() const noexcept { return !ranges_.empty(); }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(hashes_.size()); }
  void find(const KeyWords& words, std::size_t rows, std::uint32_t* groups);
  /// The same for a table with one key where is_array(), by codes of rows without NULLs.
  void find_codes(const std::uint32_t* codes, std::size_t rows, std::uint32_t* groups);
  /// The number of one key row of another table.
  std::uint32_t find(const std::uint64_t* key_row, std::uint64_t hash);

  /// Words of the keys, then the words of NULL bits.
  const std::uint64_t* key_row(std::uint32_t group) const noexcept {
    FLUGS_DCHECK(group < size());
    return rows_.data() + std::size_t{group} * row_words_;
  }
  bool is_null(std::uint32_t group, std::size_t key) const noexcept {
    return (key_row(group)[key_count_ + key / 64] >> key % 64 & 1) != 0;
  }
  std::uint64_t hash(std::uint32_t group) const noexcept {
    FLUGS_DCHECK(group < size());
    return hashes_[group];
  }
  std::uint64_t bytes() const noexcept {
    return rows_.capacity() * 8 + hashes_.capacity() * 8 + slots_.capacity() * sizeof(Slot) +
           array_.capacity() * 4;
  }

  /// Largest number of combinations for an array: it stays in the first-level cache, or nearly.
  static constexpr std::uint64_t kArrayMax = std::uint64_t{1} << 14;

 private:
  struct Slot {
    std::uint32_t tag;
    std::uint32_t group;
  };
  void find_by_array(const KeyWords& words, std::size_t rows, std::uint32_t* groups);
  void find_by_hash(const KeyWords& words, std::size_t rows, std::uint32_t* groups);
  std::uint32_t find_row(const std::uint64_t* row, std::uint64_t hash);
  std::uint32_t add(const std::uint64_t* row, std::uint64_t hash);
  void copy_key(const KeyWords& words, std::size_t i);
  std::uint64_t hash_of(const std::uint64_t* row) const noexcept;
  void grow();

  std::size_t key_count_;
  std::size_t row_words_;
  std::vector<std::uint32_t> ranges_;
  std::vector<std::uint32_t> array_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint64_t> scratch_;  // one key row
};

/// Distinct pairs of group and value.
class DistinctSet {
 public:
  /// True when the pair is new.
  bool insert(std::uint32_t group, std::uint64_t word);
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_)
      if (entry.group != kNoGroup) visit(entry.group, entry.word);
  }
  std::uint64_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t word;
    std::uint32_t group;
  };
  void grow();
  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace flugs::query
