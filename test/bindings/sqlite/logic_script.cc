#include "test/bindings/sqlite/logic_script.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace flugs::test {

Connection::Connection() {
  if (sqlite3_open(":memory:", &db_) != SQLITE_OK) throw std::runtime_error("sqlite3_open");
  char* error = nullptr;
  if (sqlite3_flugssqlite_init(db_, &error, nullptr) != SQLITE_OK)
    throw std::runtime_error("sqlite3_flugssqlite_init");
}

Connection::Connection(const std::string& pool) : Connection() {
  if (run("SELECT flugs_open('" + pool + "')") != SQLITE_OK) throw std::runtime_error(message_);
}

Connection::~Connection() {
  if (sqlite3_close(db_) != SQLITE_OK) std::abort();
}

int Connection::run(const std::string& sql) {
  char* error = nullptr;
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &error);
  message_ = error != nullptr ? error : "";
  sqlite3_free(error);
  return code;
}

namespace {

/// Cells of a query, or the failure.
struct Answer {
  int code = SQLITE_OK;
  std::string message;
  int width = 0;
  std::vector<std::string> cells;
};

std::string cell_of(sqlite3_stmt* statement, int column, char type) {
  const int stored = sqlite3_column_type(statement, column);
  if (stored == SQLITE_NULL) return "NULL";
  if (type == 'R' || (type == 0 && stored == SQLITE_FLOAT)) {
    char text[64];
    std::snprintf(text, sizeof text, type == 'R' ? "%.3f" : "%.12g",
                  sqlite3_column_double(statement, column));
    return text;
  }
  const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  std::string cell(text == nullptr ? "" : text,
                   static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  if (type == 0) cell += stored == SQLITE_BLOB ? " blob" : stored == SQLITE_TEXT ? " text" : "";
  return cell.empty() ? "(empty)" : cell;
}

Answer ask(sqlite3* db, const std::string& sql, std::string_view types) {
  Answer answer;
  sqlite3_stmt* statement = nullptr;
  answer.code = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr);
  while (answer.code == SQLITE_OK && statement != nullptr) {
    const int code = sqlite3_step(statement);
    if (code != SQLITE_ROW) {
      if (code != SQLITE_DONE) answer.code = code;
      break;
    }
    answer.width = sqlite3_column_count(statement);
    for (int i = 0; i < answer.width; ++i)
      answer.cells.push_back(cell_of(
          statement, i,
          static_cast<std::size_t>(i) < types.size() ? types[static_cast<std::size_t>(i)] : '\0'));
  }
  if (answer.code != SQLITE_OK) answer.message = sqlite3_errmsg(db);
  const int end = sqlite3_finalize(statement);
  if (answer.code == SQLITE_OK && end != SQLITE_OK) answer.code = end;
  return answer;
}

void sort_rows(Answer& answer) {
  if (answer.width < 1) return;
  const auto width = static_cast<std::size_t>(answer.width);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < answer.cells.size(); i += width)
    rows.emplace_back(answer.cells.begin() + static_cast<std::ptrdiff_t>(i),
                      answer.cells.begin() + static_cast<std::ptrdiff_t>(i + width));
  std::sort(rows.begin(), rows.end());
  answer.cells.clear();
  for (const auto& row : rows) answer.cells.insert(answer.cells.end(), row.begin(), row.end());
}

std::string text_of(const Answer& answer) {
  if (answer.code != SQLITE_OK)
    return "error " + std::to_string(answer.code) + ": " + answer.message;
  std::string text;
  for (std::size_t i = 0; i < answer.cells.size() && i < 60; ++i) text += answer.cells[i] + "|";
  return text + " (" + std::to_string(answer.cells.size()) + " cells)";
}

struct Record {
  std::string only;
  bool is_query = false;
  bool fails = false;
  std::string types;
  std::string sort = "nosort";
  std::string sql;
  std::optional<std::vector<std::string>> expected;
};

/// Reads the next record; false at the end.
bool read_record(std::istream& in, Record& record) {
  record = Record();
  std::string line;
  bool is_expected = false;
  bool has_head = false;
  while (std::getline(in, line)) {
    if (line.empty()) {
      if (has_head) return true;
      continue;
    }
    if (line.front() == '#') continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (!has_head && word == "onlyif") {
      words >> record.only;
    } else if (!has_head && word == "statement") {
      words >> word;
      record.fails = word == "error";
      has_head = true;
    } else if (!has_head && word == "query") {
      words >> record.types >> record.sort;
      record.is_query = has_head = true;
    } else if (!has_head) {
      throw std::runtime_error("a script has the line: " + line);
    } else if (line == "----") {
      record.expected.emplace();
      is_expected = true;
    } else if (is_expected) {
      record.expected->push_back(line);
    } else {
      record.sql += (record.sql.empty() ? "" : "\n") + line;
    }
  }
  return has_head;
}

void run_record(const Record& record, const std::vector<Side>& sides, ScriptResult& result) {
  std::vector<Answer> answers;
  ++result.statements;
  for (const Side& side : sides) {
    if (!record.only.empty() && record.only != side.name) continue;
    Answer answer = ask(side.connection.db(), record.sql, record.types);
    if (record.sort == "rowsort") sort_rows(answer);
    if (record.sort == "valuesort") std::sort(answer.cells.begin(), answer.cells.end());
    const bool is_good = record.fails ? answer.code != SQLITE_OK : answer.code == SQLITE_OK;
    if (!is_good || (record.expected && *record.expected != answer.cells))
      result.failures.push_back(side.name + ": " + record.sql + "\n  " + text_of(answer));
    answers.push_back(std::move(answer));
  }
  if (record.fails) ++result.errors;
  if (answers.size() == 2 && record.is_query && answers[0].cells != answers[1].cells)
    result.failures.push_back(record.sql + "\n  sqlite: " + text_of(answers[0]) +
                              "\n  flugs:  " + text_of(answers[1]));
}

}  // namespace

std::vector<std::string> Connection::rows(const std::string& sql) {
  const Answer answer = ask(db_, sql, "TTTTTTTTTTTTTTTT");
  message_ = answer.message;
  if (answer.code != SQLITE_OK) return {"error: " + answer.message};
  return answer.cells;
}

std::string Connection::value(const std::string& sql) {
  const std::vector<std::string> all = rows(sql);
  return all.size() == 1 ? all.front() : std::to_string(all.size()) + " values";
}

ScriptResult run_script(std::string_view script, Side sqlite, Side flugs) {
  ScriptResult result;
  std::istringstream in{std::string(script)};
  Record record;
  while (read_record(in, record)) run_record(record, {sqlite, flugs}, result);
  return result;
}

void run_both(const std::string& sql, bool is_sorted, Side sqlite, Side flugs,
              ScriptResult& result) {
  ++result.statements;
  Answer first = ask(sqlite.connection.db(), sql, "");
  Answer second = ask(flugs.connection.db(), sql, "");
  if (!is_sorted) {
    sort_rows(first);
    sort_rows(second);
  }
  if (first.code != SQLITE_OK) ++result.errors;
  // The kind of an error is that of SQLite; the words are flugs' own. Under a conflict clause flugs
  // says SQLITE_MISMATCH of a wrong type.
  const int kind = second.code == SQLITE_MISMATCH ? SQLITE_CONSTRAINT : second.code & 0xFF;
  if ((first.code & 0xFF) != kind || first.cells != second.cells)
    result.failures.push_back(sql + "\n  sqlite: " + text_of(first) +
                              "\n  flugs:  " + text_of(second));
}

}  // namespace flugs::test
