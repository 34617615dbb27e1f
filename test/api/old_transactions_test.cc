// Merges that end the transactions in their way, and the answers that these transactions get.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using std::chrono::milliseconds;
constexpr std::int64_t kAccountRows = 20'000;
constexpr ColumnId kAccountAmount{1};

class Accounts {
 public:
  Accounts() {
    TableSchema schema("accounts");
    schema.column("id", Type::kInt64).direct().column("amount", Type::kInt64);
    schema.primary_key({"id"}).key("by_amount", {"amount"}).ordered();
    table = must(database->create_table(schema));
    key = must(database->find_key(table, "primary"));
    by_amount = must(database->find_key(table, "by_amount"));
    Transaction writer = must(database->begin());
    for (std::int64_t id = 0; id < kAccountRows; ++id)
      must(writer.insert(table, {Value::int64(id), Value::int64(id % 100)}));
    must(writer.commit());
  }

  Result<MergeReport> merge(milliseconds patience) {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.patience = patience;
    options.ends_old_transactions = true;
    return database->merge(table, options);
  }
  /// Merges in a thread of its own, again and again until no transaction is in the way.
  std::jthread merge_beside() {
    return std::jthread([this] {
      while (merge(milliseconds(5)).code() == StatusCode::kBusy) {
      }
    });
  }
  std::int64_t rows() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::int64_t count = 0;
    must(t.scan(table, {kAccountAmount}, [&](const ScanBatch& batch) {
      count += static_cast<std::int64_t>(batch.row_count());
      return true;
    }));
    return count;
  }

  TemporaryDatabase database;
  TableId table;
  KeyId key;
  KeyId by_amount;
};

