// The explorer as a product: its failures can be replayed, it explores random continuations, and it
// judges a user's workload by the user's own invariant.

#include "verify/crash/exploration/exploration.h"

#include <catch2/catch.hpp>

#include "verify/crash/exploration/workload.h"

namespace flugs::crash {
namespace {

TEST_CASE("the replay words of a failure reproduce exactly that failure", "[crash]") {
  const Mutation mutation{Mutation::Kind::kNoFlush, "commit/2", Region::kOther};
  Exploration exploration{
      .protocol = "insert", .round = 2, .tears_words = true, .at_flushes = true};
  const ExplorationResult found = explore(exploration, mutation);
  REQUIRE_FALSE(found.outcome.ok());
  INFO(found.replay);
  const Result<Exploration> again = read_replay(found.replay);
  REQUIRE(again.ok());
  CHECK(again->round == 2);
  CHECK(again->tears_words);
  CHECK(again->at_flushes);
  const ExplorationResult replayed = explore(*again, mutation);
  REQUIRE(replayed.report.failures.size() == 1);
  CHECK(replayed.report.failures[0].replay == found.report.failures[0].replay);
  CHECK(replayed.report.failures[0].status.message() == found.report.failures[0].status.message());
  CHECK(replayed.report.images_checked <= 2);
  CHECK(explore(*again).outcome.ok());  // without the mutation
}

TEST_CASE("a failure names the flushes that its lines had and lacked", "[crash]") {
  const auto words_of = [](const char* label, Mutation::Kind kind) {
    return explore({.protocol = "insert"}, {kind, label, Region::kOther}).outcome.to_string();
  };
  const std::string no_flush = words_of("commit/2", Mutation::Kind::kNoFlush);
  INFO(no_flush);
  CHECK(no_flush.find("(not flushed since commit/1)") != std::string::npos);
  const std::string no_fence = words_of("commit/2", Mutation::Kind::kNoFence);
  INFO(no_fence);
  CHECK(no_fence.find("(flushed by commit/2, no fence)") != std::string::npos);
}

TEST_CASE("a report of a missing flush names the flushes around it", "[crash]") {
  const ExplorationResult result = explore({.protocol = "slot_turns"});
  REQUIRE(result.outcome.ok());
  std::uint64_t stamps = 0;
  for (const auto& [site, lines] : result.unflushed) {
    INFO(site.holds << ", " << site.before << ", " << site.next << ": " << lines);
    // A committed row waits only for its stamps, which the slot's next commit flushes. An aborted
    // transaction's writes belong to no transaction.
    CHECK((site.holds == "row" || site.holds == "slot" || site.next == "-"));
    if (site == UnflushedSite{"row", "commit/1", "commit/4"}) stamps = lines;
  }
  CHECK(stamps > 0);
}

TEST_CASE("invalid replay words are refused", "[crash]") {
  for (const char* words : {"insert,round=x:1,2", "insert,rounds=1:1,2", "insert:1", "insert:1,2;3",
                            "insert,torn=1:a,2"}) {
    INFO(words);
    CHECK(read_replay(words).code() == StatusCode::kInvalidArgument);
  }
  CHECK(explore({.protocol = "no such"}).outcome.code() == StatusCode::kInvalidArgument);
}

TEST_CASE("rounds of a protocol differ, and are the same each time", "[crash]") {
  const auto explored = [](std::uint32_t round, std::uint64_t seed) {
    const ExplorationResult result =
        explore({.protocol = "update", .round = round, .seed = seed, .images_max = 400});
    INFO(result.outcome.to_string());
    CHECK(result.outcome.ok());
    return result.report;
  };
  const ExplorerReport first = explored(1, 1);
  const ExplorerReport same = explored(1, 1);
  const ExplorerReport other = explored(2, 1);
  CHECK(first.crash_points == same.crash_points);
  CHECK(first.images_skipped == same.images_skipped);
  CHECK((first.crash_points != other.crash_points || first.images_skipped != other.images_skipped ||
         first.lines_uncertain_max != other.lines_uncertain_max));
}

/// Two rows per step, in one transaction or, by mistake, in two.
class Pairs final : public CrashWorkload {
 public:
  explicit Pairs(bool is_atomic) : is_atomic_(is_atomic) {}

  std::uint64_t steps() const override { return 4; }
  Status set_up(Database& database) override {
    TableSchema pairs("pairs");
    pairs.column("id", Type::kInt64).primary_key({"id"});
    return database.create_table(pairs).status();
  }
  Status step(Database& database, std::uint64_t number) override {
    Result<Transaction> transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    if (Status s = insert(database, *transaction, number * 2); !s.ok()) return s;
    if (!is_atomic_) {
      if (Status s = transaction->commit(); !s.ok()) return s;
      transaction = database.begin();
      if (!transaction.ok()) return transaction.status();
    }
    if (Status s = insert(database, *transaction, number * 2 + 1); !s.ok()) return s;
    return transaction->commit();
  }
  Status check(Database& recovered, const CrashMoment& moment) override {
    std::uint64_t rows = 0;
    const Result<Transaction> reader = recovered.begin(AccessMode::kReadOnly);
    if (!reader.ok()) return reader.status();
    Status s = reader->scan(*recovered.find_table("pairs"), std::initializer_list<ColumnId>{},
                            [&](const ScanBatch& batch) {
                              rows += batch.row_count();
                              return true;
                            });
    if (!s.ok()) return s;
    const bool is_right = rows == moment.acknowledged * 2 ||
                          (moment.is_in_step && rows == moment.acknowledged * 2 + 2);
    return is_right ? Status() : Status(StatusCode::kCorrupt, "half a pair");
  }

 private:
  static Status insert(Database& database, Transaction& transaction, std::uint64_t id) {
    return transaction
        .insert(*database.find_table("pairs"), {Value::int64(static_cast<std::int64_t>(id))})
        .status();
  }
  bool is_atomic_;
};

TEST_CASE("a workload is judged by its own invariant", "[crash]") {
  const Exploration exploration{.protocol = "workload"};
  const auto explored = [&](bool is_atomic) {
    return explore_workload(
        exploration, [is_atomic](std::uint64_t) { return std::make_unique<Pairs>(is_atomic); }, {});
  };
  const ExplorationResult right = explored(true);
  INFO(right.outcome.to_string());
  CHECK(right.outcome.ok());
  CHECK(right.report.images_checked > 20);
  const ExplorationResult wrong = explored(false);
  CHECK_FALSE(wrong.outcome.ok());
  CHECK(wrong.outcome.message().find("half a pair") != std::string_view::npos);
  CHECK_FALSE(wrong.replay.empty());
}

}  // namespace
}  // namespace flugs::crash
