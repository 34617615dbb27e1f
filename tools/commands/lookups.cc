#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>

#include "bench/loads/lookup_load.h"
#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "bench/support/median.h"
#include "tools/support/command.h"
#include "tools/support/latency_text.h"
#include "tools/support/pool_file.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

const std::map<std::string, bench::LookupOrder> kLookupOrders = {
    {"key", bench::LookupOrder::kKey}, {"random", bench::LookupOrder::kRandom}};

struct LookupsOptions {
  std::string pool;
  bool keep = false;
  bench::LookupLoad load;
  bench::LookupPlan plan;
  bool in_delta = false;
  std::string order = "random";
  std::string json;
};

double rows_per_second(const bench::LookupFigures& figures) {
  const double row_ns = bench::median(figures.row_ns);
  return row_ns > 0 ? 1e9 / row_ns : 0;
}

/// The processor time of `get` for a row, divided by that of a form.
double speedup(const bench::LookupResult& result, const bench::LookupFigures& figures) {
  return bench::median(result[0].thread_row_ns) / bench::median(figures.thread_row_ns);
}

std::uint32_t keys_of_call(const LookupsOptions& options, bench::LookupForm form) {
  return form == bench::LookupForm::kGetMany ? options.plan.batch : 1;
}

bench::Json to_json(const LookupsOptions& options, const Statistics& statistics,
                    const bench::LookupResult& result) {
  const bench::Environment environment = bench::environment();
  bench::Json forms = bench::Json::array();
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bench::LookupForm form = bench::kLookupForms[i];
    forms.push_back({{"form", to_string(form)},
                     {"keys_per_call", keys_of_call(options, form)},
                     {"row_ns", result[i].row_ns},
                     {"thread_row_ns", result[i].thread_row_ns},
                     {"rows_per_s", rows_per_second(result[i])},
                     {"speedup", speedup(result, result[i])},
                     {"call_latency_ns", bench::to_json(result[i].call_ns)},
                     {"rows", result[i].rows},
                     {"missing", result[i].missing},
                     {"wrong", result[i].wrong}});
  }
  return {{"commit", environment.commit},
          {"medium", statistics.medium},
          {"guarantee", statistics.guarantee},
          {"rows", options.load.rows},
          {"in_delta", options.in_delta},
          {"scattered", options.load.is_scattered},
          {"order", options.order},
          {"batch", options.plan.batch},
          {"keys", options.plan.keys},
          {"runs", options.plan.runs},
          {"seed", options.plan.seed},
          {"latency_clock", bench::Ticks::instance().name()},
          {"forms", forms},
          {"machine", bench::to_json(environment)}};
}

void print(const LookupsOptions& options, const Statistics& statistics,
           const bench::LookupResult& result) {
  fmt::print(
      "medium {}: {}\n{} rows in {}, inserted in {} order; keys in {} order; medians of {} "
      "runs\n\n",
      statistics.medium, statistics.guarantee, options.load.rows,
      options.in_delta ? "the delta" : "main", options.load.is_scattered ? "random" : "key",
      options.order, options.plan.runs);
  TextTable table({"form", "keys a call", "rows/s", "ns a row", "CPU ns a row", "speedup",
                   "call p50", "p99", "max"});
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bench::LookupFigures& figures = result[i];
    const bench::LookupForm form = bench::kLookupForms[i];
    table.add({std::string(to_string(form)), fmt::format("{}", keys_of_call(options, form)),
               format_count(rows_per_second(figures)),
               fmt::format("{:.1f}", bench::median(figures.row_ns)),
               fmt::format("{:.1f}", bench::median(figures.thread_row_ns)),
               fmt::format("{:.2f}", speedup(result, figures)),
               format_percentile(figures.call_ns, 0.5), format_percentile(figures.call_ns, 0.99),
               format_percentile(figures.call_ns, 1.0)});
  }
  fmt::print(
      "{}CPU: of the thread; speedup: the CPU time of get for a row, divided by that of the form;\n"
      "p50 to max: the latency of other calls, which are timed one by one; clock: {}\n",
      table.to_string(), bench::Ticks::instance().name());
}

/// Whether each row was found with the values that were loaded.
bool print_problems(const bench::LookupResult& result) {
  bool all_held = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i].missing + result[i].wrong == 0) continue;
    all_held = false;
    fmt::print(stderr, "flugs: {}: of {} rows {} were not found, {} had other values\n",
               to_string(bench::kLookupForms[i]), result[i].rows, result[i].missing,
               result[i].wrong);
  }
  return all_held;
}

int run_command(LookupsOptions options) {
  constexpr std::uint64_t kBytesPerRow = 128;
  options.load.merges = !options.in_delta;
  options.load.seed = options.plan.seed;
  options.plan.order = kLookupOrders.at(options.order);
  const std::uint64_t bytes = options.load.rows * kBytesPerRow + (std::uint64_t{256} << 20);
  OpenOptions open;
  open.mode = OpenMode::kCreate;
  open.max_bytes = bytes;
  open.merge_policy.automatic = false;
  Result<PoolOfCommand> pool = open_pool(options.pool, options.keep, bytes, open);
  if (!pool.ok()) return could_not_run(pool.status());
  Database& database = pool->database;
  const Result<bench::LookupTable> table = bench::load_lookup_table(database, options.load);
  if (!table.ok()) return could_not_run(table.status());
  const auto result = bench::run_lookups(database, *table, options.plan);
  if (!result.ok()) return could_not_run(result.status());
  const Statistics statistics = database.statistics();
  print(options, statistics, *result);
  const bool all_held = print_problems(*result);
  return finish_with_json(options.json, to_json(options, statistics, *result),
                          all_held ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_lookups(CLI::App& app, Action& action) {
  auto options = std::make_shared<LookupsOptions>();
  CLI::App* command = app.add_subcommand(
      "lookups", "Looks rows up by key: one key a call, and many (get_many), by turns");
  command->add_option("--rows", options->load.rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--batch", options->plan.batch, "Keys in a call of get_many")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  command->add_option("--order", options->order, "Order of the keys that are looked up")
      ->check(CLI::IsMember({"key", "random"}))
      ->capture_default_str();
  command->add_option("--keys", options->plan.keys, "Keys that each form looks up in a run")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000'000'000}))
      ->capture_default_str();
  command->add_option("--runs", options->plan.runs, "Runs, after one that is not counted")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_flag("--scattered", options->load.is_scattered,
                    "Insert the rows in random order, so that no look-up can guess a row's place");
  command->add_flag("--delta", options->in_delta, "Leave the rows in the delta");
  command->add_option("--seed", options->plan.seed, "Seed of all random numbers")
      ->capture_default_str();
  add_new_pool_options(*command, options->pool, &options->keep);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
