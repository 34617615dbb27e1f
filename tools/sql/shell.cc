#include "tools/sql/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <sstream>
#include <utility>

#include "bindings/sqlite/sqlite_api.h"
#include "tools/sql/interrupts.h"
#include "tools/sql/sqlite_settings.h"

namespace flugs::tools {

namespace {

constexpr const char* kHelp =
    ".help            Print this list\n"
    ".mode [MODE]     Print rows as box, list, csv, json or line; without MODE say which it is\n"
    ".quit            Leave; so does the end of the input\n"
    ".schema [TABLE]  Print the definition of each table, or of one\n"
    ".tables          Print the names of all tables\n"
    ".timer on|off    Print the time that each statement takes\n"
    "Anything else is SQL, and ends with a semicolon. flugs_add_column, flugs_drop_column,\n"
    "flugs_rename_column, flugs_add_index, flugs_drop_index and flugs_merge change tables:\n"
    "docs/sql.md has their arguments.\n";

constexpr const char* kWords[] = {"ALTER",
                                  "AND",
                                  "AS",
                                  "ASC",
                                  "BEGIN",
                                  "BETWEEN",
                                  "BY",
                                  "CASE",
                                  "COMMIT",
                                  "CREATE",
                                  "DELETE",
                                  "DESC",
                                  "DISTINCT",
                                  "DROP",
                                  "ELSE",
                                  "END",
                                  "EXISTS",
                                  "EXPLAIN",
                                  "FROM",
                                  "GROUP",
                                  "HAVING",
                                  "IN",
                                  "INSERT",
                                  "INTO",
                                  "IS",
                                  "JOIN",
                                  "LEFT",
                                  "LIKE",
                                  "LIMIT",
                                  "NOT",
                                  "NULL",
                                  "OFFSET",
                                  "ON",
                                  "OR",
                                  "ORDER",
                                  "OVER",
                                  "PARTITION",
                                  "PLAN",
                                  "QUERY",
                                  "RELEASE",
                                  "REPLACE",
                                  "RETURNING",
                                  "ROLLBACK",
                                  "SAVEPOINT",
                                  "SELECT",
                                  "SET",
                                  "TABLE",
                                  "THEN",
                                  "UNION",
                                  "UPDATE",
                                  "USING",
                                  "VALUES",
                                  "VIRTUAL",
                                  "WHEN",
                                  "WHERE",
                                  "WITH",
                                  "flugs_add_column(",
                                  "flugs_add_index(",
                                  "flugs_drop_column(",
                                  "flugs_drop_index(",
                                  "flugs_merge(",
                                  "flugs_rename_column(",
                                  "flugs_schema("};

bool begins_with(std::string_view word, std::string_view begun) {
  return word.size() >= begun.size() &&
         std::equal(begun.begin(), begun.end(), word.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) ==
                  std::tolower(static_cast<unsigned char>(b));
         });
}

std::string without_spaces(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// The schema main is in memory: rows of a plain table would be lost when the shell ends. An
/// authorizer of SQLite; it notes the table's name in the string `refused`.
int refuse_lost_tables(void* refused, int action, const char* table, const char* /*unused*/,
                       const char* schema, const char* /*unused*/) {
  if (action != SQLITE_CREATE_TABLE || schema == nullptr || std::string_view(schema) != "main")
    return SQLITE_OK;
  if (std::string_view(table).starts_with("sqlite_")) return SQLITE_OK;
  *static_cast<std::string*>(refused) = table;
  return SQLITE_DENY;
}

constexpr const char* kTables =
    "SELECT name FROM temp.sqlite_master WHERE type IN ('table', 'view') UNION "
    "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view') ORDER BY 1";
constexpr const char* kPoolTables =
    "SELECT name FROM temp.sqlite_master WHERE type = 'table' AND "
    "sql LIKE 'CREATE VIRTUAL TABLE % USING flugs' AND (?1 = '' OR name = ?1 COLLATE NOCASE) UNION "
    "SELECT name FROM temp.sqlite_master WHERE type = 'table' AND "
    "sql LIKE 'CREATE VIRTUAL TABLE % USING flugs(%' AND (?1 = '' OR name = ?1 COLLATE NOCASE) "
    "ORDER BY 1";

}  // namespace

SqlShell::~SqlShell() { sqlite3_close(db_); }

bool SqlShell::fail(const std::string& message) const {
  std::fflush(out_);
  fmt::print(stderr, "flugs: {}\n", message);
  return false;
}

Status SqlShell::open(const std::string& pool, const std::vector<std::string>& options) {
  char* error = nullptr;
  set_up_sqlite();
  if (sqlite3_open(":memory:", &db_) != SQLITE_OK ||
      sqlite3_flugssqlite_init(db_, &error, nullptr) != SQLITE_OK) {
    const std::string message = error != nullptr ? error : sqlite3_errmsg(db_);
    sqlite3_free(error);
    return Status(StatusCode::kInvalidArgument, message);
  }
  std::string sql = "SELECT flugs_open(?1";
  for (std::size_t i = 0; i < options.size(); ++i) sql += ", ?" + std::to_string(i + 2);
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db_, (sql + ")").c_str(), -1, &statement, nullptr);
  sqlite3_bind_text(statement, 1, pool.c_str(), -1, SQLITE_TRANSIENT);
  for (std::size_t i = 0; i < options.size(); ++i)
    sqlite3_bind_text(statement, static_cast<int>(i) + 2, options[i].c_str(), -1, SQLITE_TRANSIENT);
  const bool is_open = sqlite3_step(statement) == SQLITE_ROW;
  Status status;
  if (!is_open) status = Status(StatusCode::kInvalidArgument, sqlite3_errmsg(db_));
  sqlite3_finalize(statement);
  sqlite3_set_authorizer(db_, refuse_lost_tables, &refused_table_);
  return status;
}

