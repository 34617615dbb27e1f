#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <utility>

#include "tools/support/cleanup.h"
#include "tools/support/command.h"

namespace flugs::tools {

int could_not_run(const Status& status) {
  std::fprintf(stderr, "flugs: %s\n", status.to_string().c_str());
  return kExitCouldNotRun;
}

CLI::Validator real_range(double low, double high) {
  const std::string described = fmt::format("number from {} to {}", low, high);
  return CLI::Validator(
      [low, high, described](std::string& text) {
        double value = 0;
        const bool is_good =
            CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return is_good ? std::string() : "'" + text + "' is not a " + described;
      },
      described);
}

int finish_with_json(const std::string& path, const bench::Json& json, int exit_status) {
  if (path.empty()) return exit_status;
  const Status status = bench::write_json(path, json);
  return status.ok() ? exit_status : could_not_run(status);
}

void run_when_chosen(CLI::App& command, Action& action, Action run) {
  command.callback([&action, run = std::move(run)] {
    action = [run] {
      Cleanup::install();
      return run();
    };
  });
}

void add_commands(CLI::App& app, Action& action) {
  add_demo(app, action);
  add_tatp(app, action);
  add_transactions(app, action);
  add_index_cost(app, action);
  add_scaling(app, action);
  add_ch(app, action);
  add_scan(app, action);
  add_restart(app, action);
  add_merge(app, action);
  add_kill_loop(app, action);
  add_explore(app, action);
  add_history(app, action);
  add_crashtest(app, action);
  add_check(app, action);
  add_fuzz_pool(app, action);
  add_info(app, action);
  add_stats(app, action);
  add_crash_plan(app, action);
  add_crash_child(app, action);
  add_random_child(app, action);
  add_history_child(app, action);
  add_restart_child(app, action);
}

namespace {

/// Checks at the start: otherwise a run of minutes would end with this error.
Status check_json_file(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const CLI::Option* json = command->get_option_no_throw("--json");
    if (json == nullptr || json->count() == 0) continue;
    const std::filesystem::path path = json->as<std::string>();
    std::error_code none;
    const bool is_new = !std::filesystem::exists(path, none);
    const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
    int error = access((is_new ? directory : path).c_str(), W_OK) == 0 ? 0 : errno;
    if (std::filesystem::is_directory(path, none)) error = EISDIR;
    if (error != 0)
      return Status(StatusCode::kIoError, fmt::format("--json {}: cannot be written: {}",
                                                      path.string(), std::strerror(error)));
  }
  return {};
}

int run(int argc, char** argv) {
  CLI::App app(
      "flugs: a log-less, hybrid SCM-DRAM column store.\n"
      "Pools default to a fresh one on /dev/shm (where that is too small, in the temporary "
      "directory),\nwhich is removed afterwards.");
  app.name("flugs");
  app.footer(
      "Exit status: 0 every check held, 1 a check failed, 2 bad usage or could not run.\n"
      "Options of a sub-command: flugs SUBCOMMAND --help");
  app.require_subcommand(1);
  Action action;
  add_commands(app, action);
  app.set_version_flag("--version", std::string("flugs ") + FLUGS_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
      return could_not_run(
          Status(StatusCode::kInvalidArgument,
                 fmt::format("unknown sub-command {}; flugs --help lists all", argv[1])));
    return app.exit(error) == 0 ? kExitOk : kExitCouldNotRun;
  }
  if (const Status s = check_json_file(app); !s.ok()) return could_not_run(s);
  return action();
}

}  // namespace

}  // namespace flugs::tools

int main(int argc, char** argv) {
  try {
    return flugs::tools::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flugs: %s\n", error.what());
    return flugs::tools::kExitCouldNotRun;
  }
}
