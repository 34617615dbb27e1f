// Answers of open to invalid files, options and openers.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "flugs/opening_estimate.h"
#include "flugs/pool_check.h"
#include "pmem/medium/scm_reads.h"
#include "pmem/pool/pool_format.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

OpenOptions options_at(const TemporaryPath& path, OpenMode mode = OpenMode::kOpenOrCreate) {
  OpenOptions options = small_options(path.string());
  options.mode = mode;
  return options;
}

void check_refused(const OpenOptions& options, StatusCode code) {
  const auto result = Database::open(options);
  INFO(result.status().to_string());
  CHECK(result.code() == code);
  CHECK(result.status().message().size() > 10);
}

// Opens in another process: returns its status code, -1 after any other failure.
int code_in_child(const OpenOptions& options) {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(static_cast<int>(Database::open(options).code()));
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TableSchema numbers_schema() {
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  return schema;
}

/// The pool at `path` as one that was in use on devices that count their shutdowns, when its
/// process died.
void mark_in_use(const TemporaryPath& path) {
  std::fstream file(path.string(), std::ios::binary | std::ios::in | std::ios::out);
  std::uint64_t root = 0;
  file.seekg(6144);
  file.read(reinterpret_cast<char*>(&root), sizeof root);
  pmem::PoolHeader header;
  const auto place = static_cast<std::streamoff>((root + 63) / 64 * 64);
  file.seekg(place);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  REQUIRE(header.magic == pmem::kPoolMagic);
  header.incompat_features |= pmem::kInUseFeature;
  header.used_devices = 0x77;
  header.shutdown_count = 12;
  header.checksum = pmem::checksum_of(header);
  file.seekp(place);
  for (int copy = 0; copy < 2; ++copy)
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
  REQUIRE(file.flush().good());
}

}  // namespace

TEST_CASE("a pool whose devices may have lost lines opens only if that is accepted", "[api]") {
  const TemporaryPath path;
  must(must(Database::open(options_at(path))).create_table(numbers_schema()));
  mark_in_use(path);
  OpenOptions options = options_at(path);
  for (const OpenMode mode : {OpenMode::kOpenOrCreate, OpenMode::kOpen, OpenMode::kReadOnly}) {
    options.mode = mode;
    check_refused(options, StatusCode::kCorrupt);
  }
  CHECK(must(check_pool({.path = path.string()})).is_clean());
  options.accept_lost_lines = true;
  CHECK(must(Database::open(options)).tables().size() == 1);  // to read: asked again
  options.mode = OpenMode::kOpen;
  {
    const Database database = must(Database::open(options));
    CHECK(database.tables().size() == 1);
    CHECK(database.statistics().dirty_shutdowns == "not known");
  }
  CHECK(must(Database::open(options_at(path))).tables().size() == 1);
}

TEST_CASE("the open mode decides whether the pool must exist", "[api]") {
  const TemporaryPath path;
  check_refused(options_at(path, OpenMode::kOpen), StatusCode::kNotFound);
  CHECK(must(Database::open(options_at(path, OpenMode::kCreate))).recovery_report().created);
  check_refused(options_at(path, OpenMode::kCreate), StatusCode::kAlreadyExists);
  CHECK_FALSE(must(Database::open(options_at(path, OpenMode::kOpen))).recovery_report().created);
  CHECK_FALSE(must(Database::open(options_at(path))).recovery_report().created);
}

TEST_CASE("threads that open or create a pool at once make one database", "[api]") {
  const TemporaryPath path;
  std::vector<::pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(static_cast<int>(Database::open(options_at(path)).code()));
    children.push_back(child);
  }
  int opened = 0;
  for (const ::pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    const auto code = static_cast<StatusCode>(WEXITSTATUS(status));
    CHECK((code == StatusCode::kOk || code == StatusCode::kBusy));
    opened += code == StatusCode::kOk ? 1 : 0;
  }
  CHECK(opened >= 1);
}