void check_is_ended(Accounts& accounts, Transaction& t) {
  CHECK(t.get(accounts.key, {Value::int64(1)}).code() == StatusCode::kCancelled);
  CHECK(t.get(accounts.table, RowId(1)).code() == StatusCode::kCancelled);
  CHECK(t.insert(accounts.table, {Value::int64(-1), Value::int64(1)}).code() ==
        StatusCode::kCancelled);
  CHECK(t.scan(accounts.table, {}, [](const ScanBatch&) { return true; }).code() ==
        StatusCode::kCancelled);
  CHECK(query::Query::table("accounts").run(t).code() == StatusCode::kCancelled);
  CHECK(t.is_open());
  CHECK(t.commit().code() == StatusCode::kCancelled);
  CHECK_FALSE(t.is_open());
  CHECK(t.commit().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a transaction without calls delays a merge, and ends with its next call") {
  Accounts accounts;
  Transaction reader = must(accounts.database->begin(AccessMode::kReadOnly));
  CHECK(must(reader.get(accounts.key, {Value::int64(7)}))
            .get_unchecked<std::int64_t>(kAccountAmount) == 7);
  const Result<MergeReport> held_up = accounts.merge(milliseconds(5));
  REQUIRE(held_up.code() == StatusCode::kBusy);
  CHECK_THAT(std::string(held_up.status().message()),
             Catch::Matchers::Contains("asked to end, but has made no call"));
  // A transaction that began later does not matter.
  Transaction later = must(accounts.database->begin(AccessMode::kReadOnly));
  CHECK(later.get(accounts.key, {Value::int64(7)}).ok());
  later.abort();

  CHECK(reader.get(accounts.key, {Value::int64(7)}).code() == StatusCode::kCancelled);
  // It need not be destroyed first.
  CHECK(must(accounts.merge(milliseconds(1000))).chunks_merged != 0);
  check_is_ended(accounts, reader);
  CHECK(accounts.rows() == kAccountRows);
}

TEST_CASE("a transaction that a merge asked to end may still commit") {
  Accounts accounts;
  Transaction writer = must(accounts.database->begin());
  must(writer.insert(accounts.table, {Value::int64(-1), Value::int64(1)}));
  REQUIRE(accounts.merge(milliseconds(5)).code() == StatusCode::kBusy);
  must(writer.commit());
  CHECK(accounts.rows() == kAccountRows + 1);
}

TEST_CASE("ending a transaction undoes its writes, and others may write its rows") {
  Accounts accounts;
  Transaction writer = must(accounts.database->begin());
  must(writer.insert(accounts.table, {Value::int64(-1), Value::int64(1)}));
  const Row row = must(writer.get(accounts.key, {Value::int64(5)}));
  must(writer.update(accounts.table, row.id(), {{kAccountAmount, Value::int64(1000)}}));
  REQUIRE(accounts.merge(milliseconds(5)).code() == StatusCode::kBusy);
  Transaction other = must(accounts.database->begin());
  const RowId id = must(other.get(accounts.key, {Value::int64(5)})).id();
  CHECK(other.remove(accounts.table, id).code() == StatusCode::kConflict);
  other.abort();

  CHECK(writer.remove(accounts.table, RowId(9)).code() == StatusCode::kCancelled);
  other = must(accounts.database->begin());
  must(other.remove(accounts.table, id));
  must(other.insert(accounts.table, {Value::int64(-1), Value::int64(2)}));
  must(other.commit());
  check_is_ended(accounts, writer);
  CHECK(accounts.rows() == kAccountRows);
  CHECK(must(accounts.database->begin()).get(accounts.key, {Value::int64(5)}).code() ==
        StatusCode::kNotFound);
  must(accounts.database->check());
}

// Calls `go_through(accounts, transaction)` again and again until a merge has it cancelled.
template <typename GoThrough>
void check_is_cut(GoThrough&& go_through) {
  Accounts accounts;
  Transaction reader = must(accounts.database->begin(AccessMode::kReadOnly));
  const std::jthread merging = accounts.merge_beside();
  Status status;
  while (status.ok()) status = go_through(accounts, reader);
  CHECK(status.code() == StatusCode::kCancelled);
  check_is_ended(accounts, reader);
}

TEST_CASE("asking a transaction to end cuts short its call that goes through rows") {
  const auto pause = [] { std::this_thread::sleep_for(milliseconds(1)); };
  SECTION("a scan") {
    check_is_cut([&](Accounts& a, Transaction& t) {
      return t.scan(a.table, {kAccountAmount}, [&](const ScanBatch&) { return pause(), true; });
    });
  }
  SECTION("a range") {
    check_is_cut([&](Accounts& a, Transaction& t) {
      return t.rows(a.by_amount, {}, {}, [&](const Row&) { return pause(), true; });
    });
  }
  SECTION("rows of a key") {
    check_is_cut([&](Accounts& a, Transaction& t) {
      return t.rows(a.by_amount, {Value::int64(3)}, [&](const Row&) { return pause(), true; });
    });
  }
  SECTION("queries") {
    check_is_cut(
        [&](Accounts&, Transaction& t) { return query::Query::table("accounts").run(t).status(); });
  }
}

TEST_CASE("a call from within another one does not end the transaction under it") {
  Accounts accounts;
  Transaction reader = must(accounts.database->begin(AccessMode::kReadOnly));
  int visited = 0;
  const Status status = reader.rows(accounts.by_amount, {}, {}, [&](const Row& row) {
    ++visited;
    CHECK(accounts.merge(milliseconds(2)).code() == StatusCode::kBusy);
    CHECK(reader.get(accounts.key, {Value::int64(1)}).code() == StatusCode::kCancelled);
    // The row is unchanged: the snapshot is still held.
    CHECK(row.get_unchecked<std::int64_t>(kAccountAmount) == 0);
    CHECK(accounts.merge(milliseconds(2)).code() == StatusCode::kBusy);
    return true;
  });
  CHECK(status.code() == StatusCode::kCancelled);
  CHECK(visited == 1);
  CHECK(accounts.merge(milliseconds(1000)).ok());
}

TEST_CASE("a merge by policy ends the transactions in its way, if the policy says so") {
  Accounts accounts;
  Transaction reader = must(accounts.database->begin(AccessMode::kReadOnly));
  MergePolicy policy;
  policy.automatic = true;
  policy.delta_bytes = 1;
  policy.written_percent = 100;
  policy.interval = milliseconds(10);
  policy.patience = milliseconds(10);
  policy.ends_old_transactions = true;
  must(accounts.database->set_merge_policy(accounts.table, policy));
  while (reader.get(accounts.key, {Value::int64(1)}).ok())
    std::this_thread::sleep_for(milliseconds(1));
  while (must(accounts.database->merge_status(accounts.table)).merges == 0)
    std::this_thread::sleep_for(milliseconds(1));
  CHECK(accounts.rows() == kAccountRows);
}

}  // namespace
}  // namespace flugs::test
