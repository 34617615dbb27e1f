// The n-th system call of a kind fails, for every n of creating, opening and growing. The result is
// a clear error or no harm; acknowledged data is kept; the next attempt works.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "test/faults/system_calls.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

struct Fault {
  SystemCall call;
  int error;
  const char* name;
};
constexpr Fault kFaults[] = {
    {SystemCall::kAllocate, ENOSPC, "fallocate ENOSPC"},
    {SystemCall::kAllocate, EIO, "fallocate EIO"},
    {SystemCall::kResize, EIO, "ftruncate EIO"},
    {SystemCall::kMap, ENOMEM, "mmap ENOMEM"},
    {SystemCall::kSync, EIO, "fsync EIO"},
    {SystemCall::kThread, EAGAIN, "pthread_create"},
};

TableSchema faulty_schema(const std::string& name = "rows") {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString);
  return schema.primary_key({"id"});
}

/// Rows `first` to `end` - 1 in one transaction.
Status insert(Database& database, TableId table, std::int64_t first, std::int64_t end,
              const CommitOptions& how = {}) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return std::move(t).status();
  for (std::int64_t id = first; id < end; ++id) {
    const std::string text = std::to_string(id) + std::string(500, 'r');
    const auto row = t->insert(table, {Value::int64(id), Value::string(text)});
    if (!row.ok()) return row.status();
  }
  return t->commit(how);
}

void check_rows(Database& database, std::int64_t end) {
  must(database.check());
  const TableId table = must(database.find_table("rows"));
  Transaction t = must(database.begin(AccessMode::kReadOnly));
  std::int64_t rows = 0;
  std::int64_t sum = 0;
  must(t.scan(table, {ColumnId(0)}, [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      ++rows;
      sum += batch.get_unchecked(0, i).as_int64();
    }
    return true;
  }));
  CHECK(rows == end);
  CHECK(sum == end * (end - 1) / 2);
}

/// Whether flugs can work without the failing call, so that opening succeeds.
bool may_go_unnoticed(const Fault& fault) { return fault.call == SystemCall::kThread; }

OpenOptions options_at(const std::string& path) {
  OpenOptions options = small_options(path);
  options.segment_bytes = std::uint64_t{1} << 20;
  options.tuning.grow_ahead_bytes = std::uint64_t{1} << 20;
  return options;
}

/// Opens while the n-th call fails; returns whether one did.
bool open_with_fault(const Fault& fault, OpenOptions options, std::uint64_t n, std::int64_t rows) {
  // The thread that grows ahead may get its failure after opening has returned.
  if (fault.call == SystemCall::kAllocate) options.tuning.grow_ahead_bytes = 0;
  fail_system_call(fault.call, n, fault.error);
  Result<Database> database = Database::open(options);
  let_system_calls_work();
  const bool injected = failed_system_calls() != 0;
  INFO(fault.name << ", call " << n << ": " << database.status().to_string());
  REQUIRE((database.ok() || injected));
  if (database.ok()) {
    CHECK((!injected || may_go_unnoticed(fault) || fault.call == SystemCall::kMap));
    if (rows != 0) check_rows(*database, rows);
  } else {
    CHECK(!database.status().message().empty());
    CHECK(database.status().code() != StatusCode::kCorrupt);
  }
  return injected;
}

}  // namespace

TEST_CASE("a system call fails while a pool is created", "[faults]") {
  for (const Fault& fault : kFaults)
    for (std::uint64_t n = 1;; ++n) {
      const TemporaryPath path;
      const OpenOptions options = options_at(path.string());
      const bool injected = open_with_fault(fault, options, n, 0);
      // The next attempt finds the created pool, or nothing.
      Database database = must(Database::open(options));
      const TableId table = must(database.create_table(faulty_schema()));
      must(insert(database, table, 0, 10));
      check_rows(database, 10);
      if (!injected) break;
    }
}

