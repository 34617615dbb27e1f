#pragma once

#include <cstdint>
#include <vector>

#include "query/operators/aggregate_state.h"
#include "query/operators/group_table.h"
#include "query/operators/record_parts.h"

namespace flugs::query {

/// Rows as records: the key row (GroupTable), and the arguments of the aggregates. A number takes a
/// word and a text two; an argument that is only counted takes none, nor does that of a count
/// distinct. NULLs of arguments are bits of the word with those of the keys if there is room, else
/// of words of their own.
class RowRecords {
 public:
  RowRecords(const KeyShape& shape, const std::vector<BoundAggregate>& aggregates);

  std::size_t words() const noexcept { return words_; }
  /// The values of an aggregate's argument for the rows of the batch that will be added.
  void set_argument(std::size_t aggregate, ColumnView values, std::size_t rows);
  /// Adds the rows with these keys and hashes. Fails as RecordParts::add.
  void add(const KeyWords& keys, const std::uint64_t* hashes, std::size_t rows, RecordParts& to);
  /// Makes key rows of records, whose other NULLs `accumulate` knows from here on.
  void open(std::uint64_t* records, std::size_t rows);
  /// Makes the records what they were before the last `open`.
  void close(std::uint64_t* records, std::size_t rows) const;
  /// Adds the rows to the states of their groups.
  void accumulate(const std::uint64_t* records, std::size_t rows, const std::uint32_t* groups,
                  AggregateState* states, KeptMemory& memory);

 private:
  struct Argument {
    std::size_t aggregate = 0;
    std::size_t at = 0;     // first word in the record
    std::size_t words = 0;  // 0: only its NULLs count
    std::size_t null_at = 0;
    unsigned null_bit = 0;
    bool has_nulls = false;             // in this batch
    std::vector<std::uint64_t> first;   // words of this batch
    std::vector<std::uint64_t> second;  // of texts
    std::vector<std::uint8_t> nulls;    // of this batch
    Vec values;

    void make_room();
  };
  ColumnView read(Argument& argument, const std::uint64_t* records, std::size_t rows) const;

  const std::vector<BoundAggregate>& aggregates_;  // of the GroupBySink, which outlives this
  std::size_t key_words_;
  std::size_t row_words_;  // of keys and their NULLs
  std::size_t words_;
  bool shares_null_word_;
  std::vector<Argument> arguments_;
  std::vector<std::uint32_t> argument_of_;  // by aggregate
};

}  // namespace flugs::query
