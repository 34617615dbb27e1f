// Threads on one database: the guarantees of snapshot isolation, under any interleaving.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kAmount{1};

TableSchema accounts_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("amount", Type::kInt64).column("note", Type::kString);
  schema.primary_key({"id"});
  schema.key("by_amount", {"amount"});
  return schema;
}

struct Bank {
  TemporaryDatabase database;
  TableId table = must(database->create_table(accounts_schema("accounts")));
  KeyId primary{table, 0};
  KeyId by_amount{table, 1};

  explicit Bank(std::int64_t accounts, std::int64_t amount = 100) {
    Transaction t = must(database->begin());
    for (std::int64_t i = 0; i < accounts; ++i)
      must(t.insert(table, {Value::int64(i), Value::int64(amount), Value::string("new")}));
    must(t.commit());
  }
  /// False when another transaction was first.
  bool add(Transaction& t, std::int64_t id, std::int64_t difference) const {
    const Result<Row> row = t.get(primary, {Value::int64(id)});
    if (!row.ok()) return false;
    const std::int64_t amount = row->get_unchecked<std::int64_t>(kAmount) + difference;
    return t.update(table, row->id(), {{kAmount, Value::int64(amount)}}).ok();
  }
  /// Sum of all amounts by a scan, and the number of rows.
  std::int64_t sum(const Transaction& t, std::size_t& rows) const {
    std::int64_t total = 0;
    rows = 0;
    const Status scanned = t.scan(table, {kAmount}, [&](const ScanBatch& batch) {
      for (const std::int64_t amount : batch.column_unchecked<std::int64_t>(0)) total += amount;
      rows += batch.row_count();
      return true;
    });
    return scanned.ok() ? total : -1;
  }
};

void run_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("money is neither made nor lost in any snapshot", "[engine]") {
  constexpr std::int64_t kAccounts = 24;
  constexpr std::int64_t kTotal = kAccounts * 100;
  Bank bank(kAccounts);
  Complaint complaint;
  std::atomic<int> writers{2};
  std::atomic<std::uint64_t> transfers{0};
  const auto write = [&](int thread) {
    Random random(static_cast<std::uint64_t>(thread) + 1);
    for (int i = 0; i < 3000 * kEffort && !complaint.failed(); ++i) {
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      const auto from = static_cast<std::int64_t>(random.below(kAccounts));
      const auto to = static_cast<std::int64_t>(random.below(kAccounts));
      const auto amount = static_cast<std::int64_t>(random.below(20));
      if (!bank.add(*t, from, -amount) || !bank.add(*t, to, amount)) continue;
      if (random.chance(10)) continue;  // aborts
      complaint.expect(t->commit().ok(), "commit");
      transfers.fetch_add(1, std::memory_order_relaxed);
    }
    writers.fetch_sub(1);
  };
  const auto read = [&](int) {
    while (writers.load() != 0 && !complaint.failed()) {
      auto t = bank.database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin to read")) break;
      for (int again = 0; again < 2; ++again) {
        std::size_t rows = 0;
        const std::int64_t scanned = bank.sum(*t, rows);
        complaint.expect(scanned == kTotal, "scan: sum " + std::to_string(scanned) + " of " +
                                                std::to_string(rows) + " rows");
        std::int64_t found = 0;
        for (std::int64_t id = 0; id < kAccounts; ++id) {
          const auto row = t->get(bank.primary, {Value::int64(id)});
          if (complaint.expect(row.ok(), "an account is missing"))
            found += row->get_unchecked<std::int64_t>(kAmount);
        }
        complaint.expect(found == kTotal, "find: sum " + std::to_string(found));
        std::int64_t walked = 0;
        const Status status = t->rows(bank.by_amount, {}, [&](const Row& row) {
          walked += row.get_unchecked<std::int64_t>(kAmount);
          return true;
        });
        complaint.expect(status.ok() && walked == kTotal, "walk: " + std::to_string(walked));
      }
    }
  };
  run_threads(4, [&](int i) { i < 2 ? write(i) : read(i); });
  CHECK(complaint.what() == "");
  CHECK(transfers > 100);
  must(bank.database->check());
  bank.database.reopen();
  std::size_t rows = 0;
  CHECK(bank.sum(must(bank.database->begin()), rows) == kTotal);
}

