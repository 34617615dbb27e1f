#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads/value_load.h"
#include "bench/support/environment.h"
#include "bench/support/median.h"
#include "bench/tatp/tatp_load.h"
#include "bench/tatp/tatp_turns.h"
#include "tools/support/command.h"
#include "tools/support/latency_text.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::array kModes = {IndexPlace::kDram, IndexPlace::kPool};

struct IndexCostOptions {
  bench::PopulationOptions population;
  bench::TatpTurnsOptions turns;
  std::uint32_t rounds = 5;
  std::uint64_t rows = 1'000'000;
  std::uint32_t load_threads = default_load_threads();
  bench::ScmModel scm;
  std::string json;

  IndexCostOptions() {
    turns.run.users = 2;
    turns.run.ramp_up_seconds = 1;
    turns.run.seconds = 3;
  }
};

/// Figures of a database with indexes of one mode in one round.
struct ModeRound {
  bench::LoadResult load;
  bench::TatpRunResult run;
  double new_values_seconds = 0;

  double load_speed() const noexcept { return static_cast<double>(load.rows) / load.seconds; }
  double speed() const noexcept { return run.per_second(run.executed()); }
};
using CostRound = std::array<ModeRound, kModes.size()>;

/// A figure of each round: of hints, the share of what it was with indexes in DRAM, for instance.
struct RoundSpread {
  std::vector<double> of_rounds;

  double least() const { return *std::min_element(of_rounds.begin(), of_rounds.end()); }
  double most() const { return *std::max_element(of_rounds.begin(), of_rounds.end()); }
  double median() const { return bench::median(of_rounds); }
};

RoundSpread share_of(const std::vector<CostRound>& rounds, double (*speed)(const ModeRound&)) {
  RoundSpread share;
  for (const CostRound& round : rounds)
    share.of_rounds.push_back(speed(round[1]) / speed(round[0]));
  return share;
}

RoundSpread mix_share(const std::vector<CostRound>& rounds) {
  return share_of(rounds, [](const ModeRound& mode) { return mode.speed(); });
}
RoundSpread load_share(const std::vector<CostRound>& rounds) {
  return share_of(rounds, [](const ModeRound& mode) { return mode.load_speed(); });
}
RoundSpread new_values_share(const std::vector<CostRound>& rounds) {
  return share_of(rounds, [](const ModeRound& mode) { return 1 / mode.new_values_seconds; });
}

/// A database of a round, and its path.
struct Side {
  PoolFile file;
  std::optional<Database> database;
  bench::TatpTables tables;
};

class IndexCostCommand {
 public:
  explicit IndexCostCommand(const IndexCostOptions& options)
      : options_(options), population_(options.population) {}

  Status run(std::vector<CostRound>& rounds) {
    for (std::uint32_t i = 0; i < options_.rounds; ++i) {
      CostRound round;
      if (Status s = run_mix(round, i); !s.ok()) return s;
      if (options_.rows != 0)
        if (Status s = run_new_values(round, i); !s.ok()) return s;
      rounds.push_back(std::move(round));
    }
    return {};
  }

 private:
  /// Each mode comes first only in every other round.
  static std::size_t mode_at(std::uint32_t place, std::uint32_t round) noexcept {
    return (place + round) % kModes.size();
  }

  Status open(IndexPlace mode, std::uint64_t bytes, Side& side) {
    Result<PoolFile> file = PoolFile::choose("", false, bytes);
    if (!file.ok()) return file.status();
    side.file = *std::move(file);
    OpenOptions open = tatp_open_options(side.file.path(), OpenMode::kCreate,
                                         options_.turns.run.users, options_.scm);
    open.index_place = mode;
    Result<Database> database = Database::open(open);
    if (!database.ok()) return database.status();
    side.database = *std::move(database);
    return is_like_others(side);
  }

