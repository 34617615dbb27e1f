// Partial rollback: what the transaction sees, what others may do, what a commit leaves.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kId{0};
constexpr ColumnId kName{1};
constexpr ColumnId kPlaceColumn{2};
constexpr ColumnId kPoints{3};

TableSchema players_schema() {
  TableSchema schema("players");
  schema.column("id", Type::kInt64).column("name", Type::kString);
  schema.column("place", Type::kInt64).column("points", Type::kInt64);
  schema.primary_key({"id"});
  schema.unique_key("by_name", {"name"});
  schema.key("by_place", {"place"}).ordered();
  return schema;
}

struct Players {
  MemoryDatabase database;
  TableId table = must(database->create_table(players_schema()));
  KeyId primary{table, 0};
  KeyId by_name{table, 1};
  KeyId by_place{table, 2};

  explicit Players(bool merges = false) {
    Transaction t = begin();
    for (std::int64_t id = 1; id <= 10; ++id) insert(t, id, "n" + std::to_string(id), id);
    must(t.commit());
    if (!merges) return;
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    REQUIRE(must(database->merge(table, options)).chunks_merged == 1);
  }
  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  RowId insert(Transaction& t, std::int64_t id, const std::string& name, std::int64_t place) const {
    return must(t.insert(
        table, {Value::int64(id), Value::string(name), Value::int64(place), Value::int64(0)}));
  }
  RowId id_of(const Transaction& t, std::int64_t id) const {
    return must(t.get(primary, {Value::int64(id)})).id();
  }
  RowId rename(Transaction& t, std::int64_t id, const std::string& name) const {
    return must(t.update(table, id_of(t, id), {{kName, Value::string(name)}}));
  }
  RowId score(Transaction& t, std::int64_t id, std::int64_t points) const {
    return must(t.update(table, id_of(t, id), {{kPoints, Value::int64(points)}}));
  }
  void move(Transaction& t, std::int64_t id, std::int64_t place) const {
    must(t.update(table, id_of(t, id), {{kPlaceColumn, Value::int64(place)}}));
  }
  void remove(Transaction& t, std::int64_t id) const { must(t.remove(table, id_of(t, id))); }

  /// "id:name/place/points ", by each way to read the rows; all must agree.
  std::string seen(const Transaction& t) const {
    std::map<std::int64_t, std::string> rows;
    const auto words = [&](const Row& row) {
      return std::to_string(row.get_unchecked<std::int64_t>(kId)) + ":" +
             std::string(row.get_unchecked<std::string_view>(kName)) + "/" +
             std::to_string(row.get_unchecked<std::int64_t>(kPlaceColumn)) + "/" +
             std::to_string(row.get_unchecked<std::int64_t>(kPoints)) + " ";
    };
    must(t.scan(table, {kId}, [&](const ScanBatch& batch) {
      for (const RowId id : batch.row_ids()) {
        const Row row = must(t.get(table, id));
        CHECK(rows.emplace(row.get_unchecked<std::int64_t>(kId), words(row)).second);
      }
      return true;
    }));
    std::int64_t last = 0;
    std::size_t in_order = 0;
    must(t.rows(by_place, {}, {}, [&](const Row& row) {
      CHECK(row.get_unchecked<std::int64_t>(kPlaceColumn) >= last);
      last = row.get_unchecked<std::int64_t>(kPlaceColumn);
      CHECK(rows.at(row.get_unchecked<std::int64_t>(kId)) == words(row));
      ++in_order;
      return true;
    }));
    CHECK(in_order == rows.size());
    std::string all;
    for (const auto& [id, row] : rows) {
      const Row found = must(t.get(primary, {Value::int64(id)}));
      CHECK(words(found) == row);
      CHECK(words(must(t.get(
                by_name, {Value::string(found.get_unchecked<std::string_view>(kName))}))) == row);
      all += row;
    }
    return all;
  }
  std::string committed() { return seen(begin()); }
  void check_whole() {
    must(database->verify({}));
    const std::string before = committed();
    database.reopen();
    must(database->verify({}));
    CHECK(committed() == before);
  }
};

/// Work after a savepoint that is undone leaves no trace, neither for the transaction nor for
/// others, before its end, after it, and after a restart.
template <typename Before, typename Undone>
void leaves_no_trace(bool merged, Before&& before, Undone&& undone) {
  for (const bool commits : {true, false}) {
    Players players(merged);
    const std::string at_first = players.committed();
    Transaction t = players.begin();
    before(players, t);
    const std::string wanted = players.seen(t);
    const Savepoint savepoint = must(t.savepoint());
    for (int round = 0; round < 3; ++round) {
      undone(players, t);
      CHECK(players.seen(t) != wanted);
      CHECK(players.committed() == at_first);
      must(t.rollback_to(savepoint));
      CHECK(players.seen(t) == wanted);
      CHECK(players.committed() == at_first);
    }
    if (commits) {
      must(t.commit());
    } else {
      t.abort();
    }
    CHECK(players.committed() == (commits ? wanted : at_first));
    players.check_whole();
  }
}

