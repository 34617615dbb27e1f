#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "tools/support/cleanup.h"
#include "tools/support/command.h"
#include "tools/support/help.h"

namespace flugs::tools {

int could_not_run(const Status& status) {
  std::fprintf(stderr, "flugs: %s\n", status.to_string().c_str());
  return kExitCouldNotRun;
}

CLI::Validator real_range(double low, double high) {
  const std::string described = fmt::format("number from {} to {}", low, high);
  const std::string in_help = fmt::format("FLOAT in [{} - {}]", low, high);
  return CLI::Validator(
      [low, high, described](std::string& text) {
        double value = 0;
        const bool is_good =
            CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return is_good ? std::string() : "'" + text + "' is not a " + described;
      },
      in_help);
}

void add_json_option(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "Write the results to this file")->type_name("FILE");
}

void add_pool_argument(CLI::App& command, std::string& path) {
  command.add_option("POOL", path, "A pool that no process has open for writing")->required();
}

void add_verbose_flag(CLI::App& command, bool& verbose) {
  command.add_flag("-v,--verbose", verbose, "Print the details behind the summary");
}

void add_new_pool_options(CLI::App& command, std::string& path, bool* keep) {
  command.add_option("--pool", path, "Pool to make, and to remove afterwards")
      ->type_name("POOL")
      ->default_str("a new one on /dev/shm");
  if (keep != nullptr) command.add_flag("--keep", *keep, "Do not remove the pool");
}

void add_used_pool_options(CLI::App& command, std::string& path, bool& keep) {
  command
      .add_option("--pool", path,
                  "Pool to make, and to remove afterwards; a pool that exists gets the "
                  "benchmark's tables, and is not removed")
      ->type_name("POOL")
      ->default_str("a new one on /dev/shm");
  command.add_flag("--keep", keep, "Do not remove the pool");
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

namespace {

constexpr const char* kFooter =
    "'flugs COMMAND --help' lists the options of a command. Pools are made on /dev/shm, or in the\n"
    "temporary directory if /dev/shm is too small, and removed afterwards.\n"
    "Exit status: 0 every check held, 1 a check failed, 2 bad usage or could not run.";

/// Checks at the start: otherwise a run of minutes would end with this error.
Status check_json_file(const CLI::App& command) {
  const CLI::Option* json = command.get_option_no_throw("--json");
  if (json == nullptr || json->count() == 0) return {};
  const std::filesystem::path path = json->as<std::string>();
  std::error_code none;
  const bool is_new = !std::filesystem::exists(path, none);
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  int error = access((is_new ? directory : path).c_str(), W_OK) == 0 ? 0 : errno;
  if (std::filesystem::is_directory(path, none)) error = EISDIR;
  if (error == 0) return {};
  return Status(StatusCode::kIoError, fmt::format("--json {}: cannot be written: {}", path.string(),
                                                  std::strerror(error)));
}

/// What CLI11 says, and which command there is instead of one that there is not.
int bad_usage(CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& named = named_last(app);
  if (is_group(named))
    for (const std::string& word : app.remaining(true))
      if (!word.starts_with('-'))
        return could_not_run(
            Status(StatusCode::kInvalidArgument, unknown_command(app, named, word)));
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string name = "flugs";
  for (const CLI::App* parent = named.get_parent(); parent != nullptr;
       parent = parent->get_parent())
    if (parent->get_parent() != nullptr) name += " " + parent->get_name();
  if (named.get_parent() != nullptr) name += " " + named.get_name();
  fmt::print(stderr, "flugs: {}; '{} --help' lists the options\n", error.what(), name);
  return kExitCouldNotRun;
}

int run(int argc, char** argv) {
  CLI::App app("flugs " FLUGS_VERSION ", an embedded database that answers at once after a crash");
  app.name("flugs");
  app.footer(kFooter);
  Action action;
  if (!add_named_command(app, action, argc, argv)) add_commands(app, action);
  app.set_version_flag("--version", std::string("flugs ") + FLUGS_VERSION, "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return bad_usage(app, error);
  }
  const CLI::App& named = named_last(app);
  if (is_group(named)) {
    fmt::print("{}", app.help());
    return kExitCouldNotRun;
  }
  if (const Status s = check_json_file(named); !s.ok()) return could_not_run(s);
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
