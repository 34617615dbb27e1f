#include <catch2/catch.hpp>
#include <iterator>
#include <string>
#include <vector>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/random.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

namespace {

/// The message of CREATE VIRTUAL TABLE.
std::string refusal(Connection& connection, const std::string& columns) {
  if (connection.run("CREATE VIRTUAL TABLE temp.wrong USING flugs(" + columns + ")") == SQLITE_OK)
    return "made";
  return connection.message();
}

}  // namespace

TEST_CASE("what is wrong in a definition is said") {
  Connection own(":memory:");
  using Catch::Contains;
  CHECK_THAT(refusal(own, "a"), Contains("column a has no type"));
  CHECK_THAT(refusal(own, "a MONEY"), Contains("'MONEY'"));
  CHECK_THAT(refusal(own, "a DECIMAL"), Contains("DECIMAL(18,2)"));
  CHECK_THAT(refusal(own, "a DECIMAL(19,2)"), Contains("1 to 18"));
  CHECK_THAT(refusal(own, "a DECIMAL(4,x)"), Contains("digits"));
  CHECK_THAT(refusal(own, "a INTEGER(5)"), Contains("only DECIMAL"));
  CHECK_THAT(refusal(own, "a INTEGER NOT"), Contains("something is missing"));
  CHECK_THAT(refusal(own, "a INTEGER DEFAULT 'x'"), Contains("default of column a"));
  CHECK_THAT(refusal(own, "a INTEGER DEFAULT 1.5"), Contains("default of column a"));
  CHECK_THAT(refusal(own, "a INTEGER, PRIMARY KEY(b)"), Contains("b"));
  CHECK_THAT(refusal(own, "a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY"), Contains("one PRIMARY"));
  CHECK_THAT(refusal(own, "a INTEGER CHECK(a > 1)"), Contains("CHECK"));
  CHECK_THAT(refusal(own, "a INTEGER, CHECK(a > 1)"), Contains("CHECK"));
  CHECK_THAT(refusal(own, "a INTEGER ORDERED"), Contains("ORDERED belongs"));
  CHECK_THAT(refusal(own, "a INTEGER, a TEXT"), Contains("a"));
  CHECK_THAT(refusal(own, "a INTEGER, INDEX i a"), Contains("'(' and columns"));
  CHECK_THAT(refusal(own, "a INTEGER REFERENCES nowhere"), Contains("nowhere"));
  CHECK_THAT(refusal(own, "a INTEGER PRIMARY KEY DESC"), Contains("'DESC'"));
  CHECK_THAT(refusal(own, ""), Contains("wrong"));
  CHECK(own.rows("SELECT name FROM temp.sqlite_master WHERE name = 'wrong'").empty());
}

TEST_CASE("comments may stand in a definition") {
  Connection own(":memory:");
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(a INTEGER /* it's, or\nso */ NOT NULL, "
                  "b TEXT DEFAULT '--' -- so\n NOT NULL, /* and */ INDEX by_b(b /**/) -- end\n)") ==
          SQLITE_OK);
  const std::string schema = own.value("SELECT flugs_schema('t')");
  CHECK(schema.find("\"a\" INTEGER NOT NULL") != std::string::npos);
  CHECK(schema.find("\"b\" TEXT NOT NULL DEFAULT '--'") != std::string::npos);
  CHECK(own.run("SELECT flugs_add_column('t', 'c INTEGER -- more')") == SQLITE_OK);
  CHECK(own.run("SELECT flugs_add_column('t', 'd INTEGER DEFAULT - 5')") == SQLITE_OK);
}

