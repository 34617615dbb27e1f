#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads/stream_load.h"
#include "bench/support/environment.h"
#include "bench/support/median.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct StreamsOptions {
  std::string pool;
  bench::StreamLoad load{4'000'000, default_load_threads()};
  bool in_delta = false;
  std::uint32_t threads = 0;
  std::uint32_t runs = 5;
  bool with_run = false;
  bool keep = false;
  std::string json;
};

const std::vector<std::vector<std::string>> kColumnSets = {
    {"name"}, {"id"},    {"n"},       {"v"},
    {"day"},  {"price"}, {"id", "n"}, {"id", "n", "v", "day", "price", "name"}};

Result<std::vector<bench::StreamFigures>> measure(const StreamsOptions& options,
                                                  Database& database) {
  bench::StreamLoad load = options.load;
  load.merges = !options.in_delta;
  if (const Result<TableId> table = bench::load_stream_table(database, load); !table.ok())
    return table.status();
  std::vector<bench::StreamFigures> all;
  for (const auto& columns : kColumnSets)
    for (const bench::StreamWay way :
         {bench::StreamWay::kStream, bench::StreamWay::kArrow, bench::StreamWay::kRun}) {
      if (way == bench::StreamWay::kRun && !options.with_run) continue;
      auto figures = bench::read_stream(database, columns, way, options.threads, options.runs);
      if (!figures.ok()) return figures.status();
      all.push_back(*std::move(figures));
    }
  return all;
}

bench::Json to_json(const StreamsOptions& options, const Statistics& statistics,
                    const std::vector<bench::StreamFigures>& all) {
  const bench::Environment environment = bench::environment();
  bench::Json queries = bench::Json::array();
  for (const bench::StreamFigures& of : all)
    queries.push_back({{"columns", of.columns},
                       {"way", to_string(of.way)},
                       {"rows", of.rows},
                       {"wall_ns_per_row", of.wall_ns},
                       {"cpu_ns_per_row", of.cpu_ns},
                       {"first_batch_ms", of.first_ms},
                       {"memory_bytes", of.memory_bytes}});
  return {{"commit", environment.commit},
          {"medium", statistics.medium},
          {"guarantee", statistics.guarantee},
          {"rows", options.load.rows},
          {"texts", options.load.texts},
          {"in_delta", options.in_delta},
          {"threads", options.threads},
          {"runs", options.runs},
          {"pool_bytes", statistics.pool_allocated_bytes},
          {"dram_bytes", bench::dram_bytes()},
          {"queries", queries},
          {"machine", bench::to_json(environment)}};
}

void print(const StreamsOptions& options, const Statistics& statistics,
           const std::vector<bench::StreamFigures>& all) {
  fmt::print("medium {}: {}\n{} rows in {}, {} texts; medians of {} runs\n\n", statistics.medium,
             statistics.guarantee, options.load.rows, options.in_delta ? "the delta" : "main",
             options.load.texts, options.runs);
  TextTable table({"columns", "way", "ns/row", "CPU ns/row", "first ms", "memory"});
  for (const bench::StreamFigures& of : all)
    table.add({fmt::format("{}", fmt::join(of.columns, " ")), to_string(of.way),
               fmt::format("{:.2f}", bench::median(of.wall_ns)),
               fmt::format("{:.2f}", bench::median(of.cpu_ns)),
               fmt::format("{:.3f}", bench::median(of.first_ms)),
               of.way == bench::StreamWay::kArrow ? "" : format_bytes(of.memory_bytes)});
  fmt::print("{}", table.to_string());
}

int run_command(const StreamsOptions& options) {
  constexpr std::uint64_t kBytesPerRow = 128;
  const std::uint64_t bytes = options.load.rows * kBytesPerRow + (std::uint64_t{256} << 20);
  OpenOptions open;
  open.mode = OpenMode::kCreate;
  open.max_bytes = bytes;
  open.merge_policy.automatic = false;
  Result<PoolOfCommand> pool = open_pool(options.pool, options.keep, bytes, open);
  if (!pool.ok()) return could_not_run(pool.status());
  Database& database = pool->database;
  const auto figures = measure(options, database);
  if (!figures.ok()) return could_not_run(figures.status());
  const Statistics statistics = database.statistics();
  print(options, statistics, *figures);
  return finish_with_json(options.json, to_json(options, statistics, *figures), kExitOk);
}

}  // namespace

void add_streams(CLI::App& app, Action& action) {
  auto options = std::make_shared<StreamsOptions>();
  CLI::App* command =
      app.add_subcommand("streams", "Reads all rows of a table as streams and as Arrow");
  command->add_option("--rows", options->load.rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--texts", options->load.texts, "Different texts in the column of texts")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_flag("--delta", options->in_delta, "Leave the rows in the delta");
  command->add_flag("--run", options->with_run, "Make whole results, too");
  command->add_option("--threads", options->threads, "Threads per query; 0: one per processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Runs per query, after one that is not counted")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--load-threads", options->load.threads, "Threads that load")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_new_pool_options(*command, options->pool, &options->keep);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
