#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "query/vectors/vec.h"

namespace flugs::query {

/// Rows of a schema as records of equal length, for a temporary file of one query: a word for each
/// number or code, two for a text (its address and its size: RunContext says what owns the bytes),
/// and a bit for each NULL.
class RowCodec {
 public:
  explicit RowCodec(const Schema& schema);

  std::size_t words() const noexcept { return words_; }
  /// One record for each row, one behind the other.
  void write(const Batch& batch, std::uint64_t* records) const;
  /// The first columns of records, as many as `out` has elements.
  void read(const std::uint64_t* records, std::size_t rows, std::vector<Vec>& out,
            Batch& batch) const;

  bool is_null(const std::uint64_t* record, std::size_t column) const noexcept {
    return (record[column / 64] >> column % 64 & 1) != 0;
  }
  std::uint64_t word(const std::uint64_t* record, std::size_t column) const noexcept {
    return record[columns_[column].at];
  }
  std::string_view text(const std::uint64_t* record, std::size_t column) const noexcept {
    const std::uint64_t* words = record + columns_[column].at;
    return {reinterpret_cast<const char*>(words[0]), words[1]};
  }

 private:
  struct Column {
    Form form;
    std::size_t at;
  };
  std::vector<Column> columns_;
  std::size_t null_words_;
  std::size_t words_;
};

}  // namespace flugs::query