  /// A difference between two media must not count as one between indexes.
  Status is_like_others(const Side& side) {
    const std::string medium(side.database->statistics().medium);
    if (medium_.empty()) {
      medium_ = medium;
      if (!side.file.remark().empty()) fmt::print("{}\n", side.file.remark());
    }
    if (medium == medium_) return {};
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: a pool on medium {} cannot be compared with a pool on {}: both "
                              "need the same space",
                              side.file.path(), medium, medium_));
  }

  Status load(Side& side, ModeRound& figures) {
    Result<bench::TatpTables> tables = bench::create_tatp_tables(*side.database);
    if (!tables.ok()) return tables.status();
    side.tables = *tables;
    Result<bench::LoadResult> load =
        bench::load_population(*side.database, side.tables, population_, options_.load_threads,
                               [this](std::uint64_t done, std::uint64_t all) {
                                 bar_.update("loading", done, all, "subscribers");
                               });
    bar_.clear();
    if (!load.ok()) return load.status();
    figures.load = *load;
    return {};
  }

  Status run_mix(CostRound& round, std::uint32_t number) {
    std::array<Side, kModes.size()> sides;
    // All before any is loaded: the space that they find is the same.
    const std::uint64_t bytes = kModes.size() * tatp_pool_bytes(options_.population.subscribers);
    for (std::size_t mode = 0; mode < kModes.size(); ++mode)
      if (Status s = open(kModes[mode], bytes, sides[mode]); !s.ok()) return s;
    for (std::uint32_t place = 0; place < kModes.size(); ++place) {
      const std::size_t mode = mode_at(place, number);
      if (Status s = load(sides[mode], round[mode]); !s.ok()) return s;
    }
    std::vector<bench::TatpSide> compared;
    compared.reserve(sides.size());
    for (Side& side : sides) compared.push_back({&*side.database, &side.tables});
    bench::TatpTurnsOptions turns = options_.turns;
    turns.run.seed = options_.population.seed + number;
    turns.run.progress = [this](double gone, double all) {
      bar_.update("running", static_cast<std::uint64_t>(gone * 1000),
                  static_cast<std::uint64_t>(all * 1000));
      return true;
    };
    std::vector<bench::TatpRunResult> results =
        bench::run_tatp_by_turns(compared, population_, turns);
    bar_.clear();
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
      round[mode].run = std::move(results[mode]);
      if (!round[mode].run.failure.ok()) return round[mode].run.failure;
      if (Status s = sides[mode].database->check(); !s.ok()) return s;
    }
    return {};
  }

  Status run_new_values(CostRound& round, std::uint32_t number) {
    constexpr std::uint64_t kBytesPerRow = 256;
    for (std::uint32_t place = 0; place < kModes.size(); ++place) {
      const std::size_t mode = mode_at(place, number);
      Side side;
      const std::uint64_t bytes = options_.rows * kBytesPerRow + (std::uint64_t{256} << 20);
      if (Status s = open(kModes[mode], bytes, side); !s.ok()) return s;
      const Result<double> seconds =
          bench::load_new_values(*side.database, options_.rows, options_.load_threads);
      if (!seconds.ok()) return seconds.status();
      round[mode].new_values_seconds = *seconds;
    }
    return {};
  }

  const IndexCostOptions& options_;
  bench::Population population_;
  ProgressBar bar_;
  std::string medium_;
};

bench::Json to_json(const RoundSpread& share) {
  return {{"median", share.median()},
          {"min", share.least()},
          {"max", share.most()},
          {"rounds", share.of_rounds}};
}

bench::Json to_json(const IndexCostOptions& options, const ModeRound& mode) {
  bench::Json json = {{"load_rows_per_s", mode.load_speed()},
                      {"executed_tps", mode.speed()},
                      {"latency_ns", bench::to_json(mode.run.latency)},
                      {"per_write_txn",
                       {{"fences", mode.run.per_write(&Statistics::fences)},
                        {"lines_flushed", mode.run.per_write(&Statistics::lines_flushed)}}},
                      {"scm_lines_per_txn", scm_lines_json(mode.run)},
                      {"pool_bytes", mode.run.after.pool_allocated_bytes},
                      {"dram_index_bytes", mode.run.after.dram_index_bytes},
                      {"hint_index_bytes", mode.run.after.hint_index_bytes},
                      {"new_values_rows_per_s", nullptr}};
  if (options.rows != 0)
    json["new_values_rows_per_s"] = static_cast<double>(options.rows) / mode.new_values_seconds;
  return json;
}

bench::Json to_json(const IndexCostOptions& options, const std::vector<CostRound>& rounds) {
  const bench::Environment environment = bench::environment();
  bench::Json each = bench::Json::array();
  for (const CostRound& round : rounds) {
    bench::Json modes;
    for (std::size_t mode = 0; mode < kModes.size(); ++mode)
      modes[std::string(to_string(kModes[mode]))] = to_json(options, round[mode]);
    each.push_back(std::move(modes));
  }
  const Statistics& statistics = rounds.front().front().run.after;
  bench::Json json = {{"commit", environment.commit},
                      {"medium", statistics.medium},
                      {"flush", statistics.flush},
                      {"dirty_shutdowns", statistics.dirty_shutdowns},
                      {"guarantee", statistics.guarantee},
                      {"subscribers", options.population.subscribers},
                      {"users", options.turns.run.users},
                      {"mix", to_string(options.turns.run.mix)},
                      {"seconds", options.turns.run.seconds},
                      {"ramp_up_seconds", options.turns.run.ramp_up_seconds},
                      {"turn_ms", options.turns.turn_ms},
                      {"rows", options.rows},
                      {"seed", options.population.seed},
                      {"load_threads", options.load_threads},
                      {"scm_latency_ns", scm_json(options.scm)},
                      {"hint_share_of_rebuild",
                       {{"mix", to_json(mix_share(rounds))},
                        {"load", to_json(load_share(rounds))},
                        {"load_new_values", nullptr}}},
                      {"rounds", each},
                      {"machine", bench::to_json(environment)}};
  if (options.rows != 0)
    json["hint_share_of_rebuild"]["load_new_values"] = to_json(new_values_share(rounds));
  return json;
}

