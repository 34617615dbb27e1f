#pragma once

#include <sqlite3.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/status.h"
#include "tools/sql/result_printer.h"

namespace flugs::tools {

/// Runs statements of SQL, and commands that begin with a dot, on a pool.
class SqlShell {
 public:
  SqlShell(SqlMode mode, std::FILE* out) : mode_(mode), out_(out) {}
  SqlShell(const SqlShell&) = delete;
  SqlShell& operator=(const SqlShell&) = delete;
  ~SqlShell();

  /// `options` are further arguments of flugs_open.
  Status open(const std::string& pool, const std::vector<std::string>& options);
  /// Runs a text: statements, or one command. Prints what failed on standard error; then the rest
  /// of the text is left out, and it returns false.
  bool run(const std::string& text);
  /// .quit was given.
  bool is_over() const noexcept { return is_over_; }
  /// Words that may stand where `begun` does: those of SQL, names of tables and columns.
  std::vector<std::string> completions(const std::string& begun);

 private:
  bool run_line(const std::string& line);
  bool run_command(const std::string& line);
  bool run_statements(const std::string& text);
  bool step(sqlite3_stmt* statement);
  bool fail(const std::string& message) const;
  std::vector<std::string> names(const char* sql, const std::string& argument);
  bool print_tables();
  bool print_schema(const std::string& table);
  void print_help() const;

  SqlMode mode_;
  std::FILE* out_;
  sqlite3* db_ = nullptr;
  std::string refused_table_;  // of a CREATE TABLE that refuse_lost_tables has refused
  bool has_timer_ = false;
  bool is_over_ = false;
};

/// Reads standard input to its end, or to .quit, and runs what it reads. On a terminal it prompts,
/// lines can be edited and come back (~/.flugs_sql_history), Tab completes words, and a statement
/// that fails is no end. Elsewhere the first failure ends it: returns false, with the line's number
/// on standard error.
bool run_input(SqlShell& shell, const std::string& pool);

}  // namespace flugs::tools
