#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "bench/support/json.h"
#include "flugs/status.h"
#include "tools/support/exit_status.h"

namespace flugs::tools {

/// Does what the command line asked for; returns the exit status.
using Action = std::function<int()>;

// One command each: adds itself to `app` and puts what it does into `action` when it is chosen.
void add_demo(CLI::App& app, Action& action);
// These two only with SQLite.
void add_sql(CLI::App& app, Action& action);
void add_sql_bench(CLI::App& app, Action& action);
void add_tatp(CLI::App& app, Action& action);
void add_tpcc(CLI::App& app, Action& action);
void add_ycsb(CLI::App& app, Action& action);
void add_transactions(CLI::App& app, Action& action);
void add_index_cost(CLI::App& app, Action& action);
void add_insert(CLI::App& app, Action& action);
void add_lookups(CLI::App& app, Action& action);
void add_streams(CLI::App& app, Action& action);
void add_scaling(CLI::App& app, Action& action);
void add_ch(CLI::App& app, Action& action);
void add_htap(CLI::App& app, Action& action);
void add_scan(CLI::App& app, Action& action);
void add_groups(CLI::App& app, Action& action);
void add_restart(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_growth(CLI::App& app, Action& action);
void add_kill_loop(CLI::App& app, Action& action);
void add_explore(CLI::App& app, Action& action);
void add_history(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_fuzz_pool(CLI::App& app, Action& action);
void add_crashtest(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_stats(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_grow(CLI::App& app, Action& action);
void add_compact(CLI::App& app, Action& action);
void add_estimate(CLI::App& app, Action& action);
// The processes that demo, kill-loop, history and restart start, kill and start again; not in
// --help.
void add_crash_plan(CLI::App& app, Action& action);
void add_crash_child(CLI::App& app, Action& action);
void add_random_child(CLI::App& app, Action& action);
void add_tpcc_child(CLI::App& app, Action& action);
void add_history_child(CLI::App& app, Action& action);
void add_restart_child(CLI::App& app, Action& action);

/// Makes `run` the action when `command` is chosen. Its files are removed even when a signal ends
/// the process (Cleanup).
void run_when_chosen(CLI::App& command, Action& action, Action run);

/// All of the above, in groups. The names import, export, backup and dump are kept free for
/// `flugs pool`.
void add_commands(CLI::App& app, Action& action);
/// Adds only the command that the command line names. Returns false, and adds nothing, if it names
/// no command. The options of all commands take longer to make than a pool takes to open.
bool add_named_command(CLI::App& app, Action& action, int argc, const char* const* argv);

// Options that several commands have in common.

void add_json_option(CLI::App& command, std::string& path);
/// The pool that a command looks at.
void add_pool_argument(CLI::App& command, std::string& path);
/// -v: detail behind the summary.
void add_verbose_flag(CLI::App& command, bool& verbose);
/// --pool of a command that makes a pool; --keep too, unless that is null.
void add_new_pool_options(CLI::App& command, std::string& path, bool* keep);
/// --pool and --keep of a command that makes a pool or uses one that exists.
void add_used_pool_options(CLI::App& command, std::string& path, bool& keep);

/// A number from `low` to `high`, which NaN is not, though it passes CLI::Range.
CLI::Validator real_range(double low, double high);

/// Prints "flugs: <status>" to standard error and gives kExitCouldNotRun.
int could_not_run(const Status& status);

/// Writes `json` to the file `path`, to nowhere when that is empty. Gives `exit_status`, or
/// kExitCouldNotRun when it cannot be written.
int finish_with_json(const std::string& path, const bench::Json& json, int exit_status);

}  // namespace flugs::tools
