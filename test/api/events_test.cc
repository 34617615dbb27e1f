// What OpenOptions::on_event tells.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "flugs/flugs.h"
#include "test/support/eager_merges.h"
#include "test/support/temporary_database.h"
#include "test/support/told_events.h"

namespace flugs::test {
namespace {

OpenOptions telling(const std::string& path, Told& told) {
  OpenOptions options = small_options(path);
  options.segment_bytes = std::uint64_t{1} << 20;
  options.on_event = [&told](const Event& event) { told(event); };
  return options;
}

void fill(Database& database, std::int64_t first, std::int64_t end) {
  TableSchema schema("ledger");
  schema.column("id", Type::kInt64).direct().column("note", Type::kString).direct();
  schema.primary_key({"id"});
  const Table table = must(database.ensure_table(schema));
  const std::string note(100, 'n');
  Transaction t = must(database.begin());
  for (std::int64_t id = first; id < end; ++id) must(t.insert(table, {id, note}));
  must(t.commit());
}

TEST_CASE("growth of the pool is told, with the bytes that it has", "[api]") {
  const TemporaryPath path;
  Told told;
  std::uint64_t bytes = 0;
  {
    Database database = must(Database::open(telling(path.string(), told)));
    fill(database, 0, 50'000);
    bytes = database.statistics().pool_allocated_bytes;
    must(database.close());  // waits for the events so far
  }
  std::uint64_t latest = 0;
  for (const Event& event : told.all()) {
    if (event.kind != EventKind::kPoolGrown) continue;
    CHECK(event.bytes > latest);
    CHECK(event.status.ok());
    latest = event.bytes;
  }
  CHECK(latest == bytes);
}

TEST_CASE("merges by policy are told, and the transaction that they wait for", "[api]") {
  const TemporaryPath path;
  Told told;
  Database database = must(Database::open(telling(path.string(), told)));
  fill(database, 0, 1);
  const Table table = must(database.table("ledger"));
  Transaction old = must(database.begin(AccessMode::kReadOnly));
  must(database.set_merge_policy(table, eager()));
  fill(database, 1, 20'000);
  const Event waits = told.first(EventKind::kMergeWaits);
  CHECK(waits.table == "ledger");
  CHECK(waits.text.find("is still open; merging would wait for it") != std::string::npos);
  old.abort();
  const Event merged = told.first(EventKind::kMerged);
  CHECK(merged.table == "ledger");
  CHECK(merged.bytes > 0);
  CHECK(merged.text.find("rows moved to main") != std::string::npos);
}

TEST_CASE("the function for events may call the database", "[api]") {
  const TemporaryPath path;
  std::optional<Database> database;
  std::mutex mutex;
  std::uint64_t seen = 0;
  OpenOptions options = small_options(path.string());
  options.segment_bytes = std::uint64_t{1} << 20;
  options.on_event = [&](const Event&) {
    const std::lock_guard guard(mutex);
    if (database) seen = std::max(seen, database->statistics().pool_allocated_bytes);
  };
  {
    Result<Database> opened = Database::open(options);
    const std::lock_guard guard(mutex);
    database.emplace(must(std::move(opened)));
  }
  fill(*database, 0, 50'000);
  for (int tries = 0; tries < 2000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::lock_guard guard(mutex);
    if (seen != 0) break;
  }
  std::optional<Database> closing;
  {
    const std::lock_guard guard(mutex);
    CHECK(seen > 0);
    std::swap(closing, database);
  }
  closing.reset();
}

}  // namespace
}  // namespace flugs::test
