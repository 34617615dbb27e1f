// A pool that outgrows its largest size, while the database is in use.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct GrowingTable {
  TemporaryDatabase database{[](OpenOptions& options) {
    options.max_bytes = 16 * kMiB;
    options.segment_bytes = kMiB;
  }};
  TableId table;

  GrowingTable() {
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).column("text", Type::kString).not_null().direct();
    schema.primary_key({"id"}).ordered();
    table = must(database->create_table(schema));
  }

  static std::string text(std::int64_t id) { return std::to_string(id) + std::string(500, 't'); }

  Status insert(std::int64_t id) {
    const std::string value = text(id);
    return database->run([&](Transaction& t) {
      return t.insert(table, {Value::int64(id), Value::string(value)}).status();
    });
  }
  /// Inserts rows from `id` on until one does not fit; returns the first that is missing.
  std::int64_t fill(std::int64_t id) {
    Status status;
    while ((status = insert(id)).ok()) ++id;
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kOutOfSpace);
    return id;
  }
  /// The rows below `end` are there, and no other. Main thread only.
  void check_rows(std::int64_t end) {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::int64_t wrong = 0;
    std::int64_t rows = 0;
    must(t.rows({table, 0}, {}, [&](const Row& row) {
      const auto id = row.get_unchecked<std::int64_t>(ColumnId(0));
      if (id >= end || row.get_unchecked<std::string_view>(ColumnId(1)) != text(id)) ++wrong;
      ++rows;
      return true;
    }));
    CHECK(wrong == 0);
    CHECK(rows == end);
  }
};

}  // namespace

TEST_CASE("a full pool takes more rows once it has grown", "[api][growth]") {
  GrowingTable full;
  const std::int64_t first = full.fill(0);
  must(full.database->grow(32 * kMiB));
  CHECK(full.database->statistics().pool_reserved_bytes == 32 * kMiB);
  const std::int64_t second = full.fill(first);
  CHECK(second > first + first / 2);
  full.check_rows(second);
  full.database.options.max_bytes = 64 * kMiB;  // at opening
  full.database.reopen();
  full.check_rows(second);
  const std::int64_t third = full.fill(second);
  CHECK(third > 2 * second - second / 4);
  must(full.database->grow(256 * kMiB));
  full.database.options.max_bytes = 0;  // as it is
  merge_everything(full.database, full.table);
  full.check_rows(third);
  check_pool_is_whole(full.database);
  CHECK(full.database->statistics().pool_reserved_bytes == 256 * kMiB);
  full.check_rows(third);
}

TEST_CASE("row groups read texts that lie behind the end that the pool once had", "[api][growth]") {
  GrowingTable full;
  const std::int64_t rows = full.fill(0);
  must(full.database->grow(256 * kMiB));
  full.database.options.max_bytes = 0;  // as it is
  merge_everything(full.database, full.table);
  const std::string text = "a default text " + std::string(300, 'd');
  // Take what is left of the old space, so that the default lies behind it.
  std::int64_t id = rows;
  while (full.database->statistics().pool_allocated_bytes < 40 * kMiB) must(full.insert(id++));
  TableSchema with_column("later");
  with_column.column("later", Type::kString).with_default(Value::string(text)).direct();
  const ColumnId later = must(full.database->add_column(full.table, with_column.columns[0]));
  const auto check = [&] {
    const Transaction t = must(full.database->begin(AccessMode::kReadOnly));
    std::int64_t wrong = 0;
    must(t.rows({full.table, 0}, {}, [&](const Row& row) {
      if (row.get_unchecked<std::string_view>(later) != text) ++wrong;
      return true;
    }));
    CHECK(wrong == 0);
  };
  check();
  merge_everything(full.database, full.table);
  check();
  check_pool_is_whole(full.database);
  check();
}

TEST_CASE("writers and readers go on while the pool grows", "[api][growth]") {
  GrowingTable growing;
  constexpr int kWriters = 3;
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::int64_t> counts(kWriters);
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] {
      while (!is_over) {
        const std::int64_t id = counts[static_cast<std::size_t>(w)] * kWriters + w;
        const Status status = growing.insert(id);
        if (status.ok())
          ++counts[static_cast<std::size_t>(w)];
        else if (status.code() != StatusCode::kOutOfSpace)
          ++wrong;
        const Result<Transaction> t = growing.database->begin(AccessMode::kReadOnly);
        if (!t.ok() || (status.ok() && !t->get({growing.table, 0}, {Value::int64(id)}).ok()))
          ++wrong;
      }
    });
  for (std::uint64_t bytes = 17 * kMiB; bytes <= 64 * kMiB; bytes += kMiB) {
    if (!growing.database->grow(bytes).ok()) ++wrong;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(growing.database->statistics().pool_reserved_bytes == 64 * kMiB);
  growing.database.options.max_bytes = 0;
  check_pool_is_whole(growing.database);
  const Transaction t = must(growing.database->begin(AccessMode::kReadOnly));
  for (int w = 0; w < kWriters; ++w)
    for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(w)]; ++i)
      REQUIRE(t.get({growing.table, 0}, {Value::int64(i * kWriters + w)}).ok());
}

TEST_CASE("a database in memory grows, too", "[api][growth]") {
  OpenOptions options = small_options("");
  options.in_memory = true;
  options.max_bytes = 16 * kMiB;
  Database database = must(Database::open(options));
  must(database.grow(std::uint64_t{1} << 30));
  CHECK(database.statistics().pool_reserved_bytes == std::uint64_t{1} << 30);
  must(database.grow(std::uint64_t{1} << 30));  // nothing to do
  const Status refused = database.grow(16 * kMiB);
  CHECK(refused.code() == StatusCode::kInvalidArgument);
}

}  // namespace flugs::test