void nothing(Players&, Transaction&) {}

}  // namespace

TEST_CASE("a partial rollback undoes inserts, updates and deletes", "[engine]") {
  for (const bool merged : {false, true}) {
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) { p.insert(t, 11, "new", 4); });
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) { p.score(t, 3, 7); });
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) { p.remove(t, 3); });
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) {
      p.remove(t, 3);
      p.insert(t, 3, "n3", 30);
      p.score(t, 3, 8);
      p.remove(t, 3);
      p.insert(t, 3, "n4x", 30);
    });
    leaves_no_trace(
        merged, [](Players& p, Transaction& t) { p.score(t, 1, 1); },
        [](Players& p, Transaction& t) {
          for (std::int64_t id = 1; id <= 10; ++id) p.remove(t, id);
        });
  }
}

TEST_CASE("a partial rollback undoes changes of keys, also changes back", "[engine]") {
  for (const bool merged : {false, true}) {
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) {
      p.rename(t, 2, "elsewhere");
      p.move(t, 2, 99);
    });
    leaves_no_trace(
        merged,
        [](Players& p, Transaction& t) {
          p.rename(t, 2, "between");
          p.move(t, 2, 50);
        },
        [](Players& p, Transaction& t) {
          p.rename(t, 2, "n2");
          p.move(t, 2, 2);
        });
    // Two rows exchange their names.
    leaves_no_trace(merged, nothing, [](Players& p, Transaction& t) {
      p.rename(t, 4, "passing");
      p.rename(t, 5, "n4");
      p.rename(t, 4, "n5");
    });
    leaves_no_trace(
        merged,
        [](Players& p, Transaction& t) {
          p.remove(t, 6);
          p.insert(t, 60, "n6", 6);
        },
        [](Players& p, Transaction& t) {
          p.rename(t, 60, "n60");
          p.insert(t, 6, "n6", 6);
        });
  }
}

TEST_CASE("own rows from before a savepoint get their old values back", "[engine]") {
  for (const bool merged : {false, true}) {
    const auto before = [](Players& p, Transaction& t) {
      p.insert(t, 11, "own", 11);
      p.score(t, 11, 5);
      p.score(t, 7, 70);
    };
    leaves_no_trace(merged, before, [](Players& p, Transaction& t) { p.score(t, 11, 6); });
    leaves_no_trace(merged, before, [](Players& p, Transaction& t) { p.score(t, 7, 71); });
    leaves_no_trace(merged, before, [](Players& p, Transaction& t) {
      p.remove(t, 11);
      p.remove(t, 7);
    });
    leaves_no_trace(merged, before, [](Players& p, Transaction& t) {
      for (std::int64_t i = 0; i < 200; ++i) p.score(t, 11, i);
      p.rename(t, 11, "another");
      p.remove(t, 11);
      p.insert(t, 11, "own", 1);
    });
  }
}

TEST_CASE("rows written since the newest savepoint are changed in place, older ones not",
          "[engine]") {
  Players players;
  Transaction t = players.begin();
  const RowId old = players.insert(t, 11, "old", 11);
  CHECK(players.score(t, 11, 1) == old);
  const Savepoint first = must(t.savepoint());
  const RowId newer = players.score(t, 11, 2);
  CHECK(newer != old);
  CHECK(players.score(t, 11, 3) == newer);
  const Savepoint second = must(t.savepoint());
  CHECK(players.score(t, 11, 4) != newer);
  must(t.rollback_to(second));
  CHECK(players.id_of(t, 11) == newer);
  must(t.release(second));
  CHECK(players.score(t, 11, 5) == newer);
  must(t.rollback_to(first));
  CHECK(players.id_of(t, 11) == old);
  must(t.release(first));
  CHECK(players.score(t, 11, 6) == old);
  must(t.commit());
  CHECK(players.committed().find("11:old/11/6 ") != std::string::npos);
  players.check_whole();
}