TEST_CASE("no update is lost", "[engine]") {
  Bank bank(3, 0);
  Complaint complaint;
  constexpr int kThreads = 4;
  constexpr int kIncrements = 800 * kEffort;
  std::atomic<std::uint64_t> conflicts{0};
  run_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kIncrements && !complaint.failed();) {
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) return;
      if (!bank.add(*t, (thread + i) % 3, 1)) {
        conflicts.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      complaint.expect(t->commit().ok(), "commit");
      ++i;
    }
  });
  CHECK(complaint.what() == "");
  std::size_t rows = 0;
  CHECK(bank.sum(must(bank.database->begin()), rows) == kThreads * kIncrements);
  CHECK(rows == 3);
  CHECK(bank.database->statistics().conflicts == conflicts);
}

TEST_CASE("of several inserters of one key exactly one wins", "[engine]") {
  Bank bank(0);
  Complaint complaint;
  constexpr int kThreads = 4;
  constexpr std::int64_t kKeys = 400 * kEffort;
  std::vector<std::atomic<int>> winners(kKeys);
  std::vector<std::atomic<int>> arrived(kKeys);
  run_threads(kThreads, [&](int thread) {
    for (std::int64_t key = 0; key < kKeys && !complaint.failed(); ++key) {
      const auto k = static_cast<std::size_t>(key);
      arrived[k].fetch_add(1);
      while (arrived[k].load() < kThreads) std::this_thread::yield();
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) return;
      const auto row =
          t->insert(bank.table, {Value::int64(key), Value::int64(thread), Value::string("n")});
      if (!row.ok()) {
        complaint.expect(
            row.code() == StatusCode::kConflict || row.code() == StatusCode::kAlreadyExists,
            "the loser is told " + row.status().to_string());
        continue;
      }
      complaint.expect(t->commit().ok(), "commit");
      winners[k].fetch_add(1);
    }
  });
  CHECK(complaint.what() == "");
  std::size_t wrong = 0;
  for (const auto& count : winners) wrong += count.load() == 1 ? 0 : 1;
  CHECK(wrong == 0);
  must(bank.database->check());
  std::size_t rows = 0;
  bank.sum(must(bank.database->begin()), rows);
  CHECK(rows == static_cast<std::size_t>(kKeys));
}

// One thread deletes the row with the key, others insert it again: there is never more than one,
// and the number of rows agrees with the acknowledged calls.
TEST_CASE("several threads delete and insert one key", "[engine]") {
  Bank bank(1);
  Complaint complaint;
  std::atomic<int> balance{1};  // rows with the key, by what was acknowledged
  std::atomic<int> writers{3};
  const auto write = [&](int thread) {
    for (int i = 0; i < 1500 * kEffort && !complaint.failed(); ++i) {
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      const auto row = t->get(bank.primary, {Value::int64(0)});
      if (row.ok() && thread == 0) {
        if (t->remove(bank.table, row->id()).ok() && t->commit().ok()) balance.fetch_sub(1);
      } else if (!row.ok()) {
        const auto fresh =
            t->insert(bank.table, {Value::int64(0), Value::int64(thread), Value::string("n")});
        complaint.expect(fresh.code() != StatusCode::kAlreadyExists, "what is not there exists");
        if (fresh.ok() && t->commit().ok()) balance.fetch_add(1);
      }
    }
    writers.fetch_sub(1);
  };
  const auto read = [&] {
    while (writers.load() != 0 && !complaint.failed()) {
      auto t = bank.database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin to read")) break;
      std::size_t rows = 0;
      bank.sum(*t, rows);
      complaint.expect(rows <= 1, std::to_string(rows) + " rows with one key");
      const bool found = t->get(bank.primary, {Value::int64(0)}).ok();
      complaint.expect(found == (rows == 1), "scan and index differ");
    }
  };
  run_threads(4, [&](int i) { i < 3 ? write(i) : read(); });
  CHECK(complaint.what() == "");
  std::size_t rows = 0;
  bank.sum(must(bank.database->begin()), rows);
  CHECK(static_cast<int>(rows) == balance.load());
  must(bank.database->check());
}

