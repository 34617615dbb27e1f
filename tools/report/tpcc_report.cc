#include "tools/report/tpcc_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/support/latency_text.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

double per_executed(const bench::TpccRunResult& run, std::uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(run.executed(), 1));
}

std::uint64_t new_orders(const bench::TpccRunResult& run) {
  return run.types[bench::index_of(bench::TpccType::kNewOrder)].executed;
}

}  // namespace

bench::Json tpcc_run_json(const bench::TpccRunResult& run) {
  bench::Json latency = {{"all", bench::to_json(run.latency)}};
  bench::Json types = bench::Json::object();
  for (std::size_t i = 0; i < bench::kTpccTypes; ++i) {
    const std::string name(bench::kTpccTypeNames[i]);
    const bench::TpccTypeResult& type = run.types[i];
    latency[name] = bench::to_json(type.latency);
    types[name] = {{"executed", type.executed},
                   {"tps", run.per_second(type.executed)},
                   {"rolled_back", type.rolled_back},
                   {"retries", type.retries}};
  }
  bench::Json json;
  json["seconds"] = run.loop.seconds;
  json["executed_tps"] = run.per_second(run.executed());
  json["new_orders_per_minute"] = 60 * run.per_second(new_orders(run));
  json["latency_clock"] = bench::Ticks::instance().name();
  json["latency_ns"] = std::move(latency);
  json["transactions"] = std::move(types);
  json["retries"] = run.retries();
  json["skipped_deliveries"] = run.skipped_deliveries;
  json["tps_by_second"] = run.loop.steps_by_second;
  json["processor_ns_per_txn"] = {{"user", per_executed(run, run.loop.processor.user_ns)},
                                  {"system", per_executed(run, run.loop.processor.system_ns)}};
  return json;
}

bench::Json tpcc_conditions_json(const bench::TpccReport& report) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < bench::kTpccConditionNames.size(); ++i) {
    const std::string name(bench::kTpccConditionNames[i]);
    const bench::Check state = report.state(static_cast<bench::TpccCondition>(i));
    if (state == bench::Check::kNotChecked)
      json[name] = "not checked";
    else
      json[name] = state == bench::Check::kHeld;
  }
  return json;
}

void print_tpcc_run(const bench::TpccRunResult& run) {
  TextTable table(
      {"transaction", "executed", "per second", "p50", "p90", "p99", "p99.9", "max", "retries"});
  const auto add = [&](std::string name, std::uint64_t executed, const bench::Histogram& latency,
                       std::uint64_t retries) {
    std::vector<std::string> cells = {std::move(name), format_count(static_cast<double>(executed)),
                                      format_count(run.per_second(executed))};
    for (const double fraction : {0.5, 0.9, 0.99, 0.999, 1.0})
      cells.push_back(format_percentile(latency, fraction));
    cells.push_back(format_count(static_cast<double>(retries)));
    table.add(std::move(cells));
  };
  for (std::size_t i = 0; i < bench::kTpccTypes; ++i)
    if (run.types[i].executed > 0)
      add(std::string(bench::kTpccTypeNames[i]), run.types[i].executed, run.types[i].latency,
          run.types[i].retries);
  add("all", run.executed(), run.latency, run.retries());
  fmt::print(
      "{}latency from begin to the return of commit, retries after conflicts included; "
      "clock: {}\n\n",
      table.to_string(), bench::Ticks::instance().name());
  fmt::print("transactions per second   {}   New-Orders per minute {}   {} rolled back\n",
             format_count(run.per_second(run.executed())),
             format_count(60 * run.per_second(new_orders(run))),
             run.types[bench::index_of(bench::TpccType::kNewOrder)].rolled_back);
  std::string curve;
  for (const double tps : run.loop.steps_by_second) curve += " " + format_count(tps);
  if (!curve.empty()) fmt::print("second by second         {}\n", curve);
  fmt::print(
      "processor a transaction   {} by itself, {} in the kernel\n",
      format_ns(static_cast<std::uint64_t>(per_executed(run, run.loop.processor.user_ns))),
      format_ns(static_cast<std::uint64_t>(per_executed(run, run.loop.processor.system_ns))));
  if (run.skipped_deliveries != 0)
    fmt::print("districts without an order to deliver {}\n", run.skipped_deliveries);
}

void print_tpcc_conditions(const bench::TpccReport& report) {
  fmt::print("conditions: {}\n", report.describe());
  for (const std::string& problem : report.problems()) fmt::print(stderr, "flugs: {}\n", problem);
}

}  // namespace flugs::tools
