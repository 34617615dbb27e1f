#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/sql/shell.h"
#include "tools/support/command.h"

namespace flugs::tools {

namespace {

struct SqlOptions {
  std::string pool;
  std::vector<std::string> statements;
  std::string mode;
  bool creates = false;
  bool is_read_only = false;
  bool accepts_lost_lines = false;
};

int run_sql(const SqlOptions& options) {
  const bool is_shown = options.statements.empty() && isatty(STDIN_FILENO) != 0;
  SqlMode mode = is_shown ? SqlMode::kBox : SqlMode::kList;
  if (!options.mode.empty()) mode = *sql_mode_of(options.mode);
  std::vector<std::string> words;
  if (options.is_read_only)
    words.emplace_back("read_only");
  else if (!options.creates)
    words.emplace_back("must_exist");
  if (options.accepts_lost_lines) words.emplace_back("accept_lost_lines");
  if (!options.creates && access(options.pool.c_str(), F_OK) != 0) {
    std::fprintf(stderr, "flugs: not found: %s: --create makes the pool\n", options.pool.c_str());
    return kExitCouldNotRun;
  }
  SqlShell shell(mode, stdout);
  if (const Status s = shell.open(options.pool, words); !s.ok()) {
    std::fprintf(stderr, "flugs: %s\n", std::string(s.message()).c_str());
    return kExitCouldNotRun;
  }
  if (options.statements.empty())
    return run_input(shell, options.pool) ? kExitOk : kExitCheckFailed;
  for (const std::string& statement : options.statements)
    if (!shell.is_over() && !shell.run(statement)) return kExitCheckFailed;
  return kExitOk;
}

}  // namespace

void add_sql(CLI::App& app, Action& action) {
  auto options = std::make_shared<SqlOptions>();
  CLI::App* command = app.add_subcommand("sql", "Runs SQL on a pool, in a shell or from a script");
  command->add_option("POOL", options->pool, "A pool that no process has open for writing")
      ->required();
  command->add_option("STATEMENT", options->statements,
                      "Statements or commands of the shell; without them standard input is read");
  command->add_option("--mode", options->mode, "How rows are printed")
      ->check(CLI::IsMember({"box", "list", "csv", "json", "line"}))
      ->type_name("box|list|csv|json|line")
      ->default_str("box on a terminal, else list");
  command->add_flag("--create", options->creates, "Make the pool if there is none");
  command->add_flag("--read-only", options->is_read_only, "Leave the pool's file as it is")
      ->excludes("--create");
  command->add_flag(
      "--accept-lost-lines", options->accepts_lost_lines,
      "Open a pool though its devices may have lost lines that commits were promised");
  // Not run_when_chosen: Ctrl-C must end a statement, and there is nothing to clean up.
  command->callback([&action, options] { action = [options] { return run_sql(*options); }; });
}

}  // namespace flugs::tools
