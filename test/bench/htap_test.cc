// The frontier and the judging of freshness, on numbers made by hand; small mixed runs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/htap/freshness.h"
#include "bench/htap/frontier.h"
#include "bench/htap/htap_run.h"
#include "bench/support/clock.h"
#include "bench/tpcc/ch_run.h"
#include "bench/tpcc/tpcc_client.h"
#include "test/bench/tiny_tpcc.h"

namespace flugs::test {

namespace {

using bench::CommitLog;
using bench::Frontier;
using bench::RatePoint;

const RatePoint kUsersAlone{2, 0, 1000, 0};
const RatePoint kStreamsAlone{0, 2, 0, 50};

double area_of(std::vector<RatePoint> mixed) {
  mixed.push_back(kUsersAlone);
  mixed.push_back(kStreamsAlone);
  const std::optional<Frontier> frontier = bench::make_frontier(mixed);
  REQUIRE(frontier.has_value());
  return frontier->area;
}

/// Commits that returned at these times, and had begun 20 ns before.
CommitLog log_of(const std::vector<std::uint64_t>& returned) {
  CommitLog log;
  for (const std::uint64_t ns : returned) log.push_back({ns - 20, ns});
  return log;
}

/// What is told of the numbers that one stream saw in its queries.
std::vector<std::string> problems_of(const std::vector<std::vector<std::uint64_t>>& seen,
                                     const std::vector<CommitLog>& commits) {
  bench::SightLog sights(commits.size());
  for (const std::vector<std::uint64_t>& numbers : seen) sights.add(1000, true, numbers);
  bench::Freshness freshness;
  bench::judge_sights(sights, commits, 3, freshness);
  return freshness.problems;
}

bench::ChPeriod all_dates(const TinyTpcc& tpcc) {
  return {tpcc.options.first_entry_us - 1, tpcc.options.first_entry_us * 2};
}

bench::HtapRunResult run(TinyTpcc& tpcc, std::uint32_t users, std::uint32_t streams) {
  const KeyId freshness = must(bench::create_freshness_table(*tpcc.database, users));
  bench::HtapRunOptions options;
  options.transactions.population = tpcc.options;
  options.transactions.users = users;
  options.transactions.loop.seconds = 0.3;
  options.streams = streams;
  options.period = all_dates(tpcc);
  return must(bench::run_htap(*tpcc.database, tpcc.tables, freshness, options));
}

}  // namespace

TEST_CASE("the frontier of proportional sharing has half of the box", "[htap]") {
  CHECK(area_of({}) == Approx(0.5));
  CHECK(area_of({{1, 1, 500, 25}}) == Approx(0.5));
  CHECK(area_of({{1, 1, 250, 37.5}, {2, 1, 750, 12.5}}) == Approx(0.5));
}

TEST_CASE("the frontier is the box without interference, and below the line with more", "[htap]") {
  CHECK(area_of({{2, 2, 1000, 50}}) == Approx(1));
  CHECK(area_of({{2, 2, 1100, 60}}) == Approx(1));
  CHECK(area_of({{1, 1, 500, 50}}) == Approx(0.75));
  CHECK(area_of({{1, 1, 100, 5}}) == Approx(0.1));
  CHECK(area_of({{1, 1, 0, 0}}) == Approx(0));
}

TEST_CASE("a run to which another is superior is not on the frontier", "[htap]") {
  const RatePoint better{1, 1, 600, 30};
  const double alone = area_of({better});
  CHECK(area_of({{2, 2, 500, 20}, better}) == alone);
  CHECK(area_of({better, {2, 1, 600, 10}, better}) == alone);
  const std::vector<RatePoint> runs = {{1, 2, 300, 40}, better,         {2, 2, 500, 20},
                                       kUsersAlone,     {1, 0, 700, 0}, kStreamsAlone};
  const std::optional<Frontier> frontier = bench::make_frontier(runs);
  REQUIRE(frontier.has_value());
  CHECK(frontier->transactions_alone == 1000);
  CHECK(frontier->queries_alone == 50);
  REQUIRE(frontier->points.size() == 4);
  CHECK(frontier->points[0].y == 1);
  CHECK(frontier->points[1].x == Approx(0.3));
  CHECK(frontier->points[1].y == Approx(0.8));
  CHECK(frontier->points[2].x == Approx(0.6));
  CHECK(frontier->points[2].y == Approx(0.6));
  CHECK(frontier->points[3].x == 1);
  CHECK(frontier->area == Approx(0.3 * 0.9 + 0.3 * 0.7 + 0.4 * 0.3));
}

TEST_CASE("without runs of one kind alone there is no frontier", "[htap]") {
  CHECK_FALSE(bench::make_frontier({}).has_value());
  CHECK_FALSE(bench::make_frontier(std::vector<RatePoint>{kUsersAlone}).has_value());
  CHECK_FALSE(bench::make_frontier(std::vector<RatePoint>{kStreamsAlone, {1, 1, 5, 5}}));
  CHECK_FALSE(bench::make_frontier(std::vector<RatePoint>{kStreamsAlone, {1, 0, 0, 0}}));
}

TEST_CASE("the age of a query is that of the oldest commit which it does not see", "[htap]") {
  const std::vector<CommitLog> commits = {log_of({100, 200, 300}), log_of({150, 290})};
  const auto age = [&](std::uint64_t start_ns, std::vector<std::uint64_t> numbers) {
    return bench::age_ns(commits, start_ns, numbers);
  };
  CHECK(age(400, {3, 2}) == 0);
  CHECK(age(400, {2, 2}) == 100);
  CHECK(age(400, {2, 1}) == 110);
  CHECK(age(400, {0, 2}) == 300);
  CHECK(age(250, {2, 1}) == 0);  // what committed later may be missing
  CHECK(age(200, {1, 1}) == 0);  // it had not returned before the query started
  CHECK(age(400, {9, 2}) == 0);
}

TEST_CASE("numbers that no order of commits explains are problems", "[htap]") {
  const std::vector<CommitLog> commits = {log_of({100, 200, 300}), log_of({150, 290})};
  CHECK(problems_of({{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}}, commits).empty());
  // 290 and 300 overlap: either may be the first.
  CHECK(problems_of({{3, 1}}, commits).empty());
  const std::vector<std::string> decreased = problems_of({{2, 1}, {1, 1}, {2, 1}}, commits);
  REQUIRE(decreased.size() == 1);
  CHECK(decreased[0] ==
        "freshness: stream 3 saw a number decrease, 1 times; first query 1, number "
        "1 of user 0");
  const std::vector<std::string> unknown = problems_of({{3, 2}, {3, 3}}, commits);
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].find("never committed") != std::string::npos);
  const std::vector<std::string> gaps = problems_of({{0, 1}, {1, 2}}, commits);
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].find("2 times; first query 0, number 1 of user 0") != std::string::npos);
}

