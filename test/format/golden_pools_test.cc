// Kept pools, one made by each format version, and what this program does with them.
#include "test/format/golden_pool.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "flugs/merge.h"
#include "flugs/pool_check.h"
#include "pmem/pool/pool_format.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

/// Unpacks the pool of this version to `path`.
void unpack(std::uint32_t version, const std::string& path) {
  const std::string packed = FLUGS_GOLDEN_POOLS "/version-" + std::to_string(version) + ".pool.xz";
  const std::string command = "xz -dc '" + packed + "' > '" + path + "'";
  INFO(command << " (xz-utils must be installed)");
  REQUIRE(std::system(command.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
}

OpenOptions options_for(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kOpen;
  return options;
}

void check_rows(const std::string& path) {
  Database database = must(Database::open(options_for(path)));
  must(database.finish_opening());
  CHECK(compare_golden_pool(database) == "");
  must(database.check());
}

}  // namespace

TEST_CASE("the pool of this format version opens, is whole and has its rows", "[format]") {
  const TemporaryPath path;
  unpack(pmem::kFormatVersion, path.string());
  CHECK(must(check_pool({path.string(), {}})).damages == 0);
  check_rows(path.string());
  {
    Database database = must(Database::open(options_for(path.string())));
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database.merge(must(database.find_table("things")), everything)));
  }
  check_rows(path.string());
  CHECK(must(check_pool({path.string(), {}})).damages == 0);
}

TEST_CASE("a pool made now has the same rows as the kept one", "[format]") {
  const TemporaryPath path;
  must(make_golden_pool(path.string()));
  check_rows(path.string());
}

TEST_CASE("pools of former format versions are refused, and stay as they are", "[format]") {
  const std::uint32_t version = GENERATE(range(6u, pmem::kFormatVersion));
  const TemporaryPath path;
  unpack(version, path.string());
  const Status refused = Database::open(options_for(path.string())).status();
  CHECK(refused.code() == StatusCode::kIncompatible);
  const std::string message(refused.message());
  INFO(message);
  CHECK(message.find("format version " + std::to_string(version)) != std::string::npos);
  CHECK(message.find("reads version " + std::to_string(pmem::kFormatVersion)) != std::string::npos);
  CHECK(message.find("flugs that made it") != std::string::npos);
  const TemporaryPath untouched;
  unpack(version, untouched.string());
  CHECK(std::system(("cmp '" + path.string() + "' '" + untouched.string() + "'").c_str()) == 0);
}

}  // namespace flugs::test
