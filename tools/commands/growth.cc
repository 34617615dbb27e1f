#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/growth/live_copy.h"
#include "bench/growth/text_updates.h"
#include "bench/support/environment.h"
#include "bench/tatp/tatp_driver.h"
#include "bench/tatp/tatp_load.h"
#include "tools/support/command.h"
#include "tools/support/latency_text.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr int kSamples = 20;

struct GrowthOptions {
  std::string workload = "texts";
  bench::TextUpdates texts;
  std::string encoding = "auto";
  std::uint32_t subscribers = 100'000;
  std::string merge = "default";
  std::string pool;
  std::string json;
};

struct Sample {
  double seconds = 0;
  std::uint64_t used_bytes = 0;
};

/// The size of a pool: bytes in use, and bytes on the medium.
struct Size {
  std::uint64_t used_bytes = 0;
  std::uint64_t medium_bytes = 0;
};

struct GrowthFigures {
  std::vector<Sample> samples;
  std::uint64_t transactions = 0;
  double seconds = 0;
  bench::Histogram latency;
  Statistics after;
  Size grown;
  Size fresh;

  double growth() const {
    return static_cast<double>(grown.used_bytes) / static_cast<double>(fresh.used_bytes);
  }
};

Size size_of(const Database& database, const std::string& path) {
  struct stat file{};
  const bool is_there = ::stat(path.c_str(), &file) == 0;
  return {database.statistics().pool_used_bytes,
          is_there ? static_cast<std::uint64_t>(file.st_blocks) * 512 : 0};
}

class GrowthCommand {
 public:
  explicit GrowthCommand(const GrowthOptions& options) : options_(options) {}

  Status run(GrowthFigures& figures) {
    std::optional<Database> database;
    Result<PoolFile> file = open(options_.pool, database);
    if (!file.ok()) return file.status();
    if (!file->remark().empty()) fmt::print("{}\n", file->remark());
    Status worked =
        options_.workload == "tatp" ? run_tatp(*database, figures) : run_texts(*database, figures);
    bar_.clear();
    if (!worked.ok()) return worked;
    figures.after = database->statistics();
    figures.grown = size_of(*database, file->path());
    std::optional<Database> fresh;
    const std::string beside = options_.pool.empty() ? "" : options_.pool + ".fresh";
    Result<PoolFile> fresh_file = open(beside, fresh);
    if (!fresh_file.ok()) return fresh_file.status();
    if (Status s = bench::copy_live_rows(*database, *fresh); !s.ok()) return s;
    figures.fresh = size_of(*fresh, fresh_file->path());
    return database->check();
  }

 private:
  // As a program that sets nothing but its slots.
  Result<PoolFile> open(const std::string& path, std::optional<Database>& database) const {
    Result<PoolFile> file = PoolFile::choose(path, false, std::uint64_t{1} << 30);
    if (!file.ok()) return file;
    OpenOptions open;
    open.path = file->path();
    open.mode = OpenMode::kCreate;
    Result<Database> opened = Database::open(open);
    if (!opened.ok()) return opened.status();
    database = *std::move(opened);
    return file;
  }

  Status set_merges(Database& database) const {
    MergePolicy policy;
    policy.automatic = options_.merge == "default";
    for (const TableId table : database.tables())
      if (Status s = database.set_merge_policy(table, policy); !s.ok()) return s;
    return {};
  }

  void sample(const Database& database, double gone, GrowthFigures& figures) {
    const double all = options_.texts.seconds;
    bar_.update("running", static_cast<std::uint64_t>(gone * 1000),
                static_cast<std::uint64_t>(all * 1000));
    const double next = all / kSamples * static_cast<double>(figures.samples.size());
    if (gone >= next) figures.samples.push_back({gone, database.statistics().pool_used_bytes});
  }

  Status run_texts(Database& database, GrowthFigures& figures) {
    bench::TextUpdates plan = options_.texts;
    const Result<TableId> table = bench::load_texts(database, plan);
    if (!table.ok()) return table.status();
    if (Status s = set_merges(database); !s.ok()) return s;
    plan.progress = [&](double gone) { sample(database, gone, figures); };
    const bench::TextUpdatesResult result = bench::update_texts(database, *table, plan);
    figures.transactions = result.updates;
    figures.seconds = result.seconds;
    figures.latency = result.latency;
    return result.failure;
  }

  Status run_tatp(Database& database, GrowthFigures& figures) {
    const Result<bench::TatpTables> tables = bench::create_tatp_tables(database);
    if (!tables.ok()) return tables.status();
    bench::PopulationOptions options;
    options.subscribers = options_.subscribers;
    options.seed = options_.texts.seed;
    const bench::Population population(options);
    const Result<bench::LoadResult> load = bench::load_population(
        database, *tables, population, default_load_threads(), [](std::uint64_t, std::uint64_t) {});
    if (!load.ok()) return load.status();
    if (Status s = set_merges(database); !s.ok()) return s;
    bench::TatpRunOptions run;
    run.users = options_.texts.users;
    run.seconds = options_.texts.seconds;
    run.seed = options_.texts.seed;
    run.progress = [&](double gone, double) {
      sample(database, gone, figures);
      return true;
    };
    const bench::TatpRunResult result = bench::run_tatp(database, *tables, population, run);
    figures.transactions = result.executed();
    figures.seconds = result.seconds;
    figures.latency = result.latency;
    return result.failure;
  }

