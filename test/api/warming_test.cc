#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "flugs/database.h"
#include "pmem/pool/pool.h"
#include "pmem/space/warm_list.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

// Bytes of all mappings of a file that have page-table entries in this process.
std::uint64_t mapped_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::uint64_t kilobytes = 0;
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      is_ours = line.ends_with(path);
    if (is_ours && line.starts_with("Rss:")) kilobytes += std::stoull(line.substr(4));
  }
  return kilobytes * 1024;
}

void load(Database& database) {
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).direct().primary_key({"id"});
  schema.column("word", Type::kString).not_null();
  const TableId table = must(database.create_table(schema));
  for (std::int64_t first = 0; first < 200'000; first += 10'000) {
    Transaction t = must(database.begin());
    for (std::int64_t i = first; i < first + 10'000; ++i)
      must(t.insert(table, {Value::int64(i),
                            Value::string(std::string_view("word " + std::to_string(i % 5000)))}));
    must(t.commit());
  }
}

Statistics when_warmed(Database& database) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (database.statistics().warm_bytes_left != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return database.statistics();
}

TEST_CASE("after opening pages are entered into page tables, up to a budget", "[api]") {
  TemporaryDatabase database([](OpenOptions& o) {
    o.max_bytes = std::uint64_t{256} << 20;
    o.segment_bytes = std::uint64_t{1} << 20;  // pages of 4 KB
    o.tuning.grow_ahead_bytes = 0;
  });
  load(*database);
  CHECK(database->statistics().warmed_bytes == 0);  // a new pool

  database.reopen();
  const Statistics all = when_warmed(*database);
  CHECK(all.warm_bytes_left == 0);
  CHECK(all.warm_ms > 0);
  const std::uint64_t used = all.pool_used_bytes;
  CHECK(all.warmed_bytes > used - used / 8);  // not warmed: catalogue, slots, lists
  CHECK(all.warmed_bytes <= used);
  CHECK(mapped_bytes(database.options.path) > used - used / 8);

  database.options.tuning.warm_bytes_max = used / 4;
  database.reopen();
  CHECK(when_warmed(*database).warmed_bytes == used / 4);

  database.options.tuning.warm_bytes_max = 0;
  database.options.tuning.sweeps_in_background = false;
  database.reopen();
  CHECK(when_warmed(*database).warmed_bytes == 0);
  CHECK(mapped_bytes(database.options.path) < used / 2);
}

TEST_CASE("a database is closed while its pages are being entered", "[api]") {
  TemporaryDatabase database;
  load(*database);
  for (int i = 0; i < 20; ++i) database.reopen();
  CHECK(must(database->find_table("numbers")).value() != 0);
}

TEST_CASE("warming takes the hottest pages first, and no more than the budget", "[api]") {
  pmem::WarmList pages;
  pages.add(pmem::Heat::kRows, {4096, 100});
  pages.add(pmem::Heat::kTexts, {8192, 50});
  pages.add(pmem::Heat::kIndexes, {12288, 30});
  pages.add(pmem::Heat::kRows, {16384, 200});
  const auto offsets = [&](std::uint64_t bytes_max) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const pmem::Extent& extent : pages.hottest(bytes_max))
      found.emplace_back(extent.offset, extent.bytes);
    return found;
  };
  using Found = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  CHECK(offsets(1000) == Found{{12288, 30}, {4096, 100}, {16384, 200}, {8192, 50}});
  CHECK(offsets(131) == Found{{12288, 30}, {4096, 100}, {16384, 1}});
  CHECK(offsets(30) == Found{{12288, 30}});
  CHECK(offsets(0).empty());
}

}  // namespace
}  // namespace flugs::test
