// Records random transactions of several threads, and checks that the history satisfies its level.
#include <catch2/catch.hpp>

#include "mvcc/clock.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"
#include "verify/isolation/sessions/history_run.h"

namespace flugs::test {
namespace {

using sessions::BrokenRule;
using sessions::HistoryPlan;
using sessions::HistoryWorkload;

HistoryPlan plan_in(const TemporaryPath& path) {
  HistoryPlan plan;
  path.string().copy(plan.pool_path, sizeof plan.pool_path - 1);
  plan.index_place = test_index_place();
  return plan;
}

isolation::Report run_and_check(const HistoryPlan& plan) {
  const sessions::HistoryRun run = must(sessions::run_history(plan));
  return must(isolation::check(run.history, {.level = plan.level, .reports_allowed = true}));
}

void expect_level(const HistoryPlan& plan) {
  INFO(isolation::to_string(plan.level));
  const isolation::Report report = run_and_check(plan);
  for (const std::string& words : report.words) UNSCOPED_INFO(words);
  CHECK(report.forbidden == 0);
  CHECK(report.operations >= plan.operations);
  CHECK(report.committed > report.transactions / 5);
  CHECK(report.aborted > 0);
  // The level must show some of the anomalies that it admits; else transactions hardly met each
  // other.
  std::uint64_t seen = 0;
  for (const auto& kind : report.by_kind) seen += kind.allowed;
  CHECK((seen > 0) == (plan.level != isolation::Level::kStrictSerializable));
}

constexpr isolation::Level kOfferedLevels[] = {isolation::Level::kReadCommitted,
                                               isolation::Level::kStrongSnapshot,
                                               isolation::Level::kStrictSerializable};

std::uint64_t found(const isolation::Report& report,
                    std::initializer_list<isolation::Anomaly> anomalies) {
  std::uint64_t sum = 0;
  for (const isolation::Anomaly anomaly : anomalies)
    sum += report.by_kind[static_cast<std::size_t>(anomaly)].forbidden;
  return sum;
}

}  // namespace

TEST_CASE("histories of users and merges satisfy their level", "[history]") {
  for (const isolation::Level level : kOfferedLevels) {
    const TemporaryPath path;
    HistoryPlan plan = plan_in(path);
    plan.level = level;
    plan.operations = 10'000 * kEffort;
    expect_level(plan);
  }
}

TEST_CASE("histories with the processors' clock satisfy their level", "[history]") {
  if (const Status usable = mvcc::Clock::check_processors(); !usable.ok()) {
    WARN(usable.message());
    return;
  }
  for (const isolation::Level level : kOfferedLevels) {
    const TemporaryPath path;
    HistoryPlan plan = plan_in(path);
    plan.level = level;
    plan.clock = CommitClock::kProcessors;
    plan.operations = 5'000 * kEffort;
    expect_level(plan);
  }
}

TEST_CASE("histories of single tables are snapshot isolated", "[history]") {
  for (const HistoryWorkload workload : {HistoryWorkload::kListAppend, HistoryWorkload::kRegister})
    for (const bool merges : {false, true}) {
      const TemporaryPath path;
      HistoryPlan plan = plan_in(path);
      plan.operations = 5'000 * kEffort;
      plan.workload = workload;
      plan.merges = merges;
      plan.tables = 1;
      plan.keys = 6;
      expect_level(plan);
    }
}

TEST_CASE("sessions of one thread give the same history each time", "[history]") {
  std::vector<isolation::History> histories;
  for (int i = 0; i < 2; ++i) {
    const TemporaryPath path;
    HistoryPlan plan = plan_in(path);
    plan.operations = 5'000;
    plan.users = 1;
    plan.sessions = 12;
    plan.merges = false;
    histories.push_back(must(sessions::run_history(plan)).history);
  }
  REQUIRE(histories[0].operations().size() == histories[1].operations().size());
  bool same = true;
  for (std::size_t i = 0; i < histories[0].operations().size(); ++i) {
    const isolation::Operation& a = histories[0].operations()[i];
    const isolation::Operation& b = histories[1].operations()[i];
    same = same && a.kind == b.kind && a.key == b.key && a.value == b.value &&
           a.element_count == b.element_count;
  }
  CHECK(same);
}

TEST_CASE("the checker finds each broken rule of visibility, under its name", "[history]") {
  using isolation::Anomaly;
  const auto broken = [](BrokenRule rule) {
    const TemporaryPath path;
    HistoryPlan plan = plan_in(path);
    plan.operations = 10'000;
    INFO(to_string(rule));
    isolation::Report report = must(sessions::check_broken_rule(plan, rule));
    CHECK(report.forbidden > 0);
    return report;
  };
  CHECK(found(broken(BrokenRule::kDirtyRead), {Anomaly::kG1a}) > 0);
  CHECK(found(broken(BrokenRule::kDirtyRead), {Anomaly::kG1b, Anomaly::kG1c}) > 0);
  CHECK(found(broken(BrokenRule::kMovingSnapshot),
              {Anomaly::kGSingle, Anomaly::kOtv, Anomaly::kPmp, Anomaly::kGNonadjacent}) > 0);
  CHECK(found(broken(BrokenRule::kIgnoredConflict), {Anomaly::kLostUpdate}) > 0);
  CHECK(found(broken(BrokenRule::kForgottenCommit), {Anomaly::kLost, Anomaly::kLostUpdate}) > 0);
  CHECK(broken(BrokenRule::kStaleSnapshot).forbidden > 0);
}

TEST_CASE("an old snapshot violates only the order in time", "[history]") {
  const TemporaryPath path;
  HistoryPlan plan = plan_in(path);
  plan.operations = 10'000;
  sessions::break_rule(plan, BrokenRule::kStaleSnapshot);
  const sessions::HistoryRun run = must(sessions::run_history(plan));
  using isolation::Level;
  CHECK(must(isolation::check(run.history, {.level = Level::kStrongSnapshot})).forbidden > 0);
  CHECK(must(isolation::check(run.history, {.level = Level::kSnapshot})).forbidden == 0);
}

TEST_CASE("the checker finds each broken rule of a level, and nothing else", "[history]") {
  for (const isolation::Level level : kOfferedLevels) {
    const auto forbidden = [&](BrokenRule rule) {
      const TemporaryPath path;
      HistoryPlan plan = plan_in(path);
      plan.operations = 6'000;
      plan.level = level;
      return must(sessions::check_broken_rule(plan, rule)).forbidden;
    };
    for (const BrokenRule rule : sessions::kBrokenRules) {
      INFO(isolation::to_string(level) << ": " << to_string(rule));
      if (needs_rule(level, rule)) CHECK(forbidden(rule) > 0);
    }
    CHECK(forbidden(BrokenRule::kNone) == 0);
  }
}

}  // namespace flugs::test
