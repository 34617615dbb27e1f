// Rows are written into a chunk that a merge left empty, while others count them.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRowsAtFirst = 3'000;
constexpr int kRoundsOfMerges = 6 * static_cast<int>(kEffort);
constexpr std::int64_t kWritesARound = 400;

}  // namespace

TEST_CASE("a query counts every committed row of a chunk that was empty") {
  TemporaryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("v", Type::kInt64).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  std::atomic<std::int64_t> begun{kRowsAtFirst};
  std::atomic<std::int64_t> committed{kRowsAtFirst};
  std::atomic<bool> is_over{false};
  Complaint complaint;
  const auto insert = [&](std::int64_t first, std::int64_t end) {
    Transaction writer = must(database->begin());
    for (std::int64_t id = first; id < end; ++id)
      must(writer.insert(table, {Value::int64(id), Value::int64(1)}));
    must(writer.commit());
  };
  insert(0, kRowsAtFirst);

  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (!is_over.load() && !complaint.failed()) {
        const std::int64_t at_least = committed.load();
        const Result<Transaction> reader = database->begin(AccessMode::kReadOnly);
        const std::int64_t at_most = begun.load();
        const auto found = query::Query::table("t").group_by({}, {query::sum("v")}).run(*reader);
        const std::int64_t rows = found->get_unchecked(0, 0).as_int64();
        complaint.expect(rows >= at_least, "a committed row is missing");
        complaint.expect(rows <= at_most, "a row that is not committed");
      }
    });
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  for (int round = 0; round < kRoundsOfMerges && !complaint.failed(); ++round) {
    for (std::int64_t i = 0; i < kWritesARound; ++i) {
      const std::int64_t id = begun.fetch_add(1);
      insert(id, id + 1);
      committed.store(id + 1);
      // Replaced: its new version is another row of the delta.
      Transaction writer = must(database->begin());
      must(writer.update({table, 0}, {Value::int64(id / 2)}, {{ColumnId{1}, Value::int64(1)}}));
      must(writer.commit());
    }
    const Result<MergeReport> merged = database->merge(table, everything);
    complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy, "a merge failed");
  }
  is_over.store(true);
  for (std::thread& reader : readers) reader.join();
  CHECK(complaint.what() == "");
}

}  // namespace flugs::test