TEST_CASE("a system call fails while a pool is opened", "[faults]") {
  const TemporaryPath path;
  const OpenOptions options = options_at(path.string());
  {
    Database database = must(Database::open(options));
    must(insert(database, must(database.create_table(faulty_schema())), 0, 3000));
  }
  for (const Fault& fault : kFaults)
    for (std::uint64_t n = 1; open_with_fault(fault, options, n, 3000); ++n) {
      Database database = must(Database::open(options));
      check_rows(database, 3000);
    }
}

TEST_CASE("the medium is full, or fails, whenever the pool grows", "[faults]") {
  constexpr std::int64_t kBatch = 500;
  for (const int error : {ENOSPC, EIO})
    for (const std::uint64_t grow_ahead : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
      const TemporaryPath path;
      OpenOptions options = options_at(path.string());
      options.tuning.grow_ahead_bytes = grow_ahead;
      std::int64_t rows = 0;
      bool failed = false;
      {
        Database database = must(Database::open(options));
        const TableId table = must(database.create_table(faulty_schema()));
        fail_system_call(SystemCall::kAllocate, 1, error, ~std::uint64_t{0} - 1);
        while (rows < 100 * kBatch) {
          const Status s = insert(database, table, rows, rows + kBatch);
          if (!s.ok()) {
            CHECK((s.code() == StatusCode::kOutOfSpace || s.code() == StatusCode::kIoError));
            failed = true;
            break;
          }
          rows += kBatch;
        }
        let_system_calls_work();
        CHECK(failed);
        check_rows(database, rows);
        must(insert(database, table, rows, rows + kBatch));
        rows += kBatch;
        check_rows(database, rows);
      }
      Database database = must(Database::open(options));
      check_rows(database, rows);
    }
}

TEST_CASE("a merge without a thread is reported, and tried again", "[faults]") {
  const TemporaryPath path;
  Database database = must(Database::open(options_at(path.string())));
  const TableId table = must(database.create_table(faulty_schema()));
  must(insert(database, table, 0, 3000));
  MergePolicy policy;
  policy.automatic = true;
  policy.delta_bytes = 1;
  policy.written_percent = 100;
  policy.interval = std::chrono::milliseconds(10);
  fail_system_call(SystemCall::kThread, 1, EAGAIN);
  must(database.set_merge_policy(table, policy));
  let_system_calls_work();
  REQUIRE(failed_system_calls() == 1);
  MergeStatus status = must(database.merge_status(table));
  CHECK(status.state == MergeState::kFailed);
  CHECK(status.failures == 1);
  CHECK_THAT(status.last_failure, Catch::Contains("cannot be started"));
  // Transactions also trigger the merge.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::int64_t rows = 3000;
  while (database.statistics().merges == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 50; ++i, ++rows) must(insert(database, table, rows, rows + 1));
    Transaction t = must(database.begin());
    const Row row = must(t.get({table, 0}, {Value::int64(rows - 1)}));
    must(t.update(table, row.id(), {{ColumnId(1), Value::string("changed")}}));
    must(t.commit());
  }
  CHECK(database.statistics().merges != 0);
  check_rows(database, rows);
}

/// Inserts rows up to `last` in its own transactions; the number of the first that failed.
std::int64_t insert_up_to(Database& database, TableId table, std::int64_t first,
                          std::int64_t last) {
  std::int64_t id = first;
  while (id < last && insert(database, table, id, id + 1).ok()) ++id;
  return id;
}

TEST_CASE("after a failed write to the journal nothing commits, and what was acknowledged is there",
          "[faults]") {
  for (std::uint64_t n = 1; n < 12; ++n) {
    const TemporaryPath path("/var/tmp");
    OpenOptions options = options_at(path.string());
    options.tuning.grow_ahead_bytes = 0;
    options.tuning.journal_bytes = 1 << 20;
    options.tuning.restart_budget = std::chrono::seconds(10);  // only the journal is written
    std::int64_t rows = 0;
    {
      Database database = must(Database::open(options));
      if (database.statistics().medium != "file") return;  // /var/tmp is memory here
      const TableId table = must(database.create_table(faulty_schema()));
      must(insert(database, table, 0, 1));
      fail_system_call(SystemCall::kWrite, n, EIO);
      rows = insert_up_to(database, table, 1, 20);
      CHECK(rows == static_cast<std::int64_t>(n));
      // The device works again, but what it has of the last write is unknown.
      let_system_calls_work();
      Status refused = insert(database, table, rows, rows + 1);
      CHECK(refused.code() == StatusCode::kIoError);
      CHECK(refused.message().find(path.journal()) != std::string_view::npos);
      CHECK(database.create_table(faulty_schema("more")).code() == StatusCode::kIoError);
      CHECK(database.drop_table(table).code() == StatusCode::kIoError);
      check_rows(database, rows);
    }
    Database database = must(Database::open(options));
    check_rows(database, rows);
    must(insert(database, must(database.find_table("rows")), rows, rows + 1));
  }
}