bool SqlShell::run(const std::string& text) {
  if (text.find('\0') != std::string::npos)
    return fail("a NUL character is no part of SQL: char(0) gives one");
  if (!run_line(without_spaces(text))) return false;
  if (std::fflush(out_) == 0 && std::ferror(out_) == 0) return true;
  return fail("the output cannot be written");
}

bool SqlShell::run_line(const std::string& line) {
  if (line.empty()) return true;
  if (line.front() == '.') return run_command(line);
  return run_statements(line);
}

bool SqlShell::run_statements(const std::string& text) {
  const Interrupts interrupts(db_);
  const char* rest = text.c_str();
  while (*rest != 0) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(db_, rest, -1, &statement, &rest);
    if (code == SQLITE_AUTH)
      return fail(
          fmt::format("CREATE TABLE {0} would make a table outside of the pool, which is "
                      "gone when the shell ends: CREATE VIRTUAL TABLE temp.{0} USING "
                      "flugs(...) makes a table of the pool, CREATE TEMP TABLE {0} one for "
                      "this session",
                      refused_table_));
    if (code != SQLITE_OK) return fail(sqlite3_errmsg(db_));
    if (statement == nullptr) continue;  // a comment
    if (!step(statement)) return false;
  }
  return true;
}

bool SqlShell::step(sqlite3_stmt* statement) {
  const auto start = std::chrono::steady_clock::now();
  ResultPrinter printer(mode_, out_);
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) printer.add(statement);
  printer.finish(sqlite3_column_count(statement) != 0);
  const std::string message = code == SQLITE_DONE ? "" : sqlite3_errmsg(db_);
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) return fail(message);
  if (has_timer_)
    fmt::print(out_, "{} rows, {:.3f} ms\n", printer.rows(),
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                   .count());
  std::fflush(out_);
  return true;
}

std::vector<std::string> SqlShell::names(const char* sql, const std::string& argument) {
  std::vector<std::string> found;
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr);
  if (sqlite3_bind_parameter_count(statement) == 1)
    sqlite3_bind_text(statement, 1, argument.c_str(), -1, SQLITE_TRANSIENT);
  while (sqlite3_step(statement) == SQLITE_ROW)
    if (const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)))
      found.emplace_back(text);
  sqlite3_finalize(statement);
  return found;
}

bool SqlShell::print_tables() {
  for (const std::string& name : names(kTables, "")) fmt::print(out_, "{}\n", name);
  std::fflush(out_);
  return true;
}

bool SqlShell::print_schema(const std::string& table) {
  const std::vector<std::string> tables = names(kPoolTables, table);
  if (tables.empty() && !table.empty()) return fail("the pool has no table " + table);
  for (const std::string& name : tables)
    for (const std::string& text : names("SELECT flugs_schema(?1)", name))
      fmt::print(out_, "{}\n", text);
  std::fflush(out_);
  return true;
}

void SqlShell::print_help() const {
  std::fputs(kHelp, out_);
  std::fflush(out_);
}

bool SqlShell::run_command(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  std::string argument;
  std::string more;
  words >> name >> argument >> more;
  if (!more.empty()) return fail(name + " has one argument at most: .help lists the commands");
  if (name == ".quit" || name == ".exit") {
    is_over_ = true;
    return true;
  }
  if (name == ".help") {
    print_help();
    return true;
  }
  if (name == ".tables") return print_tables();
  if (name == ".schema") return print_schema(argument);
  if (name == ".timer") {
    if (argument != "on" && argument != "off") return fail(".timer is on or off");
    has_timer_ = argument == "on";
    return true;
  }
  if (name == ".mode") {
    if (argument.empty()) {
      fmt::print(out_, "{}\n", to_string(mode_));
      return true;
    }
    const std::optional<SqlMode> mode = sql_mode_of(argument);
    if (!mode) return fail("there are the modes box, list, csv, json, line; not " + argument);
    mode_ = *mode;
    return true;
  }
  return fail("there is no command " + name + ": .help lists all");
}

std::vector<std::string> SqlShell::completions(const std::string& begun) {
  std::vector<std::string> found;
  const bool is_small = !begun.empty() && std::islower(static_cast<unsigned char>(begun.front()));
  for (const char* word : kWords) {
    std::string text = word;
    if (is_small)
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (begins_with(text, begun)) found.push_back(text);
  }
  for (const std::string& table : names(kTables, "")) {
    if (begins_with(table, begun)) found.push_back(table);
    for (const std::string& column : names("SELECT name FROM pragma_table_info(?1)", table))
      if (begins_with(column, begun)) found.push_back(column);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace flugs::tools
