#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

namespace {

constexpr const char* kAccounts =
    "CREATE VIRTUAL TABLE temp.account USING flugs(id INTEGER PRIMARY KEY, owner TEXT, "
    "balance INTEGER NOT NULL)";

}  // namespace

TEST_CASE("two connections write at the same time, and the second writer of a row is told") {
  const TemporaryPath path;
  Connection first(path.string());
  REQUIRE(first.run(kAccounts) == SQLITE_OK);
  REQUIRE(first.run("INSERT INTO account VALUES(1, 'Ada', 10), (2, 'Bob', 20)") == SQLITE_OK);
  Connection second(path.string());
  REQUIRE(first.run("BEGIN; UPDATE account SET balance = 11 WHERE id = 1") == SQLITE_OK);
  REQUIRE(second.run("BEGIN; UPDATE account SET balance = 21 WHERE id = 2") == SQLITE_OK);
  CHECK(second.run("UPDATE account SET balance = 12 WHERE id = 1") == SQLITE_BUSY);
  CHECK(second.message().find("conflict") != std::string::npos);
  CHECK(second.value("SELECT balance FROM account WHERE id = 1") == "10");
  REQUIRE(first.run("COMMIT") == SQLITE_OK);
  CHECK(second.value("SELECT balance FROM account WHERE id = 1") == "10");  // its snapshot
  REQUIRE(second.run("COMMIT") == SQLITE_OK);
  for (Connection* connection : {&first, &second})
    CHECK(connection->rows("SELECT balance FROM account ORDER BY id") ==
          std::vector<std::string>{"11", "21"});
}

