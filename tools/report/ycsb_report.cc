#include "tools/report/ycsb_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tools/support/latency_text.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

double per_operation(const bench::YcsbRunResult& run, std::uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(run.executed(), 1));
}

void add_operations(TextTable& table, const bench::YcsbRunResult& run, std::string name,
                    const bench::YcsbTypeResult& type) {
  std::vector<std::string> cells = {std::move(name),
                                    format_count(static_cast<double>(type.executed)),
                                    format_count(run.per_second(type.executed))};
  for (const double fraction : {0.5, 0.9, 0.99, 0.999, 1.0})
    cells.push_back(format_percentile(type.latency, fraction));
  cells.push_back(format_count(static_cast<double>(type.retries)));
  table.add(std::move(cells));
}

}  // namespace

bench::Json ycsb_run_json(const bench::YcsbRunResult& run) {
  bench::Json latency = {{"all", bench::to_json(run.latency)}};
  bench::Json types = bench::Json::object();
  for (std::size_t i = 0; i < bench::kYcsbTypes; ++i) {
    const bench::YcsbTypeResult& type = run.types[i];
    if (type.executed == 0) continue;
    const std::string name(bench::kYcsbTypeNames[i]);
    latency[name] = bench::to_json(type.latency);
    types[name] = {{"executed", type.executed},
                   {"per_s", run.per_second(type.executed)},
                   {"retries", type.retries},
                   {"rows", type.rows}};
  }
  bench::Json json;
  json["seconds"] = run.loop.seconds;
  json["executed_tps"] = run.per_second(run.executed());
  json["rows_read_per_s"] = run.per_second(run.rows_read());
  json["inserted"] = run.inserted;
  json["latency_clock"] = bench::Ticks::instance().name();
  json["latency_ns"] = std::move(latency);
  json["operations"] = std::move(types);
  json["retries"] = run.retries();
  json["tps_by_second"] = run.loop.steps_by_second;
  json["processor_ns_per_txn"] = {{"user", per_operation(run, run.loop.processor.user_ns)},
                                  {"system", per_operation(run, run.loop.processor.system_ns)}};
  return json;
}

bench::Json ycsb_invariants_json(const bench::YcsbReport& report) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < bench::kYcsbInvariantNames.size(); ++i) {
    const std::string name(bench::kYcsbInvariantNames[i]);
    const bench::Check state = report.state(static_cast<bench::YcsbInvariant>(i));
    if (state == bench::Check::kNotChecked)
      json[name] = "not checked";
    else
      json[name] = state == bench::Check::kHeld;
  }
  return json;
}

void print_ycsb_run(const bench::YcsbRunResult& run) {
  TextTable table(
      {"operation", "executed", "per second", "p50", "p90", "p99", "p99.9", "max", "retries"});
  bench::YcsbTypeResult all;
  all.latency = run.latency;
  for (std::size_t i = 0; i < bench::kYcsbTypes; ++i) {
    const bench::YcsbTypeResult& type = run.types[i];
    if (type.executed > 0) add_operations(table, run, std::string(bench::kYcsbTypeNames[i]), type);
    all.executed += type.executed;
    all.retries += type.retries;
  }
  add_operations(table, run, "all", all);
  fmt::print(
      "{}each operation is a transaction; latency from begin to the return of commit, retries "
      "after conflicts included; clock: {}\n\n",
      table.to_string(), bench::Ticks::instance().name());
  fmt::print("operations per second     {}   rows read per second {}   {} rows inserted\n",
             format_count(run.per_second(run.executed())),
             format_count(run.per_second(run.rows_read())), run.inserted);
  std::string curve;
  for (const double tps : run.loop.steps_by_second) curve += " " + format_count(tps);
  if (!curve.empty()) fmt::print("second by second         {}\n", curve);
  fmt::print(
      "processor an operation    {} by itself, {} in the kernel\n",
      format_ns(static_cast<std::uint64_t>(per_operation(run, run.loop.processor.user_ns))),
      format_ns(static_cast<std::uint64_t>(per_operation(run, run.loop.processor.system_ns))));
}

void print_ycsb_invariants(const bench::YcsbReport& report) {
  std::string text;
  for (std::size_t i = 0; i < bench::kYcsbInvariantNames.size(); ++i) {
    const bench::Check state = report.state(static_cast<bench::YcsbInvariant>(i));
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", bench::kYcsbInvariantNames[i],
                        state == bench::Check::kHeld     ? "held"
                        : state == bench::Check::kBroken ? "BROKEN"
                                                         : "not checked");
  }
  fmt::print("invariants: {}\n", text);
  for (const std::string& problem : report.problems()) fmt::print(stderr, "flugs: {}\n", problem);
}

}  // namespace flugs::tools