TEST_CASE("definitions of random words are made or refused") {
  Connection own(":memory:");
  static constexpr const char* kPieces[] = {
      "a",       "b",    "\"c d\"",    "INTEGER", "TEXT",    "DECIMAL",      "(",      ")",
      "18",      "2",    ",",          ",",       "PRIMARY", "KEY",          "UNIQUE", "INDEX",
      "NOT",     "NULL", "DEFAULT",    "-",       "1.5e3",   "'it''s'",      "x'0g'",  "x'0f'",
      "ORDERED", "BLOB", "CONSTRAINT", "FOREIGN", "CHECK",   "REFERENCES",   "ON",     "CASCADE",
      "HASHED",  "BY",   "FIRST",      "16",      "DATE",    "'2026-01-01'", "*",      "[e]"};
  Random random(3);
  std::size_t made = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string words = "a INTEGER";
    const std::uint64_t count = random.below(9);
    for (std::uint64_t word = 0; word < count; ++word)
      words += std::string(" ") + kPieces[random.below(std::size(kPieces))];
    if (own.run("CREATE VIRTUAL TABLE temp.r USING flugs(" + words + ")") != SQLITE_OK) {
      CHECK(!own.message().empty());
      continue;
    }
    ++made;
    INFO(words);
    REQUIRE(own.run("DROP TABLE r") == SQLITE_OK);
  }
  CHECK(made > 300);
}

TEST_CASE("a definition makes the table that it describes") {
  const TemporaryPath path;
  {
    Connection own(path.string());
    REQUIRE(own.run("CREATE VIRTUAL TABLE temp.\"odd \"\"name\" USING flugs("
                    "\"key\" INTEGER PRIMARY KEY AUTOINCREMENT, "
                    "t TEXT NOT NULL DEFAULT 'it''s', d DECIMAL(10,3) DEFAULT -1.5, "
                    "f DOUBLE PRECISION DEFAULT (2), g BOOLEAN DEFAULT TRUE, "
                    "day DATE DEFAULT '2026-02-28', at DATETIME DEFAULT '2026-02-28 12:00', "
                    "x BLOB DEFAULT x'00ff', n INT32 DEFAULT NULL, "
                    "CONSTRAINT pair UNIQUE(t, n), UNIQUE INDEX later(day, at))") == SQLITE_OK);
    REQUIRE(own.run("INSERT INTO \"odd \"\"name\"(n) VALUES(7)") == SQLITE_OK);
    CHECK(sqlite3_last_insert_rowid(own.db()) == 1);
  }
  Connection own(path.string());
  CHECK(own.rows("SELECT \"key\", t, d, f, g, day, at, hex(x), n FROM \"odd \"\"name\"") ==
        std::vector<std::string>{"1", "it's", "-1.5", "2.0", "1", "2026-02-28",
                                 "2026-02-28 12:00:00", "00FF", "7"});
  CHECK(own.run("INSERT INTO \"odd \"\"name\"(t, n, day) VALUES('it''s', 7, '2026-03-01')") ==
        SQLITE_CONSTRAINT);
  CHECK(
      own.rows("SELECT name, type, \"notnull\", pk FROM pragma_table_info('odd \"name') LIMIT 2") ==
      std::vector<std::string>{"key", "INTEGER", "1", "1", "t", "TEXT", "1", "0"});
}

TEST_CASE("the definition that a table gives makes the same table") {
  Connection own(":memory:");
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.maker USING flugs(id INTEGER PRIMARY KEY, "
                  "CONSTRAINT odd UNIQUE(id) ORDERED)") == SQLITE_OK);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(a INTEGER AUTOINCREMENT, "
                  "b DECIMAL(18,2) NOT NULL DEFAULT -1.5, c TEXT DEFAULT 'it''s', "
                  "d BLOB DEFAULT x'00ff', e BOOLEAN DEFAULT TRUE, f REAL DEFAULT 0.1, "
                  "g DATE DEFAULT '2026-01-02', h TIMESTAMP DEFAULT '2026-01-02 03:04:05', "
                  "i INTEGER REFERENCES maker KEY odd ON DELETE CASCADE ON UPDATE SET NULL, "
                  "j INT32, PRIMARY KEY(a, j) HASHED BY FIRST 1, UNIQUE(j) ORDERED, UNIQUE(c, d), "
                  "INDEX by_e(e, f))") == SQLITE_OK);
  const std::string first = own.value("SELECT flugs_schema('t')");
  REQUIRE(own.run("DROP TABLE t") == SQLITE_OK);
  INFO(first);
  REQUIRE(own.run(first) == SQLITE_OK);
  CHECK(own.value("SELECT flugs_schema('t')") == first);
  REQUIRE(own.run("INSERT INTO t(j) VALUES(5)") == SQLITE_OK);
  CHECK(own.rows("SELECT b, c, hex(d), e, f, g, h FROM t WHERE a = 1") ==
        std::vector<std::string>{"-1.5", "it's", "00FF", "1", "0.1", "2026-01-02",
                                 "2026-01-02 03:04:05"});
  CHECK(own.run("SELECT flugs_schema('nothing')") != SQLITE_OK);
}

