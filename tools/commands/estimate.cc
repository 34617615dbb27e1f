#include <fmt/format.h>

#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "bench/support/json.h"
#include "flugs/opening_estimate.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct EstimateOptions {
  OpenOptions open;
  std::string ready = "first-answer";
  std::string json;
};

int run_estimate(const OpenOptions& options, const std::string& json) {
  const Result<OpeningEstimate> estimate = estimate_opening(options);
  if (!estimate.ok()) return could_not_run(estimate.status());
  const OpeningEstimate& e = *estimate;
  const char* ready = options.ready == Ready::kIndexesBuilt ? "indexes-built" : "first-answer";
  fmt::print("{}: {}, indexes {}, ready: {}; opening takes about {:.1f} ms, {} threads\n",
             options.path, format_bytes(e.pool_bytes), to_string(e.index_place), ready, e.open_ms,
             e.threads);
  if (e.index_later_ms >= 0.1)
    fmt::print(
        "indexes that are left for later take about {:.0f} ms more; no query waits for them\n",
        e.index_later_ms);
  fmt::print("\n");
  TextTable table({"opening will find", "number"});
  const auto add = [&](const char* what, std::uint64_t number) {
    table.add({what, fmt::format("{}", number)});
  };
  add("tables", e.tables);
  add("chunks of rows, row groups", e.chunks);
  add("of these, row groups", e.groups);
  add("bytes of indexes in the pool", e.hint_bytes);
  add("dictionary entries to index", e.dictionary_entries);
  add("rows to sweep", e.rows_swept);
  add("entries of unique keys to make", e.hash_entries);
  add("entries of ordered keys to make", e.ordered_entries);
  add("rows to sweep later", e.rows_unswept);
  add("dictionary entries to index later", e.dictionary_entries_left);
  add("entries of unique keys to make later", e.key_entries_left);
  add("entries of ordered keys to make later", e.ordered_entries_left);
  fmt::print("{}", table.to_string());
  const bench::Json result = {{"commit", bench::environment().commit},
                              {"pool", options.path},
                              {"ready", ready},
                              {"index", to_string(e.index_place)},
                              {"pool_bytes", e.pool_bytes},
                              {"tables", e.tables},
                              {"chunks", e.chunks},
                              {"groups", e.groups},
                              {"hint_bytes", e.hint_bytes},
                              {"dictionary_entries", e.dictionary_entries},
                              {"dictionary_entries_left", e.dictionary_entries_left},
                              {"key_entries_left", e.key_entries_left},
                              {"ordered_entries_left", e.ordered_entries_left},
                              {"rows_swept", e.rows_swept},
                              {"rows_unswept", e.rows_unswept},
                              {"hash_entries", e.hash_entries},
                              {"ordered_entries", e.ordered_entries},
                              {"threads", e.threads},
                              {"open_ms", e.open_ms},
                              {"index_later_ms", e.index_later_ms},
                              {"machine", bench::to_json(bench::environment())}};
  return finish_with_json(json, result, kExitOk);
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* command =
      app.add_subcommand("estimate", "Estimates the work and the time of opening a pool");
  add_pool_argument(*command, options->open.path);
  add_ready_option(*command, options->ready);
  command
      ->add_option("--threads", options->open.tuning.recovery_threads,
                   "Threads that rebuild; 0: one per processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  add_json_option(*command, options->json);
  command->callback([options, &action] {
    action = [options] {
      if (options->ready == "indexes-built") options->open.ready = Ready::kIndexesBuilt;
      return run_estimate(options->open, options->json);
    };
  });
}

}  // namespace flugs::tools