TEST_CASE("savepoints nest: a rollback keeps its savepoint, a release those before", "[engine]") {
  Players players;
  Transaction t = players.begin();
  std::vector<Savepoint> savepoints;
  std::vector<std::string> seen;
  for (std::int64_t depth = 0; depth < 6; ++depth) {
    savepoints.push_back(must(t.savepoint()));
    seen.push_back(players.seen(t));
    players.score(t, 1, depth + 1);
    players.insert(t, 20 + depth, "d" + std::to_string(depth), depth);
  }
  must(t.rollback_to(savepoints[4]));
  CHECK(players.seen(t) == seen[4]);
  CHECK(t.rollback_to(savepoints[5]).code() == StatusCode::kInvalidArgument);
  must(t.rollback_to(savepoints[4]));
  must(t.release(savepoints[2]));  // with 3 and 4: later writes belong to 1
  CHECK(players.seen(t) == seen[4]);
  for (const std::size_t gone : {2U, 3U, 4U, 5U}) {
    CHECK(t.rollback_to(savepoints[gone]).code() == StatusCode::kInvalidArgument);
    CHECK(t.release(savepoints[gone]).code() == StatusCode::kInvalidArgument);
  }
  CHECK(players.seen(t) == seen[4]);
  must(t.rollback_to(savepoints[1]));
  CHECK(players.seen(t) == seen[1]);
  must(t.commit());
  CHECK(players.committed() == seen[1]);
  players.check_whole();
}

TEST_CASE("a savepoint of another transaction, or none, is refused with a message", "[engine]") {
  Players players;
  Transaction t = players.begin();
  const auto refuses = [&](const Savepoint& savepoint, const std::string& why) {
    for (const Status& s : {t.rollback_to(savepoint), t.release(savepoint)}) {
      CHECK(s.code() == StatusCode::kInvalidArgument);
      CHECK_THAT(std::string(s.message()), Catch::Contains(why));
    }
  };
  refuses(Savepoint(), "found none");
  Transaction other = players.begin();
  const Savepoint others = must(other.savepoint());
  refuses(others, "to another transaction");
  const Savepoint own = must(t.savepoint());
  refuses(others, "to another transaction");
  must(t.release(own));
  refuses(own, "no longer exists");
  // The next transaction of the same slot is another one.
  const Savepoint last = must(t.savepoint());
  must(t.commit());
  CHECK(t.savepoint().code() == StatusCode::kInvalidArgument);
  refuses(last, "the transaction has ended");
  t = players.begin();
  refuses(last, "to another transaction");
  const Savepoint fresh = must(t.savepoint());
  CHECK_FALSE(fresh == last);
  refuses(last, "to another transaction");
}

TEST_CASE("a rollback from within a visitor is refused and undoes nothing", "[engine]") {
  Players players;
  Transaction t = players.begin();
  const Savepoint savepoint = must(t.savepoint());
  players.score(t, 1, 5);
  int calls = 0;
  must(t.rows(players.by_place, {}, {}, [&](const Row&) {
    CHECK(t.rollback_to(savepoint).code() == StatusCode::kInvalidArgument);
    return ++calls < 2;
  }));
  CHECK(calls == 2);
  CHECK(must(t.get(players.primary, {Value::int64(1)})).get_unchecked<std::int64_t>(kPoints) == 5);
  must(t.rollback_to(savepoint));
  CHECK(must(t.get(players.primary, {Value::int64(1)})).get_unchecked<std::int64_t>(kPoints) == 0);
}

TEST_CASE("a rollback frees undone rows for others at once, and no earlier ones", "[engine]") {
  for (const bool merged : {false, true}) {
    Players players(merged);
    Transaction t = players.begin();
    players.score(t, 1, 1);
    const Savepoint savepoint = must(t.savepoint());
    players.score(t, 2, 1);
    players.remove(t, 3);
    players.insert(t, 30, "thirty", 30);
    Transaction other = players.begin();
    const auto may_write = [&](std::int64_t id) {
      return other.update(players.table, players.id_of(other, id), {{kPoints, Value::int64(9)}})
          .code();
    };
    CHECK(may_write(1) == StatusCode::kConflict);
    CHECK(may_write(2) == StatusCode::kConflict);
    CHECK(may_write(3) == StatusCode::kConflict);
    const auto may_insert = [&](std::int64_t id, const std::string& name) {
      return other
          .insert(players.table,
                  {Value::int64(id), Value::string(name), Value::null(), Value::null()})
          .code();
    };
    CHECK(may_insert(30, "new") == StatusCode::kConflict);
    CHECK(may_insert(31, "thirty") == StatusCode::kConflict);
    must(t.rollback_to(savepoint));
    CHECK(may_write(1) == StatusCode::kConflict);
    CHECK(may_write(2) == StatusCode::kOk);
    CHECK(may_write(3) == StatusCode::kOk);
    CHECK(may_insert(30, "thirty") == StatusCode::kOk);
    must(other.commit());
    // Now another transaction has them.
    CHECK(t.update(players.table, players.id_of(t, 2), {{kPoints, Value::int64(2)}}).code() ==
          StatusCode::kConflict);
    must(t.commit());
    const std::string after = players.committed();
    CHECK_THAT(after, Catch::Contains("1:n1/1/1 2:n2/2/9 3:n3/3/9 ") && Catch::Contains("30:"));
    players.check_whole();
  }
}