void print(const IndexCostOptions& options, const std::vector<CostRound>& rounds) {
  const Statistics& statistics = rounds.front().front().run.after;
  fmt::print("medium {}: {}\n", statistics.medium, statistics.guarantee);
  fmt::print(
      "TATP, {} subscribers, {} user{}, {} mix: two databases by turns of {} ms, {:.1f} s each\n"
      "after {:.1f} s; medians of {} round{}\n\n",
      options.population.subscribers, options.turns.run.users,
      options.turns.run.users == 1 ? "" : "s", to_string(options.turns.run.mix),
      options.turns.turn_ms, options.turns.run.seconds, options.turns.run.ramp_up_seconds,
      rounds.size(), rounds.size() == 1 ? "" : "s");
  TextTable table({"", "dram", "pool", "share", "least", "most"});
  const auto median = [&](std::size_t mode, auto&& value) {
    RoundSpread values;
    for (const CostRound& round : rounds) values.of_rounds.push_back(value(round[mode]));
    return values.median();
  };
  const auto add = [&](const std::string& name, const RoundSpread& share, auto&& value) {
    table.add({name, format_count(median(0, value)), format_count(median(1, value)),
               fmt::format("{:.3f}", share.median()), fmt::format("{:.3f}", share.least()),
               fmt::format("{:.3f}", share.most())});
  };
  add("transactions/s", mix_share(rounds), [](const ModeRound& mode) { return mode.speed(); });
  add("load, rows/s", load_share(rounds), [](const ModeRound& mode) { return mode.load_speed(); });
  if (options.rows != 0)
    add(fmt::format("load of {} rows of new values, rows/s",
                    format_count(static_cast<double>(options.rows))),
        new_values_share(rounds), [&](const ModeRound& mode) {
          return static_cast<double>(options.rows) / mode.new_values_seconds;
        });
  fmt::print("{}share: pool's of dram's in the same round, its median, least and most\n\n",
             table.to_string());
  TextTable details({"", "p50", "p99", "p99.9", "lines/write", "fences/write", "pool", "indexes"});
  for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
    const ModeRound& last = rounds.back()[mode];
    details.add({std::string(to_string(kModes[mode])), format_percentile(last.run.latency, 0.5),
                 format_percentile(last.run.latency, 0.99),
                 format_percentile(last.run.latency, 0.999),
                 fmt::format("{:.2f}", last.run.per_write(&Statistics::lines_flushed)),
                 fmt::format("{:.2f}", last.run.per_write(&Statistics::fences)),
                 format_bytes(last.run.after.pool_allocated_bytes),
                 format_bytes(last.run.after.dram_index_bytes + last.run.after.hint_index_bytes)});
  }
  fmt::print("{}of the last round\n", details.to_string());
}

int run_command(const IndexCostOptions& options) {
  std::vector<CostRound> rounds;
  if (const Status s = IndexCostCommand(options).run(rounds); !s.ok()) return could_not_run(s);
  print(options, rounds);
  return finish_with_json(options.json, to_json(options, rounds), kExitOk);
}

}  // namespace

void add_index_cost(CLI::App& app, Action& action) {
  auto options = std::make_shared<IndexCostOptions>();
  CLI::App* command = app.add_subcommand(
      "index-cost", "Compares indexes in the pool with indexes in DRAM, in normal running");
  command->add_option("--subscribers", options->population.subscribers, "Size of the population")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  command->add_option("--users", options->turns.run.users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds, each with databases of its own")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--seconds", options->turns.run.seconds, "Seconds for each database in a round")
      ->check(real_range(0.01, 1e6))
      ->capture_default_str();
  command
      ->add_option("--ramp-up", options->turns.run.ramp_up_seconds,
                   "Seconds before sampling begins")
      ->check(real_range(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--turn", options->turns.turn_ms, "Length of a turn in ms")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  add_mix_option(*command, options->turns.run.mix);
  command
      ->add_option("--rows", options->rows,
                   "Rows in the load of new values, with four new values each; 0: no such load")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{50'000'000}))
      ->capture_default_str();
  command->add_option("--seed", options->population.seed, "Seed of all random numbers")
      ->capture_default_str();
  add_scm_options(*command, options->scm);
  command->add_option("--load-threads", options->load_threads, "Threads that load")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
