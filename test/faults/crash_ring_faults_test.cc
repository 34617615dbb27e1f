// System calls that fail, and kills, around the crash ring of a pool on a disk.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "test/faults/system_calls.h"
#include "test/support/crash_rings.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kWaitingRows = 40;
constexpr CommitOptions kForProcess{.durability = Durability::kProcessCrash};
constexpr int kNoDisk = 7;
constexpr int kNotKilled = 9;

OpenOptions options_with_ring(const std::string& path, bool has_ring) {
  OpenOptions options = small_options(path);
  options.crash_ring = has_ring;
  options.tuning.grow_ahead_bytes = 0;
  // Nothing is written before a test asks for it.
  options.tuning.journal_bytes = std::uint64_t{16} << 20;
  options.tuning.restart_budget = std::chrono::seconds(10);
  return options;
}

Status add_row(Database& database, TableId table, std::int64_t id, const CommitOptions& how) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return std::move(t).status();
  if (Status s = t->insert(table, {Value::int64(id)}).status(); !s.ok()) return s;
  return t->commit(how);
}

/// The number of rows, which have the ids from 0 on.
std::int64_t rows_from_zero(Database& database) {
  if (!database.check().ok()) return -1;
  const Result<TableId> table = database.find_table("rows");
  const Result<Transaction> t = database.begin(AccessMode::kReadOnly);
  if (!table.ok() || !t.ok()) return -2;
  std::int64_t rows = 0;
  while (t->get({*table, 0}, {Value::int64(rows)}).ok()) ++rows;
  for (std::int64_t id = rows + 1; id < rows + kWaitingRows; ++id)
    if (t->get({*table, 0}, {Value::int64(id)}).ok()) return -3;
  return rows;
}

std::int64_t rows_of(const OpenOptions& options) {
  Database database = must(Database::open(options));
  return rows_from_zero(database);
}

/// Calls `work` in a process of its own, which ends with what it returns. Returns the exit status;
/// nothing: the process was killed.
std::optional<int> in_process(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  REQUIRE(WTERMSIG(status) == SIGKILL);
  return std::nullopt;
}

[[noreturn]] void die() {
  ::raise(SIGKILL);
  ::_exit(1);
}

/// In the process that dies: row 0 durably, the others for the process only.
Result<Database> open_with_rows(const std::string& path) {
  Result<Database> database = Database::open(options_with_ring(path, true));
  if (!database.ok()) return database;
  if (database->statistics().medium != "file") ::_exit(kNoDisk);
  TableSchema schema("rows");
  const Result<TableId> table =
      database->create_table(schema.column("id", Type::kInt64).primary_key({"id"}));
  if (!table.ok()) return table.status();
  for (std::int64_t id = 0; id < kWaitingRows; ++id)
    if (Status s = add_row(*database, *table, id, id == 0 ? CommitOptions{} : kForProcess); !s.ok())
      return s;
  return database;
}

/// False: there is no disk under /var/tmp.
bool leave_waiting_rows(const std::string& path) {
  const std::optional<int> status = in_process([&]() -> int {
    const Result<Database> database = open_with_rows(path);
    if (!database.ok()) return 1;
    die();
  });
  if (status == kNoDisk) WARN("not tested: /var/tmp is no file system on a device here");
  return !status.has_value();
}

/// Opens, and is killed when the n-th call is made that concerns the journal. False: there was no
/// such call.
bool open_and_die(const OpenOptions& options, int n) {
  const std::optional<int> status = in_process([&]() -> int {
    int calls = 0;
    observe_files(options.path, [&](const FileEvent& event) {
      if (event.is_journal && ++calls == n) die();
    });
    const Result<Database> database = Database::open(options);
    ::_exit(database.ok() ? kNotKilled : 1);
  });
  REQUIRE((!status.has_value() || status == kNotKilled));
  return !status.has_value();
}

}  // namespace

