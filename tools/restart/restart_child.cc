#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/restart/restart_control.h"
#include "bench/restart/restart_load.h"
#include "bench/restart/restart_probe.h"
#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "flugs/database.h"
#include "tools/support/child_process.h"
#include "tools/support/command.h"

namespace flugs::tools {

namespace {

struct RestartTask {
  bool load = false;        ///< makes pool, table and rows; else opens it and asks
  bool under_load = false;  ///< then writes until killed; else closes
  std::uint64_t spawned_at_ns = 0;
};

template <std::size_t size>
void copy_text(const std::string& text, char (&out)[size]) {
  const std::size_t length = text.copy(out, size - 1);
  out[length] = '\0';
}

OpenOptions open_options(const bench::RestartPlan& plan, OpenMode mode) {
  OpenOptions options;
  options.path = plan.pool_path;
  options.mode = mode;
  options.tuning.recovery_threads = plan.recovery_threads;
  options.index_place = plan.index_place;
  options.ready = plan.ready;
  plan.scm.put_into(options);
  return options;
}

/// One process of a restart benchmark.
class RestartChild {
 public:
  RestartChild(bench::RestartControl& control, const RestartTask& task)
      : control_(control), status_(control.status()), task_(task) {}

  int run() {
    status_.times = bench::RestartTimes();
    status_.times.spawned_ns = task_.spawned_at_ns;
    status_.times.main_ns = bench::monotonic_ns();
    status_.transactions_under_load.store(0);
    ++status_.life;
    Result<Database> database = Database::open(
        open_options(control_.plan(), task_.load ? OpenMode::kCreate : OpenMode::kOpen));
    if (!database.ok()) return could_not_run(database.status());
    status_.times.opened_ns = bench::monotonic_ns();
    const Result<TableId> table = task_.load
                                      ? bench::create_restart_table(*database, control_.plan())
                                      : database->find_table("r");
    if (!table.ok()) return could_not_run(table.status());
    const Status status =
        task_.load ? load(*database, table.value()) : probe(*database, table.value());
    if (!status.ok()) return failed(status);
    if (!task_.under_load) {
      status_.stage.store(bench::RestartStage::kDone);
      return kExitOk;
    }
    status_.stage.store(bench::RestartStage::kUnderLoad);
    return failed(bench::run_restart_writers(*database, table.value(), control_));
  }

 private:
  static int failed(const Status& status) {
    could_not_run(status);
    return status.code() == StatusCode::kCorrupt ? kExitCheckFailed : kExitCouldNotRun;
  }

  Status load(Database& database, TableId table) {
    status_.stage.store(bench::RestartStage::kLoading);
    Status status = bench::load_restart_rows(database, table, control_);
    const Statistics statistics = database.statistics();
    status_.pool_bytes = statistics.pool_allocated_bytes;
    status_.pool_used_bytes = statistics.pool_used_bytes;
    status_.load_dram_bytes = bench::dram_bytes();
    copy_text(statistics.medium, status_.medium);
    copy_text(statistics.guarantee, status_.guarantee);
    return status;
  }

  Status probe(Database& database, TableId table) {
    bench::RestartTimes& times = status_.times;
    Status status = bench::ask_first_query(database, table, control_);
    times.first_answer_ns = bench::monotonic_ns();
    if (!status.ok()) return status;
    const bench::PageFaults faults = bench::page_faults();
    times.minor_faults = faults.minor;
    times.major_faults = faults.major;
    times.dram_bytes = bench::dram_bytes();
    const RecoveryReport& report = database.recovery_report();
    times.threads = report.threads;
    times.phase_count = std::min(report.phases.size(), bench::RestartTimes::kPhasesMax);
    for (std::size_t i = 0; i < times.phase_count; ++i) {
      copy_text(report.phases[i].name, times.phases[i].name);
      times.phases[i].us = report.phases[i].duration_us;
      times.phases[i].items = report.phases[i].items;
    }
    status_.stage.store(bench::RestartStage::kProbing);
    if (control_.plan().to_full_speed) status = bench::find_full_speed(database, table, control_);
    if (status.ok()) status = database.finish_opening();
    if (!status.ok()) return status;
    const Statistics statistics = database.statistics();
    times.later_ms = statistics.index_build_ms;
    times.later_entries = statistics.index_entries_built;
    times.warm_ms = statistics.warm_ms;
    times.warmed_bytes = statistics.warmed_bytes;
    return bench::check_restart_answers(database, table, control_);
  }

  bench::RestartControl& control_;
  bench::RestartStatus& status_;
  RestartTask task_;
};

}  // namespace

void add_restart_child(CLI::App& app, Action& action) {
  struct Options {
    std::string control;
    RestartTask task;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("restart-child", "A process of restart");
  command->group("");
  command->add_option("CONTROL", options->control)->required();
  command->add_flag("--load", options->task.load);
  command->add_flag("--under-load", options->task.under_load);
  command->add_option("--spawned-at", options->task.spawned_at_ns);
  command->callback([options, &action] {
    action = [options] {
      die_with_parent();
      Result<bench::RestartControl> control = bench::RestartControl::open(options->control);
      if (!control.ok()) return could_not_run(control.status());
      return RestartChild(*control, options->task).run();
    };
  });
}

}  // namespace flugs::tools
