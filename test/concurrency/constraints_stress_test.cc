// Constraints are added and dropped while other threads write what breaks them, merge and rename. A
// constraint that the schema has holds in every snapshot that begins later. A call that fails
// leaves nothing behind.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "flugs/expression.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kPlayers = 150;
constexpr std::int64_t kTeams = 20;
constexpr int kRoundsOfCalls = 12 * kEffort;
constexpr ColumnId kScore(1);
constexpr ColumnId kTeam(2);

/// Players with a score that is mostly positive, and a team that mostly exists; teams with a
/// captain who mostly exists. Nothing keeps them so but the constraints that come and go.
struct League {
  TemporaryDatabase database;
  TableId players;
  TableId teams;
  std::atomic<std::uint64_t> refused{0};

  League() {
    TableSchema of_players("players");
    of_players.column("id", Type::kInt64).column("score", Type::kInt64);
    of_players.column("team", Type::kInt64).column("note", Type::kString).primary_key({"id"});
    players = must(database->create_table(of_players));
    TableSchema of_teams("teams");
    of_teams.column("id", Type::kInt64).column("captain", Type::kInt64).primary_key({"id"});
    teams = must(database->create_table(of_teams));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kTeams; ++id) must(t.insert(teams, {id, Value::null()}));
    for (std::int64_t id = 0; id < kPlayers; ++id)
      must(t.insert(players, {id, std::int64_t{1}, id % kTeams, "first"}));
    must(t.commit());
  }

  // ------------------------------------------------------------------------------------- writers

  /// `is_wild`: writes now and then what breaks a constraint.
  static Value score(Random& random, bool is_wild) {
    if (is_wild && random.below(60) == 0) return Value::null();
    if (is_wild && random.below(60) == 0) return Value::int64(-1);
    return Value::int64(static_cast<std::int64_t>(random.below(100)));
  }
  static Value team(Random& random, bool is_wild) {
    if (random.below(10) == 0) return Value::null();
    const std::uint64_t end = is_wild && random.below(60) == 0 ? kTeams + 5 : kTeams;
    return Value::int64(static_cast<std::int64_t>(random.below(end)));
  }
  Status change_player(Transaction& t, std::int64_t id, Random& random, bool is_wild) const {
    const Result<Row> row = t.get({players, 0}, {id});
    if (!row.ok() && row.code() != StatusCode::kNotFound) return row.status();
    if (!row.ok())
      return t.insert(players, {id, score(random, is_wild), team(random, is_wild), "again"})
          .status();
    switch (random.below(6)) {
      case 0:
        return t.remove(players, row->id());
      case 1:
        return t.update(players, row->id(), {{kTeam, team(random, is_wild)}}).status();
      case 2:
        return t.update(players, row->id(), {{ColumnId(3), Value::string("other")}}).status();
      default:
        return t.update(players, row->id(), {{kScore, score(random, is_wild)}}).status();
    }
  }
  Status change_team(Transaction& t, std::int64_t id, Random& random, bool is_wild) const {
    const Value captain = Value::int64(static_cast<std::int64_t>(random.below(kPlayers)));
    const Result<Row> row = t.get({teams, 0}, {id});
    if (!row.ok() && row.code() != StatusCode::kNotFound) return row.status();
    if (!row.ok()) return t.insert(teams, {id, Value::null()}).status();
    if (is_wild && random.below(4) == 0) return t.remove(teams, row->id());
    const bool has_captain = t.get({players, 0}, {captain}).ok();
    return t.update(teams, row->id(), {{ColumnId(1), has_captain ? captain : Value::null()}})
        .status();
  }
  void write(std::uint64_t seed, const std::atomic<bool>& stops, Complaint& complaint) {
    Random random(seed);
    while (!stops && !complaint.failed()) {
      const bool is_wild = random.below(3) == 0;
      Result<Transaction> t =
          database->begin(AccessMode::kReadWrite, static_cast<Isolation>(random.below(3)));
      if (!complaint.expect(t.ok(), t.status().to_string())) return;
      Status s;
      for (std::uint64_t left = 1 + random.below(5); left > 0 && s.ok(); --left) {
        s = random.below(4) == 0
                ? change_team(*t, static_cast<std::int64_t>(random.below(kTeams)), random, is_wild)
                : change_player(*t, static_cast<std::int64_t>(random.below(kPlayers)), random,
                                is_wild);
        if (s.code() == StatusCode::kConstraintViolated) refused.fetch_add(1);
        if (s.code() == StatusCode::kConstraintViolated || s.code() == StatusCode::kNotFound)
          s = {};
      }
      if (s.ok() && random.below(8) != 0) s = t->commit();
      complaint.expect(
          s.ok() || s.code() == StatusCode::kConflict || s.code() == StatusCode::kAlreadyExists,
          "write: " + s.to_string());
    }
  }

  // ------------------------------------------------------------------------------------- mending

  /// Makes the rows such that every constraint would hold, if no one wrote meanwhile.
  Status mend(Transaction& t) const {
    Status s;
    for (std::int64_t id = 0; id < kTeams && s.ok(); ++id) {
      const Result<Row> row = t.get({teams, 0}, {id});
      if (!row.ok()) continue;
      const Value captain = row->get_unchecked(ColumnId(1));
      if (!captain.is_null() && !t.get({players, 0}, {captain}).ok())
        s = t.update(teams, row->id(), {{ColumnId(1), Value::null()}}).status();
    }
    std::vector<RowId> rows;
    if (s.ok())
      s = t.scan(players, {kScore, kTeam}, [&](const ScanBatch& batch) {
        for (std::size_t i = 0; i < batch.row_count(); ++i) rows.push_back(batch.row_ids()[i]);
        return true;
      });
    for (const RowId id : rows) {
      const Result<Row> row = t.get(players, id);
      if (!s.ok() || !row.ok()) continue;
      const Value score = row->get_unchecked(kScore);
      const Value team = row->get_unchecked(kTeam);
      const bool is_right = !score.is_null() && score.as_int64() >= 0 &&
                            (team.is_null() || t.get({teams, 0}, {team}).ok());
      if (!is_right)
        s = t.update(players, id, {{kScore, Value::int64(0)}, {kTeam, Value::null()}}).status();
    }
    return s;
  }

  // ------------------------------------------------------------------------------------- reading

  void expect_constraints(const TableSchema& schema, Complaint& complaint) {
    const Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    const bool is_positive = !schema.checks.empty();
    const bool has_scores = !schema.columns[kScore.value()].nullable;
    const bool refers = !schema.foreign_keys.empty();
    const Status s = t->scan(players, {kScore, kTeam}, [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i) {
        const Value score = batch.get_unchecked(0, i);
        const Value team = batch.get_unchecked(1, i);
        complaint.expect(!has_scores || !score.is_null(), "a row without a score");
        complaint.expect(!is_positive || score.is_null() || score.as_int64() >= 0,
                         "a score below 0");
        complaint.expect(!refers || team.is_null() || t->get({teams, 0}, {team}).ok(),
                         "a team that does not exist: " + team.to_string());
      }
      return true;
    });
    complaint.expect(s.ok(), "scan: " + s.to_string());
  }

  // -------------------------------------------------------------------------------------- altering

  Status tighten(std::uint64_t what, const std::string& score, const std::string& team,
                 ReferenceAction action) {
    ForeignKeySchema foreign;
    foreign.on_delete = action;
    if (what == 0)
      return database->add_check(players, {"positive", query::col(score) >= std::int64_t{0}});
    if (what == 1) return database->set_not_null(players, kScore);
    foreign.name = what == 2 ? "in_team" : "led_by";
    foreign.columns = {what == 2 ? team : std::string("captain")};
    foreign.table = what == 2 ? "teams" : "players";
    return database->add_foreign_key(what == 2 ? players : teams, foreign);
  }
  Status loosen(std::uint64_t what) {
    if (what == 0) return database->drop_check(players, "positive");
    if (what == 1) return database->set_not_null(players, kScore, false);
    return database->drop_foreign_key(what == 2 ? players : teams,
                                      what == 2 ? "in_team" : "led_by");
  }
  std::string name_of(ColumnId column) {
    const Result<TableSchema> now = database->schema(players);
    return now.ok() ? now->columns[column.value()].name : std::string();
  }
};

