// What the default policy does: it gives space back, and leaves tables alone otherwise.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Clock = std::chrono::steady_clock;

/// The default policy, but it looks often.
MergePolicy often() {
  MergePolicy policy;
  policy.interval = std::chrono::milliseconds(10);
  return policy;
}

/// A database whose tables have the columns id and amount.
class Books {
 public:
  explicit Books(std::uint64_t max_bytes, const MergePolicy& policy)
      : database([&](OpenOptions& options) {
          options.max_bytes = max_bytes;
          options.segment_bytes = std::uint64_t{1} << 20;
          options.merge_policy = policy;
        }) {}

  enum class Key : std::uint8_t { kNone, kHashed, kOrdered };
  TableId make(const std::string& name, Key key = Key::kHashed) {
    TableSchema schema(name);
    schema.column("id", Type::kInt64).direct().column("amount", Type::kInt64).direct();
    if (key != Key::kNone) schema.primary_key({"id"});
    if (key == Key::kOrdered) schema.ordered();
    return must(database->create_table(schema));
  }
  /// Inserts rows up to `end`, in transactions of 500; returns how many are there when one fails.
  std::int64_t insert(TableId table, std::int64_t first, std::int64_t end) {
    for (std::int64_t id = first; id < end; id += 500) {
      Transaction t = must(database->begin());
      for (std::int64_t i = id; i < std::min(id + 500, end); ++i)
        if (failure = t.insert(table, {Value::int64(i), Value::int64(i * 3)}).status();
            !failure.ok())
          return id;
      if (failure = t.commit(); !failure.ok()) return id;
    }
    return end;
  }
  void remove(TableId table, std::int64_t first, std::int64_t end, std::int64_t step = 1) {
    for (std::int64_t id = first; id < end;) {
      Transaction t = must(database->begin());
      for (int i = 0; i < 500 && id < end; ++i, id += step)
        must(t.remove({table, 0}, {Value::int64(id)}));
      must(t.commit());
    }
  }
  std::int64_t count(TableId table) {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::int64_t rows = 0;
    const std::vector<ColumnId> columns{ColumnId(1)};
    must(t.scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
      rows += static_cast<std::int64_t>(batch.row_count());
      return true;
    }));
    return rows;
  }
  std::uint64_t used() { return database->statistics().pool_used_bytes; }
  MergeStatus status(TableId table) { return must(database->merge_status(table)); }
  template <typename Condition>
  bool comes(Condition&& holds) {
    // The thread searches again after a minute at most.
    const auto deadline = Clock::now() + std::chrono::seconds(100);
    while (!holds()) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  TemporaryDatabase database;
  Status failure;
};

MergeOptions all_of_it() {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  return options;
}

MergePolicy no_merges() {
  MergePolicy policy;
  policy.automatic = false;
  return policy;
}

}  // namespace

