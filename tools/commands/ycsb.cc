#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "bench/ycsb/ycsb_client.h"
#include "bench/ycsb/ycsb_reader.h"
#include "tools/report/run_counters.h"
#include "tools/report/ycsb_peers.h"
#include "tools/report/ycsb_report.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/run_options.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

const std::map<std::string, bench::YcsbDistribution> kYcsbDistributions = {
    {"scrambled", bench::YcsbDistribution::kScrambled},
    {"plain", bench::YcsbDistribution::kPlain},
    {"uniform", bench::YcsbDistribution::kUniform},
    {"latest", bench::YcsbDistribution::kLatest}};

const std::map<std::string, bench::YcsbKeys> kYcsbKeys = {{"hashed", bench::YcsbKeys::kHashed},
                                                          {"ordered", bench::YcsbKeys::kOrdered},
                                                          {"integer", bench::YcsbKeys::kInteger}};

struct YcsbCommandOptions {
  PoolRunOptions database;
  std::string workload = "a";
  std::string distribution;  ///< empty: the workload's
  std::string keys;          ///< empty: the workload's
  std::uint64_t records = 100'000;
  std::uint32_t fields = 0;  ///< 0: the workload's
  std::uint32_t field_bytes = 100;
  std::uint32_t users = 1;
  double seconds = 10;
  double ramp_up = 2;
  std::uint64_t seed = 1;
  std::uint32_t load_threads = default_load_threads();
  bool check = true;
  std::string peers = "none";
  std::string json;

  bench::YcsbWorkload kind() const {
    const auto& names = bench::kYcsbWorkloadNames;
    const auto found = std::find(names.begin(), names.end(), workload);
    return static_cast<bench::YcsbWorkload>(found - names.begin());
  }
  /// Only workload E walks the keys.
  bool needs_order() const { return kind() == bench::YcsbWorkload::kE; }

  bench::YcsbRunOptions run() const {
    bench::YcsbRunOptions run;
    run.rows = bench::ycsb_rows(kind(), records);
    run.rows.field_bytes = field_bytes;
    if (fields != 0) run.rows.fields = fields;
    if (!keys.empty()) run.rows.keys = kYcsbKeys.at(keys);
    run.mix = bench::ycsb_mix(kind());
    if (!distribution.empty()) run.mix.distribution = kYcsbDistributions.at(distribution);
    run.users = users;
    run.seed = seed;
    run.loop.seconds = seconds;
    run.loop.ramp_up_seconds = ramp_up;
    return run;
  }
};

std::string distribution_name(const bench::YcsbMix& mix) {
  for (const auto& [name, distribution] : kYcsbDistributions)
    if (distribution == mix.distribution) return name;
  return "unknown";
}

std::string keys_name(const bench::YcsbRows& rows) {
  for (const auto& [name, keys] : kYcsbKeys)
    if (keys == rows.keys) return name;
  return "unknown";
}

/// Everything a run gave.
struct YcsbFigures {
  std::string pool_path;
  double load_seconds = 0;
  bench::YcsbRunResult run;
  RunCounters counters;
  bench::YcsbReport report;
  std::uint64_t dram_bytes = 0;
  YcsbPeerRuns peers;

  double rows_per_second(std::uint64_t records) const {
    return load_seconds > 0 ? static_cast<double>(records) / load_seconds : 0;
  }
  bool all_held() const {
    return report.all_held() &&
           std::all_of(peers.begin(), peers.end(), [](const auto& peer) { return peer->all_held; });
  }
};

bench::Json figures_json(const YcsbCommandOptions& options, const YcsbFigures& figures) {
  const bench::YcsbRunOptions run = options.run();
  bench::Json json = options.database.json(figures.counters.after);
  json["workload"] = options.workload;
  json["distribution"] = distribution_name(run.mix);
  json["records"] = run.rows.records;
  json["fields"] = run.rows.fields;
  json["field_bytes"] = run.rows.field_bytes;
  json["keys"] = keys_name(run.rows);
  json["users"] = options.users;
  json["ramp_up_seconds"] = options.ramp_up;
  json["seed"] = options.seed;
  json.update(ycsb_run_json(figures.run));
  json.update(figures.counters.json(figures.run.executed()));
  json["invariants"] = ycsb_invariants_json(figures.report);
  json["problems"] = figures.report.problems();
  if (!figures.peers.empty()) json["peers"] = ycsb_peers_json(figures.run, figures.peers);
  json["dram_bytes"] = figures.dram_bytes;
  json["load"] = {{"rows", run.rows.records},
                  {"seconds", figures.load_seconds},
                  {"rows_per_s", figures.rows_per_second(run.rows.records)},
                  {"threads", options.load_threads}};
  return json;
}

