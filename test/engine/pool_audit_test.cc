#include "engine/audit/pool_audit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "test/support/temporary_database.h"
#include "verify/damage/guarded_buffer.h"
#include "verify/damage/pool_map.h"
#include "verify/damage/sample_pools.h"

namespace flugs::engine {
namespace {

using damage::Part;
using damage::Region;
using damage::SamplePool;
using test::must;
using test::PoolBuffer;
using test::TemporaryDatabase;
using test::TemporaryPath;

const std::vector<SamplePool>& samples() {
  static const std::vector<SamplePool> made = must(damage::make_memory_samples(7));
  return made;
}

const SamplePool& sample(const std::string& name) {
  const auto found = std::find_if(samples().begin(), samples().end(),
                                  [&](const SamplePool& each) { return each.name == name; });
  REQUIRE(found != samples().end());
  return *found;
}

/// A damaged copy of a sample, and the results of opening and of the audit.
class Patient {
 public:
  explicit Patient(const SamplePool& healthy) : pool(healthy.bytes.size()), sample_(healthy) {
    std::copy(healthy.bytes.begin(), healthy.bytes.end(), pool.span().begin());
  }

  std::vector<Region> regions(Part part) const {
    std::vector<Region> found;
    for (const Region& region : sample_.regions)
      if (region.part == part) found.push_back(region);
    return found;
  }
  std::uint64_t& word(std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(&pool.span()[offset]);
  }
  Status opening() {
    const PoolBuffer copy(pool.span().size());
    std::copy(pool.span().begin(), pool.span().end(), copy.span().begin());
    auto opened = pmem::Pool::open_in_memory(copy.span(), pmem::PoolOptions{});
    if (!opened.ok()) return opened.status();
    OpenOptions options = test::small_options("(memory)");
    return DatabaseCore::open(std::move(*opened), false, options).status();
  }
  Result<PoolCheckReport> audit() {
    const PoolBuffer copy(pool.span().size());
    std::copy(pool.span().begin(), pool.span().end(), copy.span().begin());
    return check_pool_in_memory(copy.span());
  }
  /// The audit finds damage in this part only.
  void check_damage_in(const std::string& part) {
    const PoolCheckReport report = must(audit());
    CHECK_FALSE(report.is_clean());
    for (const CheckedPart& each : report.parts) {
      INFO(each.name);
      CHECK((each.damages != 0) == (each.name == part));
    }
    for (const PoolFinding& finding : report.findings) {
      if (finding.kind == PoolFinding::Kind::kRemark) continue;
      INFO(finding.message);
      CHECK(finding.message.find("expected") != std::string::npos);
      CHECK(finding.message.find("found") != std::string::npos);
    }
  }

  PoolBuffer pool;

