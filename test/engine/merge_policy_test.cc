// Merges by policy: when a table is merged, when not, and the stated reason.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/background/processor_load.h"
#include "flugs/merge.h"
#include "test/support/eager_merges.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr ColumnId kBalance{1};

/// A table of some 60 bytes a row with full chunks of 16 to 64 KB.
class Ledger {
 public:
  explicit Ledger(std::size_t pool_bytes = std::size_t{64} << 20) : database(pool_bytes) {
    table = make("ledger");
  }

  TableId make(const std::string& name) {
    TableSchema schema(name);
    schema.column("id", Type::kInt64).direct().column("amount", Type::kInt64).direct();
    schema.column("note", Type::kBytes).direct().primary_key({"id"});
    return must(database->create_table(schema));
  }
  Status insert(TableId into, std::int64_t first, std::int64_t end) {
    Result<Transaction> t = database->begin(AccessMode::kReadWrite);
    if (!t.ok()) return std::move(t).status();
    for (std::int64_t id = first; id < end; ++id) {
      const auto row = t->insert(into, {Value::int64(id), Value::int64(id * 3), Value::null()});
      if (!row.ok()) return row.status();
    }
    return t->commit();
  }
  Status update(std::int64_t id) {
    Result<Transaction> t = database->begin(AccessMode::kReadWrite);
    if (!t.ok()) return std::move(t).status();
    const Result<Row> row = t->get({table, 0}, {Value::int64(id)});
    if (!row.ok()) return row.status();
    const Result<RowId> changed = t->update(table, row->id(), {{kBalance, Value::int64(id * 3)}});
    if (!changed.ok()) return changed.status();
    return t->commit();
  }
  void check(std::int64_t rows) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::int64_t count = 0;
    std::int64_t sum = 0;
    const std::vector<ColumnId> columns{kBalance};
    must(t.scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
      count += static_cast<std::int64_t>(batch.row_count());
      for (const std::int64_t amount : batch.column_unchecked<std::int64_t>(0)) sum += amount;
      return true;
    }));
    CHECK(count == rows);
    CHECK(sum == rows * (rows - 1) / 2 * 3);
  }
  MergeStatus status() { return must(database->merge_status(table)); }
  /// Whether `holds(status)` becomes true within ten seconds.
  template <typename Condition>
  bool comes(Condition&& holds) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!holds(status())) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool comes_to(MergeState state) {
    return comes([&](const MergeStatus& status) { return status.state == state; });
  }
  /// Whether the merging thread gets this niceness within ten seconds.
  bool is_nice_thread_there(int niceness) {
    const int wanted = std::min(getpriority(PRIO_PROCESS, 0) + niceness, 19);
    return comes([&](const MergeStatus&) {
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        const auto id = static_cast<id_t>(std::stoul(task.path().filename().string()));
        if (name == "flugs-merge") return getpriority(PRIO_PROCESS, id) == wanted;
      }
      return false;
    });
  }
  bool is_merged() {
    return comes([&](const MergeStatus& status) { return status.merges != 0; });
  }

  MemoryDatabase database;
  TableId table;
};

bool has_thread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found == name) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a table is merged by policy exactly when the policy says so", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  CHECK_FALSE(has_thread("flugs-merge"));
  CHECK(ledger.status().state == MergeState::kOff);
  const MergeStatus before = ledger.status();
  CHECK(before.main_rows == 0);
  CHECK(before.delta_bytes > 100000);
  must(ledger.database->set_merge_policy(ledger.table, eager()));
  REQUIRE(ledger.is_merged());
  CHECK(has_thread("flugs-merge"));
  REQUIRE(ledger.comes_to(MergeState::kNothingToMerge));
  const MergeStatus after = ledger.status();
  CHECK(after.failures == 0);
  CHECK(after.seconds > 0);
  CHECK(after.last.rows > 0);
  CHECK(after.main_rows > 2000);
  CHECK(after.main_rows + after.delta_rows == before.delta_rows);
  CHECK(after.delta_bytes < before.delta_bytes);
  CHECK(ledger.database->statistics().merges == after.merges);
  ledger.check(5000);
  must(ledger.database->verify({}));
  // The policy is not persistent; merged rows are.
  ledger.database.reopen();
  CHECK(ledger.status().state == MergeState::kOff);
  CHECK(ledger.status().main_rows == after.main_rows);
  ledger.check(5000);
}

