#include "tools/sql/result_printer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace flugs::tools {

namespace {

constexpr std::array<std::pair<const char*, SqlMode>, 5> kPrintModes = {{{"box", SqlMode::kBox},
                                                                         {"list", SqlMode::kList},
                                                                         {"csv", SqlMode::kCsv},
                                                                         {"json", SqlMode::kJson},
                                                                         {"line", SqlMode::kLine}}};

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "x'";
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text + "'";
}

std::string csv_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + "\"";
}

std::string json_of(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped.data();
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

/// JSON has no infinity: a number that is too large for a double is read as one.
std::string json_number_of(const std::string& text) {
  return text == "Inf" ? "9.0e+999" : text == "-Inf" ? "-9.0e+999" : text;
}

/// Places that a text takes on a terminal: characters of UTF-8.
std::size_t places_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::optional<SqlMode> sql_mode_of(std::string_view name) noexcept {
  for (const auto& [known, mode] : kPrintModes)
    if (name == known) return mode;
  return std::nullopt;
}

const char* to_string(SqlMode mode) noexcept {
  return kPrintModes[static_cast<std::size_t>(mode)].first;
}

void ResultPrinter::add(sqlite3_stmt* statement) {
  const int count = sqlite3_column_count(statement);
  if (rows_ == 0)
    for (int i = 0; i < count; ++i) names_.emplace_back(sqlite3_column_name(statement, i));
  std::vector<Cell> row(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Cell& cell = row[static_cast<std::size_t>(i)];
    cell.type = sqlite3_column_type(statement, i);
    if (cell.type == SQLITE_NULL) continue;
    const auto* text = cell.type == SQLITE_BLOB
                           ? static_cast<const char*>(sqlite3_column_blob(statement, i))
                           : reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
    if (text != nullptr) cell.text.assign(text, size);
    if (cell.type == SQLITE_BLOB) cell.text = hex_of(cell.text);
  }
  ++rows_;
  if (mode_ == SqlMode::kBox)
    kept_.push_back(std::move(row));
  else
    print_row(row);
}

void ResultPrinter::print_row(const std::vector<Cell>& row) {
  std::string line;
  if (mode_ == SqlMode::kJson) line = rows_ == 1 ? "[{" : ",\n {";
  if (mode_ == SqlMode::kCsv && rows_ == 1) {
    for (std::size_t i = 0; i < names_.size(); ++i) line += (i == 0 ? "" : ",") + csv_of(names_[i]);
    line += "\n";
  }
  if (mode_ == SqlMode::kLine && rows_ != 1) line = "\n";
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Cell& cell = row[i];
    switch (mode_) {
      case SqlMode::kList:
        line += (i == 0 ? "" : "|") + cell.text;
        break;
      case SqlMode::kCsv:
        line += (i == 0 ? "" : ",") + csv_of(cell.text);
        break;
      case SqlMode::kLine:
        line += (i == 0 ? "" : "\n") + names_[i] + " = " +
                (cell.type == SQLITE_NULL ? "NULL" : cell.text);
        break;
      default:
        line += (i == 0 ? "" : ",") + json_of(names_[i]) + ":";
        line += cell.type == SQLITE_NULL      ? "null"
                : cell.type == SQLITE_INTEGER ? cell.text
                : cell.type == SQLITE_FLOAT   ? json_number_of(cell.text)
                                              : json_of(cell.text);
    }
  }
  line += mode_ == SqlMode::kJson ? "}" : "\n";
  std::fwrite(line.data(), 1, line.size(), out_);
}

void ResultPrinter::print_box() const {
  std::vector<std::size_t> widths;
  widths.reserve(names_.size());
  for (const std::string& name : names_) widths.push_back(places_of(name));
  for (const auto& row : kept_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], places_of(row[i].type == SQLITE_NULL ? "NULL" : row[i].text));
  std::string text;
  const auto add_line = [&](auto&& cell_of, auto&& is_right) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = cell_of(i);
      const std::string space(widths[i] - places_of(cell), ' ');
      line += (i == 0 ? "" : "  ") + (is_right(i) ? space + cell : cell + space);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  };
  const auto never = [](std::size_t) { return false; };
  add_line([&](std::size_t i) { return names_[i]; }, never);
  add_line([&](std::size_t i) { return std::string(widths[i], '-'); }, never);
  for (const auto& row : kept_)
    add_line(
        [&](std::size_t i) {
          return row[i].type == SQLITE_NULL ? std::string("NULL") : row[i].text;
        },
        [&](std::size_t i) {
          return row[i].type == SQLITE_INTEGER || row[i].type == SQLITE_FLOAT;
        });
  std::fwrite(text.data(), 1, text.size(), out_);
}

void ResultPrinter::finish(bool has_columns) {
  if (mode_ == SqlMode::kBox && rows_ != 0) print_box();
  if (mode_ == SqlMode::kJson && has_columns) std::fputs(rows_ != 0 ? "]\n" : "[]\n", out_);
}

}  // namespace flugs::tools
