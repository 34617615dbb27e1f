// Databases that are opened for reading only, and databases in memory.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "flugs/flugs.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema cities() {
  TableSchema schema("cities");
  schema.column("id", Type::kInt64).column("name", Type::kString).not_null();
  schema.primary_key({"id"}).key("by_name", {"name"});
  return schema;
}

void insert(Database& database, std::int64_t first, std::int64_t end) {
  const Table table = must(database.ensure_table(cities()));
  Transaction t = must(database.begin());
  for (std::int64_t id = first; id < end; ++id) {
    const std::string name = "city " + std::to_string(id % 100);
    must(t.insert(table, {id, name}));
  }
  must(t.commit());
}

std::int64_t count(Database& database) {
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  return static_cast<std::int64_t>(must(query::Query::table("cities").run(t)).row_count());
}

std::string bytes_of(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), std::ssize(bytes));
  return bytes;
}

OpenOptions small(const std::string& path) {
  OpenOptions options = small_options(path);
  options.max_bytes = std::uint64_t{32} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  return options;
}

void check_refused(Database& database) {
  const Table table = must(database.table("cities"));
  const std::string why = database.path() + ": opened with OpenMode::kReadOnly";
  const auto refused = [&](const Status& status) {
    CHECK(status.code() == StatusCode::kReadOnly);
    CHECK(status.message() == why);
  };
  refused(database.begin().status());
  refused(database.run([](Transaction&) { return Status(); }));
  refused(database.drop_table(table));
  refused(database.rename_table(table, "towns"));
  refused(database.set_delta_layout(table, DeltaLayout::kColumns));
  refused(database.add_key(table, {"new", {"name"}}).status());
  refused(database.drop_key(must(table.key("by_name"))));
  refused(database.add_check(table, {"named", query::col("name").is_not_null()}));
  refused(database.drop_check(table, "named"));
  refused(database.set_not_null(table, must(table.column("name"))));
  refused(database.set_default(table, must(table.column("name")), "none"));
  refused(database.add_foreign_key(table, {"itself", {"id"}, "cities"}));
  refused(database.drop_foreign_key(table, "itself"));
  refused(database.skip_numbers(table, 5));
  refused(database.merge(table, {}).status());
  TableSchema other("other");
  other.column("a", Type::kBool);
  refused(database.ensure_table(other).status());
  must(database.ensure_table(cities()));
}

TEST_CASE("a pool that a crash left is read, and its file stays as it is", "[api]") {
  const TemporaryPath path;
  const TemporaryPath copy;
  {
    Database database = must(Database::open(small(path.string())));
    insert(database, 0, 3000);
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database.merge(must(database.find_table("cities")), everything));
    insert(database, 3000, 5000);
    Transaction open = must(database.begin());
    must(open.insert(must(database.find_table("cities")), {9999, "not committed"}));
    std::filesystem::copy_file(path.string(), copy.string());
  }
  std::filesystem::permissions(copy.string(), std::filesystem::perms::owner_read);
  const std::string before = bytes_of(copy.string());
  OpenOptions options = small(copy.string());
  options.mode = OpenMode::kReadOnly;
  for (const Ready ready : {Ready::kFirstAnswer, Ready::kIndexesBuilt}) {
    options.ready = ready;
    Database first = must(Database::open(options));
    Database second = must(Database::open(options));
    CHECK(count(first) == 5000);
    CHECK(count(second) == 5000);
    CHECK(first.statistics().medium == "read-only");
    CHECK(first.statistics().guarantee ==
          "The pool is open for reading only: its file stays as it is.");
    const Transaction t = must(first.begin(AccessMode::kReadOnly));
    const Table table = must(first.table("cities"));
    CHECK(must(must(t.get(must(table.primary_key()), {4711})).get<std::string>("name")) ==
          "city 11");
    Rows rows = t.rows(must(table.key("by_name")), {"city 7"}).reverse();
    std::size_t found = 0;
    while (rows.next() != nullptr) ++found;
    CHECK(found == 50);
    CHECK(t.get(must(table.primary_key()), {9999}).code() == StatusCode::kNotFound);
    must(second.check());
    check_refused(first);
  }
  CHECK(bytes_of(copy.string()) == before);
}

TEST_CASE("a pool is open for writing or for reading, not for both", "[api]") {
  const TemporaryPath path;
  OpenOptions writing = small(path.string());
  OpenOptions reading = writing;
  reading.mode = OpenMode::kReadOnly;
  CHECK(Database::open(reading).code() == StatusCode::kNotFound);
  {
    Database database = must(Database::open(writing));
    insert(database, 0, 10);
    const Result<Database> refused = Database::open(reading);
    CHECK(refused.code() == StatusCode::kBusy);
    INFO(refused.status().to_string());
    CHECK(refused.status().message().find(path.string()) != std::string::npos);
  }
  {
    Database database = must(Database::open(reading));
    CHECK(Database::open(writing).code() == StatusCode::kBusy);
    CHECK(count(database) == 10);
  }
  Database database = must(Database::open(writing));
  insert(database, 10, 20);
  CHECK(count(database) == 20);
}

TEST_CASE("a damaged pool is not read", "[api]") {
  const TemporaryPath path;
  {
    Database database = must(Database::open(small(path.string())));
    insert(database, 0, 10);
  }
  OpenOptions reading = small(path.string());
  reading.mode = OpenMode::kReadOnly;
  std::filesystem::resize_file(path.string(), std::uint64_t{16} << 20);
  CHECK(Database::open(reading).code() == StatusCode::kCorrupt);
  std::filesystem::resize_file(path.string(), 100);
  CHECK(!Database::open(reading).ok());
  std::filesystem::resize_file(path.string(), 0);
  CHECK(!Database::open(reading).ok());
}

TEST_CASE("a database in memory does everything but survive", "[api]") {
  OpenOptions options;
  options.in_memory = true;
  Database database = must(Database::open(options));
  Database other = must(Database::open(options));
  insert(database, 0, 20'000);
  insert(other, 0, 7);
  CHECK(count(database) == 20'000);
  CHECK(count(other) == 7);
  CHECK(database.path() == "(memory)");
  CHECK(database.statistics().medium == "memory");
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  must(database.merge(must(database.find_table("cities")), everything));
  CHECK(count(database) == 20'000);
  must(database.check());
  must(database.close());
  Database again = must(Database::open(options));
  CHECK(again.tables().empty());

  options.max_bytes = std::uint64_t{16} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  Database tiny = must(Database::open(options));
  const Table table = must(tiny.ensure_table(cities()));
  Transaction t = must(tiny.begin());
  Status full;
  const std::string text(4000, 'x');
  for (std::int64_t id = 0; full.ok() && id < 100'000; ++id) {
    const std::string name = text + std::to_string(id);
    full = t.insert(table, {id, name}).status();
  }
  CHECK(full.code() == StatusCode::kOutOfSpace);
}

TEST_CASE("options of opening that exclude each other are refused", "[api]") {
  OpenOptions options;
  CHECK(Database::open(options).status().message() ==
        "OpenOptions::path is empty: name the file of the pool, or set in_memory");
  options.in_memory = true;
  options.mode = OpenMode::kReadOnly;
  CHECK(Database::open(options).code() == StatusCode::kInvalidArgument);
  options.mode = OpenMode::kOpenOrCreate;
  options.path = "/dev/shm/never";
  CHECK(Database::open(options).code() == StatusCode::kInvalidArgument);
  options.in_memory = false;
  options.mode = static_cast<OpenMode>(4);
  CHECK(Database::open(options).code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flugs::test
