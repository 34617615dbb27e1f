// Bytes that a pool takes on its medium, after rows and tables are gone.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "test/support/random.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kLoaded = 60'000;

std::uint64_t bytes_on_medium(const std::string& path) {
  struct stat info{};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

std::string long_text(std::int64_t id) {
  return std::to_string(id) + Random(static_cast<std::uint64_t>(id)).noise(700);
}

TableSchema schema_of(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString).not_null().direct();
  return schema.primary_key({"id"}).ordered();
}

/// Rows with ids that are multiples of `step`.
TableId load(Database& database, const std::string& name, std::int64_t step) {
  const TableId table = must(database.create_table(schema_of(name)));
  for (std::int64_t id = 0; id < kLoaded;) {
    Transaction t = must(database.begin());
    for (int i = 0; i < 1000 && id < kLoaded; ++i, id += step) {
      const std::string text = long_text(id);
      must(t.insert(table, {Value::int64(id), Value::string(text)}).status());
    }
    must(t.commit());
  }
  return table;
}

void merge(Database& database, TableId table) {
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  everything.dead_percent = 1;
  everything.waste_bytes = 0;
  static_cast<void>(must(database.merge(table, everything)));
}

void check_rows(Database& database, TableId table, std::int64_t step) {
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  std::int64_t expected = 0;
  std::int64_t wrong = 0;
  must(t.rows({table, 0}, {}, [&](const Row& row) {
    if (row.get_unchecked<std::int64_t>(ColumnId(0)) != expected ||
        row.get_unchecked<std::string_view>(ColumnId(1)) != long_text(expected))
      ++wrong;
    expected += step;
    return true;
  }));
  CHECK(wrong == 0);
  CHECK(expected >= kLoaded);
}

OpenOptions options_in(const TemporaryPath& path) {
  OpenOptions options = small_options(path.string());
  options.segment_bytes = std::uint64_t{1} << 20;
  return options;
}

}  // namespace

TEST_CASE("a pool takes little more than its rows need once others are deleted and merged",
          "[api][holes]") {
  const std::string directory = GENERATE("/dev/shm", "/var/tmp");
  const TemporaryPath fresh_path(directory);
  std::uint64_t fresh = 0;
  {
    Database database = must(Database::open(options_in(fresh_path)));
    merge(database, load(database, "rows", 10));
    fresh = bytes_on_medium(fresh_path.string());
  }
  const TemporaryPath path(directory);
  {
    Database database = must(Database::open(options_in(path)));
    const TableId table = load(database, "rows", 1);
    merge(database, table);
    const std::uint64_t full = bytes_on_medium(path.string());
    CHECK(full > 4 * fresh);
    for (std::int64_t id = 0; id < kLoaded;) {
      Transaction t = must(database.begin());
      for (int i = 0; i < 1000 && id < kLoaded; ++i, ++id)
        if (id % 10 != 0) must(t.remove({table, 0}, {Value::int64(id)}));
      must(t.commit());
    }
    merge(database, table);
    const std::uint64_t left = bytes_on_medium(path.string());
    INFO(directory << ": " << full << " bytes when full, " << left << " after the merge, " << fresh
                   << " of a fresh pool");
    CHECK(left * 100 < fresh * 115);
    check_rows(database, table, 10);
    must(database.check());
  }
  CHECK(must(check_pool({path.string(), {}})).damages == 0);
  Database database = must(Database::open(options_in(path)));
  CHECK(bytes_on_medium(path.string()) * 100 < fresh * 120);
  const TableId table = must(database.find_table("rows"));
  check_rows(database, table, 10);
  check_rows(database, load(database, "more", 1), 1);  // the holes are used
  must(database.check());
}

TEST_CASE("a dropped table leaves its space to the file system", "[api][holes]") {
  const TemporaryPath path(GENERATE("/dev/shm", "/var/tmp"));
  Database database = must(Database::open(options_in(path)));
  const TableId kept = load(database, "kept", 20);
  const std::uint64_t before = bytes_on_medium(path.string());
  const TableId dropped = load(database, "dropped", 1);
  CHECK(bytes_on_medium(path.string()) > before + (std::uint64_t{40} << 20));
  must(database.drop_table(dropped));
  CHECK(bytes_on_medium(path.string()) < before + (std::uint64_t{4} << 20));
  CHECK(database.statistics().pool_allocated_bytes < before + (std::uint64_t{8} << 20));
  check_rows(database, kept, 20);
  must(database.check());
}

}  // namespace flugs::test
