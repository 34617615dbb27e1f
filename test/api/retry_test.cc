// Database::run retries conflicts, gives up at its limits, and starves no call.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using std::chrono::milliseconds;
constexpr ColumnId kTotal{1};

struct Totals {
  TemporaryDatabase database;
  TableId table = must(database->create_table([] {
    TableSchema schema("totals");
    schema.column("id", Type::kInt64).column("total", Type::kInt64).primary_key({"id"});
    return schema;
  }()));
  KeyId primary{table, 0};

  explicit Totals(std::int64_t rows = 4) {
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < rows; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(0)}));
    must(t.commit());
  }
  Status add(Transaction& t, std::int64_t id) const {
    return t.add(primary, {Value::int64(id)}, kTotal, Value::int64(1)).status();
  }
  std::int64_t total(std::int64_t id) {
    return must(must(database->begin()).get(primary, {Value::int64(id)}))
        .get_unchecked<std::int64_t>(kTotal);
  }
};

}  // namespace

TEST_CASE("run commits the work, and reports on it", "[api]") {
  Totals totals;
  RetryReport report;
  must(totals.database->run([&](Transaction& t) { return totals.add(t, 0); }, {}, &report));
  CHECK(report.attempts == 1);
  CHECK(report.paused.count() == 0);
  CHECK(report.commit_timestamp != 0);
  CHECK(totals.total(0) == 1);
  // Work that ends the transaction itself.
  must(totals.database->run([&](Transaction& t) {
    must(totals.add(t, 0));
    t.abort();
    return Status();
  }));
  CHECK(totals.total(0) == 1);
}

TEST_CASE("run tries again after a conflict, and not after any other failure", "[api]") {
  Totals totals;
  Transaction blocker = must(totals.database->begin());
  must(totals.add(blocker, 1));
  RetryReport report;
  must(totals.database->run(
      [&](Transaction& t) {
        const Status s = totals.add(t, 1);
        if (s.code() == StatusCode::kConflict && blocker.is_open()) must(blocker.commit());
        return s;
      },
      {}, &report));
  CHECK(report.attempts >= 2);
  CHECK(totals.total(1) == 2);

  const Status missing =
      totals.database->run([&](Transaction& t) { return totals.add(t, 99); }, {}, &report);
  CHECK(missing.code() == StatusCode::kNotFound);
  CHECK(report.attempts == 1);
  const Status cancelled = totals.database->run(
      [](Transaction&) { return Status(StatusCode::kCancelled, "enough"); }, {}, &report);
  CHECK(cancelled.message() == "enough");
  CHECK(report.attempts == 1);
}

TEST_CASE("run gives up after its limit of attempts or time, and says so", "[api]") {
  Totals totals;
  Transaction blocker = must(totals.database->begin());
  must(totals.add(blocker, 2));
  const auto work = [&](Transaction& t) { return totals.add(t, 2); };
  RetryReport report;
  Status s = totals.database->run(work, {.attempts_max = 5}, &report);
  CHECK(s.code() == StatusCode::kConflict);
  CHECK_THAT(std::string(s.message()), Catch::Contains("given up after 5 attempts"));
  CHECK(report.attempts == 5);
  s = totals.database->run(work, {.attempts_max = 3, .time_limit = milliseconds::max()}, &report);
  CHECK_THAT(std::string(s.message()), Catch::Contains("given up after 3 attempts"));
  const auto start = std::chrono::steady_clock::now();
  s = totals.database->run(work, {.time_limit = milliseconds(60)}, &report);
  const auto took = std::chrono::steady_clock::now() - start;
  CHECK(s.code() == StatusCode::kConflict);
  CHECK(took >= milliseconds(60));
  CHECK(report.attempts > 1);
  CHECK(totals.database->run(work, {.pause_max = std::chrono::microseconds(0)}).code() ==
        StatusCode::kInvalidArgument);
  CHECK(totals.database->run(work, {.time_limit = milliseconds(-1)}).code() ==
        StatusCode::kInvalidArgument);
  CHECK(Database().run(work).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("threads that add to one row with run all succeed", "[api]") {
  Totals totals;
  constexpr int kThreads = 4;
  constexpr int kAdds = 500;
  Complaint complaint;
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i)
    running.emplace_back([&] {
      for (int n = 0; n < kAdds; ++n) {
        const Status s = totals.database->run([&](Transaction& t) {
          const Status added = totals.add(t, 0);
          if (n % 8 == 0) std::this_thread::yield();
          return added;
        });
        complaint.expect(s.ok(), s.to_string());
      }
    });
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(totals.total(0) == kThreads * kAdds);
}

// Each of its attempts takes so long that another thread changes one of its rows meanwhile. It
// commits only because the others let it go first.
TEST_CASE("a long transaction among many short ones gets its turn", "[api]") {
  constexpr std::int64_t kRows = 8;
  Totals totals(kRows);
  Complaint complaint;
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> short_ones{0};
  std::vector<std::thread> running;
  for (int i = 0; i < 2; ++i)
    running.emplace_back([&, i] {
      for (std::int64_t n = i; !ends.load(std::memory_order_relaxed); ++n) {
        const Status s =
            totals.database->run([&](Transaction& t) { return totals.add(t, n % kRows); });
        complaint.expect(s.ok(), s.to_string());
        short_ones.fetch_add(1, std::memory_order_relaxed);
      }
    });
  RetryReport report;
  std::uint32_t attempts_most = 0;
  for (int n = 0; n < 5; ++n) {
    const Status s = totals.database->run(
        [&](Transaction& t) {
          for (std::int64_t id = 0; id < kRows; ++id) {
            if (Status added = totals.add(t, id); !added.ok()) return added;
            std::this_thread::sleep_for(milliseconds(2));
          }
          return Status();
        },
        {.time_limit = milliseconds(20000)}, &report);
    complaint.expect(s.ok(), s.to_string());
    attempts_most = std::max(attempts_most, report.attempts);
  }
  ends = true;
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(attempts_most < 40);
  CHECK(short_ones.load() > 10);
}

}  // namespace flugs::test
