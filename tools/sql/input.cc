#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tools/sql/interrupts.h"
#include "tools/sql/shell.h"
#include "tools/sql/statement_text.h"

#ifdef FLUGS_LIBEDIT
#include <editline/readline.h>
#endif

namespace flugs::tools {

namespace {

/// Statements of a script, up to the first failure.
bool run_script(SqlShell& shell) {
  StatementText text;
  std::string line;
  std::size_t number = 0;
  std::size_t first = 1;
  while (!shell.is_over() && std::getline(std::cin, line)) {
    ++number;
    if (text.is_empty()) first = number;
    text.add(line);
    if (!text.is_complete()) continue;
    if (!shell.run(text.text())) {
      fmt::print(stderr, "flugs: that was line {}\n", first);
      return false;
    }
    text.clear();
  }
  // What has no semicolon at the end of the input.
  if (shell.is_over() || shell.run(text.text())) return true;
  fmt::print(stderr, "flugs: that was line {}\n", first);
  return false;
}

#ifdef FLUGS_LIBEDIT

SqlShell* completing = nullptr;  // readline's functions have no argument of ours

char* next_completion(const char* begun, int state) {
  static std::vector<std::string> found;
  static std::size_t next = 0;
  if (state == 0) {
    found = completing->completions(begun);
    next = 0;
  }
  return next < found.size() ? strdup(found[next++].c_str()) : nullptr;
}

char** complete(const char* begun, int, int) {
  rl_attempted_completion_over = 1;
  return rl_completion_matches(begun, next_completion);
}

/// Lines with history and completion.
class Terminal {
 public:
  explicit Terminal(SqlShell& shell) {
    completing = &shell;
    rl_readline_name = "flugs";
    rl_attempted_completion_function = complete;
    if (const char* home = std::getenv("HOME"); home != nullptr)
      history_ = std::string(home) + "/.flugs_sql_history";
    using_history();
    stifle_history(kLinesMax);
    if (!history_.empty()) read_history(history_.c_str());
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (!history_.empty() && write_history(history_.c_str()) == 0) {
      std::error_code none;
      std::filesystem::permissions(
          history_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, none);
    }
  }

  std::optional<std::string> read(const char* prompt) {
    errno = 0;
    char* line = readline(prompt);
    is_cut_short_ = line == nullptr && errno == EINTR;
    if (line == nullptr) return std::nullopt;
    std::string text = line;
    std::free(line);
    return text;
  }
  /// Whether a signal has ended the last `read`, and not the end of the input.
  bool is_cut_short() const noexcept { return is_cut_short_; }
  void remember(const std::string& text) {
    std::string line = text;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    for (char& c : line)
      if (c == '\n') c = ' ';
    if (!line.empty()) ::add_history(line.c_str());
  }

 private:
  static constexpr int kLinesMax = 2000;
  std::string history_;
  bool is_cut_short_ = false;
};

#else

/// Lines without more.
class Terminal {
 public:
  explicit Terminal(SqlShell&) {}
  std::optional<std::string> read(const char* prompt) {
    std::string line;
    std::cout << prompt << std::flush;
    errno = 0;
    const bool is_read = static_cast<bool>(std::getline(std::cin, line));
    is_cut_short_ = !is_read && errno == EINTR;
    if (is_cut_short_) {
      std::clearerr(stdin);
      std::cin.clear();
    }
    if (!is_read) return std::nullopt;
    return line;
  }
  bool is_cut_short() const noexcept { return is_cut_short_; }
  void remember(const std::string&) {}

 private:
  bool is_cut_short_ = false;
};

#endif

void run_terminal(SqlShell& shell, const std::string& pool) {
  fmt::print("{}: .help lists the commands, .quit leaves\n", pool);
  const Interrupts interrupts(nullptr);
  Terminal terminal(shell);
  StatementText text;
  while (!shell.is_over()) {
    std::fflush(stdout);
    const std::optional<std::string> line = terminal.read(text.is_empty() ? "flugs> " : "  ...> ");
    if (Interrupts::take()) {  // at the prompt: what is typed so far is gone
      text.clear();
      fmt::print("\n");
      continue;
    }
    if (terminal.is_cut_short()) continue;
    if (!line) break;
    text.add(*line);
    if (!text.is_complete()) continue;
    terminal.remember(text.text());
    static_cast<void>(shell.run(text.text()));  // has said what failed
    static_cast<void>(Interrupts::take());
    text.clear();
  }
  if (!shell.is_over()) fmt::print("\n");
}

}  // namespace

bool run_input(SqlShell& shell, const std::string& pool) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return run_script(shell);
  run_terminal(shell, pool);
  return true;
}

}  // namespace flugs::tools
