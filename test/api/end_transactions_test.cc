// Transactions that other threads cancel, that reach their time limit, or that are abandoned.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using std::chrono::milliseconds;
constexpr ColumnId kBookPages{1};
constexpr std::int64_t kBookRows = 5000;

struct Books {
  TemporaryDatabase database;
  TableId table = must(database->create_table([] {
    TableSchema schema("books");
    schema.column("id", Type::kInt64).column("pages", Type::kInt64).primary_key({"id"});
    schema.key("by_pages", {"pages"}).ordered();
    return schema;
  }()));
  KeyId primary{table, 0};
  KeyId by_pages{table, 1};

  Books() {
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kBookRows; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(id % 10)}));
    must(t.commit());
  }
  Status add(Transaction& t, std::int64_t id) const {
    return t.add(primary, {Value::int64(id)}, kBookPages, Value::int64(1)).status();
  }
  std::int64_t pages(std::int64_t id) {
    return must(must(database->begin()).get(primary, {Value::int64(id)}))
        .get_unchecked<std::int64_t>(kBookPages);
  }
  TransactionInfo info(TransactionId id) {
    for (const TransactionInfo& one : database->transactions())
      if (one.id == id) return one;
    return {};
  }
};

/// Every call fails with these words, and a savepoint does not survive.
void check_has_ended(const Books& books, Transaction& t, const std::string& words) {
  const auto refuses = [&](const Status& s) {
    CHECK(s.code() == StatusCode::kCancelled);
    CHECK_THAT(std::string(s.message()), Catch::Contains(words));
  };
  refuses(books.add(t, 1));
  refuses(t.get(books.primary, {Value::int64(1)}).status());
  refuses(t.scan(books.table, {}, [](const ScanBatch&) { return true; }));
  refuses(t.savepoint().status());
  refuses(query::Query::table("books").run(t).status());
  refuses(t.set_time_limit(milliseconds(1)));
  CHECK(t.is_open());
  refuses(t.commit());
  CHECK_FALSE(t.is_open());
  CHECK(t.id() == TransactionId());
}

}  // namespace

TEST_CASE("a cancelled transaction is undone at its next call", "[api]") {
  Books books;
  Transaction t = must(books.database->begin());
  must(books.add(t, 1));
  CHECK(t.id() != TransactionId());
  must(books.database->cancel(t.id()));
  CHECK(books.info(t.id()).is_asked_to_end);
  Transaction other = must(books.database->begin());
  CHECK(books.add(other, 1).code() == StatusCode::kConflict);
  CHECK(books.add(t, 2).code() == StatusCode::kCancelled);
  must(books.add(other, 1));
  must(other.commit());
  check_has_ended(books, t, "it was cancelled");
  CHECK(books.pages(1) == 2);
  CHECK(books.database->statistics().transactions_ended == 1);
  must(books.database->check());
}

TEST_CASE("a cancelled transaction does not commit, and one that began since is not cancelled",
          "[api]") {
  Books books;
  Transaction t = must(books.database->begin());
  must(books.add(t, 1));
  const TransactionId first = t.id();
  must(books.database->cancel(first));
  CHECK(t.commit().code() == StatusCode::kCancelled);
  CHECK(books.pages(1) == 1);
  CHECK(books.database->cancel(first).code() == StatusCode::kNotFound);
  // In the same slot.
  t = must(books.database->begin());
  CHECK(t.id() != first);
  CHECK(books.database->cancel(first).code() == StatusCode::kNotFound);
  must(books.add(t, 1));
  must(t.commit());
  CHECK(books.pages(1) == 2);
  CHECK(books.database->cancel(TransactionId()).code() == StatusCode::kNotFound);
  CHECK(books.database->cancel(TransactionId(~std::uint64_t{0})).code() == StatusCode::kNotFound);
  // Cancelled and destroyed without another call.
  t = must(books.database->begin());
  must(books.add(t, 1));
  must(books.database->cancel(t.id()));
  t.abort();
  t = must(books.database->begin());
  must(books.add(t, 1));
  must(t.commit());
  CHECK(books.pages(1) == 3);
  must(books.database->check());
}

