#include "tools/support/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace flugs::tools {

namespace {

/// `value` with three digits and the first of `units` in which it is below `step`.
template <std::size_t size>
std::string scaled(double value, double step, const std::array<const char*, size>& units) {
  std::size_t unit = 0;
  while (unit + 1 < size && value >= step * 0.9995) {
    value /= step;
    ++unit;
  }
  const int digits = unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

/// Characters of a text in UTF-8: names of tables may have any.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    std::size_t width = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::size_t gap = i == 0 ? 0 : 2;
      const std::size_t fill = widths[i] - width_of(rows_[r][i]);
      const bool is_text = std::count(texts_.begin(), texts_.end(), i) != 0;
      line.append(gap + (is_text ? 0 : fill), ' ').append(rows_[r][i]);
      if (is_text) line.append(fill, ' ');
      width += gap + widths[i];
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) text += std::string(width, '-') + "\n";
  }
  return text;
}

std::string format_count(double count) {
  return scaled(count, 1000, std::array{"", " k", " M", " G"});
}

std::string format_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, std::array{" bytes", " KB", " MB", " GB", " TB"});
}

std::string format_ns(std::uint64_t ns) {
  return scaled(static_cast<double>(ns), 1000, std::array{" ns", " us", " ms", " s"});
}

}  // namespace flugs::tools