/// Adds and drops the constraints of one kind; `added` counts.
void alter_constraint(League& league, std::uint64_t what, std::uint64_t seed,
                      std::atomic<int>& added, Complaint& complaint) {
  Random random(seed);
  for (int round = 0; round < kRoundsOfCalls && !complaint.failed(); ++round) {
    static_cast<void>(
        league.database->run([&](Transaction& t) -> Status { return league.mend(t); }));
    const Status done = league.tighten(
        what, league.name_of(kScore), league.name_of(kTeam),
        random.below(2) == 0 ? ReferenceAction::kRestrict : ReferenceAction::kSetNull);
    // Writers may have broken it, or a column was renamed.
    const bool is_known = done.ok() || done.code() == StatusCode::kConstraintViolated ||
                          done.code() == StatusCode::kBusy ||
                          done.code() == StatusCode::kInvalidArgument;
    if (!complaint.expect(is_known, fmt::format("tighten {}: {}", what, done.to_string()))) return;
    const Result<TableSchema> schema = league.database->schema(league.players);
    if (schema.ok() && done.ok()) league.expect_constraints(*schema, complaint);
    if (!done.ok()) continue;
    ++added;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
    const Status loosened = league.loosen(what);
    // A column has so many editions that only a merge helps.
    complaint.expect(loosened.ok() || loosened.code() == StatusCode::kBusy,
                     fmt::format("loosen {}: {}", what, loosened.to_string()));
  }
}

}  // namespace

TEST_CASE("a constraint that is added while others write holds", "[concurrency]") {
  League league;
  Complaint complaint;
  std::atomic<bool> stops{false};
  std::vector<std::thread> others;
  for (std::uint64_t writer = 0; writer < 3; ++writer)
    others.emplace_back([&, writer] { league.write(100 + writer, stops, complaint); });
  others.emplace_back([&] {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    for (int i = 0; !stops && !complaint.failed(); ++i) {
      const Status merged =
          league.database->merge(i % 3 == 0 ? league.teams : league.players, everything).status();
      complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy,
                       "merge: " + merged.to_string());
      const Status renamed = league.database->rename_column(
          league.players, i % 2 == 0 ? kScore : kTeam, fmt::format("name{}", i));
      complaint.expect(renamed.ok(), "rename: " + renamed.to_string());
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  std::array<std::atomic<int>, 4> added{};
  std::vector<std::thread> callers;
  for (std::uint64_t what = 0; what < added.size(); ++what)
    callers.emplace_back(
        [&, what] { alter_constraint(league, what, what + 1, added[what], complaint); });
  for (std::thread& caller : callers) caller.join();
  stops = true;
  for (std::thread& other : others) other.join();
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());
  for (std::size_t what = 0; what < added.size(); ++what) {
    INFO("constraint " << what);
    CHECK(added[what] > 0);
  }
  CHECK(league.refused > 0);
  must(league.database->check());
  league.database.reopen();
  must(league.database->check());
}

}  // namespace flugs::test