TEST_CASE("options out of range are refused", "[api]") {
  const TemporaryPath path;
  const auto refuse = [&](auto&& change) {
    OpenOptions options = options_at(path);
    change(options);
    check_refused(options, StatusCode::kInvalidArgument);
    CHECK(::access(path.string().c_str(), F_OK) != 0);  // and no file was made
  };
  refuse([](OpenOptions& o) { o.slots_max = 0; });
  refuse([](OpenOptions& o) { o.index_place = static_cast<IndexPlace>(2); });
  refuse([](OpenOptions& o) { o.slots_max = 4001; });
  refuse([](OpenOptions& o) { o.tuning.clock = static_cast<CommitClock>(3); });
  refuse([](OpenOptions& o) { o.max_bytes = 1000; });
  refuse([](OpenOptions& o) { o.max_bytes = std::uint64_t{1} << 60; });
  refuse([](OpenOptions& o) { o.segment_bytes = 0; });
  refuse([](OpenOptions& o) { o.segment_bytes = 5000; });
  refuse([](OpenOptions& o) { o.tuning.hint_interval = std::chrono::milliseconds(-1); });
  refuse([](OpenOptions& o) { o.tuning.hint_interval = std::chrono::milliseconds::max(); });
  refuse([](OpenOptions& o) { o.tuning.scm_lines_in_flight = 0; });
}

TEST_CASE("a build without checked reads refuses scm_read_ns, and names the build that has them",
          "[api]") {
  const TemporaryPath path;
  OpenOptions options = options_at(path);
  options.tuning.scm_write_ns = 100;
  CHECK(Database::open(options).ok());
  options.tuning.scm_read_ns = 200;
  const Result<Database> database = Database::open(options);
  if (pmem::kSeesScmReads) {
    CHECK(database.ok());
  } else {
    CHECK(database.code() == StatusCode::kInvalidArgument);
    CHECK(database.status().message().find("cmake --preset scm") != std::string::npos);
  }
}