void print_figures(const YcsbCommandOptions& options, const YcsbFigures& figures) {
  const bench::YcsbRunOptions run = options.run();
  const Statistics& after = figures.counters.after;
  fmt::print(
      "YCSB, workload {}, {} records of {} field{} of {} bytes, {} keys, {} distribution, {} "
      "user{}, {:.1f} s after {:.1f} s ramp-up\n",
      options.workload, run.rows.records, run.rows.fields, run.rows.fields == 1 ? "" : "s",
      run.rows.field_bytes, keys_name(run.rows), distribution_name(run.mix), options.users,
      options.users == 1 ? "" : "s", figures.run.loop.seconds, options.ramp_up);
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, after.medium,
             options.database.guarantee(after));
  fmt::print("loaded {} rows in {:.2f} s ({} rows/s)\n\n", run.rows.records, figures.load_seconds,
             format_count(figures.rows_per_second(run.rows.records)));
  print_ycsb_run(figures.run);
  figures.counters.print(figures.run.executed());
  fmt::print("pool {} ({} used), DRAM {} ({} indexes)\n", format_bytes(after.pool_allocated_bytes),
             format_bytes(after.pool_used_bytes), format_bytes(figures.dram_bytes),
             format_bytes(after.dram_index_bytes));
  if (options.check) print_ycsb_invariants(figures.report);
  if (!figures.peers.empty())
    print_ycsb_peers(figures.run, options.database.guarantee(after), figures.peers);
}

class YcsbCommand {
 public:
  explicit YcsbCommand(const YcsbCommandOptions& options)
      : options_(options), run_(options.run()) {}

  Status run(YcsbFigures& figures) {
    Result<PoolOfCommand> pool = open_pool(options_.database.pool, options_.database.keep,
                                           bytes_wanted(), options_.database.open(options_.users));
    if (!pool.ok()) return std::move(pool).status();
    figures.pool_path = pool->file.path();
    return run_on(pool->database, figures);
  }

 private:
  /// A row with its key and indexes takes less than twice its text; an insert adds a row.
  std::uint64_t bytes_wanted() const {
    constexpr std::uint64_t kBytesBesidesText = 300;
    constexpr double kInsertsPerSecond = 500'000;  // of a user, at most
    const std::uint64_t row =
        2 * std::uint64_t{run_.rows.fields} * run_.rows.field_bytes + kBytesBesidesText;
    const double share = run_.mix.percent[bench::index_of(bench::YcsbType::kInsert)] / 100.0;
    const double inserted =
        share * kInsertsPerSecond * options_.users * (options_.seconds + options_.ramp_up);
    return row * (run_.rows.records + static_cast<std::uint64_t>(inserted)) +
           (std::uint64_t{512} << 20);
  }

  Status run_on(Database& database, YcsbFigures& figures) {
    const Result<bench::YcsbTable> table =
        bench::create_ycsb_table(database, run_.rows, options_.needs_order());
    if (table.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool already holds YCSB's table, but a run needs a new one: name a "
                    "different pool, or none");
    if (!table.ok()) return table.status();
    const std::uint64_t begin = bench::monotonic_ns();
    Status loaded = bench::load_ycsb(database, *table, run_.rows, options_.load_threads,
                                     [this](std::uint64_t done, std::uint64_t total) {
                                       bar_.update("loading", done, total, "rows");
                                     });
    bar_.clear();
    if (!loaded.ok()) return loaded;
    figures.load_seconds = bench::seconds_since(begin);
    if (options_.database.merge.first)
      if (Status s = merge_everything(database); !s.ok()) return s;
    if (Status s = database.set_merge_policy(table->table, policy_of(options_.database.merge));
        !s.ok())
      return s;
    if (Status s = execute(database, *table, figures); !s.ok()) return s;
    if (!options_.check) return {};
    bar_.update("checking", 0, 0);
    Result<bench::YcsbReport> report =
        bench::check_ycsb(database, *table, run_.rows, run_.rows.records + figures.run.inserted);
    bar_.clear();
    if (!report.ok()) return std::move(report).status();
    figures.report = *std::move(report);
    return {};
  }

