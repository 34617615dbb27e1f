#pragma once

#include <string>

namespace flugs::tools {

/// Lines that are read until they are a whole statement, or a command. Each line is looked at once.
class StatementText {
 public:
  /// A line without its end. Lines before it that are only comments are forgotten.
  void add(const std::string& line);
  /// Whether the text can be run: it ends with a whole statement, or is a command, or says nothing.
  bool is_complete() const;
  bool is_empty() const noexcept { return text_.empty(); }
  const std::string& text() const noexcept { return text_; }
  void clear();

 private:
  void scan(const std::string& line);

  std::string text_;
  char inside_ = 0;          ///< what ends a quoted word; '*': a comment of many lines; 0: neither
  bool has_words_ = false;   ///< outside of comments
  bool is_ended_ = false;    ///< the last of them is a semicolon
  bool is_command_ = false;  ///< the text begins with a dot
  bool has_nul_ = false;
};

}  // namespace flugs::tools