TEST_CASE("a path with a zero byte is refused, and no file is made for the part before it",
          "[api]") {
  const TemporaryPath path;
  for (const OpenMode mode : {OpenMode::kOpen, OpenMode::kCreate, OpenMode::kOpenOrCreate}) {
    OpenOptions options = options_at(path, mode);
    options.path += std::string("\0rest", 5);
    check_refused(options, StatusCode::kInvalidArgument);
    CHECK(::access(path.string().c_str(), F_OK) != 0);
  }
  must(Database::open(options_at(path)));
  const std::string longer = path.string() + std::string("\0rest", 5);
  check_refused(small_options(longer), StatusCode::kInvalidArgument);
  CHECK(check_pool({.path = longer}).code() == StatusCode::kInvalidArgument);
  CHECK(estimate_opening({.path = longer}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("the number of slots may differ from one opening to the next", "[api]") {
  const TemporaryPath path;
  for (const std::uint32_t slots : {1u, 4000u, 2u}) {
    OpenOptions options = options_at(path);
    options.slots_max = slots;
    Database database = must(Database::open(options));
    std::vector<Transaction> open;
    for (std::uint32_t i = 0; i < slots; ++i) open.push_back(must(database.begin()));
    CHECK(database.begin().code() == StatusCode::kTooManyTransactions);
    CHECK(database.begin(AccessMode::kReadOnly).code() == StatusCode::kTooManyTransactions);
    CHECK(database.statistics().transactions_open == slots);
    open.pop_back();
    CHECK(database.begin().ok());
  }
}

TEST_CASE("a pool is open once at a time", "[api]") {
  const TemporaryPath path;
  std::optional<Database> database = must(Database::open(options_at(path)));
  check_refused(options_at(path), StatusCode::kBusy);
  CHECK(code_in_child(options_at(path)) == static_cast<int>(StatusCode::kBusy));
  database.reset();
  CHECK(code_in_child(options_at(path)) == 0);
  CHECK(Database::open(options_at(path)).ok());
}

TEST_CASE("a copy is a pool of its own, also beside the one that it was copied from", "[api]") {
  TemporaryDatabase original([](OpenOptions& options) { options.max_bytes = 16u << 20; });
  TableSchema schema("t");
  schema.column("id", Type::kInt64).primary_key({"id"});
  const TableId table = must(original->create_table(schema));
  Transaction t = must(original->begin());
  must(t.insert(table, {Value::int64(1)}));
  must(t.commit());
  t = must(original->begin());
  must(t.insert(table, {Value::int64(2)}));
  const TemporaryPath path;
  std::filesystem::copy_file(original.options.path, path.string());
  t.abort();
  Database copy = must(Database::open(small_options(path.string())));
  must(copy.check());
  const Transaction reader = must(copy.begin());
  CHECK(reader.get({table, 0}, {Value::int64(1)}).ok());
  CHECK(reader.get({table, 0}, {Value::int64(2)}).code() == StatusCode::kNotFound);
}

TEST_CASE("opening leaves files that are no pools unchanged", "[api]") {
  const TemporaryPath path;
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path.string(), std::ios::binary) << bytes;
  };
  for (const std::string& content : {std::string(), std::string("hello"), std::string(100000, 'x'),
                                     std::string(1 << 20, '\0')}) {
    write(content);
    const auto result = Database::open(options_at(path, OpenMode::kOpen));
    INFO(result.status().to_string());
    CHECK((result.code() == StatusCode::kIncompatible || result.code() == StatusCode::kCorrupt));
    struct stat after{};
    REQUIRE(::stat(path.string().c_str(), &after) == 0);
    CHECK(static_cast<std::size_t>(after.st_size) == content.size());
  }
  OpenOptions directory = options_at(path);
  directory.path = "/dev/shm";
  CHECK_FALSE(Database::open(directory).ok());
  directory.path = "/nonexistent/folder/pool";
  CHECK_FALSE(Database::open(directory).ok());
  directory.path = "";
  CHECK_FALSE(Database::open(directory).ok());
}

TEST_CASE("a truncated pool is refused", "[api]") {
  const TemporaryPath path;
  must(must(Database::open(options_at(path))).create_table(numbers_schema()));
  struct stat whole{};
  REQUIRE(::stat(path.string().c_str(), &whole) == 0);
  for (const off_t bytes : {whole.st_size / 2, off_t{1} << 20, off_t{4096}, off_t{100}}) {
    REQUIRE(::truncate(path.string().c_str(), bytes) == 0);
    const auto result = Database::open(options_at(path));
    INFO(bytes << " bytes: " << result.status().to_string());
    CHECK((result.code() == StatusCode::kCorrupt || result.code() == StatusCode::kIncompatible));
  }
}

TEST_CASE("opening reports progress", "[api]") {
  const TemporaryPath path;
  {
    Database database = must(Database::open(options_at(path)));
    const TableId table = must(database.create_table(numbers_schema()));
    Transaction t = must(database.begin());
    for (int i = 0; i < 5000; ++i)
      must(t.insert(table, {Value::int64(i), Value::string(std::string_view(std::to_string(i)))}));
    must(t.commit());
  }
  OpenOptions options = options_at(path);
  std::size_t calls = 0;
  bool goes_back = false;
  Progress last;
  options.progress = [&](const Progress& progress) {
    calls += progress.done <= progress.total && !progress.phase.empty() ? 1 : 0;
    goes_back |= progress.phase == last.phase && progress.done < last.done;
    last = progress;
  };
  const Database database = must(Database::open(options));
  CHECK_FALSE(goes_back);
  CHECK(calls > (test_index_place() == IndexPlace::kPool ? 1 : 2));
  const RecoveryReport& report = database.recovery_report();
  double sum = 0;
  for (const char* phase :
       {"map", "catalog", "transactions", "dictionary indexes", "key indexes", "threads"}) {
    CHECK(report.phase_us(phase) > 0);
    sum += report.phase_us(phase);
  }
  CHECK(report.total_us >= sum);
  CHECK(report.rows_live == 5000);
  if (database.statistics().index_place == IndexPlace::kPool)
    CHECK(report.dictionary_entries <= 5000);  // entries whose hints had not been kept yet
  else
    CHECK(report.dictionary_entries == 5000);
  CHECK(report.threads == 2);
}

// The transaction that meets the end of the pool fails. Committed rows stay, reads and deletes go
// on, and the pool opens again.
TEST_CASE("a full pool takes no more and loses nothing", "[api]") {
  TemporaryDatabase database([](OpenOptions& o) {
    o.index_place = IndexPlace::kDram;
    o.max_bytes = std::uint64_t{24} << 20;
    o.segment_bytes = std::uint64_t{1} << 20;
  });
  const TableId table = must(database->create_table(numbers_schema()));
  std::int64_t committed = 0;
  Status failure;
  for (std::int64_t i = 0; i < 1000000 && failure.ok(); ++i) {
    Transaction t = must(database->begin());
    const std::string text = std::to_string(i) + std::string(2000, 't');
    const auto row = t.insert(table, {Value::int64(i), Value::string(text)});
    failure = row.ok() ? t.commit() : row.status();
    committed += failure.ok() ? 1 : 0;
    if (!row.ok()) CHECK(t.is_open());
  }
  INFO(failure.to_string());
  CHECK(failure.code() == StatusCode::kOutOfSpace);
  CHECK(committed > 1000);
  StatusCode created = StatusCode::kOk;
  for (int i = 0; i < 100 && created == StatusCode::kOk; ++i) {
    TableSchema more("more" + std::to_string(i));
    created = database->create_table(more.column("x", Type::kString)).code();
  }
  CHECK(created == StatusCode::kOutOfSpace);
  for (int opened = 0; opened < 2; ++opened) {
    must(database->check());
    Transaction t = must(database->begin());
    std::int64_t rows = 0;
    must(t.scan(table, {ColumnId{0}}, [&](const ScanBatch& batch) {
      rows += static_cast<std::int64_t>(batch.row_count());
      return true;
    }));
    CHECK(rows == committed - opened * 100);
    t.abort();
    // One at a time: a list of more than four rows would need space.
    for (std::int64_t i = opened * 100; i < opened * 100 + 100; ++i) {
      Transaction deleter = must(database->begin());
      must(deleter.remove(table, must(deleter.get({table, 0}, {Value::int64(i)})).id()));
      must(deleter.commit());
    }
    database.reopen();
  }
  Transaction t = must(database->begin());
  CHECK(t.insert(table, {Value::int64(5), Value::null()}).ok());  // a row that became free
  must(t.commit());
}

TEST_CASE("a transaction that fills the pool can commit what it has inserted", "[api]") {
  TemporaryDatabase database([](OpenOptions& o) {
    o.max_bytes = std::uint64_t{24} << 20;
    o.segment_bytes = std::uint64_t{1} << 20;
  });
  TableSchema schema("plain");
  schema.column("id", Type::kInt64).direct().not_null();
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin());
  Status failure;
  std::int64_t rows = 0;
  for (; rows < 10000000 && failure.ok(); ++rows)
    failure = t.insert(table, {Value::int64(rows)}).status();
  REQUIRE(failure.code() == StatusCode::kOutOfSpace);
  const Status committed = t.commit();
  CHECK_FALSE(t.is_open());
  must(committed);
  std::int64_t seen = 0;
  must(must(database->begin()).scan(table, {}, [&](const ScanBatch& batch) {
    seen += static_cast<std::int64_t>(batch.row_count());
    return true;
  }));
  CHECK(seen == rows - 1);  // the last one did not fit
  database.reopen();
  must(database->check());
}