TEST_CASE("a failed write to the journal takes nothing from a crash ring", "[faults][ring]") {
  const TemporaryPath path("/var/tmp");
  const std::optional<int> status = in_process([&]() -> int {
    Result<Database> database = open_with_rows(path.string());
    if (!database.ok()) return 1;
    const TableId table = *database->find_table("rows");
    fail_system_call(SystemCall::kWrite, 1, EIO, 1000);
    const Status failed = add_row(*database, table, kWaitingRows, {});
    if (failed.code() != StatusCode::kIoError) return 2;
    if (failed.message().find(path.journal()) == std::string_view::npos) return 3;
    let_system_calls_work();
    for (const CommitOptions& how : {kForProcess, CommitOptions{}})
      if (add_row(*database, table, kWaitingRows + 1, how).code() != StatusCode::kIoError) return 4;
    if (rows_from_zero(*database) != kWaitingRows) return 5;
    die();
  });
  if (status == kNoDisk) return;
  REQUIRE(status == std::nullopt);
  Database database = must(Database::open(options_with_ring(path.string(), true)));
  // What was in the last write is there, or not.
  const std::int64_t rows = rows_from_zero(database);
  CHECK(rows >= kWaitingRows);
  CHECK(rows <= kWaitingRows + 1);
  must(add_row(database, must(database.find_table("rows")), rows, kForProcess));
}

TEST_CASE("an opening that finds no room for a crash ring says so, and loses nothing",
          "[faults][ring]") {
  bool has_named_ring = false;
  for (std::uint64_t n = 1;; ++n) {
    const TemporaryPath path("/var/tmp");
    if (!leave_waiting_rows(path.string())) return;
    fail_system_call(SystemCall::kAllocate, n, ENOSPC);
    const Status status = Database::open(options_with_ring(path.string(), true)).status();
    let_system_calls_work();
    if (failed_system_calls() == 0) break;
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kOutOfSpace);
    if (status.message().find(".ring") != std::string_view::npos) {
      has_named_ring = true;
      CHECK(status.message().find("/dev/shm/flugs-") != std::string_view::npos);
      CHECK(status.message().find("OpenOptions::crash_ring") != std::string_view::npos);
      CHECK(ring_files(path.string()).empty());
    }
    CHECK(rows_of(options_with_ring(path.string(), n % 2 == 0)) == kWaitingRows);
    CHECK(ring_files(path.string()).empty());
  }
  CHECK(has_named_ring);
}

TEST_CASE("an opening that is killed while it takes over a crash ring loses nothing",
          "[faults][ring]") {
  int deaths = 0;
  for (const bool has_ring : {false, true})
    for (int n = 1;; ++n) {
      const TemporaryPath path("/var/tmp");
      if (!leave_waiting_rows(path.string())) return;
      // Twice, and the second time perhaps at another step.
      const bool was_killed = open_and_die(options_with_ring(path.string(), has_ring), n);
      static_cast<void>(open_and_die(options_with_ring(path.string(), n % 2 == 0), (n + 1) / 2));
      INFO("call " << n << ", ring " << has_ring);
      CHECK(rows_of(options_with_ring(path.string(), has_ring)) == kWaitingRows);
      CHECK(ring_files(path.string()).empty());
      if (!was_killed) break;
      ++deaths;
    }
  CHECK(deaths > 4);  // pages of the ring, and the head, for both
}

TEST_CASE("an opening that is killed while it begins a journal leaves no crash ring",
          "[faults][ring]") {
  for (int n = 1;; ++n) {
    const TemporaryPath path("/var/tmp");
    if (!leave_waiting_rows(path.string())) return;
    CHECK(rows_of(options_with_ring(path.string(), true)) == kWaitingRows);
    const bool was_killed = open_and_die(options_with_ring(path.string(), true), n);
    static_cast<void>(open_and_die(options_with_ring(path.string(), true), (n + 1) / 2));
    INFO("call " << n);
    CHECK(rows_of(options_with_ring(path.string(), n % 2 == 0)) == kWaitingRows);
    CHECK(ring_files(path.string()).empty());
    if (!was_killed) break;
  }
}

}  // namespace flugs::test