TEST_CASE("foreign keys of flugs hold in SQL") {
  Connection own(":memory:");
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.customer USING flugs(id INTEGER PRIMARY KEY)") ==
          SQLITE_OK);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.sale USING flugs(id INTEGER PRIMARY KEY, "
                  "customer INTEGER REFERENCES customer ON DELETE CASCADE)") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO customer VALUES(1), (2)") == SQLITE_OK);
  CHECK(own.run("INSERT INTO sale VALUES(1, 3)") == SQLITE_CONSTRAINT);
  REQUIRE(own.run("INSERT INTO sale VALUES(1, 1), (2, 2), (3, 2)") == SQLITE_OK);
  REQUIRE(own.run("DELETE FROM customer WHERE id = 2") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM sale") == "1");
  CHECK(own.run("DROP TABLE customer") != SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM customer") == "1");
}

TEST_CASE("tables are changed by functions, and dropped") {
  const TemporaryPath path;
  Connection own(path.string());
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, a TEXT)") ==
          SQLITE_OK);
  REQUIRE(own.run("INSERT INTO t VALUES(1, 'x'), (2, 'y')") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_add_column('t', 'n INTEGER NOT NULL DEFAULT 5')") == SQLITE_OK);
  CHECK(own.rows("SELECT * FROM t ORDER BY id") ==
        std::vector<std::string>{"1", "x", "5", "2", "y", "5"});
  REQUIRE(own.run("SELECT flugs_rename_column('t', 'a', 'b')") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_add_index('t', 'INDEX by_b(b)')") == SQLITE_OK);
  CHECK(own.rows("EXPLAIN QUERY PLAN SELECT * FROM t WHERE b = 'y'").back().find("by_b (b=?)") !=
        std::string::npos);
  CHECK(own.value("SELECT id FROM t WHERE b = 'y'") == "2");
  CHECK(own.run("SELECT flugs_drop_column('t', 'b')") == SQLITE_CONSTRAINT);
  REQUIRE(own.run("SELECT flugs_drop_index('t', 'by_b')") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_drop_column('t', 'b')") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO t VALUES(3, 6)") == SQLITE_OK);
  CHECK(own.value("SELECT sum(n) FROM t") == "16");
  CHECK(own.run("SELECT flugs_add_column('t', 'id TEXT')") != SQLITE_OK);
  CHECK(own.run("SELECT flugs_add_column('nothing', 'x TEXT')") != SQLITE_OK);
  CHECK(own.run("SELECT flugs_add_column('t', 5)") != SQLITE_OK);
  REQUIRE(own.run("ALTER TABLE t RENAME TO u") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM u") == "3");
  CHECK(own.value("SELECT flugs_merge('u')") == "3");
  CHECK(own.value("SELECT value FROM flugs_statistics WHERE \"table\" = 'u' AND "
                  "name = 'group_rows'") == "3");
  CHECK(own.value("SELECT flugs_merge()") == "0");
  CHECK(own.value("SELECT sum(n) FROM u") == "16");
  // Another connection sees what has changed when it opens the pool again.
  Connection other(path.string());
  REQUIRE(own.run("DROP TABLE u") == SQLITE_OK);
  CHECK(other.run("SELECT * FROM u") == SQLITE_ERROR);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.v USING flugs(a TEXT)") == SQLITE_OK);
  CHECK(other.run("SELECT * FROM v") == SQLITE_ERROR);
  REQUIRE(other.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
  CHECK(other.value("SELECT count(*) FROM v") == "0");
  CHECK(other.run("SELECT * FROM u") == SQLITE_ERROR);
}

TEST_CASE("an extension that is loaded again leaves the pool and its tables as they are") {
  const TemporaryPath path;
  Connection own(path.string());
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY)") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO t VALUES(1), (2)") == SQLITE_OK);
  REQUIRE(own.run("BEGIN; INSERT INTO t VALUES(3)") == SQLITE_OK);
  char* error = nullptr;
  REQUIRE(sqlite3_flugssqlite_init(own.db(), &error, nullptr) == SQLITE_OK);
  REQUIRE(own.run("COMMIT") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM t") == "3");
  REQUIRE(own.run("SELECT flugs_close()") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM t") == "3");
}

TEST_CASE("what changes tables is refused within a transaction") {
  Connection own(":memory:");
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY)") == SQLITE_OK);
  REQUIRE(own.run("BEGIN; INSERT INTO t VALUES(1)") == SQLITE_OK);
  for (const char* sql :
       {"CREATE VIRTUAL TABLE temp.u USING flugs(id INTEGER)", "DROP TABLE t",
        "ALTER TABLE t RENAME TO u", "SELECT flugs_add_column('t', 'x TEXT')",
        "SELECT flugs_merge()", "SELECT flugs_close()", "SELECT flugs_open(':memory:')"}) {
    INFO(sql);
    CHECK(own.run(sql) != SQLITE_OK);
    // Of DROP, SQLite keeps the message to itself.
    CHECK(own.message().find(sql[0] == 'D' ? "locked" : "COMMIT first") != std::string::npos);
  }
  REQUIRE(own.run("COMMIT") == SQLITE_OK);
  CHECK(own.value("SELECT count(*) FROM t") == "1");
}

