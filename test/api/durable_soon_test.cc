// Commits that are durable soon after they have returned, and the tokens that say when.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr CommitOptions soon_of(int ms) {
  return {.durability = Durability::kSoon, .soon = std::chrono::milliseconds(ms)};
}

Result<TableId> make_soon_table(Database& database) {
  TableSchema schema("numbers");
  schema.column("number", Type::kInt64).direct().primary_key({"number"}).ordered();
  return database.create_table(schema);
}

Status add_soon(Database& database, TableId table, std::int64_t number,
                const CommitOptions& options) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return t.status();
  if (Status s = t->insert(table, {Value::int64(number)}).status(); !s.ok()) return s;
  return t->commit(options);
}

bool has_soon_row(Database& database, TableId table, std::int64_t number) {
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  return t.get({table, 0}, {Value::int64(number)}).ok();
}

std::vector<std::string> soon_media() { return {"/dev/shm", "/var/tmp"}; }

/// Adds numbers from 1 on, and reports some of those that are durable, until it is killed.
[[noreturn]] void add_until_killed(const std::string& path, int reports) {
  Result<Database> database = Database::open(small_options(path));
  if (!database.ok()) ::_exit(1);
  const Result<TableId> table = make_soon_table(*database);
  if (!table.ok()) ::_exit(2);
  for (std::int64_t number = 1;; ++number) {
    if (!add_soon(*database, *table, number, soon_of(5)).ok()) ::_exit(3);
    if (number % 50 != 0) continue;
    if (!database->wait_durable(database->durable_token()).ok()) ::_exit(4);
    if (::write(reports, &number, sizeof number) != sizeof number) ::_exit(5);
  }
}

}  // namespace

TEST_CASE("a commit that is durable soon is visible at once", "[api][soon]") {
  for (const std::string& medium : soon_media()) {
    const TemporaryPath path(medium);
    Database database = must(Database::open(small_options(path.string())));
    const TableId table = must(make_soon_table(database));
    must(add_soon(database, table, 1, soon_of(60'000)));
    CHECK(has_soon_row(database, table, 1));
    const DurableToken token = database.durable_token();
    const bool has_journal = database.statistics().flush == "journal";
    CHECK(database.is_durable(token) == !has_journal);
    must(database.wait_durable(token));
    CHECK(database.is_durable(token));
    CHECK(database.statistics().commits_soon == (has_journal ? 1 : 0));
    CHECK(database.statistics().commits_soon_late == 0);
  }
}

TEST_CASE("a commit that nobody waits for becomes durable, and is called back", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  Database database = must(Database::open(small_options(path.string())));
  const TableId table = must(make_soon_table(database));
  must(add_soon(database, table, 1, soon_of(10)));
  const DurableToken token = database.durable_token();
  while (!database.is_durable(token)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  must(add_soon(database, table, 2, soon_of(60'000)));
  std::atomic<int> calls{0};
  std::atomic<int> failures{0};
  database.when_durable(database.durable_token(), [&](const Status& status) {
    failures += status.ok() ? 0 : 1;
    ++calls;
  });
  while (calls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(database.is_durable(database.durable_token()));
  database.when_durable(token, [&](const Status&) { ++calls; });  // it is durable already
  CHECK(calls == 2);
  CHECK(failures == 0);
}

TEST_CASE("a commit on return makes durable what it may have seen", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  Database database = must(Database::open(small_options(path.string())));
  const TableId table = must(make_soon_table(database));
  must(add_soon(database, table, 1, soon_of(60'000)));
  const DurableToken token = database.durable_token();
  must(add_soon(database, table, 2, {}));
  CHECK(database.is_durable(token));
}

TEST_CASE("closing makes durable what is not yet, and calls back", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  std::atomic<int> calls{0};
  TableId table;
  {
    Database database = must(Database::open(small_options(path.string())));
    table = must(make_soon_table(database));
    must(add_soon(database, table, 1, soon_of(60'000)));
    database.when_durable(database.durable_token(),
                          [&](const Status& status) { calls += status.ok() ? 1 : 100; });
    while (calls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    must(add_soon(database, table, 2, soon_of(60'000)));
    database.when_durable(database.durable_token(),
                          [&](const Status& status) { calls += status.ok() ? 1 : 100; });
    must(add_soon(database, table, 3, soon_of(60'000)));
  }
  CHECK(calls == 2);
  Database again = must(Database::open(small_options(path.string())));
  for (const std::int64_t number : {1, 2, 3}) CHECK(has_soon_row(again, table, number));
}

TEST_CASE("tokens of another database and times out of bounds are refused", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  TemporaryDatabase other;
  Database database = must(Database::open(small_options(path.string())));
  const DurableToken foreign = other->durable_token();
  CHECK(database.wait_durable(foreign).code() == StatusCode::kInvalidArgument);
  CHECK_FALSE(database.is_durable(foreign));
  StatusCode called = StatusCode::kOk;
  database.when_durable(foreign, [&](const Status& status) { called = status.code(); });
  CHECK(called == StatusCode::kInvalidArgument);
  CHECK(database.is_durable(DurableToken()));
  must(database.wait_durable(DurableToken()));

  const TableId table = must(make_soon_table(database));
  for (const int ms : {-1, 60'001}) {
    Transaction t = must(database.begin());
    must(t.insert(table, {Value::int64(ms)}).status());
    CHECK(t.commit(soon_of(ms)).code() == StatusCode::kInvalidArgument);
    CHECK(t.is_open());
    must(t.commit());
  }
}

TEST_CASE("a kill leaves no gap in the commits, and takes none back that was durable",
          "[api][soon]") {
  for (int round = 1; round <= 3; ++round) {
    const TemporaryPath path("/var/tmp");
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const pid_t child = ::fork();
    if (child == 0) add_until_killed(path.string(), pipe[1]);
    ::close(pipe[1]);
    std::int64_t durable = 0;
    for (int i = 0; i < 4 * round; ++i)
      REQUIRE(::read(pipe[0], &durable, sizeof durable) == sizeof durable);
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    std::int64_t next = 0;
    while (::read(pipe[0], &next, sizeof next) == sizeof next) durable = next;
    ::close(pipe[0]);

    Database database = must(Database::open(small_options(path.string())));
    const TableId table = must(database.find_table("numbers"));
    const Transaction t = must(database.begin(AccessMode::kReadOnly));
    std::int64_t last = 0;
    while (t.get({table, 0}, {Value::int64(last + 1)}).ok()) ++last;
    CHECK(last >= durable);
    for (std::int64_t beyond = last + 2; beyond < last + 500; ++beyond)
      CHECK_FALSE(t.get({table, 0}, {Value::int64(beyond)}).ok());
  }
}

}  // namespace flugs::test
