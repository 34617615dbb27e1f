// The n-th thread that the library starts fails to start, or all from the n-th on, for every n of
// opening, queries, merges, new keys and audits. Each does its work with fewer threads, and nothing
// is lost.
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "flugs/pool_check.h"
#include "flugs/query.h"
#include "test/faults/system_calls.h"
#include "test/support/complaint.h"
#include "test/support/eager_merges.h"
#include "test/support/temporary_database.h"
#include "test/support/told_events.h"

namespace flugs::test {
namespace {

// Under a sanitizer every second thread fails.
constexpr std::uint64_t kStep = rounds_of(1, 2);
constexpr std::int64_t kThreadRows = 52'000;  // several threads sort this many
constexpr std::int64_t kThreadGroups = 1000;
constexpr std::uint64_t kAllLater = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kThreads = 3;

OpenOptions many_threads_at(const std::string& path, IndexPlace index_place, Ready ready) {
  OpenOptions options = small_options(path);
  options.segment_bytes = std::uint64_t{1} << 20;  // small chunks: there is work for many
  options.tuning.grow_ahead_bytes = std::uint64_t{1} << 20;
  options.tuning.recovery_threads = kThreads;
  options.index_place = index_place;
  options.ready = ready;
  return options;
}

void make_numbers(const OpenOptions& options) {
  Database database = must(Database::open(options));
  TableSchema schema("numbers");
  schema.column("n", Type::kInt64).direct().column("part", Type::kInt32);
  schema.column("turn", Type::kInt64).direct();
  schema.primary_key({"n"}).key("by_part", {"part", "n"}).ordered();
  const TableId table = must(database.create_table(schema));
  std::vector<Value> values;
  for (std::int64_t n = 0; n < kThreadRows; ++n) {
    values.push_back(Value::int64(n));
    values.push_back(Value::int32(static_cast<std::int32_t>(n % kThreadGroups)));
    values.push_back(Value::int64(0));
  }
  Transaction t = must(database.begin());
  must(t.insert_rows(table, values));
  must(t.commit());
}

void check_queries(Database& database) {
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  query::RunOptions options;
  options.threads = kThreads;
  const query::Query numbers = query::Query::table("numbers");
  const query::QueryResult groups = must(
      numbers.group_by({"part"}, {query::sum("n").as("total")}).order_by({"part"}).run(t, options));
  CHECK(groups.row_count() == kThreadGroups);
  const query::QueryResult joined =
      must(numbers.join(numbers.as("r"), {{"n", "r.n"}})
               .group_by({}, {query::sum("n").as("all"), query::count().as("rows")})
               .run(t, options));
  CHECK(joined.get_unchecked(0, 0).as_int64() == kThreadRows * (kThreadRows - 1) / 2);
  CHECK(joined.get_unchecked(0, 1).as_int64() == kThreadRows);
  const query::QueryResult sorted =
      must(numbers.select({"n"}).order_by({query::desc("n")}).run(t, options));
  REQUIRE(sorted.row_count() == kThreadRows);
  CHECK(sorted.get_unchecked(0, 0).as_int64() == kThreadRows - 1);
  CHECK(sorted.get_unchecked(kThreadRows - 1, 0).as_int64() == 0);
}

/// Changes one row in forty, so that each merge has much to do.
void change_rows(Database& database, TableId table, std::int64_t turn) {
  Transaction t = must(database.begin());
  for (std::int64_t n = turn % 40; n < kThreadRows; n += 40) {
    const Row row = must(t.get({table, 0}, {Value::int64(n)}));
    must(t.update(table, row.id(), {{ColumnId(2), Value::int64(turn)}}));
  }
  must(t.commit());
}

/// Does everything that starts threads, while some cannot start; returns whether one could not.
bool work_with_fault(const OpenOptions& options, std::uint64_t n, std::uint64_t more) {
  INFO("thread " << n << (more == 0 ? "" : " and all later ones"));
  fail_system_call(SystemCall::kThread, n, EAGAIN, more);
  {
    Database database = must(Database::open(options));
    const TableId table = must(database.find_table("numbers"));
    check_queries(database);
    change_rows(database, table, static_cast<std::int64_t>(n));
    KeySchema key;
    key.name = "by_turn";
    key.columns = {"turn"};
    key.ordered = true;
    must(database.drop_key(must(database.add_key(table, key))));
    MergeOptions merge;
    merge.scope = MergeScope::kEverything;
    merge.threads = kThreads;
    merge.dead_percent = 1;
    CHECK(must(database.merge(table, merge)).rows != 0);
    must(database.finish_opening());
    must(database.check());
    check_queries(database);
  }
  let_system_calls_work();
  return failed_system_calls() != 0;
}

void check_clean(const std::string& path) {
  PoolCheckOptions options;
  options.path = path;
  CHECK(must(check_pool(options)).is_clean());
}

}  // namespace

TEST_CASE("a database works without threads that cannot be started", "[faults]") {
  for (const IndexPlace mode : {IndexPlace::kPool, IndexPlace::kDram})
    for (const Ready ready : {Ready::kFirstAnswer, Ready::kIndexesBuilt}) {
      if (kEffort == 1 && (mode == IndexPlace::kPool) == (ready == Ready::kFirstAnswer)) continue;
      const TemporaryPath path;
      const OpenOptions options = many_threads_at(path.string(), mode, ready);
      make_numbers(options);
      std::uint64_t n = 1;
      while (work_with_fault(options, n, kAllLater)) n += kStep;
      CHECK(n > 5);  // there were threads to fail
      check_clean(path.string());
    }
}

TEST_CASE("the work goes on without a thread that cannot be started", "[faults]") {
  const TemporaryPath path;
  const OpenOptions options =
      many_threads_at(path.string(), IndexPlace::kDram, Ready::kFirstAnswer);
  make_numbers(options);
  std::uint64_t n = 1;
  while (work_with_fault(options, n, 0)) n += kStep;
  CHECK(n > 5);
  check_clean(path.string());
}

TEST_CASE("a background thread that cannot be started is told, and starts later", "[faults]") {
  const TemporaryPath path;
  OpenOptions options = many_threads_at(path.string(), IndexPlace::kDram, Ready::kIndexesBuilt);
  make_numbers(options);
  Told told;
  options.on_event = [&told](const Event& event) { told(event); };
  Database database = must(Database::open(options));
  must(database.finish_opening());
  const TableId table = must(database.find_table("numbers"));

  fail_system_call(SystemCall::kThread, 1, EAGAIN, kAllLater);
  must(database.set_merge_policy(table, eager()));
  let_system_calls_work();
  const Event failed = told.first(EventKind::kBackgroundFailed);
  CHECK(failed.text == "the thread that merges by policy could not be started");
  CHECK(failed.status.code() == StatusCode::kIoError);
  CHECK(failed.status.message().find("Resource temporarily unavailable") != std::string::npos);

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (must(database.merge_status(table)).state == MergeState::kFailed &&
         std::chrono::steady_clock::now() < end) {
    change_rows(database, table, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(told.first(EventKind::kMerged).table == "numbers");
}

}  // namespace flugs::test
