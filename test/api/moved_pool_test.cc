// A pool on a disk that is moved while it is open, or was not closed: its journal stays safe from
// the next pool of its old name.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableId make_moved_table(Database& database) {
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).primary_key({"id"});
  return must(database.create_table(schema));
}

void insert_moved(Database& database, TableId table, std::int64_t id) {
  Transaction t = must(database.begin());
  must(t.insert(table, {Value::int64(id)}).status());
  must(t.commit());
}

bool has_moved_row(Database& database, std::int64_t id) {
  const TableId table = must(database.find_table("rows"));
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  return t.get({table, 0}, {Value::int64(id)}).ok();
}

Status open_moved_at(const TemporaryPath& path) {
  return Database::open(small_options(path.string())).status();
}

bool names_file(const Status& status, const std::string& what) {
  return status.message().find(what) != std::string_view::npos;
}

void move_file(const std::string& from, const std::string& to) {
  REQUIRE(std::rename(from.c_str(), to.c_str()) == 0);
}

/// A process that leaves a row in a pool, and does not close it. False: the path is on no disk.
bool leave_unclosed_pool(const TemporaryPath& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    Result<Database> database = Database::open(small_options(path.string()));
    if (!database.ok()) ::_exit(2);
    if (database->statistics().medium != "file") ::_exit(1);
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).primary_key({"id"});
    const Result<TableId> table = database->create_table(schema);
    Result<Transaction> t = database->begin();
    const bool is_done =
        table.ok() && t.ok() && t->insert(*table, {Value::int64(7)}).ok() && t->commit().ok();
    ::_exit(is_done ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("an open pool that was moved keeps its journal", "[api][moved]") {
  const TemporaryPath path("/var/tmp");
  const TemporaryPath moved("/var/tmp");
  Result<Database> database = Database::open(small_options(path.string()));
  must(database.status());
  if (database->statistics().medium != "file") return;
  const TableId table = make_moved_table(*database);
  move_file(path.string(), moved.string());
  const Status refused = open_moved_at(path);
  CHECK(refused.code() == StatusCode::kBusy);
  CHECK(names_file(refused, path.journal()));
  CHECK(::access(path.string().c_str(), F_OK) != 0);  // nothing half-made is left
  insert_moved(*database, table, 1);
  {
    const Database closing = *std::move(database);
  }
  must(open_moved_at(path));  // a closed journal is begun anew
  Database again = must(Database::open(small_options(moved.string())));
  CHECK(has_moved_row(again, 1));
}

TEST_CASE("the journal of a pool that was not closed is not begun anew", "[api][moved]") {
  const TemporaryPath path("/var/tmp");
  const TemporaryPath moved("/var/tmp");
  if (!leave_unclosed_pool(path)) return;
  move_file(path.string(), moved.string());
  const Status refused = open_moved_at(path);
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(names_file(refused, path.journal()));
  CHECK(names_file(refused, "not closed"));
  CHECK(::access(path.string().c_str(), F_OK) != 0);
  CHECK(open_moved_at(moved).code() == StatusCode::kNotFound);
  move_file(path.journal(), moved.journal());
  must(open_moved_at(path));
  Database again = must(Database::open(small_options(moved.string())));
  CHECK(has_moved_row(again, 7));
}

TEST_CASE("a pool is opened again beside its own journal, closed or not", "[api][moved]") {
  const TemporaryPath path("/var/tmp");
  if (!leave_unclosed_pool(path)) return;
  for (int i = 0; i < 3; ++i) {
    Database database = must(Database::open(small_options(path.string())));
    CHECK(has_moved_row(database, 7));
  }
}

TEST_CASE("another file in the journal's place is left alone", "[api][moved]") {
  const TemporaryPath path("/var/tmp");
  std::FILE* file = std::fopen(path.journal().c_str(), "w");
  REQUIRE(file != nullptr);
  REQUIRE(std::fputs("a user's notes", file) >= 0);
  std::fclose(file);
  const Result<Database> database = Database::open(small_options(path.string()));
  if (database.ok()) {
    CHECK(database->statistics().medium != "file");
    return;
  }
  CHECK(database.status().code() == StatusCode::kInvalidArgument);
  CHECK(names_file(database.status(), path.journal()));
  file = std::fopen(path.journal().c_str(), "r");
  char text[32] = {};
  REQUIRE(std::fgets(text, sizeof text, file) != nullptr);
  std::fclose(file);
  CHECK(std::string(text) == "a user's notes");
}

}  // namespace flugs::test
