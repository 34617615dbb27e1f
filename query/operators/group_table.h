#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "query/vectors/vec.h"

namespace flugs::query {

inline constexpr std::uint32_t kNoGroup = 0xFFFFFFFFu;

/// The words of a key. A number or a code takes one word, and a text two: the address of its bytes,
/// and its mark. The bytes outlive the query's operators (RunContext). The words of dependent parts
/// follow from the other words: they are the same in all keys that agree in the others.
struct KeyShape {
  std::size_t words() const noexcept { return is_address.size(); }
  /// Adds a part of the key, and returns the place of its first word.
  std::size_t add(bool is_text, bool is_dependent_part = false) {
    const std::size_t at = is_address.size();
    is_address.push_back(is_text ? 1 : 0);
    if (is_text) is_address.push_back(0);
    is_dependent.resize(is_address.size(), is_dependent_part ? 1 : 0);
    is_hashed.push_back(is_text || is_dependent_part ? 0 : 1);
    is_hashed.resize(is_address.size(), is_dependent_part ? 0 : 1);
    has_texts |= is_text && !is_dependent_part;
    has_dependent |= is_dependent_part;
    return at;
  }

  std::vector<std::uint8_t> is_address;  ///< by word; the word behind an address is the text's mark
  std::vector<std::uint8_t> is_dependent;  ///< by word: it is neither hashed nor compared
  std::vector<std::uint8_t> is_hashed;     ///< by word: the hash of a key has it in it
  bool has_texts = false;                  ///< that are compared
  bool has_dependent = false;
};

/// Half of a hash of the bytes, and their number. Texts with different marks differ. Fails with
/// kInvalidArgument for a text of 4 GB.
std::uint64_t text_mark(std::string_view text);
/// The same for a text that is not compared: without its hash, so its bytes are not read.
std::uint64_t text_size_mark(std::string_view text);
inline std::string_view text_of(std::uint64_t address, std::uint64_t mark) noexcept {
  return {reinterpret_cast<const char*>(address), static_cast<std::uint32_t>(mark)};
}

/// The keys of a batch: words per row as KeyShape says, and for each 64 words a word per row with a
/// bit for the first word of each key that is NULL. The words of a NULL key are 0.
struct KeyWords {
  /// Words for the NULLs of a row.
  static constexpr std::size_t null_words(std::size_t word_count) noexcept {
    return word_count / 64 + (word_count % 64 != 0 || word_count == 0 ? 1 : 0);
  }

  explicit KeyWords(std::size_t word_count)
      : keys(word_count, std::vector<std::uint64_t>(kBatchRows)),
        nulls(null_words(word_count), std::vector<std::uint64_t>(kBatchRows)) {}

  /// No key of the first rows is NULL.
  void clear_nulls(std::size_t rows) {
    for (std::vector<std::uint64_t>& words : nulls) std::fill_n(words.begin(), rows, 0);
  }
  void note_null(std::size_t word, std::size_t row, bool is_null = true) noexcept {
    nulls[word / 64][row] |= std::uint64_t{is_null} << word % 64;
  }
  bool is_null(std::size_t word, std::size_t row) const noexcept {
    return (nulls[word / 64][row] >> word % 64 & 1) != 0;
  }
  void put_text(std::size_t word, std::size_t row, std::string_view text) {
    keys[word][row] = reinterpret_cast<std::uint64_t>(text.data());
    keys[word + 1][row] = text_mark(text);
  }
  void put_dependent_text(std::size_t word, std::size_t row, std::string_view text) {
    keys[word][row] = reinterpret_cast<std::uint64_t>(text.data());
    keys[word + 1][row] = text_size_mark(text);
  }

  std::vector<std::vector<std::uint64_t>> keys;
  std::vector<std::vector<std::uint64_t>> nulls;
};

/// Numbers distinct keys from 0 on, in the order in which they come. The row of a key is its words,
/// and then the words of NULL bits.
class GroupTable {
 public:
  /// The words of each key that are not NULL are below `ranges`, which the caller sees to; empty:
  /// unknown. With few combinations the number comes from an array, else from a hash table.
  GroupTable(KeyShape shape, std::vector<std::uint32_t> ranges);

