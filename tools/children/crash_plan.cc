#include <memory>
#include <string>

#include "bench/tatp/witness.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

struct CrashPlanOptions {
  std::string witness;
  std::string pool;
  bench::CrashPlan plan;
};

int run_command(CrashPlanOptions& options) {
  if (options.pool.size() >= sizeof options.plan.pool_path)
    return could_not_run(Status(StatusCode::kInvalidArgument, "the pool's path is too long"));
  options.pool.copy(options.plan.pool_path, sizeof options.plan.pool_path - 1);
  options.plan.population.parity = true;
  const Result<bench::Witness> witness = bench::Witness::create(options.witness, options.plan);
  return witness.ok() ? kExitOk : could_not_run(witness.status());
}

}  // namespace

/// For programs that start and kill the processes of a crash run themselves, such as tools/dax-vm.
void add_crash_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<CrashPlanOptions>();
  bench::CrashPlan& plan = options->plan;
  plan.load_threads = 1;
  CLI::App* command = app.add_subcommand("crash-plan", "The witness of a crash run");
  command->group("");
  command->add_option("WITNESS", options->witness)->required();
  command->add_option("--pool", options->pool)->required();
  command->add_option("--subscribers", plan.population.subscribers)
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax));
  command->add_option("--users", plan.users)->check(CLI::Range(1u, bench::kUsersMax));
  command->add_option("--seed", plan.population.seed);
  command->add_option("--log-entries", plan.log_entries);
  command->add_option("--pool-bytes-max", plan.pool_bytes_max);
  command->add_option("--segment-bytes", plan.segment_bytes);
  command->add_option("--journal-bytes", plan.journal_bytes);
  command->add_option("--merge-interval", plan.merge_interval_ms);
  command->add_option("--direct-write-bytes", plan.direct_write_bytes);
  command->callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace flugs::tools