TEST_CASE("a long snapshot stays as it was while hot rows are updated", "[engine]") {
  constexpr std::int64_t kAccounts = 8;
  Bank bank(kAccounts);
  Complaint complaint;
  std::atomic<int> writing{2};
  Transaction old = must(bank.database->begin(AccessMode::kReadOnly));
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w)
    writers.emplace_back([&, w] {
      for (std::int64_t i = 0; i < 2500 * kEffort && !complaint.failed(); ++i) {
        auto t = bank.database->begin();
        if (!complaint.expect(t.ok(), "begin")) break;
        // Each writer has its own accounts, so every transaction commits.
        if (!complaint.expect(bank.add(*t, w + 2 * (i % (kAccounts / 2)), 1), "update")) break;
        complaint.expect(t->commit().ok(), "commit");
      }
      writing.fetch_sub(1);
    });
  std::size_t wrong = 0;
  const auto look = [&](const Transaction& t, std::int64_t amount) {
    std::size_t rows = 0;
    wrong += bank.sum(t, rows) == kAccounts * amount && rows == kAccounts ? 0 : 1;
    for (std::int64_t id = 0; id < kAccounts; ++id) {
      const auto row = t.get(bank.primary, {Value::int64(id)});
      wrong += row.ok() && row->get_unchecked<std::int64_t>(kAmount) == amount ? 0 : 1;
    }
  };
  while (writing.load() != 0) {
    look(old, 100);
    // Short snapshots come and go meanwhile.
    std::size_t rows = 0;
    bank.sum(must(bank.database->begin(AccessMode::kReadOnly)), rows);
    wrong += rows == kAccounts ? 0 : 1;
  }
  for (std::thread& thread : writers) thread.join();
  look(old, 100);
  look(must(bank.database->begin()), 100 + 2500 * kEffort / (kAccounts / 2));
  CHECK(wrong == 0);
  CHECK(complaint.what() == "");
  old.abort();
  must(bank.database->check());
}

// Without an old snapshot, rows of dead versions are reused while others read.
TEST_CASE("short snapshots stay as they were while rows are recycled under them", "[engine]") {
  constexpr std::int64_t kAccounts = 4;
  Bank bank(kAccounts);
  Complaint complaint;
  std::atomic<int> writing{2};
  constexpr int kUpdates = 15000 * kEffort;
  const auto write = [&](int w) {
    for (int i = 0; i < kUpdates && !complaint.failed(); ++i) {
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      // From one account to the other: in sum nothing changes.
      const bool moved =
          bank.add(*t, w, i % 2 == 0 ? 1 : -1) && bank.add(*t, w + 2, i % 2 == 0 ? -1 : 1);
      complaint.expect(moved && t->commit().ok(), "a writer alone at its rows");
    }
    writing.fetch_sub(1);
  };
  const auto read = [&] {
    while (writing.load() != 0 && !complaint.failed()) {
      auto t = bank.database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin to read")) return;
      std::size_t rows = 0;
      complaint.expect(bank.sum(*t, rows) == kAccounts * 100 && rows == kAccounts, "a scan");
      std::int64_t walked = 0;
      const Status status = t->rows(bank.by_amount, {}, [&](const Row& row) {
        walked += row.get_unchecked<std::int64_t>(kAmount);
        return true;
      });
      complaint.expect(status.ok() && walked == kAccounts * 100, "a walk");
      std::int64_t found = 0;
      for (std::int64_t id = 0; id < kAccounts; ++id) {
        const auto row = t->get(bank.primary, {Value::int64(id)});
        if (complaint.expect(row.ok(), "a row is missing"))
          found += row->get_unchecked<std::int64_t>(kAmount);
      }
      complaint.expect(found == kAccounts * 100, "finds");
    }
  };
  run_threads(3, [&](int i) { i < 2 ? write(i) : read(); });
  CHECK(complaint.what() == "");
  must(bank.database->check());
  // Each transaction leaves two dead rows; without reuse there would be far more positions.
  CHECK(must(bank.database->table_statistics(bank.table)).rows_reserved < 4 * kUpdates / 2);
}