 private:
  const SamplePool& sample_;
};

std::vector<char> bytes_of(const std::string& path) {
  std::vector<char> bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
  return bytes;
}

TEST_CASE("pools of every kind are clean, also one that a crash left behind", "[engine][audit]") {
  for (const SamplePool& each : samples()) {
    INFO(each.name);
    Patient patient(each);
    const PoolCheckReport report = must(patient.audit());
    CHECK(report.is_clean());
    CHECK(report.used_bytes + report.free_bytes + report.overhead_bytes == report.pool_bytes);
    CHECK(patient.opening().ok());
  }
}

TEST_CASE("the check of a file changes no byte of it and is refused while it is open",
          "[engine][audit]") {
  TemporaryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt32).column("text", Type::kString).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  Transaction transaction = must(database->begin());
  must(transaction.insert(table, {Value::int32(1), Value::string("a text of some length")}));
  must(transaction.commit());
  CHECK(check_pool({.path = database.options.path, .progress = {}}).code() == StatusCode::kBusy);
  database.close();
  const int fd = ::open(database.options.path.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  // Damage that opening would repair: in the second header.
  std::uint64_t root = 0;
  REQUIRE(::pread(fd, &root, sizeof root, 6144) == sizeof root);
  const auto second = static_cast<off_t>((root + 63) / 64 * 64 + 256 + 40);
  REQUIRE(::pwrite(fd, "damage", 6, second) == 6);
  ::close(fd);
  const std::vector<char> before = bytes_of(database.options.path);
  const PoolCheckReport report = must(check_pool({.path = database.options.path, .progress = {}}));
  CHECK(report.damages == 1);
  CHECK(report.findings.front().part == "pool header");
  CHECK(bytes_of(database.options.path) == before);
}

TEST_CASE("a damaged table hides no damage in others", "[engine][audit]") {
  Patient patient(sample("types"));
  const std::vector<Region> tables = patient.regions(Part::kTable);
  REQUIRE(tables.size() == 8);  // header, pointers to index runs and schema, schema; twice
  patient.pool.span()[tables[0].offset + 24] ^= std::byte{1};
  CHECK(patient.opening().code() == StatusCode::kCorrupt);
  const PoolCheckReport report = must(patient.audit());
  CHECK(report.damages >= 1);
  const auto rows = std::find_if(report.parts.begin(), report.parts.end(), [](const auto& part) {
    return part.name == "table direct, rows";
  });
  REQUIRE(rows != report.parts.end());
  CHECK(rows->damages == 0);
  CHECK(rows->items > 20);
}

TEST_CASE("without a whole header the rest is still audited", "[engine][audit]") {
  Patient patient(sample("small"));
  patient.pool.span()[100] ^= std::byte{1};
  patient.pool.span()[256 + 100] ^= std::byte{1};
  CHECK(patient.opening().code() == StatusCode::kCorrupt);
  const PoolCheckReport report = must(patient.audit());
  CHECK(report.damages == 1);
  CHECK(report.parts.size() > 5);
}

TEST_CASE("a row names a dictionary entry that is not whole", "[engine][audit]") {
  Patient patient(sample("without keys"));
  patient.pool.span()[patient.regions(Part::kDictionaryEntry).front().offset] ^= std::byte{1};
  patient.check_damage_in("table log, rows");
}

TEST_CASE("bytes behind a short text belong to its proof", "[engine][audit]") {
  Patient patient(sample("without keys"));  // the texts are "even" and "odd"
  patient.pool.span()[patient.regions(Part::kDictionaryEntry).front().offset + 6] ^= std::byte{1};
  CHECK(must(patient.audit()).remarks == sample("without keys").remarks + 1);
}

TEST_CASE("a time-stamp of the future and a tag of no transaction", "[engine][audit]") {
  Patient patient(sample("without keys"));
  const std::uint64_t row = patient.regions(Part::kRow).front().offset;
  patient.word(row) = GENERATE(std::uint64_t{1} << 40, mvcc::make_tag(3999, 1),
                               mvcc::make_tag(0, std::uint64_t{1} << 50));
  patient.check_damage_in("table log, rows");
}

TEST_CASE("bytes in space that was never used", "[engine][audit]") {
  Patient patient(sample("empty"));
  const auto& arena =
      *reinterpret_cast<const pmem::ArenaRecord*>(&patient.pool.span()[sizeof(pmem::PoolRoot)]);
  REQUIRE(arena.touched_limit < arena.allocated_limit);
  patient.pool.span()[arena.allocated_limit - 1] = std::byte{7};
  patient.check_damage_in("arenas");
}

TEST_CASE("a clock near its end is refused, because commits would end the process", "[engine]") {
  Patient patient(sample("small"));
  const std::uint64_t half = patient.regions(Part::kCommitRecord).front().offset;
  patient.word(half + 8) = mvcc::kTimestampMax - 1;
  CHECK(patient.opening().code() == StatusCode::kCorrupt);
  Patient other(sample("small"));
  other.word(other.regions(Part::kGenerationLimit).front().offset) =
      mvcc::kGenerationMax - (std::uint64_t{3} << 20);
  CHECK(other.opening().code() == StatusCode::kCorrupt);
}

TEST_CASE("a pointer lost from the middle of a chunk list is found", "[engine][audit]") {
  Patient patient(sample("large"));
  for (const Region& list : patient.regions(Part::kChunkList)) {
    if (patient.word(list.offset + 8) == 0) continue;  // a list of one chunk
    const std::uint64_t lost = std::exchange(patient.word(list.offset), 0);
    const Status status = patient.opening();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find("pointer to chunk 0") != std::string_view::npos);
    patient.word(list.offset) = lost;
  }
  CHECK(patient.opening().ok());
}

TEST_CASE("the audit finds an end of strings before its strings", "[engine][audit]") {
  Patient patient(sample("large"));
  std::size_t tried = 0;
  for (const Region& column : patient.regions(Part::kColumn)) {
    std::uint64_t& end = patient.word(column.offset);
    if (column.bytes != 8 || (column.offset % 64) != 0 || end < 64) continue;
    const auto& regions = patient.regions(Part::kHeapChunk);
    if (regions.empty() || (end >> 40) > 64) continue;  // not the end of a heap
    const std::uint64_t before = std::exchange(end, (end >> 40 << 40) | 65);
    if (patient.opening().ok()) FAIL("offset " << column.offset << ", end " << before);
    end = before;
    ++tried;
  }
  CHECK(tried >= 2);
}

TEST_CASE("a pool cut off anywhere is refused or audited", "[engine][audit]") {
  const Patient patient(sample("small"));
  const std::size_t whole = patient.pool.span().size();
  for (std::size_t bytes = 64; bytes < whole; bytes += bytes < 32768 ? 64 : 4096) {
    const damage::GuardedBuffer copy(bytes);
    const std::span<std::byte> left = copy.tail(bytes);
    std::copy_n(patient.pool.span().begin(), bytes, left.begin());
    const Result<PoolCheckReport> report = check_pool_in_memory(left);
    CHECK((!report.ok() || !report->is_clean()));
  }
}

TEST_CASE("rows in columns at a place that is not aligned are told", "[engine][audit]") {
  test::MemoryDatabase database(std::size_t{4} << 20);
  TableSchema schema("apart");
  schema.column("id", Type::kInt64).primary_key({"id"});
  must(database->create_table(schema.in_columns()));
  {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    must(t.insert(must(database->find_table("apart")), {Value::int64(1)}));
    must(t.commit());
  }
  const std::size_t bytes = database.span().size();
  const damage::GuardedBuffer copy(bytes + 4096);
  for (const std::size_t place : {0, 64}) {
    const std::span<std::byte> pool = copy.tail(bytes + place).first(bytes);
    std::copy_n(database.span().begin(), bytes, pool.begin());
    const PoolCheckReport report = must(check_pool_in_memory(pool));
    CHECK(report.is_clean() == (place == 0));
  }
}

TEST_CASE("two rows with the same key", "[engine][audit]") {
  Patient patient(sample("small"));
  const std::vector<Region> rows = patient.regions(Part::kRow);
  std::vector<Region> live;
  for (const Region& row : rows)
    if (!mvcc::is_tag(patient.word(row.offset)) && patient.word(row.offset + 8) == 0)
      live.push_back(row);
  REQUIRE(live.size() > 2);
  std::memcpy(&patient.pool.span()[live[0].offset], &patient.pool.span()[live[1].offset],
              live[0].bytes);
  const PoolCheckReport report = must(patient.audit());
  // Both unique keys are taken twice, and the row is in neither index under its new value.
  CHECK(report.damages == 4);
}

TEST_CASE("the audit finds a row that its key's index no longer finds", "[engine][audit]") {
  Patient patient(sample("small"));
  for (const Region& segment : patient.regions(Part::kHintSegment))
    std::memset(&patient.pool.span()[segment.offset], 0, segment.bytes);
  const PoolCheckReport report = must(patient.audit());
  std::set<std::string> damaged;
  for (const CheckedPart& each : report.parts)
    if (each.damages != 0) damaged.insert(each.name);
  CHECK(damaged.contains("table people, key primary"));
  CHECK(damaged.contains("table people, key by_name"));
}

}  // namespace
}  // namespace flugs::engine
