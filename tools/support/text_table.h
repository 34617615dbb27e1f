#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flugs::tools {

/// A table for people, its columns as wide as needed: text stands to the left, numbers to the
/// right.
class TextTable {
 public:
  /// `texts`: the columns that hold text.
  explicit TextTable(std::vector<std::string> header, std::vector<std::size_t> texts = {0})
      : texts_(std::move(texts)) {
    rows_.push_back(std::move(header));
  }

  /// One cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// With a line under the header; every line ends with a line feed.
  std::string to_string() const;

 private:
  std::vector<std::size_t> texts_;
  std::vector<std::vector<std::string>> rows_;
};

/// 2310000 is "2.31 M".
std::string format_count(double count);
/// 1536 is "1.50 KB".
std::string format_bytes(std::uint64_t bytes);
/// 1234 is "1.23 us".
std::string format_ns(std::uint64_t ns);

}  // namespace flugs::tools
