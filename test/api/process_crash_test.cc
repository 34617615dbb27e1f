// Commits that survive the death of the process only: what the journal had not written yet lies in
// a file on /dev/shm.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/crash_rings.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRingRows = 300;
constexpr CommitOptions kOnlyProcess{.durability = Durability::kProcessCrash};
constexpr CommitOptions kMuchLater{.durability = Durability::kSoon,
                                   .soon = std::chrono::minutes(1)};

OpenOptions ring_options(const std::string& path, bool has_ring) {
  OpenOptions options = small_options(path);
  options.crash_ring = has_ring;
  // An eighth of its ring, from which on it is written, has room for all rows.
  options.tuning.journal_bytes = std::uint64_t{16} << 20;
  return options;
}

/// Changes a byte of the only ring.
void damage_ring(const std::string& path, std::streamoff at) {
  const std::vector<std::string> rings = ring_files(path);
  REQUIRE(rings.size() == 1);
  std::fstream ring(rings[0], std::ios::binary | std::ios::in | std::ios::out);
  ring.seekg(at);
  const int byte = ring.get();
  ring.seekp(at);
  ring.put(static_cast<char>(byte ^ 1));
}

/// Where the file has the first record that waits.
std::streamoff first_record_of(const std::string& path) {
  std::ifstream ring(ring_files(path).at(0), std::ios::binary);
  std::array<std::uint64_t, 12> words{};  // of the head
  ring.read(reinterpret_cast<char*>(words.data()), sizeof words);
  const std::uint64_t segment_bytes = words[9];
  const std::uint64_t waits_from = words[11];
  return static_cast<std::streamoff>(4096 + waits_from % (2 * segment_bytes));
}

Status add_ring_row(Database& database, TableId table, std::int64_t id,
                    const CommitOptions& options) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return t.status();
  const std::string text = "a text of some length, number " + std::to_string(id);
  if (Status s = t->insert(table, {Value::int64(id), Value::string(text)}).status(); !s.ok())
    return s;
  return t->commit(options);
}

/// In a process of its own, which kills itself when it has committed so: rows 0 to kRingRows - 1,
/// the first of them durably.
[[noreturn]] void commit_and_die(const std::string& path, bool has_ring,
                                 const CommitOptions& options) {
  Result<Database> database = Database::open(ring_options(path, has_ring));
  if (!database.ok()) ::_exit(1);
  if (database->statistics().medium != "file") ::_exit(7);
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  const Result<TableId> table = database->create_table(schema);
  if (!table.ok() || !add_ring_row(*database, *table, 0, {}).ok()) ::_exit(2);
  for (std::int64_t id = 1; id < kRingRows; ++id)
    if (!add_ring_row(*database, *table, id, options).ok()) ::_exit(3);
  ::raise(SIGKILL);
  ::_exit(4);
}

/// False: there is no disk under /var/tmp.
bool leave_killed_pool(const std::string& path, bool has_ring, const CommitOptions& options) {
  const pid_t child = ::fork();
  if (child == 0) commit_and_die(path, has_ring, options);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 7) {
    WARN("not tested: /var/tmp is no file system on a device here");
    return false;
  }
  REQUIRE(WIFSIGNALED(status));
  return true;
}

/// Rows from 0 on without a gap, as many as there are.
std::int64_t rows_without_gap(Database& database) {
  must(database.check());
  const TableId table = must(database.find_table("rows"));
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  std::int64_t rows = 0;
  while (t.get({table, 0}, {Value::int64(rows)}).ok()) ++rows;
  for (std::int64_t id = rows; id < kRingRows; ++id)
    CHECK_FALSE(t.get({table, 0}, {Value::int64(id)}).ok());
  return rows;
}

std::int64_t rows_at(const OpenOptions& options) {
  Database database = must(Database::open(options));
  return rows_without_gap(database);
}

void copy_pool(const std::string& from, const std::string& to) {
  for (const char* end : {"", ".journal"}) {
    std::ofstream out(to + end, std::ios::binary);
    out << std::ifstream(from + end, std::ios::binary).rdbuf();
  }
}

}  // namespace

TEST_CASE("with a crash ring a killed process loses no commit that returned", "[api][soon]") {
  for (const CommitOptions& options : {kOnlyProcess, kMuchLater}) {
    const TemporaryPath path("/var/tmp");
    if (!leave_killed_pool(path.string(), true, options)) return;
    CHECK(ring_files(path.string()).size() == 1);
    OpenOptions reads = ring_options(path.string(), false);
    reads.mode = OpenMode::kReadOnly;
    CHECK(rows_at(reads) == kRingRows);
    CHECK(ring_files(path.string()).size() == 1);  // a reader leaves it
    // It is found without the option, too, and is gone then.
    CHECK(rows_at(ring_options(path.string(), false)) == kRingRows);
    CHECK(ring_files(path.string()).empty());
    CHECK(rows_at(ring_options(path.string(), true)) == kRingRows);
    CHECK(ring_files(path.string()).empty());
  }
}

