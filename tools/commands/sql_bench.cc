#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/support/environment.h"
#include "bench/support/median.h"
#include "tools/sql/sql_load.h"
#include "tools/support/cleanup.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct SqlBenchOptions {
  std::string pool;
  bool keep = false;
  SqlLoad load;
  std::string json;
};

bench::Json to_json(const SqlLoad& load, const std::vector<SqlFigure>& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json all = bench::Json::array();
  for (const SqlFigure& of : figures)
    all.push_back(
        {{"what", of.what}, {"unit", of.unit}, {"flugs", of.flugs}, {"sqlite", of.sqlite}});
  return {{"benchmark", "sql"},
          {"commit", environment.commit},
          {"rows", load.rows},
          {"statements", load.statements},
          {"runs", load.runs},
          {"figures", all},
          {"machine", bench::to_json(environment)}};
}

int measure_and_print(SqlBenchOptions& options) {
  constexpr std::uint64_t kBytesPerRow = 300;  // on both sides
  Result<PoolFile> pool = PoolFile::choose(
      options.pool, options.keep, options.load.rows * kBytesPerRow + (std::uint64_t{256} << 20));
  if (!pool.ok()) return could_not_run(pool.status());
  if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
  options.load.pool = pool->path();
  options.load.sqlite = pool->path() + ".sqlite";
  const TemporaryFile database(options.load.sqlite);
  const TemporaryFile log(options.load.sqlite + "-wal");
  const TemporaryFile shared(options.load.sqlite + "-shm");
  const Result<std::vector<SqlFigure>> figures = measure_sql(options.load);
  if (!figures.ok()) return could_not_run(figures.status());
  fmt::print("{} rows, {} statements; processor time, medians of {} runs\n\n", options.load.rows,
             options.load.statements, options.load.runs);
  TextTable table({"", "flugs", "SQLite", ""});
  for (const SqlFigure& of : *figures)
    table.add({of.what, fmt::format("{:.2f}", bench::median(of.flugs)),
               fmt::format("{:.2f}", bench::median(of.sqlite)), of.unit});
  fmt::print("{}", table.to_string());
  return finish_with_json(options.json, to_json(options.load, *figures), kExitOk);
}

}  // namespace

void add_sql_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<SqlBenchOptions>();
  CLI::App* command =
      app.add_subcommand("sql", "Measures statements of SQL, beside tables of SQLite");
  add_new_pool_options(*command, options->pool, &options->keep);
  command->add_option("--rows", options->load.rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->capture_default_str();
  command->add_option("--statements", options->load.statements, "Look-ups and updates of a run")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--runs", options->load.runs, "Runs of each but the load")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return measure_and_print(*options); });
}

}  // namespace flugs::tools
