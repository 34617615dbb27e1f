// Threads that lock rows before they write them, beside a thread that writes without locking.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kTillCoins{1};
constexpr std::int64_t kTills = 4;
constexpr LockWait kLong{std::chrono::milliseconds(60'000)};

struct Tills {
  TemporaryDatabase database;
  TableId table;
  KeyId id;
  KeyId by_place;  // there are two keys if `has_places`, and neither is the primary key

  explicit Tills(bool has_places = false) {
    TableSchema schema("tills");
    schema.column("id", Type::kInt64).column("coins", Type::kInt64).column("place", Type::kInt64);
    if (has_places) {
      schema.unique_key("by_place", {"place"}).unique_key("by_id", {"id"});
    } else {
      schema.primary_key({"id"});
    }
    table = must(database->create_table(schema));
    id = {table, static_cast<std::uint16_t>(has_places ? 1 : 0)};
    by_place = {table, 0};
    Transaction t = must(database->begin());
    for (std::int64_t i = 0; i < kTills; ++i)
      must(t.insert(table, {Value::int64(i), Value::int64(0), Value::int64(i)}));
    must(t.commit());
  }
  std::int64_t sum() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < kTills; ++i)
      total += must(t.get(id, {Value::int64(i)})).get_unchecked<std::int64_t>(kTillCoins);
    return total;
  }
};

}  // namespace

namespace {

void merge_tills(Tills& tills) {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.dead_percent = 1;
  options.patience = std::chrono::milliseconds(20);
  static_cast<void>(tills.database->merge(tills.table, options));
}

/// Drops the key of places, or adds it again.
void change_place_key(Tills& tills, bool& is_there, Complaint& complaint) {
  if (is_there) {
    const Status dropped = tills.database->drop_key(tills.by_place);
    complaint.expect(dropped.ok(), "drop_key: " + dropped.to_string());
    is_there = false;
    return;
  }
  KeySchema key;
  key.name = "by_place";
  key.columns = {"place"};
  key.unique = true;
  const Result<KeyId> added = tills.database->add_key(tills.table, key);
  complaint.expect(added.ok() || added.code() == StatusCode::kBusy,
                   "add_key: " + added.status().to_string());
  is_there = added.ok();
}

}  // namespace

// With a primary key, and without one while a unique key comes and goes.
TEST_CASE("a transaction that locks its rows before writing never needs a retry", "[engine]") {
  const bool changes_keys = GENERATE(false, true);
  Tills tills(changes_keys);
  bool has_place_key = changes_keys;
  Complaint complaint;
  constexpr int kThreads = 3;
  const int rounds = 300 * kEffort;
  std::atomic<bool> ends{false};
  std::atomic<int> left{kThreads};
  std::atomic<std::int64_t> written{0};
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i)
    running.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i) + 5);
      for (int n = 0; n < rounds && !complaint.failed(); ++n) {
        Result<Transaction> t =
            tills.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted);
        if (!complaint.expect(t.ok(), "begin")) break;
        // All threads lock in the same order, so there is no deadlock.
        for (std::int64_t at = static_cast<std::int64_t>(random.below(kTills)); at < kTills;
             at += 1 + static_cast<std::int64_t>(random.below(2))) {
          const Result<Row> row = t->lock(tills.id, {Value::int64(at)}, kLong);
          if (!complaint.expect(row.ok(), "lock: " + row.status().to_string())) break;
          const std::int64_t coins = row->get_unchecked<std::int64_t>(kTillCoins);
          if (random.chance(20)) std::this_thread::yield();
          const Status s =
              t->update(tills.table, row->id(), {{kTillCoins, Value::int64(coins + 1)}}).status();
          complaint.expect(s.ok(), "update: " + s.to_string());
          written.fetch_add(1);
        }
        complaint.expect(t->commit().ok(), "commit");
      }
      left.fetch_sub(1);
    });
  // Writes without locking: it is refused while another transaction has the row.
  running.emplace_back([&] {
    Random random(77);
    while (!ends.load() && !complaint.failed()) {
      Result<Transaction> t = tills.database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      const auto at = static_cast<std::int64_t>(random.below(kTills));
      const Result<Value> sum = t->add(tills.id, {Value::int64(at)}, kTillCoins, Value::int64(1));
      complaint.expect(sum.ok() || sum.code() == StatusCode::kConflict, "add");
      if (sum.ok() && t->commit().ok()) written.fetch_add(1);
      std::this_thread::yield();
    }
  });
  while (left.load() != 0 && !complaint.failed()) {
    merge_tills(tills);
    if (changes_keys) change_place_key(tills, has_place_key, complaint);
  }
  ends = true;
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(tills.sum() == written.load());
  CHECK(tills.database->statistics().rows_locked == 0);
  must(tills.database->check());
}

TEST_CASE("threads that lock rows in any order make progress, with deadlocks or without",
          "[engine]") {
  Tills tills;
  Complaint complaint;
  constexpr int kThreads = 4;
  const int rounds = 100 * kEffort;
  std::atomic<std::int64_t> written{0};
  std::atomic<std::uint64_t> refused{0};
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i)
    running.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i) + 9);
      for (int n = 0; n < rounds && !complaint.failed(); ++n) {
        const Status s = tills.database->run(
            [&](Transaction& t) {
              for (int k = 0; k < 3; ++k) {
                const auto at = static_cast<std::int64_t>(random.below(kTills));
                const Result<Row> row = t.lock(tills.id, {Value::int64(at)}, kLong);
                if (!row.ok()) {
                  refused.fetch_add(1);
                  return row.status();
                }
                if (random.chance(30)) std::this_thread::yield();
                const Status added =
                    t.add(tills.id, {Value::int64(at)}, kTillCoins, Value::int64(1)).status();
                if (!added.ok()) return added;
              }
              return Status();
            },
            {.isolation = Isolation::kReadCommitted,
             .time_limit = std::chrono::milliseconds(60'000)});
        complaint.expect(s.ok(), s.to_string());
        written.fetch_add(3);
      }
    });
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(tills.sum() == written.load());
  CHECK(refused.load() > 0);
  CHECK(tills.database->statistics().rows_locked == 0);
}

}  // namespace flugs::test
