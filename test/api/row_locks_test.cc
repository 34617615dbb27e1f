// Transaction::lock: who may write a locked row, the order of waiting, the row after waiting, and
// deadlocks.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr ColumnId kSeatGuest{1};
constexpr LockWait kAtOnce{milliseconds(0)};
constexpr LockWait kPatient{milliseconds(20'000)};

struct Seats {
  TemporaryDatabase database;
  TableId table = must(database->create_table([] {
    TableSchema schema("seats");
    schema.column("id", Type::kInt64).column("guest", Type::kInt64).column("code", Type::kString);
    schema.primary_key({"id"}).unique_key("by_code", {"code"});
    return schema;
  }()));
  KeyId primary{table, 0};
  KeyId by_code{table, 1};

  explicit Seats(bool merges = false) {
    Transaction t = begin();
    for (std::int64_t id = 0; id < 8; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(0),
                            Value::string(std::string_view("s" + std::to_string(id)))}));
    must(t.commit());
    if (!merges) return;
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    REQUIRE(must(database->merge(table, options)).chunks_merged == 1);
  }
  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  Result<Row> lock(Transaction& t, std::int64_t id, LockWait wait = kAtOnce) const {
    return t.lock(primary, {Value::int64(id)}, wait);
  }
  Status add(Transaction& t, std::int64_t id) const {
    return t.add(primary, {Value::int64(id)}, kSeatGuest, Value::int64(1)).status();
  }
  std::int64_t guest(std::int64_t id) {
    return must(begin().get(primary, {Value::int64(id)})).get_unchecked<std::int64_t>(kSeatGuest);
  }
  std::uint64_t locked() { return database->statistics().rows_locked; }
  /// Returns when the transaction's call waits for a lock: it is in a call, and stays in it.
  void wait_until_in_call(TransactionId id) {
    for (int looks = 0; looks < 3;) {
      bool is_in_call = false;
      for (const TransactionInfo& info : database->transactions())
        is_in_call |= info.id == id && info.is_in_call;
      looks = is_in_call ? looks + 1 : 0;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
};

}  // namespace

TEST_CASE("all transactions may read a locked row, only its owner may write it", "[api]") {
  for (const bool merged : {false, true}) {
    Seats seats(merged);
    Transaction t = seats.begin();
    Transaction other = seats.begin();
    CHECK(must(seats.lock(t, 1)).get_unchecked<std::int64_t>(kSeatGuest) == 0);
    must(seats.lock(t, 1));  // once more
    CHECK(seats.locked() == 1);
    CHECK(other.get(seats.primary, {Value::int64(1)}).ok());
    const Status refused = seats.add(other, 1);
    CHECK(refused.code() == StatusCode::kConflict);
    CHECK_THAT(std::string(refused.message()), Catch::Contains("table seats"));
    const RowId row = must(other.get(seats.primary, {Value::int64(1)})).id();
    CHECK(other.remove(seats.table, row).code() == StatusCode::kConflict);
    // Another key finds the same record.
    const Status busy = other.lock(seats.by_code, {Value::string("s1")}, kAtOnce).status();
    CHECK(busy.code() == StatusCode::kBusy);
    CHECK_THAT(std::string(busy.message()), Catch::Contains("table seats, key by_code"));
    must(seats.add(other, 2));  // no other record is locked
    must(seats.add(t, 1));
    must(seats.add(t, 1));
    must(t.commit());
    CHECK(seats.locked() == 0);
    CHECK(seats.guest(1) == 2);
    CHECK(seats.add(other, 1).code() == StatusCode::kConflict);
    must(other.commit());
    must(seats.database->check());
  }
}

TEST_CASE("a lock ends with its transaction, however that ends", "[api]") {
  Seats seats;
  const std::vector<std::function<void(Transaction&)>> ends = {
      [](Transaction& t) { must(t.commit()); }, [](Transaction& t) { t.abort(); },
      [&](Transaction& t) {
        must(seats.database->cancel(t.id()));
        CHECK(t.savepoint().code() == StatusCode::kCancelled);
      },
      [](Transaction& t) { t = Transaction(); }};
  for (const auto& end : ends) {
    Transaction t = seats.begin();
    must(seats.lock(t, 3));
    Transaction other = seats.begin();
    CHECK(seats.lock(other, 3).code() == StatusCode::kBusy);
    end(t);
    CHECK(seats.locked() == 0);
    // Nothing was changed, so its snapshot still serves.
    must(seats.lock(other, 3));
    must(seats.add(other, 3));
    must(other.commit());
  }
  CHECK(seats.guest(3) == 4);
}

TEST_CASE("a rollback releases locks taken since its savepoint", "[api]") {
  Seats seats;
  Transaction t = seats.begin();
  must(seats.lock(t, 1));
  const Savepoint savepoint = must(t.savepoint());
  must(seats.lock(t, 1));
  must(seats.lock(t, 2));
  must(seats.add(t, 2));
  CHECK(seats.locked() == 2);
  must(t.rollback_to(savepoint));
  CHECK(seats.locked() == 1);
  Transaction other = seats.begin();
  CHECK(seats.add(other, 1).code() == StatusCode::kConflict);
  must(seats.add(other, 2));
  must(other.commit());
  must(t.commit());
  must(seats.database->check());
}

TEST_CASE("Transaction::lock fails where it cannot lock a row", "[api]") {
  Seats seats;
  Transaction t = seats.begin();
  CHECK(seats.lock(t, 99).code() == StatusCode::kNotFound);
  CHECK(seats.lock(t, 1, LockWait{milliseconds(-1)}).code() == StatusCode::kInvalidArgument);
  CHECK(t.lock(KeyId{seats.table, 7}, {Value::int64(1)}).code() == StatusCode::kInvalidArgument);
  must(seats.add(t, 1));
  must(seats.lock(t, 1));  // its own already
  CHECK(seats.locked() == 0);
  must(seats.lock(t, 2, LockWait{milliseconds::max()}));
  Transaction reader = must(seats.database->begin(AccessMode::kReadOnly));
  CHECK(seats.lock(reader, 3).code() == StatusCode::kReadOnly);
  t.abort();
  CHECK(seats.lock(t, 1).code() == StatusCode::kInvalidArgument);
  // Changed since the snapshot.
  Transaction late = seats.begin();
  t = seats.begin();
  must(seats.add(t, 4));
  CHECK(seats.lock(late, 4).code() == StatusCode::kBusy);  // is being written
  must(t.commit());
  CHECK(seats.lock(late, 4, kPatient).code() == StatusCode::kConflict);
  CHECK(seats.locked() == 0);
}

TEST_CASE("after waiting, the level decides: the newer version, or a conflict", "[api]") {
  for (const bool by_writing : {false, true})
    for (const bool changes : {false, true})
      for (const Isolation isolation :
           {Isolation::kSnapshot, Isolation::kSerializable, Isolation::kReadCommitted}) {
        if (by_writing && !changes) continue;
        Seats seats;
        Transaction holder = seats.begin();
        if (!by_writing) must(seats.lock(holder, 5));
        if (changes) must(seats.add(holder, 5));
        Transaction waiter = seats.begin(isolation);
        CHECK(waiter.get(seats.primary, {Value::int64(5)}).ok());
        std::jthread ending([&, id = waiter.id()] {
          seats.wait_until_in_call(id);
          std::this_thread::sleep_for(milliseconds(5));
          static_cast<void>(holder.commit());
        });
        const Result<Row> row = seats.lock(waiter, 5, kPatient);
        ending.join();
        const bool anew = isolation == Isolation::kReadCommitted;
        CHECK(row.code() == (!changes || anew ? StatusCode::kOk : StatusCode::kConflict));
        if (!row.ok()) continue;
        CHECK(row->get_unchecked<std::int64_t>(kSeatGuest) == (changes ? 1 : 0));
        must(seats.add(waiter, 5));
        must(waiter.commit());
        CHECK(seats.guest(5) == (changes ? 2 : 1));
      }
}

TEST_CASE("waiting ends at its limit, at a cancellation, or at the transaction's time limit",
          "[api]") {
  for (const bool by_writing : {false, true}) {
    Seats seats;
    Transaction holder = seats.begin();
    if (by_writing) {
      must(seats.add(holder, 6));
    } else {
      must(seats.lock(holder, 6));
    }
    Transaction waiter = seats.begin();
    auto start = steady_clock::now();
    CHECK(seats.lock(waiter, 6, LockWait{milliseconds(40)}).code() == StatusCode::kBusy);
    CHECK(steady_clock::now() - start >= milliseconds(40));
    std::jthread canceller([&, id = waiter.id()] {
      seats.wait_until_in_call(id);
      static_cast<void>(seats.database->cancel(id));
    });
    start = steady_clock::now();
    CHECK(seats.lock(waiter, 6, kPatient).code() == StatusCode::kCancelled);
    canceller.join();
    waiter = seats.begin();
    std::stop_source source;
    std::jthread stopper([&, id = waiter.id()] {
      seats.wait_until_in_call(id);
      source.request_stop();
    });
    const Status stopped =
        waiter.lock(seats.primary, std::vector{Value::int64(6)}, kPatient, source.get_token())
            .status();
    CHECK(stopped.code() == StatusCode::kCancelled);
    CHECK(stopped.message().find("the caller asked") != std::string::npos);
    CHECK(seats.locked() == (by_writing ? 0 : 1));
    must(seats.lock(waiter, 5));  // it goes on
    must(waiter.set_time_limit(milliseconds(30)));
    CHECK(seats.lock(waiter, 6, kPatient).code() == StatusCode::kCancelled);
    CHECK(steady_clock::now() - start < milliseconds(10'000));
    waiter.abort();
    must(holder.commit());
    CHECK(seats.locked() == 0);
  }
}

TEST_CASE("the transaction that would close the circle gets the deadlock", "[api]") {
  for (const bool by_writing : {false, true}) {
    Seats seats;
    Transaction first = seats.begin(Isolation::kReadCommitted);
    Transaction second = seats.begin(Isolation::kReadCommitted);
    if (by_writing) {
      must(seats.add(first, 1));
    } else {
      must(seats.lock(first, 1));
    }
    must(seats.lock(second, 2));
    StatusCode outcome = StatusCode::kInvalidArgument;
    std::jthread waiting([&] { outcome = seats.lock(second, 1, kPatient).code(); });
    seats.wait_until_in_call(second.id());
    std::this_thread::sleep_for(milliseconds(20));
    const auto start = steady_clock::now();
    const Status closed = seats.lock(first, 2, kPatient).status();
    CHECK(closed.code() == StatusCode::kConflict);
    CHECK_THAT(std::string(closed.message()), Catch::Contains("deadlock"));
    CHECK(steady_clock::now() - start < milliseconds(5000));
    must(first.commit());
    waiting.join();
    CHECK(outcome == StatusCode::kOk);
    must(second.commit());
    CHECK(seats.locked() == 0);
  }
}

TEST_CASE("waiting transactions get a row in the order in which they came", "[api]") {
  Seats seats;
  constexpr int kWaiters = 5;
  Transaction holder = seats.begin();
  must(seats.lock(holder, 7));
  Complaint complaint;
  std::vector<int> order;
  std::mutex mutex;
  std::vector<std::thread> running;
  for (int i = 0; i < kWaiters; ++i) {
    std::atomic<std::uint64_t> id{0};
    running.emplace_back([&, i] {
      Result<Transaction> t =
          seats.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted);
      if (!complaint.expect(t.ok(), "begin")) return;
      id.store(t->id().value());
      complaint.expect(seats.lock(*t, 7, kPatient).ok(), "lock");
      {
        const std::lock_guard guard(mutex);
        order.push_back(i);
      }
      complaint.expect(seats.add(*t, 7).ok(), "add");
      complaint.expect(t->commit().ok(), "commit");
    });
    while (id.load() == 0) std::this_thread::yield();
    seats.wait_until_in_call(TransactionId(id.load()));
    std::this_thread::sleep_for(milliseconds(5));
  }
  must(holder.commit());
  for (std::thread& thread : running) thread.join();
  CHECK(complaint.what() == "");
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(seats.guest(7) == kWaiters);
}

// The first row that is found with the code is left for another one: while the call waits for that,
// and when it has failed, the first row is not locked.
TEST_CASE("a lock that moves on to another row keeps nothing of the first", "[api]") {
  const bool by_stop = GENERATE(false, true);
  CAPTURE(by_stop);
  Seats seats;
  const ColumnId code{2};
  Transaction writer = seats.begin();
  must(seats.lock(writer, 2));
  must(writer.update(seats.primary, {Value::int64(1)}, {{code, Value::string("y")}}));
  must(writer.update(seats.primary, {Value::int64(2)}, {{code, Value::string("s1")}}));

  Transaction next = seats.begin(Isolation::kReadCommitted);
  Status next_locked;
  const TransactionId next_id = next.id();
  std::thread second([&] { next_locked = seats.lock(next, 2, kPatient).status(); });
  seats.wait_until_in_call(next_id);

  Transaction mover = seats.begin(Isolation::kReadCommitted);
  Status moved;
  const TransactionId mover_id = mover.id();
  std::stop_source source;
  std::thread third([&] {
    const LockWait wait = by_stop ? kPatient : LockWait{milliseconds(3000)};
    moved = mover.lock(seats.by_code, {{Value::string("s1")}}, wait, source.get_token()).status();
  });
  seats.wait_until_in_call(mover_id);
  while (seats.locked() < 2) std::this_thread::sleep_for(milliseconds(1));  // rows 2 and 1
  must(writer.commit());
  second.join();
  must(next_locked);
  // Row 1 becomes free while `mover` waits for row 2, long before that wait ends.
  Transaction other = seats.begin();
  Status freed = seats.lock(other, 1).status();
  for (int looks = 0; looks < 1000 && !freed.ok(); ++looks) {
    std::this_thread::sleep_for(milliseconds(1));
    freed = seats.lock(other, 1).status();
  }
  CHECK(freed.code() == StatusCode::kOk);
  other.abort();
  if (by_stop) source.request_stop();
  third.join();
  CHECK(moved.code() == (by_stop ? StatusCode::kCancelled : StatusCode::kBusy));
  CHECK(mover.is_open());
  CHECK(seats.locked() == 1);
  must(mover.commit());
  must(next.commit());
  CHECK(seats.locked() == 0);
}

TEST_CASE("a lock of a row that another transaction writes, and that fails, keeps nothing",
          "[api]") {
  Seats seats;
  Transaction writer = seats.begin();
  must(seats.add(writer, 1));
  for (const Isolation isolation : {Isolation::kSnapshot, Isolation::kReadCommitted}) {
    Transaction t = seats.begin(isolation);
    const Row row = must(t.get(seats.primary, {Value::int64(1)}));
    CHECK(seats.lock(t, 1).code() == StatusCode::kBusy);
    CHECK(t.lock(row, kAtOnce).code() == StatusCode::kBusy);
    CHECK(seats.locked() == 0);
    must(seats.lock(t, 2));
    CHECK(seats.lock(t, 1).code() == StatusCode::kBusy);
    CHECK(seats.locked() == 1);
  }
  // The deletion is committed while the call waits: the row is gone.
  must(writer.remove(seats.primary, {Value::int64(3)}));
  Transaction t = seats.begin(Isolation::kReadCommitted);
  const TransactionId id = t.id();
  Status gone;
  std::thread waiter([&] { gone = seats.lock(t, 3, kPatient).status(); });
  seats.wait_until_in_call(id);
  must(writer.commit());
  waiter.join();
  CHECK(gone.code() == StatusCode::kNotFound);
  CHECK(seats.locked() == 0);
}

TEST_CASE("only a lock that returns kConflict counts as a conflict", "[api]") {
  Seats seats;
  Transaction holder = seats.begin();
  must(seats.lock(holder, 1));
  must(seats.add(holder, 2));
  const std::uint64_t before = seats.database->statistics().conflicts;
  Transaction t = seats.begin();
  CHECK(seats.lock(t, 1).code() == StatusCode::kBusy);
  CHECK(seats.lock(t, 2, LockWait{milliseconds(5)}).code() == StatusCode::kBusy);
  CHECK(seats.database->statistics().conflicts == before);
  must(holder.commit());
  CHECK(seats.lock(t, 2).code() == StatusCode::kConflict);
  CHECK(seats.database->statistics().conflicts == before + 1);
}

}  // namespace flugs::test