  Status execute(Database& database, const bench::YcsbTable& table, YcsbFigures& figures) {
    bench::YcsbRunOptions run = run_;
    run.loop.sampling_begins = [&] { figures.counters.before = database.statistics(); };
    run.loop.sampling_ends = [&] {
      figures.counters.after = database.statistics();
      figures.dram_bytes = bench::dram_bytes();
    };
    run.loop.progress = [this](double gone, double all) {
      bar_.update("running", static_cast<std::uint64_t>(gone * 1000),
                  static_cast<std::uint64_t>(all * 1000));
      return true;
    };
    Result<bench::YcsbRunResult> result = bench::run_ycsb(
        [&](std::uint32_t) -> Result<std::unique_ptr<bench::YcsbSession>> {
          Result<std::unique_ptr<bench::YcsbClient>> client = bench::YcsbClient::make(
              database, table, run_.rows, options_.database.isolation, options_.database.commit);
          if (!client.ok()) return std::move(client).status();
          return std::unique_ptr<bench::YcsbSession>(*std::move(client));
        },
        run);
    bar_.clear();
    if (!result.ok()) return std::move(result).status();
    figures.run = *std::move(result);
    return {};
  }

  const YcsbCommandOptions& options_;
  bench::YcsbRunOptions run_;
  ProgressBar bar_;
};

std::vector<std::string> engines_of(const YcsbCommandOptions& options) {
  if (options.peers == "none") return {};
  if (options.peers == "all") return {"lmdb", "rocksdb"};
  return {options.peers};
}

int run_command(const YcsbCommandOptions& options) {
  const std::vector<std::string> engines = engines_of(options);
  for (const std::string& engine : engines)
    if (Status s = engine_program("ycsb", engine).status(); !s.ok()) return could_not_run(s);
  const auto figures = std::make_unique<YcsbFigures>();
  Status status = YcsbCommand(options).run(*figures);
  // The pool is closed, and gone unless it is kept: the engines do not share the memory.
  for (const std::string& engine : engines)
    if (status.ok())
      status = run_ycsb_peers(engine, options.run(), figures->pool_path,
                              figures->counters.after.medium, figures->peers);
  if (!status.ok()) return could_not_run(status);
  print_figures(options, *figures);
  return finish_with_json(options.json, figures_json(options, *figures),
                          figures->all_held() ? kExitOk : kExitCheckFailed);
}

void add_workload_options(CLI::App& command, YcsbCommandOptions& options) {
  command
      .add_option("--workload", options.workload,
                  "A to F of YCSB's core, or SiloR's: integer keys, one field, 70 % reads, uniform")
      ->check(CLI::IsMember(std::vector<std::string>(bench::kYcsbWorkloadNames.begin(),
                                                     bench::kYcsbWorkloadNames.end())))
      ->capture_default_str();
  command
      .add_option("--distribution", options.distribution,
                  "Distribution of the rows that are asked for, instead of the workload's")
      ->check(CLI::IsMember(kYcsbDistributions));
  command
      .add_option("--keys", options.keys,
                  "Keys instead of the workload's: hashed are texts with a hash, as YCSB has them, "
                  "ordered are texts in the order of the rows, integer are int64")
      ->check(CLI::IsMember(kYcsbKeys));
  command.add_option("--records", options.records, "Rows that are loaded")
      ->check(CLI::Range(std::uint64_t{10}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command
      .add_option("--fields", options.fields,
                  "Fields of a row; any number but the workload's differs from YCSB")
      ->check(CLI::Range(1u, bench::kYcsbFieldsMax));
  command
      .add_option("--field-bytes", options.field_bytes,
                  "Size of a field; any number but 100 differs from YCSB")
      ->check(CLI::Range(bench::kYcsbFieldBytesMin, bench::kYcsbFieldBytesMax))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
}

}  // namespace

void add_ycsb(CLI::App& app, Action& action) {
  auto options = std::make_shared<YcsbCommandOptions>();
  CLI::App* command =
      app.add_subcommand("ycsb", "Runs YCSB's core workloads: rates, latencies, invariants");
  add_run_pool_options(*command, options->database);
  add_workload_options(*command, *options);
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kYcsbUsersMax))
      ->capture_default_str();
  add_period_options(*command, options->seconds, options->ramp_up);
  command->add_option("--load-threads", options->load_threads, "Threads that load")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  command->add_flag("!--no-check", options->check, "Do not check the invariants afterwards");
  add_run_options(*command, options->database);
  command
      ->add_option("--peers", options->peers,
                   "Other engines to run the same workload afterwards, on the same medium")
      ->check(CLI::IsMember({"none", "lmdb", "rocksdb", "all"}))
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