TEST_CASE("without a crash ring a killed process takes back what was not durable", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  if (!leave_killed_pool(path.string(), false, kMuchLater)) return;
  CHECK(rows_at(ring_options(path.string(), false)) == 1);
}

TEST_CASE("a crash ring that is damaged, or of another start, is not read", "[api][soon]") {
  for (const std::streamoff at : {0, 8, 20, 56, 64, 72, 80, 88}) {
    const TemporaryPath path("/var/tmp");
    if (!leave_killed_pool(path.string(), true, kOnlyProcess)) return;
    damage_ring(path.string(), at);
    CHECK(rows_at(ring_options(path.string(), true)) == 1);
    CHECK(ring_files(path.string()).empty());
  }
}

TEST_CASE("records of a crash ring count up to the first that is not whole", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  if (!leave_killed_pool(path.string(), true, kOnlyProcess)) return;
  damage_ring(path.string(), first_record_of(path.string()) + 60'000);
  const std::int64_t rows = rows_at(ring_options(path.string(), true));
  CHECK(rows > 1);
  CHECK(rows < kRingRows);
}

TEST_CASE("a crash ring that cannot be read is not thrown away", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  if (!leave_killed_pool(path.string(), true, kOnlyProcess)) return;
  const std::string ring = ring_files(path.string()).at(0);
  // A name that cannot be followed, in place of the file.
  REQUIRE(::rename(ring.c_str(), (ring + ".away").c_str()) == 0);
  REQUIRE(::symlink("nowhere", ring.c_str()) == 0);
  for (const OpenMode mode : {OpenMode::kOpen, OpenMode::kReadOnly, OpenMode::kOpenOrCreate}) {
    OpenOptions options = ring_options(path.string(), true);
    options.mode = mode;
    const Status status = Database::open(options).status();
    CHECK(status.code() == StatusCode::kIoError);
    CHECK(status.message().find(ring) != std::string_view::npos);
  }
  REQUIRE(::rename((ring + ".away").c_str(), ring.c_str()) == 0);
  CHECK(rows_at(ring_options(path.string(), true)) == kRingRows);
}

TEST_CASE("a crash ring is not read behind a gap", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  if (!leave_killed_pool(path.string(), true, kOnlyProcess)) return;
  const std::string ring = ring_files(path.string()).at(0);
  // As if the ring had noted that more is durable: the files were set back.
  std::fstream file(ring, std::ios::binary | std::ios::in | std::ios::out);
  std::array<std::uint64_t, 12> words{};
  file.read(reinterpret_cast<char*>(words.data()), sizeof words);
  words[11] += 4096 * 8;
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(words.data()), sizeof words);
  file.close();
  CHECK(rows_at(ring_options(path.string(), true)) == 1);
}

TEST_CASE("a copy of a pool has no part in its crash ring", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  const TemporaryPath copy("/var/tmp");
  if (!leave_killed_pool(path.string(), true, kOnlyProcess)) return;
  copy_pool(path.string(), copy.string());
  OpenOptions reads = ring_options(copy.string(), false);
  reads.mode = OpenMode::kReadOnly;
  CHECK(rows_at(reads) == 1);
  CHECK(rows_at(ring_options(path.string(), true)) == kRingRows);
}

TEST_CASE("commits that survive the process only need a crash ring on a disk", "[api][soon]") {
  for (const char* medium : {"/dev/shm", "/var/tmp"}) {
    const TemporaryPath path(medium);
    Database database = must(Database::open(ring_options(path.string(), false)));
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
    const TableId table = must(database.create_table(schema));
    Transaction t = must(database.begin());
    must(t.insert(table, {Value::int64(1), Value::string("a")}));
    const Status status = t.commit(kOnlyProcess);
    if (database.statistics().medium != "file") {
      CHECK(status.ok());
      continue;
    }
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find("crash_ring") != std::string_view::npos);
    const Status unknown = t.commit({.durability = static_cast<Durability>(3)});
    CHECK(unknown.code() == StatusCode::kInvalidArgument);
    must(t.commit());
    int calls = 0;
    const auto work = [&](Transaction&) {
      ++calls;
      return Status();
    };
    CHECK(database.run(work, {.commit = kOnlyProcess}).code() == StatusCode::kInvalidArgument);
    CHECK(calls == 0);
  }
}

TEST_CASE("much that is committed for the process only becomes durable meanwhile", "[api][soon]") {
  const TemporaryPath path("/var/tmp");
  Database database = must(Database::open(ring_options(path.string(), true)));
  if (database.statistics().medium != "file") return;
  CHECK(database.statistics().guarantee_soon.find("death of the process") != std::string::npos);
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  const std::uint64_t writes_before = database.statistics().journal_writes;
  for (std::int64_t id = 0; id < 10000; ++id) must(add_ring_row(database, table, id, kOnlyProcess));
  const Statistics statistics = database.statistics();
  CHECK(statistics.journal_writes > writes_before + 2);
  CHECK(statistics.journal_writes < writes_before + 1000);
  CHECK(statistics.commits_soon == 0);
  const DurableToken token = database.durable_token();
  must(database.wait_durable(token));
  CHECK(database.is_durable(token));
}

}  // namespace flugs::test
