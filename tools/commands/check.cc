#include <fmt/format.h>

#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "flugs/pool_check.h"
#include "tools/support/command.h"
#include "tools/support/progress_bar.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct CheckOptions {
  std::string pool;
  bool verbose = false;
  std::string json;
};

const char* state_of(const CheckedPart& part) {
  if (part.damages == 0) return "unharmed";
  return part.is_complete ? "damaged" : "damaged, rest not checked";
}

const char* name_of(PoolFinding::Kind kind) {
  return kind == PoolFinding::Kind::kDamage ? "damage" : "remark";
}

bench::Json report_json(const std::string& pool, const PoolCheckReport& report) {
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", pool},
                      {"clean", report.is_clean()},
                      {"damages", report.damages},
                      {"remarks", report.remarks},
                      {"pool_bytes", report.pool_bytes},
                      {"used_bytes", report.used_bytes},
                      {"free_bytes", report.free_bytes},
                      {"overhead_bytes", report.overhead_bytes}};
  json["parts"] = bench::Json::array();
  for (const CheckedPart& part : report.parts)
    json["parts"].push_back({{"name", part.name},
                             {"items", part.items},
                             {"damages", part.damages},
                             {"complete", part.is_complete}});
  json["findings"] = bench::Json::array();
  for (const PoolFinding& finding : report.findings)
    json["findings"].push_back(
        {{"kind", name_of(finding.kind)}, {"part", finding.part}, {"message", finding.message}});
  return json;
}

/// All parts, or those that need attention.
void print_parts(const PoolCheckReport& report, bool all) {
  TextTable table({"part", "looked at", "damages", "state"}, {0, 3});
  std::size_t listed = 0;
  for (const CheckedPart& part : report.parts) {
    if (!all && part.damages == 0 && part.is_complete) continue;
    ++listed;
    table.add({part.name, fmt::format("{}", part.items), fmt::format("{}", part.damages),
               state_of(part)});
  }
  if (listed != 0) fmt::print("\n{}", table.to_string());
}

void print_report(const PoolCheckReport& report, bool verbose) {
  std::uint64_t items = 0;
  for (const CheckedPart& part : report.parts) items += part.items;
  fmt::print("{}: {} damage{}, {} remark{}; {} items in {} parts looked at\n",
             report.is_clean() ? "clean" : "DAMAGED", report.damages,
             report.damages == 1 ? "" : "s", report.remarks, report.remarks == 1 ? "" : "s", items,
             report.parts.size());
  fmt::print("{} in use, {} free\n", format_bytes(report.used_bytes),
             format_bytes(report.free_bytes));
  if (!report.findings.empty()) fmt::print("\n");
  for (const PoolFinding& finding : report.findings)
    fmt::print("{}: {}: {}\n", name_of(finding.kind), finding.part, finding.message);
  print_parts(report, verbose);
  if (!verbose) fmt::print("\n-v lists every part\n");
}

int run_check(const CheckOptions& options) {
  ProgressBar bar;
  PoolCheckOptions check;
  check.path = options.pool;
  check.progress = [&bar](const Progress& p) { bar.update(p.phase, p.done, p.total); };
  const Result<PoolCheckReport> report = check_pool(check);
  bar.clear();
  if (!report.ok()) return could_not_run(report.status());
  print_report(*report, options.verbose);
  return finish_with_json(options.json, report_json(options.pool, *report),
                          report->is_clean() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Audits all of a pool, even one that does not open; changes nothing");
  add_pool_argument(*command, options->pool);
  add_verbose_flag(*command, options->verbose);
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_check(*options); }; });
}

}  // namespace flugs::tools
