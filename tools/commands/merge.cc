#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/processors.h"
#include "bench/loads/merge_load.h"
#include "bench/support/environment.h"
#include "flugs/merge.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct MergeCommandOptions {
  std::string pool;
  std::uint64_t rows = 10'000'000;
  std::uint32_t columns = 4;
  std::uint64_t distinct = 1'000'000;
  std::uint32_t threads = 0;
  std::uint64_t seed = 1;
  IndexPlace index_place = kDefaultIndexPlace;
  bool keep = false;
  std::string json;
};

struct MergeFigures {
  MergeReport report;
  TableStatistics table;
  Statistics statistics;
  double load_seconds = 0;
  std::uint32_t threads = 0;  ///< that merged
  bool sums_equal = false;
  Status verified;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Loads, merges all, and checks that the sums of the columns are what they were.
Status measure(const MergeCommandOptions& options, Database& database, MergeFigures& figures) {
  figures.threads = options.threads != 0 ? options.threads : processors();
  const auto start = std::chrono::steady_clock::now();
  const bench::MergeLoad load{options.rows, options.columns, options.distinct, options.seed,
                              default_load_threads()};
  const Result<TableId> table = bench::load_merge_table(database, load);
  if (!table.ok()) return table.status();
  figures.load_seconds = seconds_since(start);
  const auto before = bench::merge_table_sums(database, *table, options.columns);
  if (!before.ok()) return before.status();
  ProgressBar bar;
  MergeOptions merge;
  merge.scope = MergeScope::kEverything;
  merge.threads = figures.threads;
  merge.progress = [&](const Progress& progress) {
    bar.update("merging", progress.done, progress.total, "chunks");
  };
  Result<MergeReport> report = database.merge(*table, merge);
  bar.clear();
  if (!report.ok()) return std::move(report).status();
  figures.report = *report;
  const auto after = bench::merge_table_sums(database, *table, options.columns);
  if (!after.ok()) return after.status();
  figures.sums_equal = *before == *after;
  figures.verified = database.check();
  figures.statistics = database.statistics();
  Result<TableStatistics> statistics = database.table_statistics(*table);
  if (!statistics.ok()) return std::move(statistics).status();
  figures.table = *std::move(statistics);
  return {};
}

bench::Json to_json(const MergeCommandOptions& options, const MergeFigures& figures) {
  const bench::Environment environment = bench::environment();
  const MergeReport& report = figures.report;
  return {{"benchmark", "merge"},
          {"commit", environment.commit},
          {"medium", figures.statistics.medium},
          {"guarantee", figures.statistics.guarantee},
          {"index", to_string(figures.statistics.index_place)},
          {"rows", options.rows},
          {"columns", options.columns},
          {"distinct", options.distinct},
          {"threads", figures.threads},
          {"seed", options.seed},
          {"load_seconds", figures.load_seconds},
          {"codes", report.codes},
          {"codes_per_s_per_core", bench::codes_per_s_per_core(report)},
          {"merge_seconds", report.merge_us * 1e-6},
          {"wait_seconds", report.wait_us * 1e-6},
          {"build_cpu_seconds", report.build_cpu_us * 1e-6},
          {"longest_move_us", report.longest_move_us},
          {"chunks_merged", report.chunks_merged},
          {"rows_dropped", report.rows_dropped},
          {"columns_rewritten", report.columns_rewritten},
          {"bytes_given_back", report.bytes_given_back},
          {"bytes_before", report.bytes_before},
          {"bytes_after", report.bytes_after},
          {"bytes_after_per_row",
           static_cast<double>(report.bytes_after) / static_cast<double>(report.rows)},
          {"pool_used_bytes", figures.statistics.pool_used_bytes},
          {"pool_bytes", figures.statistics.pool_allocated_bytes},
          {"lines_flushed", figures.statistics.lines_flushed},
          {"fences", figures.statistics.fences},
          {"dram_bytes", bench::dram_bytes()},
          {"sums_equal", figures.sums_equal},
          {"verified", figures.verified.ok()},
          {"machine", bench::to_json(environment)}};
}

void print(const MergeCommandOptions& options, const MergeFigures& figures,
           const std::string& path) {
  const MergeReport& report = figures.report;
  const auto rows = static_cast<double>(std::max<std::uint64_t>(report.rows, 1));
  fmt::print(
      "merge: {} rows, {} int32 columns, {} distinct values in the first, a tenth of that "
      "in each further one\npool: {}, medium {}: {}\nloaded in {:.2f} s\n\n",
      options.rows, options.columns, options.distinct, path, figures.statistics.medium,
      figures.statistics.guarantee, figures.load_seconds);
  TextTable table({"", "delta", "main"});
  table.add({"bytes", format_bytes(report.bytes_before), format_bytes(report.bytes_after)});
  table.add({"bytes a row", fmt::format("{:.1f}", static_cast<double>(report.bytes_before) / rows),
             fmt::format("{:.1f}", static_cast<double>(report.bytes_after) / rows)});
  fmt::print("{}\n", table.to_string());
  fmt::print(
      "{} codes in {:.3f} s, {} codes/s and core; writers of a chunk waited {:.0f} us at "
      "most\n",
      report.codes, report.merge_us * 1e-6, format_count(bench::codes_per_s_per_core(report)),
      report.longest_move_us);
  if (report.columns_rewritten != 0)
    fmt::print("{} columns rewritten, their dictionaries gave {} back; {} of the pool in use\n",
               report.columns_rewritten, format_bytes(report.bytes_given_back),
               format_bytes(figures.statistics.pool_used_bytes));
  fmt::print("sums of all columns: {}; check: {}\n",
             figures.sums_equal ? "as before" : "NOT as before", figures.verified.to_string());
}

int run_command(const MergeCommandOptions& options) {
  if (options.distinct > options.rows)
    return could_not_run(Status(StatusCode::kInvalidArgument,
                                fmt::format("--distinct {} cannot be more than --rows {}",
                                            options.distinct, options.rows)));
  // Both halves are there for a moment; a row of delta is 16 bytes and 4 per column at most.
  const std::uint64_t bytes = options.rows * (32 + 10 * std::uint64_t{options.columns}) +
                              options.distinct * 24 + (std::uint64_t{768} << 20);
  OpenOptions open;
  open.mode = OpenMode::kCreate;
  open.index_place = options.index_place;
  open.max_bytes = std::max<std::uint64_t>(2 * bytes, std::uint64_t{8} << 30);
  Result<PoolOfCommand> pool = open_pool(options.pool, options.keep, bytes, open);
  if (!pool.ok()) return could_not_run(pool.status());
  MergeFigures figures;
  if (const Status s = measure(options, pool->database, figures); !s.ok()) return could_not_run(s);
  print(options, figures, pool->file.path());
  const bool held = figures.sums_equal && figures.verified.ok();
  return finish_with_json(options.json, to_json(options, figures),
                          held ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<MergeCommandOptions>();
  CLI::App* command =
      app.add_subcommand("merge", "Measures the merge of a table into main, and checks the sums");
  add_new_pool_options(*command, options->pool, &options->keep);
  command->add_option("--rows", options->rows, "Rows to load")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{2'000'000'000}))
      ->capture_default_str();
  command->add_option("--columns", options->columns, "Columns of the table")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  command->add_option("--distinct", options->distinct, "Distinct values of the first column")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that merge; 0: one per processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all values")->capture_default_str();
  add_index_option(*command, options->index_place);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options, command] {
    if (command->count("--distinct") == 0)
      options->distinct = std::min(options->distinct, options->rows);
    return run_command(*options);
  });
}

}  // namespace flugs::tools
