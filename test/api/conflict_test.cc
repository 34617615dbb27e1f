// What a transaction is told of a conflict: the row or key, and the transaction that was first.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

struct Balances {
  TemporaryDatabase database;
  TableId table = must(database->create_table([] {
    TableSchema schema("accounts");
    schema.column("id", Type::kInt64).column("owner", Type::kString).column("sum", Type::kInt64);
    return schema.primary_key({"id"}).unique_key("by_owner", {"owner"});
  }()));
  KeyId primary{table, 0};
  KeyId by_owner{table, 1};

  Balances() {
    Transaction t = begin();
    for (std::int64_t id = 0; id < 4; ++id) {
      const std::string owner = "owner " + std::to_string(id);
      must(t.insert(table, {id, owner, 0}));
    }
    must(t.commit());
  }
  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  Status change(Transaction& t, std::int64_t id, std::int64_t sum) const {
    return t.update(primary, {id}, {{ColumnId(2), sum}}).status();
  }
};

}  // namespace

TEST_CASE("a conflict names the row and the transaction that is writing it", "[api]") {
  Balances accounts;
  Transaction first = accounts.begin();
  Transaction second = accounts.begin();
  CHECK_FALSE(second.conflict());
  must(accounts.change(first, 1, 10));
  CHECK(accounts.change(second, 1, 20).code() == StatusCode::kConflict);
  const RowId row = must(second.get(accounts.primary, {1})).id();
  std::optional<Conflict> met = second.conflict();
  REQUIRE(met);
  CHECK(met->reason == ConflictReason::kRowWritten);
  CHECK(met->table == accounts.table);
  CHECK(met->row == row);
  CHECK_FALSE(met->key);
  CHECK(met->other == first.id());
  CHECK(met->committed_at == 0);
  CHECK(met->message == "table accounts: transaction " + std::to_string(first.id().value()) +
                            ", which is still open, has written the row");
  CHECK_FALSE(first.conflict());

  // The same after the first one has committed.
  const std::uint64_t snapshot = second.snapshot();
  must(first.commit());
  met = second.conflict();
  REQUIRE(met);
  CHECK(met->other == TransactionId());
  CHECK(met->committed_at == first.commit_timestamp());
  CHECK(met->message == "table accounts: a transaction that has committed at " +
                            std::to_string(first.commit_timestamp()) + ", after the snapshot " +
                            std::to_string(snapshot) + ", has written the row");
  CHECK_FALSE(first.conflict());
  second.abort();
  CHECK_FALSE(second.conflict());

  // The next transaction of the slot has met nothing.
  for (int i = 0; i < 40; ++i) CHECK_FALSE(accounts.begin().conflict());
}

TEST_CASE("a conflict with an aborted transaction says that it has ended", "[api]") {
  Balances accounts;
  Transaction first = accounts.begin();
  Transaction second = accounts.begin();
  must(accounts.change(first, 1, 10));
  CHECK(accounts.change(second, 1, 20).code() == StatusCode::kConflict);
  first.abort();
  const std::optional<Conflict> met = second.conflict();
  REQUIRE(met);
  CHECK(met->other == TransactionId());
  CHECK(met->committed_at == 0);
  CHECK(met->message.find("a transaction that has ended since") != std::string::npos);
  must(accounts.change(second, 1, 20));
  must(second.commit());
}

TEST_CASE("a conflict names the unique key that another transaction has taken", "[api]") {
  Balances accounts;
  for (const bool is_long : {false, true}) {
    const std::string owner = is_long ? std::string(500, 'x') : "new";
    const std::int64_t id = is_long ? 20 : 10;
    Transaction first = accounts.begin();
    Transaction second = accounts.begin();
    must(first.insert(accounts.table, {id, owner, 0}));
    const Result<Inserted> refused = second.insert(accounts.table, {id + 1, owner, 0});
    CHECK(refused.code() == StatusCode::kConflict);
    CHECK(refused.status().message() == "table accounts, key by_owner");
    std::optional<Conflict> met = second.conflict();
    REQUIRE(met);
    CHECK(met->reason == ConflictReason::kKeyTaken);
    CHECK(met->key == accounts.by_owner);
    CHECK(met->other == first.id());
    CHECK(met->row == must(first.get(accounts.primary, {id})).id());
    CHECK(met->message == "table accounts, key by_owner: transaction " +
                              std::to_string(first.id().value()) +
                              ", which is still open, has inserted or deleted a row with the same "
                              "values");
    must(first.commit());
    CHECK(second.insert(accounts.table, {id, "another", 0}).code() == StatusCode::kConflict);
    met = second.conflict();
    REQUIRE(met);
    CHECK(met->key == accounts.primary);
    CHECK(met->committed_at == first.commit_timestamp());
    // Deleting a row keeps its key until the commit.
    Transaction third = accounts.begin();
    must(third.remove(accounts.primary, {id}));
    Transaction fourth = accounts.begin();
    CHECK(fourth.insert(accounts.table, {id + 1, owner, 0}).code() == StatusCode::kConflict);
    REQUIRE(fourth.conflict());
    CHECK(fourth.conflict()->other == third.id());
  }
}

TEST_CASE("a conflict with a lock names its holder", "[api]") {
  Balances accounts;
  Transaction first = accounts.begin();
  Transaction second = accounts.begin();
  must(first.lock(accounts.primary, {2}));
  CHECK(accounts.change(second, 2, 1).code() == StatusCode::kConflict);
  std::optional<Conflict> met = second.conflict();
  REQUIRE(met);
  CHECK(met->reason == ConflictReason::kRowLocked);
  CHECK(met->other == first.id());
  first.abort();
  met = second.conflict();
  REQUIRE(met);
  CHECK(met->other == TransactionId());
}

TEST_CASE("a refused commit and a refused run say why", "[api]") {
  Balances accounts;
  Transaction reader = accounts.begin(Isolation::kSerializable);
  must(reader.get(accounts.primary, {1}));
  must(accounts.change(reader, 2, 5));
  {
    Transaction writer = accounts.begin();
    must(accounts.change(writer, 1, 7));
    must(writer.commit());
  }
  const Status refused = reader.commit();
  CHECK(refused.code() == StatusCode::kConflict);
  CHECK(refused.message() ==
        "table accounts: another transaction has changed rows that this serializable one has read");
  CHECK_FALSE(reader.conflict());

  Transaction first = accounts.begin();
  must(accounts.change(first, 1, 10));
  const Status given_up = accounts.database->run(
      [&](Transaction& t) { return accounts.change(t, 1, 11); }, {.attempts_max = 2});
  CHECK(given_up.code() == StatusCode::kConflict);
  CHECK(given_up.message().find("given up after 2 attempts") != std::string::npos);
  CHECK(given_up.message().find("table accounts: transaction " +
                                std::to_string(first.id().value()) +
                                ", which is still open, has written the row") != std::string::npos);
}

}  // namespace flugs::test
