// A pool described without being opened.

#include "flugs/pool_description.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "pmem/pool/pool_format.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

TableId make_towns(Database& database) {
  TableSchema schema("towns");
  schema.column("id", Type::kInt64).column("name", Type::kString).primary_key({"id"});
  return must(database.create_table(schema));
}

std::string bytes_of(const std::string& path, std::size_t bytes) {
  std::string found(bytes, '\0');
  std::ifstream(path, std::ios::binary).read(found.data(), static_cast<std::streamsize>(bytes));
  return found;
}

}  // namespace

TEST_CASE("a closed pool has a description with its tables", "[engine]") {
  TemporaryDatabase database;
  make_towns(*database);
  const TableSchema towns = must(database->schema(must(database->find_table("towns"))));
  const Statistics statistics = database->statistics();
  database.close();
  const auto bytes_compared = std::size_t{8} << 20;
  const std::string before = bytes_of(database.options.path, bytes_compared);

  const PoolDescription pool = must(describe_pool(database.options.path));
  CHECK_FALSE(pool.is_open_for_writing);
  CHECK(pool.medium == statistics.medium);
  CHECK(pool.guarantee == statistics.guarantee);
  CHECK(pool.format_version == pmem::kFormatVersion);
  CHECK(pool.index_place == statistics.index_place);
  CHECK(pool.pool_bytes == statistics.pool_allocated_bytes);
  CHECK(pool.max_bytes == statistics.pool_reserved_bytes);
  CHECK(pool.medium_bytes > 0);
  REQUIRE(pool.tables.has_value());
  REQUIRE(pool.tables->size() == 1);
  CHECK(pool.tables->front().name == "towns");
  CHECK(pool.tables->front().columns.size() == towns.columns.size());
  CHECK(pool.tables->front().columns[0].encoding == towns.columns[0].encoding);
  CHECK(pool.tables->front().keys.size() == towns.keys.size());
  CHECK(bytes_of(database.options.path, bytes_compared) == before);
}

TEST_CASE("a pool that is open for writing has a description without tables", "[engine]") {
  TemporaryDatabase database;
  const TableId towns = make_towns(*database);
  const PoolDescription pool = must(describe_pool(database.options.path));
  CHECK(pool.is_open_for_writing);
  CHECK(pool.pool_bytes == database->statistics().pool_allocated_bytes);
  CHECK(pool.index_place == database->statistics().index_place);
  CHECK_FALSE(pool.tables.has_value());
  // It is not disturbed: it stays locked, and works.
  Transaction t = must(database->begin());
  must(t.insert(towns, {Value::int64(1), Value::string("Ulm")}));
  must(t.commit());
  CHECK(Database::open(database.options).code() == StatusCode::kBusy);
}

TEST_CASE("a pool on a read-only medium has a description", "[engine]") {
  TemporaryDatabase database;
  make_towns(*database);
  database.close();
  std::filesystem::permissions(database.options.path, std::filesystem::perms::owner_read);
  const PoolDescription pool = must(describe_pool(database.options.path));
  CHECK_FALSE(pool.is_open_for_writing);
  CHECK(pool.tables.has_value());
}

TEST_CASE("what is no pool has no description", "[engine]") {
  CHECK(describe_pool("/dev/shm/flugs-no-such-pool").code() == StatusCode::kNotFound);
  CHECK(describe_pool("/dev/shm").code() == StatusCode::kInvalidArgument);
  const TemporaryPath text;
  std::ofstream(text.string()) << std::string(100'000, 'x');
  CHECK(describe_pool(text.string()).code() == StatusCode::kIncompatible);
}

TEST_CASE("damage in the header is reported", "[engine]") {
  TemporaryDatabase database;
  make_towns(*database);
  database.close();
  {
    std::fstream file(database.options.path, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t root = 0;
    file.seekg(6144).read(reinterpret_cast<char*>(&root), sizeof root);
    root = (root + 63) / 64 * 64;
    const std::string zeros(8, '\0');
    for (std::uint64_t copy = 0; copy < 2; ++copy)
      file.seekp(static_cast<std::streamoff>(root + copy * sizeof(pmem::PoolHeader) + 40))
          .write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  }
  CHECK(describe_pool(database.options.path).code() == StatusCode::kCorrupt);
}

}  // namespace flugs::test