  const GrowthOptions& options_;
  ProgressBar bar_;
};

bench::Json figures_json(const GrowthOptions& options, const GrowthFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.after.medium;
  json["flush"] = figures.after.flush;
  json["dirty_shutdowns"] = figures.after.dirty_shutdowns;
  json["guarantee"] = figures.after.guarantee;
  json["workload"] = options.workload;
  if (options.workload == "tatp") {
    json["subscribers"] = options.subscribers;
  } else {
    json["rows"] = options.texts.rows;
    json["text_bytes"] = options.texts.text_bytes;
    json["encoding"] = options.encoding;
  }
  json["users"] = options.texts.users;
  json["seed"] = options.texts.seed;
  json["merge"] = options.merge;
  json["seconds"] = figures.seconds;
  json["transactions"] = figures.transactions;
  json["tps"] = static_cast<double>(figures.transactions) / figures.seconds;
  json["latency_ns"] = bench::to_json(figures.latency);
  json["merges"] = figures.after.merges;
  json["pool_used_bytes"] = figures.grown.used_bytes;
  json["medium_bytes"] = figures.grown.medium_bytes;
  json["fresh_pool_used_bytes"] = figures.fresh.used_bytes;
  json["fresh_medium_bytes"] = figures.fresh.medium_bytes;
  json["growth"] = figures.growth();
  json["samples"] = bench::Json::array();
  for (const Sample& sample : figures.samples)
    json["samples"].push_back({{"seconds", sample.seconds}, {"used_bytes", sample.used_bytes}});
  json["machine"] = bench::to_json(environment);
  return json;
}

void print_figures(const GrowthOptions& options, const GrowthFigures& figures) {
  if (options.workload == "tatp")
    fmt::print("TATP mix, {} subscribers", options.subscribers);
  else
    fmt::print("updates of texts of {} bytes, {} rows, encoding {}", options.texts.text_bytes,
               options.texts.rows, options.encoding);
  fmt::print(", {} user{}, {:.1f} s, merges {}\n", options.texts.users,
             options.texts.users == 1 ? "" : "s", figures.seconds,
             options.merge == "default" ? "as by default" : "off");
  fmt::print("medium {}: {}\n", figures.after.medium, figures.after.guarantee);
  fmt::print("{} transactions, {} a second, p50 {}, p99 {}, p99.9 {}; {} merges\n",
             figures.transactions,
             format_count(static_cast<double>(figures.transactions) / figures.seconds),
             format_percentile(figures.latency, 0.5), format_percentile(figures.latency, 0.99),
             format_percentile(figures.latency, 0.999), figures.after.merges);
  std::string curve;
  for (const Sample& sample : figures.samples) curve += " " + format_bytes(sample.used_bytes);
  fmt::print("bytes in use over time:{}\n", curve);
  fmt::print("at the end {} in use, {} on the medium; the same rows loaded anew {} and {}\n",
             format_bytes(figures.grown.used_bytes), format_bytes(figures.grown.medium_bytes),
             format_bytes(figures.fresh.used_bytes), format_bytes(figures.fresh.medium_bytes));
  fmt::print("growth {:.2f}\n", figures.growth());
}

int run_command(GrowthOptions& options) {
  options.texts.encoding = options.encoding == "direct"       ? Encoding::kDirect
                           : options.encoding == "dictionary" ? Encoding::kDictionary
                                                              : Encoding::kAuto;
  GrowthFigures figures;
  if (Status s = GrowthCommand(options).run(figures); !s.ok()) return could_not_run(s);
  print_figures(options, figures);
  return finish_with_json(options.json, figures_json(options, figures), kExitOk);
}

}  // namespace

void add_growth(CLI::App& app, Action& action) {
  auto options = std::make_shared<GrowthOptions>();
  CLI::App* command =
      app.add_subcommand("growth", "Measures how much a pool grows while its rows change");
  add_new_pool_options(*command, options->pool, nullptr);
  command
      ->add_option("--workload", options->workload,
                   "Changes: of the texts of random rows, or those of TATP's mix")
      ->check(CLI::IsMember({"texts", "tatp"}))
      ->capture_default_str();
  command->add_option("--rows", options->texts.rows, "Rows of texts")
      ->check(CLI::Range(1u, 100'000'000u))
      ->capture_default_str();
  command->add_option("--text-bytes", options->texts.text_bytes, "Length of each text")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  command->add_option("--encoding", options->encoding, "Encoding of the column of texts")
      ->check(CLI::IsMember({"auto", "dictionary", "direct"}))
      ->capture_default_str();
  command->add_option("--subscribers", options->subscribers, "Size of the population of tatp")
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax))
      ->capture_default_str();
  command->add_option("--users", options->texts.users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command->add_option("--seconds", options->texts.seconds, "Length of the run")
      ->check(real_range(0.1, 1e6))
      ->capture_default_str();
  command->add_option("--merge", options->merge, "Merging meanwhile, as by default or never")
      ->check(CLI::IsMember({"default", "off"}))
      ->capture_default_str();
  command->add_option("--seed", options->texts.seed, "Seed of all random numbers")
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
