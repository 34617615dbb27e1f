#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flugs::tools {

/// How the shell prints rows.
enum class SqlMode {
  kBox,   ///< columns under their names, as wide as their values
  kList,  ///< values with | between them, as sqlite3 prints them
  kCsv,
  kJson,
  kLine,  ///< a line for each value: name = value
};

/// "box", "list", "csv", "json", "line".
std::optional<SqlMode> sql_mode_of(std::string_view name) noexcept;
const char* to_string(SqlMode mode) noexcept;

/// Prints the rows of a statement. Rows of all modes but kBox leave at once.
class ResultPrinter {
 public:
  ResultPrinter(SqlMode mode, std::FILE* out) : mode_(mode), out_(out) {}
  /// The row to which `statement` has stepped.
  void add(sqlite3_stmt* statement);
  /// Behind the last row. `has_columns`: the statement is one that gives rows.
  void finish(bool has_columns);
  std::size_t rows() const noexcept { return rows_; }

 private:
  struct Cell {
    std::string text;
    int type = SQLITE_NULL;
  };
  void print_row(const std::vector<Cell>& row);
  void print_box() const;

  SqlMode mode_;
  std::FILE* out_;
  std::size_t rows_ = 0;
  std::vector<std::string> names_;
  std::vector<std::vector<Cell>> kept_;  // of kBox
};

}  // namespace flugs::tools
