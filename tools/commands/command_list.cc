#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "tools/support/command.h"
#include "tools/support/help.h"

namespace flugs::tools {

namespace {

using std::string_view;

struct Group {
  const char* name;
  const char* description;
};

struct Command {
  const char* group;  ///< "": of none
  const char* name;
  void (*add)(CLI::App& app, Action& action);
};

constexpr std::array kGroups = {
    Group{"pool", "Look at a pool, or change its size"},
    Group{"bench", "Measure"},
    Group{"prove", "Look for lost, damaged or wrong data"},
};

// In the order of --help.
constexpr std::array kCommands = {
    Command{"", "demo", add_demo},
#ifdef FLUGS_SQLITE
    Command{"", "sql", add_sql},
#endif
    Command{"pool", "info", add_info},
    Command{"pool", "stats", add_stats},
    Command{"pool", "schema", add_schema},
    Command{"pool", "check", add_check},
    Command{"pool", "estimate", add_estimate},
    Command{"pool", "grow", add_grow},
    Command{"pool", "compact", add_compact},
    Command{"bench", "tatp", add_tatp},
    Command{"bench", "tpcc", add_tpcc},
    Command{"bench", "ycsb", add_ycsb},
    Command{"bench", "ch", add_ch},
    Command{"bench", "htap", add_htap},
    Command{"bench", "scan", add_scan},
    Command{"bench", "groups", add_groups},
    Command{"bench", "restart", add_restart},
    Command{"bench", "merge", add_merge},
    Command{"bench", "growth", add_growth},
    Command{"bench", "insert", add_insert},
    Command{"bench", "lookups", add_lookups},
    Command{"bench", "transactions", add_transactions},
    Command{"bench", "streams", add_streams},
    Command{"bench", "index-cost", add_index_cost},
    Command{"bench", "scaling", add_scaling},
#ifdef FLUGS_SQLITE
    Command{"bench", "sql", add_sql_bench},
#endif
    Command{"prove", "explore", add_explore},
    Command{"prove", "crashtest", add_crashtest},
    Command{"prove", "kill-loop", add_kill_loop},
    Command{"prove", "history", add_history},
    Command{"prove", "fuzz-pool", add_fuzz_pool},
    Command{"", "crash-plan", add_crash_plan},
    Command{"", "crash-child", add_crash_child},
    Command{"", "random-child", add_random_child},
    Command{"", "tpcc-child", add_tpcc_child},
    Command{"", "history-child", add_history_child},
    Command{"", "restart-child", add_restart_child},
};

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help");
  app.require_subcommand(0, 1);  // without it, words after a group would be looked up in `app`
}

/// Null: there is none.
CLI::App* find(CLI::App& app, string_view name) {
  const auto found = app.get_subcommands([&](CLI::App* sub) { return sub->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

CLI::App& group_of(const Command& command, CLI::App& app) {
  const string_view name = command.group;
  if (name.empty()) return app;
  if (CLI::App* made = find(app, name)) return *made;
  const auto* group =
      std::find_if(kGroups.begin(), kGroups.end(), [&](auto& g) { return g.name == name; });
  FLUGS_CHECK(group != kGroups.end());
  return *app.add_subcommand(group->name, group->description);
}

void add(const Command& command, CLI::App& app, Action& action) {
  CLI::App& group = group_of(command, app);
  command.add(group, action);
  FLUGS_CHECK(find(group, command.name) != nullptr);
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  set_up(app);
  for (const Command& command : kCommands) add(command, app, action);
}

bool add_named_command(CLI::App& app, Action& action, int argc, const char* const* argv) {
  const string_view first = argc > 1 ? argv[1] : "";
  const string_view second = argc > 2 ? argv[2] : "";
  const auto* named = std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) {
    const bool has_group = c.group[0] != '\0';
    return has_group ? c.group == first && c.name == second : c.name == first;
  });
  if (named == kCommands.end()) return false;
  set_up(app);
  add(*named, app, action);
  return true;
}

}  // namespace flugs::tools