// The writer raises its own row, then a shared one: the second counter is raised only in a
// transaction that began after the first raise was acknowledged. So no snapshot may show the second
// ahead of the first.
TEST_CASE("a snapshot that sees a commit sees all commits acknowledged before it", "[engine]") {
  Bank bank(2, 0);
  Complaint complaint;
  std::atomic<std::int64_t> first{0};
  std::atomic<bool> stop{false};
  constexpr std::int64_t kSteps = 3000 * kEffort;
  const auto set = [&](std::int64_t id, std::int64_t amount) {
    auto t = bank.database->begin();
    if (!t.ok()) return false;
    const auto row = t->get(bank.primary, {Value::int64(id)});
    return row.ok() && t->update(bank.table, row->id(), {{kAmount, Value::int64(amount)}}).ok() &&
           t->commit().ok();
  };
  const auto leader = [&] {
    for (std::int64_t i = 1; i <= kSteps && !complaint.failed(); ++i) {
      complaint.expect(set(0, i), "the leader's update");
      first.store(i);
    }
    stop.store(true);
  };
  const auto follower = [&] {
    while (!stop.load() && !complaint.failed())
      complaint.expect(set(1, first.load()), "the follower's update");
  };
  const auto reader = [&] {
    while (!stop.load() && !complaint.failed()) {
      auto t = bank.database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin")) return;
      const auto behind = t->get(bank.primary, {Value::int64(1)});
      const auto ahead = t->get(bank.primary, {Value::int64(0)});
      if (complaint.expect(behind.ok() && ahead.ok(), "a counter is missing"))
        complaint.expect(behind->get_unchecked<std::int64_t>(kAmount) <=
                             ahead->get_unchecked<std::int64_t>(kAmount),
                         "the follower is ahead of the leader");
    }
  };
  run_threads(4, [&](int i) { i == 0 ? leader() : i == 1 ? follower() : reader(); });
  CHECK(complaint.what() == "");
}

TEST_CASE("aborts do not mislead a reader of a chain of versions", "[engine]") {
  Bank bank(4);
  Complaint complaint;
  std::atomic<int> writers{2};
  const auto write = [&](int thread) {
    for (int i = 0; i < 4000 * kEffort && !complaint.failed(); ++i) {
      auto t = bank.database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      const bool updated = bank.add(*t, (thread + i) % 4, 7);
      if (updated && i % 8 == 0) {
        const auto row = t->get(bank.primary, {Value::int64((thread + i) % 4)});
        const bool back =
            row.ok() && t->update(bank.table, row->id(), {{kAmount, Value::int64(100)}}).ok();
        if (back) complaint.expect(t->commit().ok(), "commit");
      }
      t->abort();
    }
    writers.fetch_sub(1);
  };
  const auto read = [&] {
    while (writers.load() != 0 && !complaint.failed()) {
      auto t = bank.database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin to read")) return;
      for (std::int64_t id = 0; id < 4; ++id) {
        const auto row = t->get(bank.primary, {Value::int64(id)});
        if (complaint.expect(row.ok(), "a row is missing"))
          complaint.expect(row->get_unchecked<std::int64_t>(kAmount) == 100,
                           "an aborted change is seen");
      }
    }
  };
  run_threads(4, [&](int i) { i < 2 ? write(i) : read(); });
  CHECK(complaint.what() == "");
  must(bank.database->check());
}

}  // namespace flugs::test