TEST_CASE("cancelling a transaction cuts short its call that goes through rows", "[api]") {
  Books books;
  const auto pause = [] { std::this_thread::sleep_for(milliseconds(1)); };
  const std::vector<std::function<Status(Transaction&)>> calls = {
      [&](Transaction& t) {
        return t.rows(books.by_pages, {}, {}, [&](const Row&) { return pause(), true; });
      },
      [&](Transaction& t) {
        return t.scan(books.table, {}, [&](const ScanBatch&) { return pause(), true; });
      },
      [&](Transaction& t) { return query::Query::table("books").run(t).status(); },
  };
  for (const auto& call : calls) {
    Transaction t = must(books.database->begin());
    must(books.add(t, 7));
    const std::jthread canceller([&, id = t.id()] {
      std::this_thread::sleep_for(milliseconds(20));
      static_cast<void>(books.database->cancel(id));
    });
    Status status;
    while (status.ok()) status = call(t);
    CHECK(status.code() == StatusCode::kCancelled);
    check_has_ended(books, t, "it was cancelled");
  }
  CHECK(books.pages(7) == 7);
}

TEST_CASE("a transaction ends at its time limit", "[api]") {
  Books books;
  Transaction t = must(books.database->begin());
  must(t.set_time_limit(milliseconds(10'000)));
  must(books.add(t, 1));
  must(t.set_time_limit(milliseconds(0)));
  must(t.set_time_limit(milliseconds(30)));
  must(books.add(t, 1));
  Status status;
  while (status.ok()) status = t.get(books.primary, {Value::int64(1)}).status();
  check_has_ended(books, t, "its time limit has passed");
  CHECK(books.pages(1) == 1);
  // The limit belonged to that transaction only.
  t = must(books.database->begin());
  std::this_thread::sleep_for(milliseconds(40));
  must(books.add(t, 1));
  CHECK(t.set_time_limit(milliseconds(-1)).code() == StatusCode::kInvalidArgument);
  must(t.set_time_limit(milliseconds(1)));
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(t.commit().code() == StatusCode::kCancelled);
  CHECK(books.pages(1) == 1);
}

TEST_CASE("transactions() lists open transactions and the time since their last call", "[api]") {
  Books books;
  CHECK(books.database->transactions().empty());
  Transaction reader =
      must(books.database->begin(AccessMode::kReadOnly, Isolation::kReadCommitted));
  Transaction writer = must(books.database->begin());
  must(books.add(writer, 1));
  const TransactionInfo first = books.info(reader.id());
  CHECK(first.mode == AccessMode::kReadOnly);
  CHECK(first.isolation == Isolation::kReadCommitted);
  CHECK_FALSE(first.is_asked_to_end);
  CHECK(books.database->transactions().size() == 2);
  std::this_thread::sleep_for(milliseconds(30));
  must(books.add(writer, 1));
  CHECK(books.info(reader.id()).idle >= milliseconds(30));
  CHECK(books.info(reader.id()).open >= milliseconds(30));
  CHECK(books.info(writer.id()).idle < milliseconds(30));
  CHECK(books.info(writer.id()).open >= milliseconds(30));
  const Statistics statistics = books.database->statistics();
  CHECK(statistics.idle_ms_max >= 30);
  CHECK(statistics.open_ms_max >= 30);
  must(writer.commit());
  CHECK(books.info(reader.id()).snapshots_behind >= 1);
  reader.abort();
  CHECK(books.database->transactions().empty());
  CHECK(Database().transactions().empty());
  CHECK(Database().cancel(TransactionId(1)).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("an abandoned transaction can be ended, and its next call fails with kCancelled",
          "[api]") {
  Books books;
  Transaction abandoned = must(books.database->begin());
  must(books.add(abandoned, 1));
  const TransactionId id = abandoned.id();
  const auto end = [&] { return books.database->end_abandoned(id, milliseconds(25)); };
  CHECK(books.database->end_abandoned(id, milliseconds(1)).code() == StatusCode::kInvalidArgument);
  CHECK(end().code() == StatusCode::kBusy);  // not seen idle before
  must(books.add(abandoned, 1));             // it works
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(end().code() == StatusCode::kBusy);
  std::this_thread::sleep_for(milliseconds(30));
  must(end());
  CHECK(books.info(id).is_ended);
  must(end());  // once more: it has ended
  Transaction other = must(books.database->begin());
  must(books.add(other, 1));
  must(other.commit());
  check_has_ended(books, abandoned, "abandoned");
  CHECK(end().code() == StatusCode::kNotFound);
  CHECK(books.pages(1) == 2);
  // A transaction that is destroyed without another call.
  abandoned = must(books.database->begin());
  must(books.add(abandoned, 1));
  books.info(abandoned.id());
  std::this_thread::sleep_for(milliseconds(30));
  must(books.database->end_abandoned(abandoned.id(), milliseconds(25)));
  abandoned.abort();
  CHECK(books.database->statistics().transactions_open == 0);
  CHECK(books.pages(1) == 2);
  must(books.database->check());
}

TEST_CASE("end_abandoned does not end a transaction in a long call", "[api]") {
  Books books;
  Transaction t = must(books.database->begin());
  must(t.scan(books.table, {}, [&](const ScanBatch&) {
    books.info(t.id());
    std::this_thread::sleep_for(milliseconds(30));
    const Status s = books.database->end_abandoned(t.id(), milliseconds(20));
    CHECK(s.code() == StatusCode::kBusy);
    CHECK_THAT(std::string(s.message()), Catch::Contains("is running"));
    return false;
  }));
  must(books.add(t, 1));
  must(t.commit());
}

// Owners begin and end transactions; one thread cancels those that it sees, another ends abandoned
// ones.
TEST_CASE("cancelled and ended transactions leave nothing behind", "[api]") {
  Books books;
  Complaint complaint;
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> committed{0};
  std::atomic<std::uint64_t> ended{0};
  std::vector<std::thread> running;
  for (int i = 0; i < 3; ++i)
    running.emplace_back([&, i] {
      for (std::uint64_t n = 0; !ends.load(std::memory_order_relaxed); ++n) {
        Result<Transaction> t = books.database->begin();
        if (!t.ok()) continue;
        Status s;
        for (std::int64_t id = 0; s.ok() && id < 3; ++id) s = books.add(*t, 100 * i + id);
        if (n % 8 == 0) std::this_thread::sleep_for(milliseconds(15));
        if (s.ok() && n % 16 != 0) s = t->commit();
        if (s.ok() && !t->is_open()) committed.fetch_add(1);
        if (s.code() == StatusCode::kCancelled) ended.fetch_add(1);
        complaint.expect(s.ok() || s.code() == StatusCode::kCancelled, s.to_string());
      }
    });
  const auto until = std::chrono::steady_clock::now() + milliseconds(1500);
  for (std::uint64_t n = 0; std::chrono::steady_clock::now() < until && !complaint.failed(); ++n) {
    for (const TransactionInfo& open : books.database->transactions()) {
      if (n % 8 == 0) static_cast<void>(books.database->cancel(open.id));
      if (open.idle >= milliseconds(10))
        static_cast<void>(books.database->end_abandoned(open.id, milliseconds(10)));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ends = true;
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(ended.load() > 10);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t id = 0; id < 3; ++id) sum += books.pages(100 * i + id) - (100 * i + id) % 10;
  CHECK(static_cast<std::uint64_t>(sum) == committed.load() * 3);
  must(books.database->check());
}

}  // namespace flugs::test