TEST_CASE("opening says what is wrong") {
  const TemporaryPath path;
  Connection own;
  using Catch::Contains;
  const auto refused = [&](const std::string& arguments) {
    CHECK(own.run("SELECT flugs_open(" + arguments + ")") != SQLITE_OK);
    return own.message();
  };
  CHECK_THAT(refused(""), Contains("needs a path"));
  CHECK_THAT(refused("5"), Contains("must be a text"));
  CHECK_THAT(refused("'" + path.string() + "', 'must_exist'"), Contains("not found"));
  CHECK_THAT(refused("'" + path.string() + "', 'max_bytes=x'"), Contains("no number"));
  CHECK_THAT(refused("'" + path.string() + "', 'quickly'"), Contains("isolation=serializable"));
  CHECK_THAT(refused("'/nowhere/at/all'"), Contains("/nowhere"));
  CHECK(own.run("SELECT flugs_close()") != SQLITE_OK);
  CHECK(own.run("SELECT flugs_merge()") != SQLITE_OK);
  CHECK(own.run("CREATE VIRTUAL TABLE t USING flugs(a TEXT)") != SQLITE_OK);
  CHECK_THAT(own.message(), Contains("flugs_open"));
  REQUIRE(own.run("SELECT flugs_open('" + path.string() +
                  "', 'max_bytes=67108864', 'isolation=serializable')") == SQLITE_OK);
  CHECK_THAT(refused("':memory:'"), Contains("flugs_close"));
  CHECK(own.run("DELETE FROM flugs_statistics") == SQLITE_READONLY);
  CHECK(own.value("SELECT value FROM flugs_statistics WHERE name = 'pool_reserved_bytes'") ==
        "67108864");
}

