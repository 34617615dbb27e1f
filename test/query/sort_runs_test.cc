// Rows beyond the memory of a sort: runs in temporary files, and their merge; and temporary files
// that cannot be written. A plain sort says what must come out.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "query/operators/row_codec.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSortedRows = 9'000;
#else
constexpr std::int64_t kSortedRows = 40'000;
#endif
// Rows take about 90 bytes with their keys, four times as much while they are sorted in memory, and
// the result about 50. Buffers take more, whatever the number of rows.
constexpr std::uint64_t kScarceBytes = kSortedRows * 110 + 600'000;

struct SortedRow {
  std::int64_t id = 0;
  std::optional<std::int64_t> number;
  std::optional<std::string> name;
  std::optional<double> real;
};

/// Rows with equal keys, NULLs and empty texts, in a table.
class SortedTable {
 public:
  SortedTable() {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).column("number", Type::kInt64);
    schema.column("name", Type::kString).column("real", Type::kDouble);
    schema.primary_key({"id"});
    table_ = must(database_->create_table(schema));
    Random random(59);
    Transaction t = must(database_->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 0; id < kSortedRows; ++id) {
      SortedRow& row = rows_.emplace_back();
      row.id = id;
      if (random.below(10) != 0) row.number = std::int64_t(random.below(50)) - 25;
      if (random.below(10) != 0)
        row.name = std::string(random.below(3), 'x') + std::to_string(random.below(200));
      if (random.below(10) != 0) row.real = double(random.below(100)) / 8 - 3;
      must(t.insert(table_, {Value::int64(id), row.number ? Value::int64(*row.number) : Value(),
                             row.name ? Value::string(*row.name) : Value(),
                             row.real ? Value::real(*row.real) : Value()}));
    }
    must(t.commit());
  }

  /// The identifiers in the order of number down, name, real, identifier.
  std::vector<std::int64_t> ids_in_order() {
    std::vector<SortedRow> sorted = rows_;
    std::sort(sorted.begin(), sorted.end(), [](const SortedRow& a, const SortedRow& b) {
      if (a.number != b.number) return a.number > b.number;  // NULL is below every number
      if (a.name != b.name) return a.name < b.name;
      if (a.real != b.real) return a.real < b.real;
      return a.id < b.id;
    });
    std::vector<std::int64_t> ids;
    for (const SortedRow& row : sorted) ids.push_back(row.id);
    return ids;
  }
  static Query sorted() {
    return Query::table("t").order_by({desc("number"), "name", "real", "id"});
  }
  const SortedRow& row(std::int64_t id) const { return rows_[std::size_t(id)]; }
  Database& database() { return *database_; }
  TableId id() const noexcept { return table_; }

 private:
  TemporaryDatabase database_;
  TableId table_{};
  std::vector<SortedRow> rows_;
};

bool is_in_files(const std::string& plan) {
  return plan.find(" temporary files") != std::string::npos;
}

/// Whether each row of the result is the one with its identifier.
bool has_rows_of(const SortedTable& table, const QueryResult& result) {
  for (std::size_t i = 0; i < result.row_count(); ++i) {
    const auto at = [&](std::size_t column) { return result.get_unchecked(i, column); };
    const SortedRow& row = table.row(at(0).as_int64());
    if (at(1) != (row.number ? Value::int64(*row.number) : Value()) ||
        at(2) != (row.name ? Value::string(*row.name) : Value()) ||
        at(3) != (row.real ? Value::real(*row.real) : Value()))
      return false;
  }
  return true;
}

std::vector<std::int64_t> ids_of(const QueryResult& result) {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < result.row_count(); ++i)
    ids.push_back(result.get_unchecked(i, 0).as_int64());
  return ids;
}

/// No file of this process may grow beyond a limit in bytes. To write more is an error, not a
/// signal.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit_) == 0);
    rlimit lower = limit_;
    lower.rlim_cur = bytes;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &lower) == 0);
  }
  ~FileLimit() {
    static_cast<void>(setrlimit(RLIMIT_FSIZE, &limit_));
    static_cast<void>(std::signal(SIGXFSZ, before_));
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit limit_{};
  void (*before_)(int) = nullptr;
};

}  // namespace

TEST_CASE("rows sorted in temporary files are in the order of a plain sort", "[query]") {
  SortedTable table;
  const std::vector<std::int64_t> right = table.ids_in_order();
  const Transaction t = must(table.database().begin(AccessMode::kReadOnly));
  for (const std::uint32_t threads : {1u, 3u}) {
    RunOptions options;
    options.threads = threads;
    const QueryResult in_memory = must(SortedTable::sorted().run(t, options));
    CHECK(!is_in_files(in_memory.explain()));
    CHECK(ids_of(in_memory) == right);
    // Each further thread may hold a batch while all others do.
    options.memory_bytes_max = kScarceBytes + (threads - 1) * 100'000;
    const QueryResult in_files = must(SortedTable::sorted().run(t, options));
    INFO(in_files.explain());
    CHECK(is_in_files(in_files.explain()));
    CHECK(ids_of(in_files) == right);
    CHECK(has_rows_of(table, in_files));
    CHECK(in_files.statistics().memory_bytes_peak <= options.memory_bytes_max);
    // Rows from the middle, and no more of them are read than are wanted.
    const Query some = SortedTable::sorted().limit(100, kSortedRows / 2);
    const QueryResult middle = must(some.run(t, options));
    const auto first = right.begin() + kSortedRows / 2;
    CHECK(ids_of(middle) == std::vector<std::int64_t>(first, first + 100));
  }
}

