// Closing a database while transactions are open: it ends no process and loses nothing.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

OpenOptions at(const TemporaryPath& path) {
  OpenOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{64} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.tuning.grow_ahead_bytes = 0;
  return options;
}

TableId make_numbers(Database& database) {
  return must(
      database.create_table(TableSchema("numbers").column("n", Type::kInt64).primary_key({"n"})));
}

bool holds(const TemporaryPath& path, std::int64_t number) {
  Database database = must(Database::open(at(path)));
  const KeyId key = must(database.find_key(must(database.find_table("numbers")), "primary"));
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  return t.get(key, {number}).ok();
}

}  // namespace

TEST_CASE("close refuses while transactions are open, and names the oldest", "[api]") {
  const TemporaryPath path;
  Database database = must(Database::open(at(path)));
  Transaction first = must(database.begin());
  Transaction second = must(database.begin(AccessMode::kReadOnly));
  const Status refused = database.close();
  INFO(refused.to_string());
  CHECK(refused.code() == StatusCode::kBusy);
  CHECK(refused.message().find("2 are open") != std::string_view::npos);
  CHECK(database.is_open());
  first.abort();
  const Status again = database.close();
  INFO(again.to_string());
  CHECK(again.message().find("1 is open, the oldest is " + std::to_string(second.id().value()) +
                             " (read-only)") != std::string_view::npos);
  second.abort();
  must(database.close());
  CHECK(!database.is_open());
  CHECK(database.close().code() == StatusCode::kInvalidArgument);
  CHECK(database.begin().code() == StatusCode::kInvalidArgument);
  must(Database::open(at(path)));  // nobody holds the pool
}

TEST_CASE("transactions outlive a database that is destroyed, and the last one closes it",
          "[api]") {
  const TemporaryPath path;
  std::optional<Database> database(must(Database::open(at(path))));
  const TableId numbers = make_numbers(*database);
  Transaction kept = must(database->begin());
  Transaction committed = must(database->begin());
  Transaction destroyed = must(database->begin());
  must(kept.insert(numbers, {1}));
  must(destroyed.insert(numbers, {3}));
  database.reset();
  CHECK(Database::open(at(path)).code() == StatusCode::kBusy);
  must(committed.insert(numbers, {2}));
  must(committed.commit());
  {
    const Transaction ends = std::move(destroyed);
  }
  CHECK(Database::open(at(path)).code() == StatusCode::kBusy);
  kept = Transaction();
  CHECK(!holds(path, 1));
  CHECK(holds(path, 2));
  CHECK(!holds(path, 3));
}

TEST_CASE("transactions of a destroyed database end in many threads at once", "[api]") {
  for (int round = 0; round < 20; ++round) {
    const TemporaryPath path;
    std::optional<Database> database(must(Database::open(at(path))));
    const TableId numbers = make_numbers(*database);
    std::vector<Transaction> open;
    for (int i = 0; i < 8; ++i) open.push_back(must(database->begin()));
    database.reset();
    std::atomic<int> failures{0};  // Catch checks in the main thread only
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        Transaction& t = open[static_cast<std::size_t>(i)];
        bool is_ok = t.insert(numbers, {i}).ok();
        if (i % 2 == 0) is_ok = t.commit().ok() && is_ok;
        t.abort();
        failures += is_ok ? 0 : 1;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(failures == 0);
    for (int i = 0; i < 8; ++i) CHECK(holds(path, i) == (i % 2 == 0));
  }
}

TEST_CASE("assigning to a database with open transactions leaves them to end", "[api]") {
  const TemporaryPath path;
  const TemporaryPath other;
  Database database = must(Database::open(at(path)));
  const TableId numbers = make_numbers(database);
  Transaction t = must(database.begin());
  database = must(Database::open(at(other)));
  must(t.insert(numbers, {5}));
  must(t.commit());
  CHECK(holds(path, 5));
}

}  // namespace flugs::test