namespace {

/// A table with a column of each type that SQLite lacks, and four rows.
void make_times(Connection& own) {
  REQUIRE(
      own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, d DECIMAL(18,2), "
              "n DECIMAL(18,0), day DATE, at TIMESTAMP, b BOOLEAN, INDEX by_d(d), "
              "INDEX by_day(day), INDEX by_at(at), INDEX by_b(b))") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO t VALUES"
                  "(1, 12.34, 5, '2026-02-28', '2026-02-28 10:20:30', 0), "
                  "(2, '-0.05', 123456789012345678, '1969-12-31', '1969-12-31T23:59:59.5Z', 1), "
                  "(3, 7, NULL, NULL, '2026-02-28', TRUE), "
                  "(4, '1234567890123456.78', -5, '0001-01-01', '2026-03-01 00:00', NULL)") ==
          SQLITE_OK);
}

}  // namespace

TEST_CASE("decimals, dates and moments have the forms of the manual") {
  Connection own(":memory:");
  make_times(own);
  CHECK(own.rows("SELECT d, typeof(d), n, day, at, b FROM t ORDER BY id") ==
        std::vector<std::string>{"12.34",
                                 "real",
                                 "5",
                                 "2026-02-28",
                                 "2026-02-28 10:20:30",
                                 "0",
                                 "-0.05",
                                 "real",
                                 "123456789012345678",
                                 "1969-12-31",
                                 "1969-12-31 23:59:59.500000",
                                 "1",
                                 "7.0",
                                 "real",
                                 "NULL",
                                 "NULL",
                                 "2026-02-28 00:00:00",
                                 "1",
                                 "1234567890123456.78",
                                 "text",
                                 "-5",
                                 "0001-01-01",
                                 "2026-03-01 00:00:00",
                                 "NULL"});
  for (const char* row : {"9, 1.234, 0, NULL, NULL, 0", "9, 'x', 0, NULL, NULL, 0",
                          "9, 0, 0.5, NULL, NULL, 0", "9, 0, 0, '2026-02-30', NULL, 0",
                          "9, 0, 0, 20260228, NULL, 0", "9, 0, 0, NULL, '2026-02-28 25:00', 0",
                          "9, 0, 0, NULL, NULL, 2", "9, 1e18, 0, NULL, NULL, 0"}) {
    INFO(row);
    CHECK(own.run(std::string("INSERT INTO t VALUES(") + row + ")") == SQLITE_CONSTRAINT);
  }
  CHECK(own.value("SELECT count(*) FROM t") == "4");
}

TEST_CASE("conditions on decimals, dates and moments find the rows that they should") {
  Connection own(":memory:");
  make_times(own);
  const auto ids = [&](const std::string& where) {
    std::string all;
    for (const std::string& id : own.rows("SELECT id FROM t WHERE " + where + " ORDER BY id"))
      all += id;
    return all;
  };
  CHECK(ids("d = 12.34") == "1");
  CHECK(ids("d = '12.34'") == "1");
  CHECK(ids("d > 0.1 AND d < 100") == "13");
  CHECK(ids("d >= -0.05") == "1234");
  CHECK(ids("d IN (7, 12.34)") == "13");
  CHECK(ids("n > 4") == "12");
  CHECK(ids("day >= '1969-12-31'") == "12");
  CHECK(ids("day = date('2026-02-27', '+1 day')") == "1");
  CHECK(ids("at >= '2026-02-28'") == "134");
  CHECK(ids("at > '2026-02-28' AND at < '2026-03-01'") == "13");
  CHECK(ids("at = '2026-02-28 00:00:00'") == "3");
  CHECK(ids("at BETWEEN '2026-02-28 00:00:00' AND '2026-02-28 10:20:30'") == "13");
  CHECK(ids("date(at) = '2026-02-28'") == "13");
  CHECK(ids("b") == "23");
  CHECK(ids("b = 0") == "1");
  CHECK(ids("b > 5") == "");
}

}  // namespace flugs::test