TEST_CASE("a commit that is durable soon fails with its token when the journal cannot be written",
          "[faults]") {
  constexpr CommitOptions kLater{.durability = Durability::kSoon,
                                 .soon = std::chrono::milliseconds(50)};
  const TemporaryPath path("/var/tmp");
  OpenOptions options = options_at(path.string());
  options.tuning.grow_ahead_bytes = 0;
  {
    Database database = must(Database::open(options));
    if (database.statistics().medium != "file") return;
    const TableId table = must(database.create_table(faulty_schema()));
    must(insert(database, table, 0, 1));
    fail_system_call(SystemCall::kWrite, 1, EIO);
    must(insert(database, table, 1, 2, kLater));
    const DurableToken token = database.durable_token();
    std::atomic<int> failures{0};
    database.when_durable(token, [&](const Status& status) {
      failures += status.code() == StatusCode::kIoError ? 1 : 100;
    });
    const Status failed = database.wait_durable(token);
    CHECK(failed.code() == StatusCode::kIoError);
    CHECK(failed.message().find(path.journal()) != std::string_view::npos);
    CHECK_FALSE(database.is_durable(token));
    let_system_calls_work();
    CHECK(insert(database, table, 2, 3, kLater).code() == StatusCode::kIoError);
    while (failures == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(failures == 1);
    CHECK(database.statistics().commits_soon_late == 1);
  }
  Database database = must(Database::open(options));
  check_rows(database, 1);  // the write never reached the device
}

TEST_CASE("commits go on while checkpoints fail, and are refused before the journal is full",
          "[faults]") {
  const TemporaryPath path("/var/tmp");
  OpenOptions options = options_at(path.string());
  options.tuning.grow_ahead_bytes = 0;
  options.tuning.journal_bytes = 1 << 20;
  std::int64_t rows = 0;
  {
    Database database = must(Database::open(options));
    if (database.statistics().medium != "file") return;
    const TableId table = must(database.create_table(faulty_schema()));
    fail_system_call(SystemCall::kSync, 1, ENOSPC, ~std::uint64_t{0} - 1);
    rows = insert_up_to(database, table, 0, 10'000);
    CHECK(rows > 4);
    CHECK(rows < 10'000);
    const Status refused = insert(database, table, rows, rows + 1);
    CHECK(refused.code() == StatusCode::kOutOfSpace);
    CHECK(refused.message().find(path.string()) != std::string_view::npos);
    check_rows(database, rows);
    let_system_calls_work();
    // The next attempt succeeds within two seconds.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!insert(database, table, rows, rows + 1).ok() &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    rows = insert_up_to(database, table, rows + 1, rows + 100);
    check_rows(database, rows);
  }
  Database database = must(Database::open(options));
  check_rows(database, rows);
}

TEST_CASE("clocks that go backwards do no harm", "[faults]") {
  const TemporaryPath path;
  const OpenOptions options = options_at(path.string());
  turn_clocks_back(true);
  {
    Database database = must(Database::open(options));
    const TableId table = must(database.create_table(faulty_schema()));
    must(database.drop_table(must(database.create_table(faulty_schema("dropped")))));
    for (std::int64_t id = 0; id < 100; ++id) must(insert(database, table, id, id + 1));
    check_rows(database, 100);
  }
  Database database = must(Database::open(options));
  turn_clocks_back(false);
  check_rows(database, 100);
}

}  // namespace flugs::test
