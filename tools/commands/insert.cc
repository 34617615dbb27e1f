#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads/batch_load.h"
#include "bench/support/environment.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct InsertOptions {
  bench::BatchLoad load;
  std::string json;
};

struct InsertFigures {
  std::string medium;
  std::vector<bench::BatchLoadTime> times;  // as kBatchForms
};

double per_row(const InsertOptions& options, std::uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(options.load.rows);
}

/// Each form in a new pool, which is audited at the end.
Status run_form(const InsertOptions& options, bench::BatchForm form, InsertFigures& figures) {
  Result<PoolFile> file = PoolFile::choose("", false, std::uint64_t{2} << 30);
  if (!file.ok()) return file.status();
  if (!file->remark().empty() && figures.times.empty()) fmt::print("{}\n", file->remark());
  OpenOptions open;
  open.path = file->path();
  open.mode = OpenMode::kCreate;
  open.merge_policy.automatic = false;
  Result<Database> database = Database::open(open);
  if (!database.ok()) return database.status();
  const Result<bench::BatchLoadTime> time = bench::load_batches(*database, options.load, form);
  if (!time.ok()) return time.status();
  figures.times.push_back(*time);
  figures.medium = database->statistics().medium;
  return database->check();
}

bench::Json figures_json(const InsertOptions& options, const InsertFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.medium;
  json["rows"] = options.load.rows;
  json["batch_rows"] = options.load.batch_rows;
  json["texts"] = options.load.texts;
  for (std::size_t i = 0; i < figures.times.size(); ++i) {
    const bench::BatchLoadTime& time = figures.times[i];
    json["forms"].push_back({{"form", to_string(bench::kBatchForms[i])},
                             {"row_ns", per_row(options, time.elapsed_ns)},
                             {"thread_row_ns", per_row(options, time.thread_ns)},
                             {"process_row_ns", per_row(options, time.process_ns)}});
  }
  json["environment"] = bench::to_json(environment);
  return json;
}

int run_command(const InsertOptions& options) {
  InsertFigures figures;
  for (const bench::BatchForm form : bench::kBatchForms)
    if (const Status s = run_form(options, form, figures); !s.ok()) return could_not_run(s);
  fmt::print("{} rows of int64 key, int32, double and text, {} to a transaction, {}\n\n",
             format_count(static_cast<double>(options.load.rows)), options.load.batch_rows,
             figures.medium);
  TextTable table({"ns a row", "elapsed", "CPU of the thread", "of the process", "share"});
  for (std::size_t i = 0; i < figures.times.size(); ++i) {
    const bench::BatchLoadTime& time = figures.times[i];
    table.add({std::string(to_string(bench::kBatchForms[i])),
               fmt::format("{:.0f}", per_row(options, time.elapsed_ns)),
               fmt::format("{:.0f}", per_row(options, time.thread_ns)),
               fmt::format("{:.0f}", per_row(options, time.process_ns)),
               fmt::format("{:.2f}", static_cast<double>(time.thread_ns) /
                                         static_cast<double>(figures.times[0].thread_ns))});
  }
  fmt::print("{}share: of the thread's CPU for the same rows by insert_rows\n", table.to_string());
  return finish_with_json(options.json, figures_json(options, figures), kExitOk);
}

}  // namespace

void add_insert(CLI::App& app, Action& action) {
  auto options = std::make_shared<InsertOptions>();
  CLI::App* command =
      app.add_subcommand("insert", "Inserts batches of rows, row by row and column by column");
  command->add_option("--rows", options->load.rows, "Rows in all")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->capture_default_str();
  command->add_option("--batch", options->load.batch_rows, "Rows in a transaction")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000'000}))
      ->capture_default_str();
  command->add_option("--texts", options->load.texts, "Different values of the text column")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