TEST_CASE("the policy given at opening is that of every table", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  ledger.database.options.merge_policy = eager();
  ledger.database.reopen();
  REQUIRE(ledger.is_merged());
  const TableId other = ledger.make("other");
  must(ledger.insert(other, 0, 5000));
  ledger.table = other;
  REQUIRE(ledger.is_merged());
  ledger.check(5000);
  must(ledger.database->set_merge_policy(other, {.automatic = false}));
  CHECK(ledger.status().state == MergeState::kOff);
  ledger.database.options.tuning.merge_niceness = 20;
  CHECK(ledger.database.try_reopen().code() == StatusCode::kInvalidArgument);
  ledger.database.options.tuning.merge_niceness = 5;
  ledger.database.reopen();
  CHECK(ledger.is_nice_thread_there(5));
  ledger.database.options.merge_policy.dead_percent = 0;
  CHECK(ledger.database.try_reopen().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("chunks are merged when no transaction writes to them any more", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 4000));
  MergePolicy policy = eager();
  policy.written_percent = 1;
  policy.interval = std::chrono::milliseconds(300);
  must(ledger.database->set_merge_policy(ledger.table, policy));
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (ledger.status().state != MergeState::kWritten && Clock::now() < deadline)
    for (std::int64_t id = 0; id < 4000; id += 7) must(ledger.update(id));
  const MergeStatus written = ledger.status();
  CHECK(written.state == MergeState::kWritten);
  CHECK(written.merges == 0);
  CHECK_THAT(written.reason, Catch::Contains("written recently"));
  REQUIRE(ledger.is_merged());
  ledger.check(4000);
  must(ledger.database->verify({}));
}

TEST_CASE("a small delta is not merged", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  MergePolicy policy = eager();
  policy.delta_bytes = std::uint64_t{1} << 30;
  must(ledger.database->set_merge_policy(ledger.table, policy));
  REQUIRE(ledger.comes_to(MergeState::kDeltaSmall));
  CHECK(ledger.status().merges == 0);
  CHECK_THAT(ledger.status().reason, Catch::Contains("a merge needs 1073741824 bytes"));
}

TEST_CASE("space that a reader held is given back without another merge", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  std::optional<Transaction> reader;
  MergeOptions options;
  options.threads = 1;
  options.patience = std::chrono::milliseconds(20);
  options.progress = [&](const Progress&) {
    if (!reader) reader = must(ledger.database->begin(AccessMode::kReadOnly));
  };
  const MergeReport report = must(ledger.database->merge(ledger.table, options));
  REQUIRE(report.releases_later);
  const auto used = [&] { return ledger.database->statistics().pool_used_bytes; };
  const std::uint64_t used_before = used();
  const std::uint64_t merges_before = ledger.status().merges;
  MergePolicy policy = eager();
  policy.delta_bytes = std::uint64_t{1} << 30;
  must(ledger.database->set_merge_policy(ledger.table, policy));
  REQUIRE(ledger.comes_to(MergeState::kOldTransaction));
  CHECK(used() == used_before);
  reader.reset();
  REQUIRE(ledger.comes(
      [&](const MergeStatus&) { return used() + report.bytes_before / 2 < used_before; }));
  CHECK(ledger.status().merges == merges_before);
  ledger.check(5000);
  must(ledger.database->verify({}));
}

TEST_CASE("dead rows suffice for a group to be merged again", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 2000));
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  must(ledger.database->merge(ledger.table, everything));
  for (std::int64_t id = 0; id < 1000; ++id) must(ledger.update(id));
  for (int i = 0; i < 5000; ++i) must(ledger.update(1999));  // the dead leave the indexes
  MergePolicy policy = eager();
  policy.delta_bytes = std::uint64_t{1} << 30;
  policy.dead_percent = 20;
  must(ledger.database->set_merge_policy(ledger.table, policy));
  REQUIRE(ledger.comes([](const MergeStatus& s) { return s.last.groups_merged != 0; }));
  CHECK(ledger.status().last.rows_dropped >= 400);
  ledger.check(2000);
}

TEST_CASE("merging waits for idle processors", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  std::jthread busy([](const std::stop_token& stop) {
    while (!stop.stop_requested()) sched_yield();
  });
  MergePolicy policy = eager();
  policy.idle_percent = 100;
  policy.interval = std::chrono::milliseconds(100);
  must(ledger.database->set_merge_policy(ledger.table, policy));
  REQUIRE(ledger.comes_to(MergeState::kProcessorsBusy));
  CHECK(ledger.status().merges == 0);
  CHECK_THAT(ledger.status().reason, Catch::Contains("merging needs 100 %"));
  policy.idle_percent = 0;
  must(ledger.database->set_merge_policy(ledger.table, policy));
  CHECK(ledger.is_merged());
}