  bool is_array() const noexcept { return !ranges_.empty(); }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(hashes_.size()); }
  void find(const KeyWords& words, std::size_t rows, std::uint32_t* groups);
  /// The same for a table with one key where is_array(), by codes of rows without NULLs.
  void find_codes(const std::uint32_t* codes, std::size_t rows, std::uint32_t* groups);
  /// The same for rows of keys that lie `stride` words apart, kBatchRows at most.
  void find_rows(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                 std::uint32_t* groups);
  /// The hashes of a batch's keys.
  void hash(const KeyWords& words, std::size_t rows, std::uint64_t* hashes) const noexcept;
  std::uint64_t hash_of(const std::uint64_t* row) const noexcept;
  /// Makes room for `groups` groups at once, if the table finds groups by hash.
  void reserve(std::size_t groups);
  /// Forgets the groups, and keeps the memory.
  void clear();

  std::size_t row_words() const noexcept { return row_words_; }
  const std::uint64_t* key_row(std::uint32_t group) const noexcept {
    FLUGS_DCHECK(group < size());
    return rows_.data() + std::size_t{group} * row_words_;
  }
  bool is_null(std::uint32_t group, std::size_t word) const noexcept {
    return (key_row(group)[word_count_ + word / 64] >> word % 64 & 1) != 0;
  }
  std::uint64_t hash(std::uint32_t group) const noexcept {
    FLUGS_DCHECK(group < size());
    return hashes_[group];
  }
  std::uint64_t bytes() const noexcept {
    return rows_.capacity() * 8 + hashes_.capacity() * 8 + slots_.capacity() * sizeof(Slot) +
           array_.capacity() * 4;
  }
  /// Bytes of a group in a hash table that is half full.
  static std::uint64_t bytes_of_group(const KeyShape& shape) noexcept {
    const std::size_t words = shape.words() + KeyWords::null_words(shape.words());
    return (words + 1) * sizeof(std::uint64_t) + 2 * sizeof(Slot);
  }

  /// Largest number of combinations for an array: it stays in the first-level cache, or nearly.
  static constexpr std::uint64_t kArrayMax = std::uint64_t{1} << 14;

 private:
  struct Slot {
    std::uint32_t tag;
    std::uint32_t group;
  };
  void find_by_array(const KeyWords& words, std::size_t rows, std::uint32_t* groups);
  void find_by_hash(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                    std::uint32_t* groups);
  template <typename Same>
  void find_each(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows,
                 std::uint32_t* groups, Same same);
  void hash_rows(const std::uint64_t* key_rows, std::size_t stride, std::size_t rows);
  void rows_of(const KeyWords& words, std::size_t rows);
  std::uint32_t find_at(std::uint64_t index, const std::uint64_t* row);
  std::uint64_t index_of(const std::uint64_t* row) const noexcept;
  template <typename Same>
  std::uint32_t find_row(const std::uint64_t* row, std::uint64_t hash, Same same);
  bool is_same(const std::uint64_t* a, const std::uint64_t* b) const noexcept;
  std::uint32_t add(const std::uint64_t* row, std::uint64_t hash);
  void copy_key(const KeyWords& words, std::size_t i);
  void make_room(std::size_t rows);
  void set_slots(std::size_t count);
  void prefetch_slot(std::uint64_t hash) const noexcept;
  void prefetch_row(std::uint64_t hash) const noexcept;
  void prefetch_text(const std::uint64_t* row, std::uint64_t hash) const noexcept;

  KeyShape shape_;
  std::size_t word_count_;
  std::size_t row_words_;
  std::size_t first_address_ = 0;  // of a text, if there is one
  std::vector<std::uint32_t> ranges_;
  std::vector<std::uint32_t> array_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint64_t> scratch_;       // one key row
  std::vector<std::uint64_t> batch_hashes_;  // of the keys that are looked up
  std::vector<std::uint64_t> batch_rows_;    // the keys that are looked up, row by row
};

/// Distinct pairs of group and value, whose word is a number or the address of a text.
class DistinctSet {
 public:
  explicit DistinctSet(bool has_texts = false) : has_texts_(has_texts) {}
  /// True when the pair is new. `mark` is the text's.
  bool insert(std::uint32_t group, std::uint64_t word, std::uint64_t mark = 0);
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_)
      if (entry.group != kNoGroup) visit(entry.group, entry.word, entry.mark);
  }
  std::size_t size() const noexcept { return size_; }
  /// Forgets the pairs, and keeps the memory.
  void clear();
  std::uint64_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t word;
    std::uint64_t mark;
    std::uint32_t group;
  };

 public:
  /// Bytes of a pair in a set that is half full.
  static constexpr std::uint64_t kPairBytes = 2 * sizeof(Entry);

 private:
  void grow();
  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  bool has_texts_;
};

}  // namespace flugs::query
