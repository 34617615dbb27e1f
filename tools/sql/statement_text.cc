#include "tools/sql/statement_text.h"

#include <sqlite3.h>

#include <cctype>

namespace flugs::tools {

void StatementText::add(const std::string& line) {
  if (!has_words_ && inside_ == 0) {
    text_.clear();
    const std::size_t first = line.find_first_not_of(" \t\r");
    is_command_ = first != std::string::npos && line[first] == '.';
  }
  text_ += line;
  text_ += '\n';
  has_nul_ |= line.find('\0') != std::string::npos;
  scan(line);
}

void StatementText::scan(const std::string& line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (inside_ == '*') {
      if (c == '*' && next == '/') {
        inside_ = 0;
        ++i;
      }
    } else if (inside_ != 0) {
      if (c == inside_) inside_ = 0;
    } else if (c == '-' && next == '-') {
      return;
    } else if (c == '/' && next == '*') {
      inside_ = '*';
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      if (c == '\'' || c == '"' || c == '`') inside_ = c;
      if (c == '[') inside_ = ']';
      has_words_ = true;
      is_ended_ = c == ';';
    }
  }
}

// A trigger has statements in it: only SQLite can tell where it ends.
bool StatementText::is_complete() const {
  if (is_command_ || has_nul_) return true;
  if (inside_ != 0) return false;
  return !has_words_ || (is_ended_ && sqlite3_complete(text_.c_str()) != 0);
}

void StatementText::clear() { *this = StatementText(); }

}  // namespace flugs::tools
