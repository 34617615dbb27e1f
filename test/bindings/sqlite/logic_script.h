#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/sqlite/sqlite_api.h"

// Scripts in the form of sqllogictest, run on tables of SQLite and on tables of flugs, which must
// do the same. Records are divided by empty lines; a line that begins with # is a comment:
//
//   statement ok              or: statement error
//   INSERT INTO t VALUES(1)
//
//   query IT rowsort          a letter for each column: I, T, or R, which is compared with three
//   SELECT a, b FROM t        digits; nosort, rowsort or valuesort
//   ----                      what may be left out: both sides are compared with each other
//   1                         one value a line
//   x
//
// A record behind "onlyif flugs" or "onlyif sqlite" is run on that side only.

namespace flugs::test {

/// A connection of SQLite, perhaps with a pool of flugs.
class Connection {
 public:
  /// A database in memory.
  Connection();
  explicit Connection(const std::string& pool);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  sqlite3* db() const noexcept { return db_; }
  /// The result code; `message` says what SQLite says.
  int run(const std::string& sql);
  /// All values of a query, "NULL" for NULL; one text "error: ..." if it fails.
  std::vector<std::string> rows(const std::string& sql);
  /// The only value of a query.
  std::string value(const std::string& sql);
  const std::string& message() const noexcept { return message_; }

 private:
  sqlite3* db_ = nullptr;
  std::string message_;
};

/// One side of a script.
struct Side {
  std::string name;
  Connection& connection;
};

struct ScriptResult {
  std::size_t statements = 0;
  std::size_t errors = 0;             ///< statements that had to fail, and did
  std::vector<std::string> failures;  ///< what differed, with the statement
};

/// Runs a script on both sides.
ScriptResult run_script(std::string_view script, Side sqlite, Side flugs);

/// Runs one statement on both sides, and adds to `result`. Its rows are compared in the order in
/// which they come if `is_sorted`.
void run_both(const std::string& sql, bool is_sorted, Side sqlite, Side flugs,
              ScriptResult& result);

}  // namespace flugs::test