TEST_CASE("processor times are parsed from the kernel's text", "[engine]") {
  using namespace flugs::engine;
  const auto times = parse_processor_times("cpu  10 20 30 400 50 1 2 3 99 98\ncpu0 1 1 1 1\n");
  REQUIRE(times);
  CHECK(times->idle == 450);
  CHECK(times->all == 516);
  CHECK_FALSE(parse_processor_times(""));
  CHECK_FALSE(parse_processor_times("cpu 1 2 3"));
  CHECK_FALSE(parse_processor_times("cpu 1 2 3 4 5 6 7 x"));
  CHECK_FALSE(parse_processor_times("intr 1 2 3 4 5 6 7 8"));
  CHECK(idle_percent({450, 516}, {500, 616}) == 50u);
  CHECK(idle_percent({450, 516}, {450, 616}) == 0u);
  CHECK_FALSE(idle_percent({450, 516}, {450, 516}));
  CHECK_FALSE(idle_percent({450, 516}, {449, 616}));
  CHECK(processor_times());
}

TEST_CASE("the status names an old transaction, and no chunk is frozen in vain", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 5000));
  Transaction old = must(ledger.database->begin(AccessMode::kReadOnly));
  must(ledger.database->set_merge_policy(ledger.table, eager()));
  REQUIRE(ledger.comes_to(MergeState::kOldTransaction));
  CHECK_THAT(ledger.status().reason,
             Catch::Contains("began at snapshot " + std::to_string(old.snapshot())));
  const engine::RowStore& rows = ledger.database->table(ledger.table)->rows();
  for (std::size_t chunk = 0; chunk < rows.chunk_count(); ++chunk)
    CHECK_FALSE(rows.is_frozen(chunk));
  CHECK(ledger.status().failures == 0);
  old.abort();
  CHECK(ledger.is_merged());
  ledger.check(5000);
}

TEST_CASE("databases are closed while they are being merged", "[engine]") {
  Ledger ledger;
  std::int64_t rows = 0;
  for (int round = 0; round < 30; ++round) {
    must(ledger.database->set_merge_policy(ledger.table, eager()));
    must(ledger.insert(ledger.table, rows, rows + 3000));
    rows += 3000;
    std::this_thread::sleep_for(std::chrono::microseconds(round * 1500));
    ledger.database.reopen();
    ledger.check(rows);
  }
  must(ledger.database->verify({}));
  must(ledger.database->set_merge_policy(ledger.table, eager()));
  must(ledger.insert(ledger.table, rows, rows + 5000));
  CHECK(ledger.is_merged());
  ledger.check(rows + 5000);
}

TEST_CASE("tables are dropped while they are being merged", "[engine]") {
  Ledger ledger;
  ledger.database.options.merge_policy = eager();
  ledger.database.reopen();
  const std::uint64_t used = ledger.database->statistics().pool_used_bytes;
  for (int round = 0; round < 30; ++round) {
    const TableId table = ledger.make("passing");
    must(ledger.insert(table, 0, 3000));
    std::this_thread::sleep_for(std::chrono::microseconds(round * 1500));
    must(ledger.database->drop_table(table));
    CHECK(ledger.database->merge_status(table).code() == StatusCode::kNotFound);
    CHECK(ledger.database->set_merge_policy(table, {}).code() == StatusCode::kNotFound);
  }
  CHECK(ledger.database->statistics().pool_used_bytes <= used + (1u << 16));
  must(ledger.database->verify({}));
}

TEST_CASE("a merge by policy succeeds in a full pool", "[engine]") {
  Ledger ledger(std::size_t{9} << 20);
  must(ledger.insert(ledger.table, 0, 20000));
  const TableId filler = ledger.make("filler");
  Status full;
  for (std::int64_t step = 256; step > 0; step /= 4)
    for (std::int64_t id = std::int64_t{step} << 32;
         (full = ledger.insert(filler, id, id + step)).ok();)
      id += step;
  REQUIRE(full.code() == StatusCode::kOutOfSpace);
  must(ledger.database->set_merge_policy(ledger.table, eager()));
  CHECK(ledger.is_merged());
  CHECK(ledger.status().failures == 0);
  must(ledger.database->drop_table(filler));
  ledger.check(20000);
  must(ledger.database->verify({}));
}