TEST_CASE("chunks whose rows were deleted give their space back by themselves",
          "[engine][default]") {
  Books books(std::uint64_t{64} << 20, often());
  const TableId table = books.make("rows");
  const std::uint64_t before = books.used();
  REQUIRE(books.insert(table, 0, 200'000) == 200'000);
  const std::uint64_t full = must(books.database->table_statistics(table)).delta_bytes;
  REQUIRE(full > std::uint64_t{6} << 20);
  books.remove(table, 0, 190'000);
  // MergePolicy: free rows for an eighth of the row ids stay, and less than a quarter of
  // waste_bytes, a MiB here. How many stay depends on when merges run between the deletions. Main
  // has the MVCC entries of rows that died after they came there, and a little for each row id.
  const std::uint64_t left = full / 20;
  CHECK(books.comes([&] {
    const TableStatistics now = must(books.database->table_statistics(table));
    return now.delta_bytes <= left + full / 8 + (std::uint64_t{1} << 18) &&
           now.main_bytes < full / 6;
  }));
  CHECK(books.count(table) == 10'000);
  CHECK(books.used() > before);
  must(books.database->check());
}

// Less than waste_bytes, a MiB here, is free; but it is the most of the table.
TEST_CASE("chunks with few rows give their space back though they are written to",
          "[engine][default]") {
  Books books(std::uint64_t{64} << 20, often());
  const TableId table = books.make("rows");
  constexpr std::int64_t kRows = 15'000;
  REQUIRE(books.insert(table, 0, kRows) == kRows);
  const std::uint64_t full = must(books.database->table_statistics(table)).delta_bytes;
  REQUIRE(full < std::uint64_t{5} << 17);
  for (std::int64_t first = 0; first < 9; ++first) books.remove(table, first, kRows, 10);
  const auto update_all = [&] {
    for (std::int64_t id = 9; id < kRows; id += 10) {
      Transaction t = must(books.database->begin());
      must(t.update(KeyId(table, 0), {Value::int64(id)}, {{ColumnId(1), Value::int64(id)}}));
      must(t.commit());
    }
  };
  CHECK(books.comes([&] {
    update_all();
    return must(books.database->table_statistics(table)).delta_bytes < full * 2 / 3;
  }));
  CHECK(books.count(table) == kRows / 10);
  must(books.database->check());
}

TEST_CASE("a table without space to give back is left in the delta", "[engine][default]") {
  Books books(std::uint64_t{64} << 20, often());
  const TableId table = books.make("rows");
  REQUIRE(books.insert(table, 0, 100'000) == 100'000);
  REQUIRE(books.comes([&] { return books.status(table).state == MergeState::kNothingToMerge; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(books.status(table).merges == 0);
  CHECK(books.status(table).main_rows == 0);
  CHECK_THAT(books.status(table).reason, Catch::Contains("little space"));
}

TEST_CASE("a delta that queries read again and again is merged", "[engine][default]") {
  MergePolicy policy = often();
  policy.delta_scans = 20;
  const bool is_asked = GENERATE(true, false);
  if (!is_asked) policy.delta_scans = 0;
  Books books(std::uint64_t{256} << 20, policy);
  const TableId table = books.make("rows", Books::Key::kNone);
  constexpr std::int64_t kRows = 400'000;
  REQUIRE(books.insert(table, 0, kRows) == kRows);
  REQUIRE(books.status(table).delta_bytes > std::uint64_t{9} << 20);
  const auto query = [&] {
    return must(query::Query::table("rows")
                    .group_by({}, {query::count(), query::max("id")})
                    .run(must(books.database->begin(AccessMode::kReadOnly))));
  };
  // Half as often as the policy asks for. One row at a time is no reading of the delta.
  for (int i = 0; i < 10; ++i) CHECK(query().get_unchecked(0, 0).as_int64() == kRows);
  for (int i = 0; i < 100; ++i)
    must(query::Query::table("rows").limit(1).run(
        must(books.database->begin(AccessMode::kReadOnly))));
  REQUIRE(books.comes([&] { return books.status(table).state == MergeState::kNothingToMerge; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(books.status(table).merges == 0);

  for (int i = 0; i < 20; ++i) CHECK(query().get_unchecked(0, 0).as_int64() == kRows);
  if (!is_asked) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(books.status(table).merges == 0);
    return;
  }
  CHECK(books.comes([&] { return books.status(table).merges != 0; }));
  CHECK(books.status(table).main_rows > std::uint64_t{kRows} / 2);
  CHECK(query().get_unchecked(0, 1).as_int64() == kRows - 1);
  must(books.database->check());
}

TEST_CASE("a full pool makes room by itself", "[engine][default]") {
  Books books(std::uint64_t{16} << 20, often());
  // Without a key: when an index grows, it wants a large piece, which there may not be.
  const TableId table = books.make("rows", Books::Key::kNone);
  std::int64_t rows = books.insert(table, 0, 10'000'000);
  REQUIRE(books.failure.code() == StatusCode::kOutOfSpace);
  const std::int64_t full = rows;
  // Rows of main take less, and the next transactions find what that gave.
  const bool has_room =
      books.comes([&] { return (rows = books.insert(table, rows, full + 10'000)) > full; });
  INFO(books.status(table).reason << "; " << books.failure.to_string());
  CHECK(has_room);
  CHECK(books.comes([&] { return books.status(table).merges != 0; }));  // counted at its end
  CHECK(books.count(table) == rows);
  must(books.database->check());
}

TEST_CASE("all rows of a full pool can be deleted at once, though they are in main",
          "[engine][default]") {
  Books books(std::uint64_t{16} << 20, no_merges());
  const TableId table = books.make("rows");
  std::int64_t rows = 0;
  for (int merges = 0; merges < 6; ++merges) {
    rows = books.insert(table, rows, 10'000'000);
    REQUIRE(books.failure.code() == StatusCode::kOutOfSpace);
    must(books.database->merge(table, all_of_it()).status());
  }
  REQUIRE(books.status(table).main_rows == static_cast<std::uint64_t>(rows));
  Transaction t = must(books.database->begin());
  CHECK(must(t.remove_where(table, query::col("id") >= std::int64_t{0})) ==
        static_cast<std::uint64_t>(rows));
  must(t.commit());
  must(books.database->merge(table, all_of_it()).status());
  CHECK(books.count(table) == 0);
  CHECK(books.insert(table, rows, rows + 1000) == rows + 1000);
  must(books.database->check());
}

TEST_CASE("a merge that is called waits for a merge by policy", "[engine][default]") {
  MergePolicy eager = often();
  eager.delta_bytes = 1;
  eager.written_percent = 100;
  Books books(std::uint64_t{64} << 20, eager);
  const TableId table = books.make("rows");
  for (std::int64_t id = 0; id < 60'000; id += 2000) {
    REQUIRE(books.insert(table, id, id + 2000) == id + 2000);
    must(books.database->merge(table, all_of_it()).status());
  }
  CHECK(books.count(table) == 60'000);
}

// Deleted rows leave the ordered index of one table while the other one is looked at.
TEST_CASE("a check finds no fault while dead rows leave the indexes", "[engine][default]") {
  Books books(std::uint64_t{64} << 20, often());
  const TableId table = books.make("rows", Books::Key::kOrdered);
  static_cast<void>(books.make("another"));
  for (std::int64_t round = 0; round < 40; ++round) {
    REQUIRE(books.insert(table, 0, 4000) == 4000);
    books.remove(table, 0, 4000);
    for (int i = 0; i < 8; ++i) must(books.database->check());
  }
}

}  // namespace flugs::test