TEST_CASE("schemas at their limits work, beyond them they do not", "[api]") {
  TemporaryDatabase database;
  TableSchema many("many");
  for (int i = 0; i < 1000; ++i) many.column("c" + std::to_string(i), Type::kInt32);
  for (int i = 0; i < 16; ++i)
    many.key("k" + std::to_string(i), {"c" + std::to_string(i), "c" + std::to_string(i + 1)});
  const TableId table = must(database->create_table(many));
  std::vector<Value> values(1000, Value::int32(7));
  values[999] = Value::null();
  Transaction t = must(database->begin());
  const RowId row = must(t.insert(table, values));
  must(t.update(table, row, {{ColumnId{3}, Value::int32(8)}}));
  must(t.commit());
  database.reopen();
  Transaction again = must(database->begin());
  std::size_t found = 0;
  for (std::uint16_t key = 0; key < 16; ++key)
    must(again.rows({table, key}, {Value::int32(key == 3 ? 8 : 7)}, [&](const Row& r) {
      found += r.get_unchecked<std::int32_t>(ColumnId{3}) == 8 && r.is_null_unchecked(ColumnId{999})
                   ? 1
                   : 0;
      return true;
    }));
  CHECK(found == 16);
  again.abort();
  must(database->check());
  TableSchema too_wide("too_wide");
  for (int i = 0; i < 600; ++i) too_wide.column("c" + std::to_string(i), Type::kInt64).direct();
  const auto refused = database->create_table(too_wide);
  INFO(refused.status().to_string());
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  TableSchema bad = many;
  bad.name = "bad";
  bad.key("k16", {"c0"});
  CHECK(database->create_table(bad).code() == StatusCode::kInvalidArgument);
  CHECK(database->tables().size() == 1);
}

}  // namespace flugs::test