TEST_CASE("a merge that fails reports it, and is tried again", "[engine]") {
  Ledger ledger;
  must(ledger.insert(ledger.table, 0, 20000));
  std::optional<Transaction> idle(must(ledger.database->begin(AccessMode::kReadOnly)));
  MergePolicy policy = eager();
  policy.ends_old_transactions = true;
  policy.patience = std::chrono::milliseconds(20);
  must(ledger.database->set_merge_policy(ledger.table, policy));
  REQUIRE(ledger.comes_to(MergeState::kFailed));
  const MergeStatus failed = ledger.status();
  CHECK(failed.failures >= 1);
  CHECK_THAT(failed.last_failure, Catch::Contains("has made no call since"));
  CHECK_THAT(failed.reason, Catch::Contains("the next attempt is in"));
  idle.reset();
  CHECK(ledger.is_merged());
  ledger.check(20000);
  must(ledger.database->verify({}));
}

TEST_CASE("an invalid merge policy is refused", "[engine]") {
  Ledger ledger;
  const auto refused = [&](auto change) {
    MergePolicy policy;
    change(policy);
    const Status status = ledger.database->set_merge_policy(ledger.table, policy);
    CHECK_THAT(std::string(status.message()), Catch::Contains("allowed are"));
    return status.code() == StatusCode::kInvalidArgument;
  };
  CHECK(refused([](MergePolicy& p) { p.dead_percent = 0; }));
  CHECK(refused([](MergePolicy& p) { p.dead_percent = 101; }));
  CHECK(refused([](MergePolicy& p) { p.written_percent = 101; }));
  CHECK(refused([](MergePolicy& p) { p.idle_percent = 101; }));
  CHECK(refused([](MergePolicy& p) { p.threads = 1025; }));
  CHECK(refused([](MergePolicy& p) { p.interval = std::chrono::milliseconds(9); }));
  CHECK(refused([](MergePolicy& p) { p.interval = std::chrono::hours(25); }));
  CHECK(refused([](MergePolicy& p) { p.write_patience = std::chrono::milliseconds(-1); }));
  CHECK(refused([](MergePolicy& p) { p.write_patience = std::chrono::hours(25); }));
  CHECK(ledger.database->set_merge_policy(TableId(77), {}).code() == StatusCode::kNotFound);
}

TEST_CASE("a full delta refuses rows until it is merged", "[engine]") {
  Ledger ledger;
  MergePolicy policy;
  policy.automatic = false;
  policy.delta_bytes_max = std::uint64_t{256} << 10;
  must(ledger.database->set_merge_policy(ledger.table, policy));
  std::int64_t rows = 0;
  Status status;
  while ((status = ledger.insert(ledger.table, rows, rows + 100)).ok()) rows += 100;
  CHECK(status.code() == StatusCode::kBusy);
  CHECK_THAT(std::string(status.message()), Catch::Contains("table ledger") &&
                                                Catch::Contains("262144") &&
                                                Catch::Contains("automatic merge: off"));
  CHECK(ledger.status().writes_refused == 1);
  CHECK(ledger.database->statistics().writes_refused == 1);
  CHECK(ledger.status().delta_bytes >= policy.delta_bytes_max);
  CHECK(ledger.status().delta_bytes < 2 * policy.delta_bytes_max);
  ledger.check(rows);
  must(ledger.database->merge(ledger.table, {}));
  CHECK(ledger.status().delta_bytes < policy.delta_bytes_max);
  must(ledger.insert(ledger.table, rows, rows + 100));
  ledger.check(rows + 100);
  must(ledger.database->verify({}));
}

TEST_CASE("writers that outrun the merge continue when it has caught up", "[engine]") {
  Ledger ledger;
  MergePolicy policy = eager();
  policy.delta_bytes = std::uint64_t{1} << 30;  // only the bound counts
  policy.written_percent = 0;
  policy.idle_percent = 100;
  policy.interval = std::chrono::hours(24);
  policy.delta_bytes_max = std::uint64_t{256} << 10;
  policy.write_patience = std::chrono::milliseconds(1000);
  must(ledger.database->set_merge_policy(ledger.table, policy));
  std::uint64_t refused = 0;
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  for (std::int64_t rows = 0; rows < 40000 && Clock::now() < deadline;) {
    const Status status = ledger.insert(ledger.table, rows, rows + 100);
    if (status.ok()) {
      rows += 100;
      continue;
    }
    REQUIRE(status.code() == StatusCode::kBusy);
    ++refused;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ledger.check(40000);
  const MergeStatus after = ledger.status();
  CHECK(after.merges >= 2);
  CHECK(after.delta_bytes < 2 * policy.delta_bytes_max);
  CHECK(after.writes_refused == refused);
  must(ledger.database->verify({}));
}

}  // namespace flugs::test
