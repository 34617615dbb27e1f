// A device that stands still, with readers that wait for it and readers that do not.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "test/faults/system_calls.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

Status set_number(Database& database, TableId table, std::int64_t id, std::int64_t number,
                  const CommitOptions& how) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return t.status();
  const Status changed = t->upsert({table, 0}, {Value::int64(id), Value::int64(number)}).status();
  return changed.ok() ? t->commit(how) : changed;
}

std::int64_t number_in(const Transaction& t, TableId table, std::int64_t id) {
  const Result<Row> row = t.get({table, 0}, {Value::int64(id)});
  return row.ok() ? row->get<std::int64_t>(ColumnId(1)).value() : 0;
}

/// Guard: while it exists the device stands still.
class StandingStill {
 public:
  StandingStill() { hold_writes(true); }
  ~StandingStill() { hold_writes(false); }
  StandingStill(const StandingStill&) = delete;
  StandingStill& operator=(const StandingStill&) = delete;
};

}  // namespace

TEST_CASE("a durable reader waits for no device, and sees no commit that does", "[faults]") {
  constexpr CommitOptions kSoon{.durability = Durability::kSoon,
                                .soon = std::chrono::milliseconds(1)};
  const TemporaryPath path("/var/tmp");
  Database database = must(Database::open(small_options(path.string())));
  if (database.statistics().medium != "file") return;  // /var/tmp is memory here
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("number", Type::kInt64).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  must(set_number(database, table, 1, 10, {}));
  must(set_number(database, table, 2, 20, {}));
  std::atomic<bool> has_returned{false};
  Status waited;
  std::thread waiting;
  {
    const StandingStill standing;
    must(set_number(database, table, 1, 11, kSoon));
    waiting = std::thread([&] {
      waited = set_number(database, table, 2, 21, {});
      has_returned = true;
    });
    while (held_writes() == 0) std::this_thread::yield();
    // Also when the second commit has taken its time-stamp, and waits.
    for (int i = 0; i < 200; ++i) {
      const Transaction t = must(database.begin(AccessMode::kReadOnlyDurable));
      REQUIRE(number_in(t, table, 1) == 10);
      REQUIRE(number_in(t, table, 2) == 20);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Transaction t = must(database.begin(AccessMode::kReadOnly));
    CHECK(number_in(t, table, 1) == 11);
    CHECK_FALSE(has_returned);
    must(set_number(database, table, 3, 30, kSoon));
    CHECK(number_in(must(database.begin(AccessMode::kReadOnlyDurable)), table, 3) == 0);
  }
  waiting.join();
  must(waited);
  must(database.wait_durable(database.durable_token()));
  const Transaction t = must(database.begin(AccessMode::kReadOnlyDurable));
  CHECK(number_in(t, table, 1) == 11);
  CHECK(number_in(t, table, 2) == 21);
  CHECK(number_in(t, table, 3) == 30);
}

TEST_CASE("after a failed write durable readers see what is durable", "[faults]") {
  constexpr CommitOptions kLater{.durability = Durability::kSoon,
                                 .soon = std::chrono::milliseconds(60'000)};
  const TemporaryPath path("/var/tmp");
  Database database = must(Database::open(small_options(path.string())));
  if (database.statistics().medium != "file") return;
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("number", Type::kInt64).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  must(set_number(database, table, 1, 10, {}));
  must(set_number(database, table, 1, 11, kLater));
  fail_system_call(SystemCall::kWrite, 1, EIO);
  CHECK(database.wait_durable(database.durable_token()).code() == StatusCode::kIoError);
  let_system_calls_work();
  CHECK(number_in(must(database.begin(AccessMode::kReadOnly)), table, 1) == 11);
  CHECK(number_in(must(database.begin(AccessMode::kReadOnlyDurable)), table, 1) == 10);
  // What waits for old snapshots gives up, because this one cannot become newer.
  CHECK_FALSE(database.merge(table, {.patience = std::chrono::milliseconds(50)}).ok());
}

}  // namespace flugs::test
