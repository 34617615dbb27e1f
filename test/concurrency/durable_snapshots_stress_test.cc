// Durable snapshots while threads commit and the journal is written: of every commit that such a
// snapshot contains, the record was durable when the snapshot was taken.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/random.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"
#include "test/support/test_slots.h"

namespace flugs::test {
namespace {

constexpr std::uint32_t kCommitters = 3;
constexpr std::uint32_t kDurableReaders = 2;
constexpr std::int64_t kDurableAccounts = 200;
// Between a reader's looks: a commit that waits for the device changes nothing for longer, and
// readers that do not sleep take the processors from those that commit.
constexpr std::chrono::microseconds kPause{50};

struct Committed {
  std::uint64_t timestamp;
  pmem::JournalPlace end;
};
struct Snapshot {
  std::uint64_t timestamp;
  pmem::JournalPlace durable;  // when it had been taken
};

/// Some commits wait, some are wanted soon, and some at no certain time.
std::optional<std::chrono::microseconds> wish_of(std::uint32_t number) {
  switch (number % 16) {
    case 0:
      return {};
    case 1:
      return std::chrono::milliseconds(1);
    default:
      return pmem::kSometime;
  }
}

/// Takes a durable snapshot after `collected`, the oldest one that a collector has found, was read.
void take_snapshot(TestSlots& slots, const std::atomic<std::uint64_t>& collected,
                   std::vector<Snapshot>& taken, Complaint& complaint) {
  const std::uint64_t before = collected.load();
  mvcc::Slot& slot = *slots->acquire();
  const std::uint64_t snapshot = slots->begin_durable_snapshot(slot);
  const pmem::JournalPlace durable = slots.pool().medium().journal()->durable();
  complaint.expect(snapshot >= before, "a snapshot is older than what was collected");
  complaint.expect(taken.empty() || snapshot >= taken.back().timestamp,
                   "a thread's snapshots go back");
  if (taken.size() % 16 == 0)
    complaint.expect(slots->oldest_snapshot() <= snapshot, "a snapshot is not registered");
  if (taken.empty() || taken.back().timestamp != snapshot) taken.push_back({snapshot, durable});
  slots->release(slot);
}

/// What no snapshot may contain: commits that were not durable when it was taken.
void check_snapshots(const std::vector<std::vector<Committed>>& commits,
                     const std::vector<std::vector<Snapshot>>& snapshots) {
  std::uint64_t wrong = 0;
  for (const std::vector<Committed>& slot : commits) {
    CHECK(std::is_sorted(slot.begin(), slot.end(), [](const Committed& a, const Committed& b) {
      return a.timestamp < b.timestamp;
    }));
    for (const std::vector<Snapshot>& taken : snapshots)
      for (const Snapshot& snapshot : taken) {
        const auto behind = std::upper_bound(
            slot.begin(), slot.end(), snapshot.timestamp,
            [](std::uint64_t at, const Committed& commit) { return at < commit.timestamp; });
        // The records of a slot are in its commits' order.
        wrong += behind != slot.begin() && std::prev(behind)->end > snapshot.durable ? 1 : 0;
      }
  }
  CHECK(wrong == 0);
}

void transfer(Database& database, TableId table, std::uint64_t seed, Complaint& complaint) {
  bench::Random random(seed);
  for (int i = 0; i < 1500 * kEffort && !complaint.failed(); ++i) {
    const auto from = static_cast<std::int64_t>(random.below(kDurableAccounts));
    const auto to = static_cast<std::int64_t>(random.below(kDurableAccounts));
    CommitOptions how{.durability = Durability::kSoon, .soon = std::chrono::milliseconds(2)};
    if (i % 32 == 0) how = {};
    const auto move = [&](Transaction& t) {
      const Result<Value> taken =
          t.add({table, 0}, {Value::int64(from)}, ColumnId(1), Value::int64(-1));
      if (!taken.ok()) return taken.status();
      return t.add({table, 0}, {Value::int64(to)}, ColumnId(1), Value::int64(1)).status();
    };
    const Status done = database.run(move, {.commit = how});
    complaint.expect(done.ok(), done.to_string());
  }
}

void check_accounts(const Transaction& reader, TableId table, Complaint& complaint) {
  std::int64_t sum = 0;
  std::int64_t rows = 0;
  for (std::int64_t id = 0; id < kDurableAccounts; ++id) {
    const Result<Row> row = reader.get({table, 0}, {Value::int64(id)});
    if (row.ok()) sum += row->get<std::int64_t>(ColumnId(1)).value();
    rows += row.ok() ? 1 : 0;
  }
  complaint.expect(rows == kDurableAccounts, "accounts are missing: " + std::to_string(rows));
  complaint.expect(sum == kDurableAccounts * 100, "the sum is " + std::to_string(sum));
}

}  // namespace

TEST_CASE("a durable snapshot contains only commits that are durable", "[concurrency]") {
  const TemporaryPath path("/var/tmp");
  TestSlots slots(kCommitters + kDurableReaders + 1, path.string());
  if (slots.pool().medium().journal() == nullptr) return;  // /var/tmp is memory here
  Complaint complaint;
  std::vector<std::vector<Committed>> commits(kCommitters);
  std::vector<std::vector<Snapshot>> snapshots(kDurableReaders);
  std::atomic<std::uint64_t> collected{0};  // the oldest snapshot that a collector has found
  std::atomic<std::uint32_t> writing{kCommitters};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kCommitters; ++t)
    threads.emplace_back([&, t] {
      bench::Random random(t + 1);
      for (int i = 0; i < 4000 * kEffort; ++i) {
        mvcc::Slot& slot = *slots->acquire();
        slots.begin(slot);
        const auto at = slots.commit(slot, {slots.insert(slot, t)}, wish_of(random.below(16)));
        if (complaint.expect(at.ok(), at.status().to_string()))
          commits[t].push_back({*at, slot.persister().appended()});
        slots->release(slot);
      }
      writing.fetch_sub(1);
    });
  for (std::uint32_t t = 0; t < kDurableReaders; ++t)
    threads.emplace_back([&, t] {
      while (writing.load() != 0) {
        take_snapshot(slots, collected, snapshots[t], complaint);
        std::this_thread::sleep_for(kPause);
      }
    });
  threads.emplace_back([&] {
    while (writing.load() != 0) {
      const std::uint64_t oldest = slots->oldest_snapshot();
      std::uint64_t seen = collected.load();
      while (seen < oldest && !collected.compare_exchange_weak(seen, oldest)) {
      }
      std::this_thread::yield();  // a snapshot is chosen and registered in less than a pause
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  check_snapshots(commits, snapshots);
  for (const std::vector<Snapshot>& taken : snapshots) CHECK(taken.size() > 20);

  std::uint64_t newest = 0;
  for (const std::vector<Committed>& slot : commits)
    newest = std::max(newest, slot.back().timestamp);
  must(slots.pool().medium().wait_durable());
  mvcc::Slot& slot = *slots->acquire();
  CHECK(slots->begin_durable_snapshot(slot) >= newest);
  slots->release(slot);
}

// Transfers keep the sum, so a reader that sees another one has seen half a transaction.
TEST_CASE("durable readers see whole transactions while tables are merged", "[concurrency]") {
  const TemporaryPath path("/var/tmp");
  OpenOptions options = small_options(path.string());
  options.tuning.journal_bytes = 1 << 20;
  options.tuning.restart_budget = std::chrono::milliseconds(1);
  Database database = must(Database::open(options));
  TableSchema schema("accounts");
  schema.column("id", Type::kInt64).column("amount", Type::kInt64).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  Transaction loads = must(database.begin());
  for (std::int64_t id = 0; id < kDurableAccounts; ++id)
    must(loads.insert(table, {Value::int64(id), Value::int64(100)}).status());
  must(loads.commit());
  Complaint complaint;
  std::atomic<std::uint32_t> writing{kCommitters};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kCommitters; ++t)
    threads.emplace_back([&, t] {
      transfer(database, table, t + 1, complaint);
      writing.fetch_sub(1);
    });
  for (std::uint32_t t = 0; t < kDurableReaders; ++t)
    threads.emplace_back([&] {
      while (writing.load() != 0 && !complaint.failed()) {
        const Result<Transaction> reader = database.begin(AccessMode::kReadOnlyDurable);
        if (!complaint.expect(reader.ok(), reader.status().to_string())) return;
        check_accounts(*reader, table, complaint);
        reads.fetch_add(1);
      }
    });
  while (writing.load() != 0) {
    const auto merged = database.merge(table, {.patience = std::chrono::milliseconds(50)});
    complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy, "a merge failed");
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  CHECK(reads > 10);
  must(database.check());
}

}  // namespace flugs::test
