#include "tools/report/htap_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "bench/tpcc/ch_queries.h"
#include "tools/report/tpcc_report.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

using bench::Json;

/// A run of users and streams by those of each kind alone. Nothing where a kind did nothing.
struct Ratios {
  std::optional<double> transactions;
  std::optional<double> queries;
  std::optional<double> normalised_queries;
  std::optional<double> transaction_p99;
  std::optional<double> query_p99;
  std::optional<double> slowest;  ///< the query whose median grows most
  std::string slowest_name = "-";
};

template <typename Number>
std::optional<double> quotient(Number part, Number whole) {
  if (part <= 0 || whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

Ratios ratios_of(const HtapPoint& both, const HtapPoint& users, const HtapPoint& streams) {
  Ratios ratios;
  ratios.transactions = quotient(both.rate.transactions, users.rate.transactions);
  ratios.queries = quotient(both.rate.queries, streams.rate.queries);
  ratios.normalised_queries = quotient(both.normalised_queries, streams.normalised_queries);
  ratios.transaction_p99 = quotient(both.transaction_ns[1], users.transaction_ns[1]);
  ratios.query_p99 = quotient(both.query_p99_ns, streams.query_p99_ns);
  for (std::size_t i = 0; i < both.query_median_ns.size(); ++i) {
    const std::optional<double> slower =
        quotient(both.query_median_ns[i], streams.query_median_ns[i]);
    if (!slower || (ratios.slowest && *slower <= *ratios.slowest)) continue;
    ratios.slowest = slower;
    ratios.slowest_name = bench::ch_queries()[i].name;
  }
  return ratios;
}

/// Calls `visit` with each run of both kinds, and its ratios.
template <typename Visit>
void each_ratio(const HtapReport& report, const Visit& visit) {
  for (const HtapPoint& both : report.points) {
    const HtapPoint* const users = report.find(both.rate.users, 0);
    const HtapPoint* const streams = report.find(0, both.rate.streams);
    if (both.rate.users > 0 && both.rate.streams > 0 && users != nullptr && streams != nullptr)
      visit(both, ratios_of(both, *users, *streams));
  }
}

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

std::string or_hyphen(const std::optional<double>& number) {
  return number ? fmt::format("{:.2f}", *number) : "-";
}

Json transactions_json(const bench::TpccRunResult& run, std::uint32_t users) {
  if (users == 0) return nullptr;
  Json json = tpcc_run_json(run);
  json.erase("processor_ns_per_txn");  // the streams have their part of it
  return json;
}

Json queries_json(const bench::HtapRunResult& run) {
  const bench::Histogram all = run.queries.latency();
  Json latency = {{"all", bench::to_json(all)}};
  for (const bench::HtapQueries::OfQuery& query : run.queries.queries)
    latency[std::string(query.name)] = bench::to_json(query.latency);
  latency["equations"] = bench::to_json(run.queries.equations);
  return {{"executed", run.queries.executed()},
          {"equations_checked", run.queries.equations.count()},
          {"per_s", run.queries_per_second()},
          {"normalised_per_s", run.normalised_queries_per_second()},
          {"geometric_mean_of_medians_ms", or_null(run.queries.mean_ms())},
          {"latency_ns", std::move(latency)},
          {"steps_by_second", run.queries_by_second}};
}

Json freshness_json(const bench::Freshness& freshness) {
  return {{"queries", freshness.age.count()},
          {"not_fresh_share", freshness.not_fresh_share()},
          {"age_ns",
           {{"p50", freshness.age.percentile(0.5)},
            {"p95", freshness.age.percentile(0.95)},
            {"p99", freshness.age.percentile(0.99)},
            {"max", freshness.age.max()}}}};
}

Json frontier_json(const std::optional<bench::Frontier>& frontier) {
  if (!frontier) return nullptr;
  Json points = Json::array();
  for (const bench::Frontier::Point& point : frontier->points) points.push_back({point.x, point.y});
  return {{"transactions_alone_per_s", frontier->transactions_alone},
          {"queries_alone_per_s", frontier->queries_alone},
          {"points", std::move(points)},
          {"area", frontier->area}};
}

std::vector<std::string> numbers_of(const HtapPoint& point) {
  return {fmt::format("{}", point.rate.users), fmt::format("{}", point.rate.streams)};
}

std::string print_rates(const HtapReport& report) {
  TextTable table({"users", "streams", "transactions/s", "p50", "p99", "p99.9", "queries/s",
                   "normalised", "mean of medians", "growth"},
                  {});
  for (const HtapPoint& point : report.points) {
    std::vector<std::string> cells = numbers_of(point);
    cells.push_back(point.rate.users > 0 ? format_count(point.rate.transactions) : "-");
    for (const std::uint64_t ns : point.transaction_ns)
      cells.push_back(ns > 0 ? format_ns(ns) : "-");
    const bool has_queries = point.rate.streams > 0;
    cells.push_back(has_queries ? fmt::format("{:.1f}", point.rate.queries) : "-");
    cells.push_back(has_queries ? fmt::format("{:.1f}", point.normalised_queries) : "-");
    cells.push_back(point.query_mean_ms ? fmt::format("{:.2f} ms", *point.query_mean_ms) : "-");
    cells.push_back(fmt::format("{:.3f}", point.growth));
    table.add(std::move(cells));
  }
  return table.to_string();
}

std::string print_ages(const HtapReport& report) {
  TextTable table({"users", "streams", "age p50", "p95", "p99", "max", "not fresh", "lines a write",
                   "fences", "pool"},
                  {});
  for (const HtapPoint& point : report.points) {
    std::vector<std::string> cells = numbers_of(point);
    for (const std::uint64_t ns : point.age_ns)
      cells.push_back(point.has_ages ? format_ns(ns) : "-");
    cells.push_back(point.has_ages ? fmt::format("{:.2f} %", 100 * point.not_fresh_share) : "-");
    const bool has_users = point.rate.users > 0;
    cells.push_back(has_users ? fmt::format("{:.1f}", point.lines_per_write) : "-");
    cells.push_back(has_users ? fmt::format("{:.2f}", point.fences_per_write) : "-");
    cells.push_back(format_bytes(point.pool_bytes));
    table.add(std::move(cells));
  }
  return table.to_string();
}

std::string print_ratios(const HtapReport& report) {
  TextTable table({"users", "streams", "r_T", "r_A", "normalised", "p99 transactions",
                   "p99 queries", "slowest", "query"},
                  {8});
  each_ratio(report, [&table](const HtapPoint& point, const Ratios& ratios) {
    std::vector<std::string> cells = numbers_of(point);
    for (const std::optional<double>& number :
         {ratios.transactions, ratios.queries, ratios.normalised_queries, ratios.transaction_p99,
          ratios.query_p99, ratios.slowest})
      cells.push_back(or_hyphen(number));
    cells.push_back(ratios.slowest_name);
    table.add(std::move(cells));
  });
  return table.to_string();
}

}  // namespace

HtapPoint::HtapPoint(std::uint32_t number, const bench::HtapRunOptions& options,
                     const bench::HtapRunResult& run, const RunCounters& counters)
    : rate{options.transactions.users, options.streams,
           run.transactions.per_second(run.transactions.executed()), run.queries_per_second()},
      order(number),
      normalised_queries(run.normalised_queries_per_second()),
      transaction_ns{run.transactions.latency.percentile(0.5),
                     run.transactions.latency.percentile(0.99),
                     run.transactions.latency.percentile(0.999)},
      query_p99_ns(run.queries.latency().percentile(0.99)),
      query_mean_ms(run.queries.mean_ms()),
      has_ages(run.freshness.age.count() > 0),
      age_ns{run.freshness.age.percentile(0.5), run.freshness.age.percentile(0.95),
             run.freshness.age.percentile(0.99), run.freshness.age.max()},
      not_fresh_share(run.freshness.not_fresh_share()),
      growth(run.growth),
      lines_per_write(counters.per_write(&Statistics::lines_flushed)),
      fences_per_write(counters.per_write(&Statistics::fences)),
      pool_bytes(counters.after.pool_allocated_bytes) {
  for (const bench::HtapQueries::OfQuery& query : run.queries.queries)
    query_median_ns.push_back(query.latency.percentile(0.5));
  json = {{"users", rate.users}, {"streams", rate.streams}, {"order", order}};
  json["transactions"] = transactions_json(run.transactions, rate.users);
  json["queries"] = rate.streams > 0 ? queries_json(run) : Json();
  json["freshness"] = has_ages ? freshness_json(run.freshness) : Json();
  json["processor_ns"] = {{"user", run.transactions.loop.processor.user_ns},
                          {"system", run.transactions.loop.processor.system_ns}};
  json["growth"] = growth;
  json["pool_bytes"] = pool_bytes;
  json["pool_used_bytes"] = counters.after.pool_used_bytes;
  json["dram_index_bytes"] = counters.after.dram_index_bytes;
  json.update(counters.json(run.transactions.executed()));
  add_problems(run.problems());
}

void HtapPoint::add_problems(const std::vector<std::string>& more) {
  for (const std::string& problem : more)
    problems.push_back(
        fmt::format("{} users and {} streams: {}", rate.users, rate.streams, problem));
}

bool HtapReport::all_held() const {
  return std::all_of(points.begin(), points.end(),
                     [](const HtapPoint& point) { return point.problems.empty(); });
}

const HtapPoint* HtapReport::find(std::uint32_t users, std::uint32_t streams) const {
  const auto found = std::find_if(points.begin(), points.end(), [=](const HtapPoint& point) {
    return point.rate.users == users && point.rate.streams == streams;
  });
  return found == points.end() ? nullptr : &*found;
}

std::optional<bench::Frontier> HtapReport::frontier(bool is_normalised) const {
  std::vector<bench::RatePoint> rates;
  for (const HtapPoint& point : points) {
    rates.push_back(point.rate);
    if (is_normalised) rates.back().queries = point.normalised_queries;
  }
  return bench::make_frontier(rates);
}

Json HtapReport::json() const {
  Json all_points = Json::array();
  Json problems = Json::array();
  for (const HtapPoint& point : points) {
    all_points.push_back(point.json);
    all_points.back()["is_oversubscribed"] = is_oversubscribed(point.rate);
    for (const std::string& problem : point.problems) problems.push_back(problem);
  }
  Json ratios = Json::array();
  each_ratio(*this, [&ratios](const HtapPoint& point, const Ratios& of) {
    ratios.push_back({{"users", point.rate.users},
                      {"streams", point.rate.streams},
                      {"transactions", or_null(of.transactions)},
                      {"queries", or_null(of.queries)},
                      {"normalised_queries", or_null(of.normalised_queries)},
                      {"transaction_p99", or_null(of.transaction_p99)},
                      {"query_p99", or_null(of.query_p99)},
                      {"slowest_query", of.slowest_name},
                      {"slowest_query_median", or_null(of.slowest)}});
  });
  return {{"points", std::move(all_points)},
          {"ratios", std::move(ratios)},
          {"frontier", frontier_json(frontier(false))},
          {"frontier_normalised", frontier_json(frontier(true))},
          {"problems", std::move(problems)}};
}

void HtapReport::print() const {
  std::string crowded;
  for (const HtapPoint& point : points)
    if (is_oversubscribed(point.rate))
      crowded += fmt::format(" {}+{}", point.rate.users, point.rate.streams);
  fmt::print("{} processor{}; runs (users+streams) with more threads than processors:{}\n\n",
             processors, processors == 1 ? "" : "s", crowded.empty() ? " none" : crowded);
  fmt::print("{}\n{}\n{}", print_rates(*this), print_ages(*this), print_ratios(*this));
  fmt::print(
      "r_T, r_A: the share of throughput kept beside the other kind; p99: latency beside the other "
      "kind, divided by\nlatency alone; slowest: the query whose median grows most\n\n");
  const std::optional<bench::Frontier> raw = frontier(false);
  const std::optional<bench::Frontier> normalised = frontier(true);
  fmt::print(
      "frontier area             {}, normalised {}   (0.5: shared in proportion; 1: no "
      "interference)\n",
      or_hyphen(raw ? std::optional(raw->area) : std::nullopt),
      or_hyphen(normalised ? std::optional(normalised->area) : std::nullopt));
  fmt::print("freshness, equations{}: {}\n", checks_conditions ? ", conditions" : "",
             all_held() ? "all held" : "NOT HELD");
  for (const HtapPoint& point : points)
    for (const std::string& problem : point.problems) fmt::print(stderr, "flugs: {}\n", problem);
}

}  // namespace flugs::tools
