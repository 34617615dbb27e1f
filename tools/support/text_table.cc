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

}  // namespace

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line = fmt::format("{:<{}}", rows_[r][0], widths[0]);
    for (std::size_t i = 1; i < widths.size(); ++i)
      line += fmt::format("  {:>{}}", rows_[r][i], widths[i]);
    text += line + "\n";
    if (r == 0) text += std::string(line.size(), '-') + "\n";
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