TEST_CASE("users and streams run together, and what queries see is judged", "[htap]") {
  TinyTpcc tpcc;
  const bench::HtapRunResult result = run(tpcc, 2, 1);
  CHECK(result.problems().empty());
  CHECK(result.transactions.executed() > 0);
  CHECK(result.freshness.age.count() ==
        result.queries.executed() + result.queries.equations.count());
  CHECK(result.freshness.not_fresh == 0);
  CHECK(result.growth >= 1);
  CHECK(result.normalised_queries_per_second() >= result.queries_per_second());
}

TEST_CASE("each kind runs alone", "[htap]") {
  TinyTpcc tpcc;
  SECTION("users") {
    const bench::HtapRunResult result = run(tpcc, 1, 0);
    CHECK(result.problems().empty());
    CHECK(result.transactions.executed() > 0);
    CHECK(result.queries.executed() == 0);
    CHECK_FALSE(result.queries.mean_ms().has_value());
  }
  SECTION("streams") {
    const bench::HtapRunResult result = run(tpcc, 0, 1);
    CHECK(result.problems().empty());
    CHECK(result.transactions.executed() == 0);
    CHECK(result.queries.executed() > 0);
    CHECK(result.freshness.age.count() == 0);
    CHECK(result.growth == 1);
  }
}

TEST_CASE("a mark is part of transactions that write, and of no other", "[htap]") {
  TinyTpcc tpcc;
  const KeyId key = must(bench::create_freshness_table(*tpcc.database, 1));
  bench::FreshnessMark mark = must(bench::FreshnessMark::make(*tpcc.database, key, 0, 10));
  const auto client = must(bench::TpccClient::make(*tpcc.database, tpcc.tables));
  client->set_mark(&mark);
  bench::TpccGenerator generator(tpcc.options, bench::TpccMix::kFull, bench::TpccConstants(1), 1);
  generator.set_home(1, 1);
  const auto reader = must(bench::FreshnessReader::make(*tpcc.database, key));
  const Transaction before = must(tpcc.database->begin(AccessMode::kReadOnly));
  std::uint64_t writes = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    bench::TpccRequest request;
    generator.next(request);
    request.time_us = tpcc.options.first_entry_us + static_cast<std::int64_t>(i);
    bench::TpccReceipt receipt;
    const bench::TpccOutcome outcome = must(client->run(request, receipt));
    writes += bench::writes(request.type) && outcome == bench::TpccOutcome::kDone ? 1 : 0;
  }
  CHECK(mark.log().size() == writes);
  const std::vector<CommitLog> commits = {mark.log()};
  const std::uint64_t now_ns = bench::monotonic_ns();
  std::uint64_t number = 7;
  must(reader.read(before, std::span(&number, 1)));
  CHECK(number == 0);
  CHECK(bench::age_ns(commits, now_ns, std::span(&number, 1)) ==
        now_ns - mark.log().front().returned_ns);
  const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
  must(reader.read(snapshot, std::span(&number, 1)));
  CHECK(number == writes);
  CHECK(bench::age_ns(commits, now_ns, std::span(&number, 1)) == 0);
  CHECK(std::is_sorted(mark.log().begin(), mark.log().end(),
                       [](const auto& a, const auto& b) { return a.returned_ns < b.begun_ns; }));
}

TEST_CASE("an equation that does not hold is told with its numbers", "[htap]") {
  TinyTpcc tpcc;
  const bench::ChEquations equations(all_dates(tpcc));
  REQUIRE(equations.size() == 7);
  const auto failing = [&] {
    std::vector<std::string> found;
    const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
    for (std::size_t i = 0; i < equations.size(); ++i) {
      std::string problem = must(equations.check(i, snapshot, {}));
      if (!problem.empty()) found.push_back(std::move(problem));
    }
    return found;
  };
  CHECK(failing().empty());
  Transaction t = must(tpcc.database->begin());
  must(t.add(tpcc.tables.warehouse_key, {Value::int32(1)}, bench::TpccColumns::kWarehouseYtd,
             Value::decimal_units(1)));
  must(t.commit());
  const std::vector<std::string> found = failing();
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("paid: w_ytd = d_ytd = h_amount: ") == 0);
}

}  // namespace flugs::test
