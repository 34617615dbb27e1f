// Crash states of several threads that run one at a time.

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "test/verify/crash/explore.h"
#include "verify/crash/exploration/mutations.h"
#include "verify/crash/rig/schedule.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of concurrent commits loses or tears a transaction", "[crash]") {
  must_hold({.protocol = "threads_commit"});
  must_hold({.protocol = "threads_commit", .round = 2, .nested_depth = 2});
  must_hold({.protocol = "threads_slots"});
  must_hold({.protocol = "threads_slots", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of values, keys and chunks that threads share loses one", "[crash]") {
  must_hold({.protocol = "threads_values"});
  must_hold({.protocol = "threads_values", .round = 3, .tears_words = true});
  must_hold({.protocol = "threads_growth"});
  must_hold({.protocol = "threads_growth", .round = 2});
}

TEST_CASE("no crash state of tables that come and go beside commits loses a transaction",
          "[crash]") {
  must_hold({.protocol = "threads_tables"});
  must_hold({.protocol = "threads_tables", .round = 3});
}

/// Mutations that one thread cannot notice: it learns of its own steps only when all is durable.
constexpr MutationCase kOnlyThreads[] = {
    {Mutation::Kind::kLateFence, "commit/2", "threads_commit"},
    {Mutation::Kind::kLateFence, "create_table/2", "threads_tables"},
    {Mutation::Kind::kOthersFlush, "commit/1", "threads_values", Region::kDictionary},
};
constexpr std::string_view kOneThread[] = {"insert", "create_drop_table", "shared_values"};

TEST_CASE("only threads find stores that others see or use before they are durable", "[crash]") {
  for (std::size_t i = 0; i < std::size(kOnlyThreads); ++i) {
    const MutationCase& mutation = kOnlyThreads[i];
    const Result<MutationResult> found = judge(mutation, 1);
    INFO(to_string(mutation));
    REQUIRE(found.ok());
    CHECK(found->verdict == MutationVerdict::kCaught);
    const ExplorationResult alone =
        explore({.protocol = std::string(kOneThread[i])},
                {mutation.kind, std::string(mutation.label), mutation.region});
    INFO(alone.outcome.to_string());
    CHECK(alone.outcome.ok());
  }
}

TEST_CASE("the replay words of a failure reproduce the schedule, too", "[crash]") {
  const Mutation mutation{Mutation::Kind::kLateFence, "commit/2", Region::kOther};
  const ExplorationResult found =
      explore({.protocol = "threads_commit", .images_max = 20000}, mutation);
  REQUIRE_FALSE(found.outcome.ok());
  INFO(found.replay);
  REQUIRE(found.replay.find(",schedule=") != std::string::npos);
  const Result<Exploration> again = read_replay(found.replay);
  REQUIRE(again.ok());
  const ExplorationResult replayed = explore(*again, mutation);
  REQUIRE(replayed.report.failures.size() == found.report.failures.size());
  CHECK(replayed.report.images_checked <= 2);
  CHECK(replayed.report.failures[0].replay == found.report.failures[0].replay);
  CHECK(replayed.report.failures[0].status.message() == found.report.failures[0].status.message());
  CHECK(explore(*again).outcome.ok());  // without the mutation
}

TEST_CASE("the same schedules give the same states, whatever ran before", "[crash]") {
  const Exploration exploration{.protocol = "threads_growth", .round = 2, .images_max = 600};
  const ExplorationResult first = explore(exploration);
  CHECK(explore({.protocol = "threads_slots", .images_max = 300}).outcome.ok());
  const ExplorationResult second = explore(exploration);
  CHECK(first.outcome.ok());
  CHECK(first.report.crash_points == second.report.crash_points);
  CHECK(first.report.images_checked == second.report.images_checked);
  CHECK(first.report.digest == second.report.digest);
  CHECK(first.report.images_skipped == second.report.images_skipped);
  CHECK(first.report.lines_uncertain_max == second.report.lines_uncertain_max);
}

TEST_CASE("a schedule survives its text form, and invalid ones are refused", "[crash]") {
  for (const Schedule& schedule : {Schedule{}, Schedule{{3, 1}}, Schedule{{3, 1}, {40, 0}}}) {
    const Result<Schedule> again = read_schedule(to_string(schedule));
    REQUIRE(again.ok());
    CHECK(*again == schedule);
  }
  for (const char* words : {"", "3", "3>", ">1", "3>1.", "3>1.3>2", "4>1.3>1", "3>x"}) {
    INFO(words);
    CHECK(read_schedule(words).code() == StatusCode::kInvalidArgument);
  }
  CHECK(read_replay("threads_commit,schedule=3:1,2").code() == StatusCode::kInvalidArgument);
}

TEST_CASE("schedules with one switch are all different, and go to another thread", "[crash]") {
  const TurnOwners turns = {{0, false}, {0, true}, {1, true}, {1, false}, {2, false}};
  std::vector<Schedule> seen;
  for (std::uint64_t i = 0; i < turns.size() * 2; ++i) {
    const Schedule schedule = one_switch(i, turns, 3);
    REQUIRE(schedule.size() == 1);
    CHECK(schedule[0].thread != turns[schedule[0].point].thread);
    CHECK(turns[schedule[0].point].is_flush == (i >= 6));
    CHECK(std::find(seen.begin(), seen.end(), schedule) == seen.end());
    seen.push_back(schedule);
  }
}

}  // namespace
}  // namespace flugs::crash