TEST_CASE("a transaction whose writes are all undone commits without a time-stamp", "[engine]") {
  Players players;
  const std::string before = players.committed();
  Transaction t = players.begin(Isolation::kSerializable);
  const Savepoint savepoint = must(t.savepoint());
  players.score(t, 1, 5);
  players.insert(t, 12, "twelve", 12);
  must(t.rollback_to(savepoint));
  must(t.commit());
  CHECK(t.commit_timestamp() == 0);
  CHECK(players.committed() == before);
  players.check_whole();
}

TEST_CASE("read-only transactions have savepoints, too", "[engine]") {
  Players players;
  Transaction t = must(players.database->begin(AccessMode::kReadOnly));
  const Savepoint savepoint = must(t.savepoint());
  CHECK(must(t.get(players.primary, {Value::int64(1)})).get_unchecked<std::int64_t>(kPoints) == 0);
  must(t.rollback_to(savepoint));
  must(t.release(savepoint));
  must(t.commit());
}

TEST_CASE("reads before a rollback count for a serializable commit", "[engine]") {
  for (const bool others_write : {false, true}) {
    Players players;
    Transaction t = players.begin(Isolation::kSerializable);
    const Savepoint savepoint = must(t.savepoint());
    const Row five = must(t.get(players.primary, {Value::int64(5)}));
    players.score(t, 6, five.get_unchecked<std::int64_t>(kPoints) + 1);
    must(t.rollback_to(savepoint));
    players.insert(t, 12, "as five had no points", 12);
    if (others_write) {
      Transaction other = players.begin();
      players.score(other, 5, 100);
      must(other.commit());
    }
    CHECK(t.commit().code() == (others_write ? StatusCode::kConflict : StatusCode::kOk));
    players.check_whole();
  }
}

TEST_CASE("reading own rows that are undone later causes no conflict", "[engine]") {
  Players players;
  Transaction t = players.begin(Isolation::kSerializable);
  const Savepoint savepoint = must(t.savepoint());
  players.insert(t, 12, "twelve", 12);
  players.score(t, 12, 1);
  players.score(t, 1, 1);
  CHECK_FALSE(players.seen(t).empty());
  must(t.rollback_to(savepoint));
  players.score(t, 2, 1);
  CHECK(t.commit().code() == StatusCode::kOk);
  players.check_whole();
}

TEST_CASE("a failed insert_rows leaves a savepoint's state intact", "[engine]") {
  Players players;
  Transaction t = players.begin();
  players.score(t, 1, 1);
  const Savepoint savepoint = must(t.savepoint());
  const std::string wanted = players.seen(t);
  const std::vector<Value> rows = {Value::int64(50), Value::string("n50"), Value::int64(1),
                                   Value::int64(1),  Value::int64(2),      Value::string("n51"),
                                   Value::int64(1),  Value::int64(1)};
  CHECK(t.insert_rows(players.table, rows).code() == StatusCode::kAlreadyExists);
  CHECK(players.seen(t) == wanted);
  must(t.insert_rows(players.table, std::span(rows).first(4)));
  must(t.rollback_to(savepoint));
  CHECK(players.seen(t) == wanted);
  must(t.commit());
  players.check_whole();
}

TEST_CASE("a merge moves a row that a rollback released, and waits for a kept one", "[engine]") {
  for (const bool keeps : {false, true}) {
    Players players;
    Transaction filler = players.begin();
    for (std::int64_t id = 100; id < 2000; ++id)
      players.insert(filler, id, "n" + std::to_string(id), id);
    must(filler.commit());
    Transaction t = players.begin();
    if (keeps) players.remove(t, 1);
    const Savepoint savepoint = must(t.savepoint());
    players.remove(t, 2);
    players.remove(t, 3);
    must(t.rollback_to(savepoint));
    const std::string wanted = players.seen(t);
    must(t.commit());
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(players.database->merge(players.table, options));
    CHECK(players.committed() == wanted);
    players.check_whole();
  }
}

TEST_CASE("rows of repeated rollbacks are used again", "[engine]") {
  Players players;
  for (int round = 0; round < 5000; ++round) {
    Transaction t = players.begin();
    players.score(t, 1, round);
    const Savepoint savepoint = must(t.savepoint());
    for (int i = 0; i < 10; ++i) {
      players.score(t, 2, i);
      players.insert(t, 100, "hundred", 1);
      must(t.rollback_to(savepoint));
    }
    must(t.commit());
  }
  CHECK(must(players.database->statistics(players.table)).rows_reserved < 60000);
  players.check_whole();
}

}  // namespace flugs::test
