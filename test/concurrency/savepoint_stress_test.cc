// Threads undo parts of their transactions while others want the same rows.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kPurseId{0};
constexpr ColumnId kPurseHolder{1};
constexpr ColumnId kPurseCoins{2};
constexpr std::int64_t kPurses = 12;
constexpr std::int64_t kCoinsEach = 1000;

TableSchema purses_schema() {
  TableSchema schema("purses");
  schema.column("id", Type::kInt64).column("holder", Type::kInt64).column("coins", Type::kInt64);
  schema.primary_key({"id"});
  schema.unique_key("by_holder", {"holder"});
  schema.key("by_coins", {"coins"}).ordered();
  return schema;
}

struct Purses {
  TemporaryDatabase database;
  TableId table = must(database->create_table(purses_schema()));
  KeyId id{table, 0};
  KeyId holder{table, 1};
  KeyId coins{table, 2};

  Purses() {
    Transaction t = must(database->begin());
    for (std::int64_t i = 0; i < kPurses; ++i)
      must(t.insert(table, {Value::int64(i), Value::int64(i), Value::int64(kCoinsEach)}));
    must(t.commit());
  }
  /// Moves a coin from one purse to another; false if another transaction has one of them.
  bool give(Transaction& t, std::int64_t from, std::int64_t to, std::int64_t amount) const {
    for (const auto& [which, change] : {std::pair(from, -amount), std::pair(to, amount)}) {
      const Result<Row> row = t.get(id, {Value::int64(which)});
      if (!row.ok()) return false;
      const Value now = Value::int64(row->get_unchecked<std::int64_t>(kPurseCoins) + change);
      if (!t.update(table, row->id(), {{kPurseCoins, now}}).ok()) return false;
    }
    return true;
  }
  /// Gives a purse another holder: deletes and inserts the row, or changes its unique key.
  bool pass(Transaction& t, std::int64_t which, std::int64_t to, bool anew) const {
    const Result<Row> row = t.get(id, {Value::int64(which)});
    if (!row.ok()) return false;
    if (!anew) return t.update(table, row->id(), {{kPurseHolder, Value::int64(to)}}).ok();
    const std::int64_t held = row->get_unchecked<std::int64_t>(kPurseCoins);
    return t.remove(table, row->id()).ok() &&
           t.insert(table, {Value::int64(which), Value::int64(to), Value::int64(held)}).ok();
  }
  /// Checks, by each way to read the rows, what holds in every committed state.
  bool is_whole(const Transaction& t) const {
    std::int64_t sum = 0;
    std::int64_t rows = 0;
    std::int64_t by_key = 0;
    const Status walked = t.rows(coins, {}, {}, [&](const Row& row) {
      ++rows;
      sum += row.get_unchecked<std::int64_t>(kPurseCoins);
      const Result<Row> held =
          t.get(holder, {Value::int64(row.get_unchecked<std::int64_t>(kPurseHolder))});
      const Result<Row> found =
          t.get(id, {Value::int64(row.get_unchecked<std::int64_t>(kPurseId))});
      by_key += held.ok() && found.ok() && held->id() == row.id() && found->id() == row.id();
      return true;
    });
    return walked.ok() && rows == kPurses && by_key == kPurses && sum == kPurses * kCoinsEach;
  }
};

struct Tally {
  std::atomic<std::uint64_t> committed{0};
  std::atomic<std::uint64_t> undone{0};
  std::atomic<std::uint64_t> refused{0};
};

/// A transaction that gives coins, and undoes every other part of its work.
void trade(Purses& purses, Random& random, Complaint& complaint, Tally& tally) {
  Result<Transaction> begun = purses.database->begin();
  if (!complaint.expect(begun.ok(), "begin")) return;
  Transaction t = std::move(*begun);
  const auto any = [&] { return static_cast<std::int64_t>(random.below(kPurses)); };
  for (int part = 0; part < 4; ++part) {
    const Result<Savepoint> savepoint = t.savepoint();
    if (!complaint.expect(savepoint.ok(), "savepoint")) return;
    bool done = true;
    const std::int64_t from = any();
    const std::int64_t to = any();
    if (from != to) done = purses.give(t, from, to, 1 + any());
    const std::int64_t free_holder = kPurses + any();
    if (done && random.chance(40))
      done = purses.pass(t, from, random.chance(50) ? from : free_holder, random.chance(50));
    if (!done) tally.refused.fetch_add(1, std::memory_order_relaxed);
    if (random.chance(20)) std::this_thread::yield();
    if (done && random.chance(50)) {
      if (random.chance(50)) complaint.expect(t.release(*savepoint).ok(), "release");
      continue;
    }
    complaint.expect(t.rollback_to(*savepoint).ok(), "rollback_to");
    complaint.expect(purses.is_whole(t), "a transaction sees what it has undone");
    tally.undone.fetch_add(1, std::memory_order_relaxed);
  }
  if (random.chance(10)) return;
  const Status committed = t.commit();
  complaint.expect(committed.ok(), "commit: " + committed.to_string());
  tally.committed.fetch_add(1, std::memory_order_relaxed);
}

void run_trades(Purses& purses, int threads, int trades, Complaint& complaint, Tally& tally,
                const std::function<void()>& meanwhile) {
  std::atomic<int> left{threads};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i) + 77);
      for (int n = 0; n < trades && !complaint.failed(); ++n)
        trade(purses, random, complaint, tally);
      left.fetch_sub(1);
    });
  while (left.load() != 0 && !complaint.failed()) {
    meanwhile();
    std::this_thread::yield();  // a trade that yields waits for no time slice
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace

TEST_CASE("threads that undo parts of their transactions neither lose nor make money", "[engine]") {
  Purses purses;
  Complaint complaint;
  Tally tally;
  run_trades(purses, 3, 400 * kEffort, complaint, tally, [&] {
    Result<Transaction> reader = purses.database->begin(AccessMode::kReadOnly);
    if (complaint.expect(reader.ok(), "begin"))
      complaint.expect(purses.is_whole(*reader), "a reader sees a part of a transaction");
  });
  CHECK(complaint.what() == "");
  CHECK(tally.committed.load() > 100);
  CHECK(tally.undone.load() > 100);
  CHECK(tally.refused.load() > 10);
  must(purses.database->check());
  purses.database.reopen();
  must(purses.database->check());
  CHECK(purses.is_whole(must(purses.database->begin())));
}

TEST_CASE("threads that undo parts of their transactions while the table is merged", "[engine]") {
  Purses purses;
  Complaint complaint;
  Tally tally;
  std::uint64_t merges = 0;
  run_trades(purses, 2, 600 * kEffort, complaint, tally, [&] {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 1;
    options.patience = std::chrono::milliseconds(50);
    const auto merged = purses.database->merge(purses.table, options);
    complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy, "merge");
    merges += merged.ok() ? 1 : 0;
    Result<Transaction> reader = purses.database->begin(AccessMode::kReadOnly);
    if (complaint.expect(reader.ok(), "begin"))
      complaint.expect(purses.is_whole(*reader), "a reader sees a part of a transaction");
  });
  CHECK(complaint.what() == "");
  CHECK(tally.undone.load() > 100);
  CHECK(merges > 0);
  must(purses.database->check());
  purses.database.reopen();
  must(purses.database->check());
  CHECK(purses.is_whole(must(purses.database->begin())));
}

}  // namespace flugs::test
