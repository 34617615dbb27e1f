#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "columns/main/compressed_texts.h"
#include "columns/main/main_column.h"

namespace flugs::columns {

/// Reads the texts of a column one after the other, and leaves compressed ones nowhere else: a text
/// stays until another one is read. The column must outlive the reader.
/// Thread-safety: one thread.
class MainTextReader {
 public:
  explicit MainTextReader(const MainColumn& column) : column_(column) {
    if (column.owns_texts()) reader_.emplace(column.compressed_texts());
  }

  /// Empty for NULL. Fails with std::bad_alloc.
  std::string_view text(std::uint32_t row) {
    return reader_ ? reader_->text(row) : column_.text(row);
  }

 private:
  const MainColumn& column_;
  std::optional<CompressedTextReader> reader_;
};

}  // namespace flugs::columns