TEST_CASE("a commit that fails takes all back, and the connection goes on") {
  const TemporaryPath path;
  const auto open = [&](Connection& connection) {
    REQUIRE(connection.run("SELECT flugs_open('" + path.string() +
                           "', 'isolation=serializable')") == SQLITE_OK);
  };
  Connection first;
  open(first);
  REQUIRE(first.run(kAccounts) == SQLITE_OK);
  REQUIRE(first.run("INSERT INTO account VALUES(1, 'Ada', 10), (2, 'Bob', 20)") == SQLITE_OK);
  Connection second;
  open(second);
  // Write skew: each reads what the other one changes.
  REQUIRE(first.run("BEGIN") == SQLITE_OK);
  REQUIRE(second.run("BEGIN") == SQLITE_OK);
  CHECK(first.value("SELECT sum(balance) FROM account") == "30");
  CHECK(second.value("SELECT sum(balance) FROM account") == "30");
  REQUIRE(first.run("UPDATE account SET balance = 0 WHERE id = 1") == SQLITE_OK);
  REQUIRE(second.run("UPDATE account SET balance = 0 WHERE id = 2") == SQLITE_OK);
  REQUIRE(first.run("COMMIT") == SQLITE_OK);
  CHECK((second.run("COMMIT") & 0xFF) == SQLITE_BUSY);
  CHECK(second.message().find("conflict") != std::string::npos);
  CHECK(sqlite3_get_autocommit(second.db()) != 0);
  CHECK(second.value("SELECT sum(balance) FROM account") == "20");
  REQUIRE(second.run("BEGIN; UPDATE account SET balance = 5 WHERE id = 2; COMMIT") == SQLITE_OK);
  CHECK(first.value("SELECT sum(balance) FROM account") == "5");
  CHECK(first.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
}

TEST_CASE("after a COMMIT that fails behind flugs' part, that part is not undone in silence") {
  const TemporaryPath path;
  const TemporaryPath file;
  Connection own(path.string());
  Connection other;
  for (Connection* connection : {&own, &other})
    REQUIRE(connection->run("ATTACH '" + file.string() + "' AS d") == SQLITE_OK);
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("CREATE TABLE d.n(a INTEGER PRIMARY KEY)") == SQLITE_OK);
  REQUIRE(other.run("BEGIN; SELECT count(*) FROM d.n") == SQLITE_OK);
  REQUIRE(own.run("BEGIN; SAVEPOINT a; INSERT INTO d.n VALUES(1); "
                  "INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
  REQUIRE(own.run("COMMIT") == SQLITE_BUSY);
  REQUIRE(sqlite3_get_autocommit(own.db()) == 0);
  // What can be done in SQLite can still be done, and undone.
  CHECK(own.run("INSERT INTO d.n VALUES(2), (3)") == SQLITE_OK);
  CHECK(own.run("INSERT INTO d.n VALUES(4), (1)") == SQLITE_CONSTRAINT);
  CHECK(own.run("SAVEPOINT b; DELETE FROM d.n; ROLLBACK TO b; RELEASE b") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM d.n") == "3");
  CHECK(own.value("SELECT count(*) FROM account") == "1");
  CHECK(own.run("INSERT INTO account VALUES(2, 'Bob', 20)") != SQLITE_OK);
  CHECK(own.message().find("COMMIT again") != std::string::npos);
  CHECK(own.run("SAVEPOINT c; UPDATE account SET balance = 0") != SQLITE_OK);
  std::string rows;
  SECTION("COMMIT again") {
    CHECK(own.run("COMMIT") == SQLITE_BUSY);
    REQUIRE(other.run("COMMIT") == SQLITE_OK);
    REQUIRE(own.run("COMMIT") == SQLITE_OK);
    rows = "3";
  }
  SECTION("a savepoint from before") {
    CHECK(own.run("ROLLBACK TO a") != SQLITE_OK);
    CHECK(own.value("SELECT count(*) FROM account") == "1");
    REQUIRE(own.run("ROLLBACK") == SQLITE_OK);
    rows = "0";
  }
  SECTION("ROLLBACK") {
    REQUIRE(own.run("ROLLBACK") == SQLITE_OK);
    rows = "0";
  }
  CHECK(own.value("SELECT count(*) FROM d.n") == rows);
  CHECK(own.value("SELECT sum(balance) FROM account") == "10");
  REQUIRE(own.run("BEGIN; SAVEPOINT a; UPDATE account SET balance = 0; ROLLBACK TO a; COMMIT") ==
          SQLITE_OK);
  CHECK(own.value("SELECT sum(balance) FROM account") == "10");
  CHECK(own.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
}

TEST_CASE("two threads move money between accounts, and none is lost") {
  const TemporaryPath path;
  Connection owner(path.string());
  REQUIRE(owner.run(kAccounts) == SQLITE_OK);
  REQUIRE(owner.run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) "
                    "INSERT INTO account SELECT i, 'x', 100 FROM n") == SQLITE_OK);
  std::atomic<int> moved{0};
  std::atomic<int> wrong{0};
  const auto work = [&](int number) {
    Connection own(path.string());
    for (int i = 0; i < 300; ++i) {
      const std::string from = std::to_string(1 + (i * 7 + number) % 10);
      const std::string to = std::to_string(1 + (i * 3 + number * 5) % 10);
      int code = own.run("BEGIN");
      if (code == SQLITE_OK && own.value("SELECT sum(balance) FROM account") != "1000") ++wrong;
      if (code == SQLITE_OK)
        code = own.run("UPDATE account SET balance = balance - 1 WHERE id = " + from);
      if (code == SQLITE_OK)
        code = own.run("UPDATE account SET balance = balance + 1 WHERE id = " + to);
      if (code == SQLITE_OK) code = own.run("COMMIT");
      if (code == SQLITE_OK) {
        ++moved;
      } else {
        if (code != SQLITE_BUSY) ++wrong;
        own.run("ROLLBACK");
      }
    }
  };
  std::thread other(work, 1);
  work(2);
  other.join();
  CHECK(wrong == 0);
  CHECK(moved > 0);
  CHECK(owner.value("SELECT sum(balance) FROM account") == "1000");
}

TEST_CASE("a transaction keeps its snapshot from its first read on") {
  const TemporaryPath path;
  Connection reader(path.string());
  REQUIRE(reader.run(kAccounts) == SQLITE_OK);
  REQUIRE(reader.run("INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
  Connection writer(path.string());
  REQUIRE(reader.run("BEGIN") == SQLITE_OK);
  CHECK(reader.value("SELECT balance FROM account") == "10");
  REQUIRE(writer.run("UPDATE account SET balance = 11") == SQLITE_OK);
  CHECK(reader.value("SELECT balance FROM account") == "10");
  REQUIRE(reader.run("COMMIT; BEGIN") == SQLITE_OK);
  CHECK(reader.value("SELECT balance FROM account") == "11");
  REQUIRE(writer.run("UPDATE account SET balance = 12") == SQLITE_OK);
  CHECK(reader.value("SELECT balance FROM account") == "11");
  REQUIRE(reader.run("ROLLBACK") == SQLITE_OK);
  CHECK(reader.value("SELECT balance FROM account") == "12");
  CHECK(writer.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
}

TEST_CASE("rows of a statement that is not finished outlive a commit, and fail after a rollback") {
  Connection own(":memory:");
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO account VALUES(1, 'Ada', 10), (2, 'Bob', 20), (3, 'Cyd', 30)") ==
          SQLITE_OK);
  for (const bool commits : {true, false}) {
    REQUIRE(own.run("BEGIN") == SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_prepare_v2(own.db(), "SELECT owner FROM account", -1, &statement, nullptr) ==
            SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    REQUIRE(own.run("UPDATE account SET owner = owner || '!' WHERE id = 3") == SQLITE_OK);
    REQUIRE(own.run(commits ? "COMMIT" : "ROLLBACK") == SQLITE_OK);
    if (commits) {
      int rows = 1;
      while (sqlite3_step(statement) == SQLITE_ROW) ++rows;
      CHECK(rows == 3);
      CHECK(sqlite3_finalize(statement) == SQLITE_OK);
    } else {
      CHECK((sqlite3_step(statement) & 0xFF) == SQLITE_ABORT);
      CHECK((sqlite3_finalize(statement) & 0xFF) == SQLITE_ABORT);
    }
  }
  CHECK(own.value("SELECT owner FROM account WHERE id = 3") == "Cyd!");
}

TEST_CASE("a reader goes on beside statements that fail or are undone in its transaction") {
  Connection own(":memory:");
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO account VALUES(1, 'Ada', 10), (2, 'Bob', 20), (3, 'Cyd', 30)") ==
          SQLITE_OK);
  for (const char* condition : {"", " WHERE id IN (1, 2, 3)", " ORDER BY id"}) {
    INFO(condition);
    REQUIRE(own.run("BEGIN; UPDATE account SET balance = balance + 1") == SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    const std::string sql = std::string("SELECT id, owner, balance FROM account") + condition;
    REQUIRE(sqlite3_prepare_v2(own.db(), sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    CHECK(own.run("INSERT INTO account SELECT id + 2, 'x', 0 FROM account ORDER BY id DESC") ==
          SQLITE_CONSTRAINT);
    REQUIRE(own.run("SAVEPOINT a; DELETE FROM account; ROLLBACK TO a; RELEASE a") == SQLITE_OK);
    int rows = 1;
    int sum = sqlite3_column_int(statement, 2);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      ++rows;
      sum += sqlite3_column_int(statement, 2);
    }
    CHECK(rows == 3);
    CHECK(sum == 63);
    CHECK(sqlite3_finalize(statement) == SQLITE_OK);
    CHECK(own.value("SELECT count(*) FROM account") == "3");
    REQUIRE(own.run("ROLLBACK") == SQLITE_OK);
  }
}

TEST_CASE("a writer between two steps of a reader in autocommit does not disturb it") {
  Connection own(":memory:");
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO account VALUES(1, 'Ada', 10), (2, 'Bob', 20), (3, 'Cyd', 30)") ==
          SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(own.db(), "SELECT sum(balance) OVER (), id FROM account", -1,
                             &statement, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  REQUIRE(own.run("DELETE FROM account WHERE id = 2") == SQLITE_OK);
  CHECK(sqlite3_step(statement) == SQLITE_ROW);
  CHECK(sqlite3_column_int(statement, 0) == 60);
  CHECK(sqlite3_finalize(statement) == SQLITE_OK);
  CHECK(own.value("SELECT sum(balance) FROM account") == "40");
}

TEST_CASE("beside a statement that is not finished, others see what the connection commits") {
  Connection sqlite;
  REQUIRE(sqlite.run("CREATE TABLE account(id INTEGER PRIMARY KEY, owner TEXT, balance INT)") ==
          SQLITE_OK);
  Connection flugs(":memory:");
  REQUIRE(flugs.run(kAccounts) == SQLITE_OK);
  std::vector<std::string> seen[2];
  for (Connection* own : {&sqlite, &flugs}) {
    REQUIRE(own->run("INSERT INTO account VALUES(1, 'Ada', 0), (2, 'Bob', 0), (3, 'Cyd', 0)") ==
            SQLITE_OK);
    std::vector<std::string>& values = seen[own == &flugs ? 1 : 0];
    sqlite3_stmt* outer[2] = {};
    for (sqlite3_stmt*& statement : outer)
      REQUIRE(sqlite3_prepare_v2(own->db(), "SELECT id FROM account", -1, &statement, nullptr) ==
              SQLITE_OK);
    for (int i = 0; i < 3; ++i) {
      // The second one begins, ends and begins again between commits.
      REQUIRE(sqlite3_step(outer[0]) == SQLITE_ROW);
      REQUIRE(sqlite3_step(outer[1]) == SQLITE_ROW);
      const std::string id = std::to_string(sqlite3_column_int(outer[0], 0));
      REQUIRE(own->run("UPDATE account SET balance = balance + 1 WHERE id = " + id) == SQLITE_OK);
      values.push_back(own->value("SELECT balance FROM account WHERE id = " + id));
      REQUIRE(own->run("BEGIN; UPDATE account SET balance = balance + 10; COMMIT") == SQLITE_OK);
      values.push_back(own->value("SELECT sum(balance) FROM account"));
      REQUIRE(own->run("BEGIN; UPDATE account SET balance = 0; ROLLBACK") == SQLITE_OK);
      values.push_back(own->value("SELECT sum(balance) FROM account"));
      if (i != 1) REQUIRE(sqlite3_reset(outer[1]) == SQLITE_OK);
    }
    CHECK(sqlite3_step(outer[0]) == SQLITE_DONE);
    for (sqlite3_stmt* statement : outer) CHECK(sqlite3_finalize(statement) == SQLITE_OK);
  }
  CHECK(seen[0] == seen[1]);
  CHECK(flugs.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
}

TEST_CASE("a pool that is opened inside of a transaction is shown again after a rollback") {
  const TemporaryPath path;
  Connection maker(path.string());
  REQUIRE(maker.run(kAccounts) == SQLITE_OK);
  Connection own;
  const std::string open = "SELECT flugs_open('" + path.string() + "')";
  REQUIRE(own.run("BEGIN") == SQLITE_OK);
  REQUIRE(own.run(open) == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO account VALUES(1, 'Ada', 10); ROLLBACK") == SQLITE_OK);
  CHECK(own.run("SELECT * FROM account") == SQLITE_ERROR);
  REQUIRE(own.run(open) == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM account") == "0");
  REQUIRE(own.run("BEGIN; INSERT INTO account VALUES(1, 'Ada', 10); COMMIT") == SQLITE_OK);
  CHECK(maker.value("SELECT owner FROM account") == "Ada");
}

TEST_CASE("a connection that may only query reads in autocommit, and is told why not in BEGIN") {
  Connection own(":memory:");
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("PRAGMA query_only = 1") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM account") == "0");
  REQUIRE(own.run("BEGIN") == SQLITE_OK);
  CHECK(own.run("SELECT count(*) FROM account") != SQLITE_OK);
  CHECK(own.message().find("readonly") != std::string::npos);
  REQUIRE(own.run("ROLLBACK; PRAGMA query_only = 0") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM account") == "0");
}

TEST_CASE("after a table was dropped, each statement sees what others have committed") {
  const TemporaryPath path;
  Connection own(path.string());
  REQUIRE(own.run(kAccounts) == SQLITE_OK);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.gone USING flugs(id INTEGER)") == SQLITE_OK);
  Connection other(path.string());
  for (const char* change : {"DROP TABLE gone", "ALTER TABLE account RENAME TO account2",
                             "SELECT flugs_rename_column('account2', 'owner', 'holder')"}) {
    INFO(change);
    REQUIRE(own.run(change) == SQLITE_OK);
    const std::string table = change[0] == 'D' ? "account" : "account2";
    const std::string count = own.value("SELECT count(*) FROM " + table);
    REQUIRE(other.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
    REQUIRE(other.run("INSERT INTO " + table + "(id, balance) VALUES(" + count + ", 0)") ==
            SQLITE_OK);
    CHECK(own.value("SELECT count(*) FROM " + table) == std::to_string(std::stoi(count) + 1));
    CHECK(own.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
  }
}

TEST_CASE("a connection may be closed in the middle of a transaction") {
  const TemporaryPath path;
  Connection other(path.string());
  REQUIRE(other.run(kAccounts) == SQLITE_OK);
  {
    Connection own(path.string());
    REQUIRE(own.run("BEGIN; INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
  }
  CHECK(other.value("SELECT count(*) FROM account") == "0");
  CHECK(other.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
}

TEST_CASE("connections may open a pool while others close it") {
  const TemporaryPath path;
  {
    Connection owner(path.string());
    REQUIRE(owner.run(kAccounts) == SQLITE_OK);
  }
  std::atomic<int> wrong{0};
  const auto work = [&](int number) {
    for (int i = 0; i < 30; ++i) {
      Connection own;
      if (own.run("SELECT flugs_open('" + path.string() + "')") != SQLITE_OK ||
          own.run("INSERT INTO account VALUES(" + std::to_string(i * 2 + number) + ", 'x', 1)") !=
              SQLITE_OK)
        ++wrong;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK(wrong == 0);
  CHECK(Connection(path.string()).value("SELECT count(*) FROM account") == "60");
}

TEST_CASE("a pool at the path of one that was removed is another pool") {
  const TemporaryPath path;
  Connection first(path.string());
  REQUIRE(first.run(kAccounts) == SQLITE_OK);
  REQUIRE(std::filesystem::remove(path.string()));
  Connection second(path.string());
  CHECK(second.run("SELECT * FROM account") == SQLITE_ERROR);
  REQUIRE(second.run(kAccounts) == SQLITE_OK);
  REQUIRE(second.run("INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
  CHECK(first.value("SELECT count(*) FROM account") == "0");
  // The first connection has the old pool still.
  CHECK((first.run("SELECT flugs_open('" + path.string() + "')") & 0xFF) == SQLITE_BUSY);
  REQUIRE(first.run("SELECT flugs_close()") == SQLITE_OK);
  REQUIRE(first.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
  CHECK(first.value("SELECT count(*) FROM account") == "1");
}

TEST_CASE("flugs_open beside a statement that reads, or in BEGIN, leaves all as it is") {
  const TemporaryPath path;
  const std::string open = "SELECT flugs_open('" + path.string() + "')";
  Connection own(path.string());
  for (const char* table : {"aa", "bb"})
    REQUIRE(own.run("CREATE VIRTUAL TABLE temp." + std::string(table) +
                    " USING flugs(k INTEGER PRIMARY KEY)") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO bb VALUES(1), (2)") == SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(own.db(), "SELECT k FROM bb", -1, &statement, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  CHECK((own.run(open) & 0xFF) == SQLITE_BUSY);
  CHECK(own.value("SELECT count(*) FROM aa") == "0");
  CHECK(sqlite3_step(statement) == SQLITE_ROW);
  CHECK(sqlite3_finalize(statement) == SQLITE_OK);
  REQUIRE(own.run("BEGIN") == SQLITE_OK);
  CHECK((own.run(open) & 0xFF) == SQLITE_BUSY);
  CHECK(own.value("SELECT count(*) FROM bb") == "2");
  REQUIRE(own.run("COMMIT") == SQLITE_OK);
  CHECK(own.run(open) == SQLITE_OK);
}

TEST_CASE("a pool that is open for reading only can be read inside of BEGIN") {
  const TemporaryPath path;
  {
    Connection maker(path.string());
    REQUIRE(maker.run(kAccounts) == SQLITE_OK);
    REQUIRE(maker.run("INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
  }
  Connection own;
  REQUIRE(own.run("SELECT flugs_open('" + path.string() + "', 'read_only')") == SQLITE_OK);
  REQUIRE(own.run("BEGIN") == SQLITE_OK);
  CHECK(own.value("SELECT owner FROM account") == "Ada");
  REQUIRE(own.run("SAVEPOINT here") == SQLITE_OK);
  CHECK(own.run("UPDATE account SET owner = 'Bob'") == SQLITE_READONLY);
  REQUIRE(own.run("ROLLBACK TO here; COMMIT") == SQLITE_OK);
  CHECK(own.run("DELETE FROM account") == SQLITE_READONLY);
  CHECK(own.value("SELECT owner FROM account") == "Ada");
}

TEST_CASE("the last connection closes the pool, and what is in it stays") {
  const TemporaryPath path;
  {
    Connection first(path.string());
    REQUIRE(first.run(kAccounts) == SQLITE_OK);
    Connection second(path.string());
    REQUIRE(second.run("INSERT INTO account VALUES(1, 'Ada', 10)") == SQLITE_OK);
    CHECK(first.run("SELECT flugs_close()") == SQLITE_OK);
    CHECK(first.run("SELECT * FROM account") == SQLITE_ERROR);
    CHECK(second.value("SELECT owner FROM account") == "Ada");
  }
  Connection again(path.string());
  CHECK(again.value("SELECT owner FROM account") == "Ada");
}

}  // namespace flugs::test