TEST_CASE("a stream of rows sorted in temporary files is in their order", "[query]") {
  SortedTable table;
  const Transaction t = must(table.database().begin(AccessMode::kReadOnly));
  RunOptions options;
  options.threads = 2;
  options.memory_bytes_max = kScarceBytes;
  ResultStream stream = must(SortedTable::sorted().stream(t, options));
  CHECK(is_in_files(stream.explain()));
  std::vector<std::int64_t> ids;
  for (const StreamBatch& batch : stream) {
    const auto column = must(batch.column<std::int64_t>(0));
    ids.insert(ids.end(), column.begin(), column.end());
  }
  must(stream.status());
  CHECK(ids == table.ids_in_order());
}

TEST_CASE("a temporary file that cannot be written fails the query, and nothing else", "[query]") {
  SortedTable table;
  const Query grouped = Query::table("t").group_by({"id", "name"}, {sum("number").as("sum")});
  RunOptions options;
  options.threads = 2;
  options.memory_bytes_max = kScarceBytes;
  options.temporary_folder = "/tmp";
  {
    const Transaction t = must(table.database().begin(AccessMode::kReadOnly));
    const FileLimit limit(16 << 10);
    for (const bool groups : {false, true}) {
      const Query query = groups ? grouped : SortedTable::sorted();
      options.memory_bytes_max = groups ? kSortedRows * 80 : kScarceBytes;
      const Result<QueryResult> result = query.run(t, options);
      INFO(result.status().to_string());
      REQUIRE(result.status().code() == StatusCode::kIoError);
      const std::string message(result.status().message());
      CHECK(message.find("the temporary file of a query in /tmp: writing at offset 16384 failed: "
                         "File too large") != std::string::npos);
      // The transaction goes on, also with what needs no file.
      CHECK(must(query.limit(1).group_by({}, {count()}).run(t)).row_count() == 1);
    }
  }
  must(table.database().check());
  Transaction writer = must(table.database().begin());
  must(writer.insert(table.id(), {Value::int64(kSortedRows), Value(), Value(), Value()}));
  must(writer.commit());
  const Transaction t = must(table.database().begin(AccessMode::kReadOnly));
  options.memory_bytes_max = kScarceBytes;
  CHECK(must(SortedTable::sorted().run(t, options)).row_count() == kSortedRows + 1);
  CHECK(must(grouped.run(t)).row_count() == kSortedRows + 1);
}

TEST_CASE("records of rows give back their values, with NULLs in each of 70 columns", "[query]") {
  constexpr std::size_t kColumns = 70;
  Schema schema;
  for (std::size_t c = 0; c < kColumns; ++c)
    schema.push_back({std::to_string(c),
                      {c % 3 == 0   ? Type::kInt64
                       : c % 3 == 1 ? Type::kDouble
                                    : Type::kString,
                       0},
                      nullptr});
  const RowCodec codec(schema);
  constexpr std::size_t kRowsOfCodec = 100;
  std::vector<Vec> columns(kColumns);
  Batch batch;
  batch.rows = kRowsOfCodec;
  for (std::size_t c = 0; c < kColumns; ++c) {
    std::uint8_t* nulls = columns[c].nulls(kRowsOfCodec);
    for (std::size_t i = 0; i < kRowsOfCodec; ++i) {
      nulls[i] = (i * 7 + c) % 5 == 0 ? 1 : 0;
      if (c % 3 == 0) columns[c].ints(kRowsOfCodec)[i] = std::int64_t(i * c) - 50;
      if (c % 3 == 1) columns[c].reals(kRowsOfCodec)[i] = double(i) / double(c);
      if (c % 3 == 2) columns[c].texts(kRowsOfCodec)[i] = schema[i % kColumns].name;
    }
    batch.columns.push_back(columns[c].view(c % 4 != 0));
  }
  std::vector<std::uint64_t> records(kRowsOfCodec * codec.words());
  codec.write(batch, records.data());
  std::vector<Vec> out(kColumns);
  Batch read;
  codec.read(records.data(), kRowsOfCodec, out, read);
  std::size_t equal = 0;
  for (std::size_t c = 0; c < kColumns; ++c)
    for (std::size_t i = 0; i < kRowsOfCodec; ++i) {
      const ColumnView a = batch.columns[c];
      const ColumnView b = read.columns[c];
      const bool null = a.nulls != nullptr && a.nulls[i] != 0;
      if (null != (b.nulls != nullptr && b.nulls[i] != 0)) continue;
      equal += c % 3 == 0   ? a.ints()[i] == b.ints()[i]
               : c % 3 == 1 ? a.reals()[i] == b.reals()[i]
                            : a.texts()[i] == b.texts()[i];
    }
  CHECK(equal == kColumns * kRowsOfCodec);
}
