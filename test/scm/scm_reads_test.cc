// Compares the charges for reads of emulated SCM with what the processor saw: only in a build with
// FLUGS_SCM.
#include "pmem/medium/scm_reads.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "pmem/kinds/object_format.h"
#include "test/scm/line_watch.h"
#include "test/support/temporary_database.h"

namespace flugs {
namespace {

using test::LineWatch;
using test::must;

constexpr std::int64_t kRowsInMain = 1500;
constexpr std::int64_t kRows = 3000;
constexpr std::size_t kPoolBytes = std::size_t{16} << 20;  // no two lines in the same set

const std::string& long_text() {
  static const std::string text(20'000, 'x');
  return text;
}

/// Lines that a piece of work touched, as numbers from the beginning of the pool.
struct Touched {
  std::vector<std::size_t> charged;
  std::vector<std::size_t> seen;  // by the processor

  std::map<std::size_t, std::string> places;  // of lines missed: what touched them first

  /// Lines read or written without a charge: there must be none.
  std::vector<std::size_t> missed() const {
    std::vector<std::size_t> lines;
    std::set_difference(seen.begin(), seen.end(), charged.begin(), charged.end(),
                        std::back_inserter(lines));
    return lines;
  }
  /// Lines charged but not seen: an access across two lines is seen in the first only.
  std::size_t unseen() const { return charged.size() + missed().size() - seen.size(); }
};

/// Runs `work` in a thread of its own, which has touched nothing yet.
Touched touched_by(const std::function<void()>& work, bool opens = false) {
  Touched touched;
  std::thread([&] {
    LineWatch watch(opens);
    work();
    watch.stop();
    touched.seen = watch.lines();
    const std::span<std::byte> pool = LineWatch::pool();
    for (std::size_t line = 0; line < pool.size() / pmem::kLineBytes; ++line)
      if (pmem::is_touched_scm(pool.data() + line * pmem::kLineBytes))
        touched.charged.push_back(line);
    for (const std::size_t line : touched.missed()) touched.places[line] = watch.place_of(line);
  }).join();
  return touched;
}

/// At least `least` lines, all of them charged, and at most a fiftieth more.
void check_charges(const char* what, const Touched& touched, std::size_t least) {
  INFO(what << ": " << touched.seen.size() << " lines seen, " << touched.charged.size()
            << " charged");
  CHECK(touched.seen.size() >= least);
  for (const std::size_t line : touched.missed()) {
    INFO("line " << line << ", touched without a check by " << touched.places.at(line));
    CHECK(false);
  }
  CHECK(touched.unseen() <= touched.seen.size() / 50 + 2);
}

/// Accounts, half of them in main, with a unique and an ordered key, small and large dictionaries
/// and long texts.
class ScmAccounts {
 public:
  explicit ScmAccounts(IndexPlace mode, ScmCache cache = ScmCache::kProcessor,
                       std::uint32_t read_ns = 0)
      : database_([&](OpenOptions& options) {
          options.max_bytes = kPoolBytes;
          options.segment_bytes = std::uint64_t{1} << 20;
          options.index_place = mode;
          options.tuning.hint_interval = std::chrono::milliseconds(0);
          options.tuning.sweeps_in_background = false;
          options.tuning.warm_bytes_max = 0;
          options.tuning.recovery_threads = 1;
          options.ready = Ready::kIndexesBuilt;
          options.tuning.scm_cache = cache;
          options.tuning.scm_read_ns = read_ns;
        }) {
    TableSchema schema("accounts");
    schema.column("id", Type::kInt64).column("city", Type::kString).column("amount", Type::kInt32);
    schema.column("note", Type::kString).primary_key({"id"}).key("by_amount", {"amount", "id"});
    table_ = must(database_->create_table(schema));
    id_ = must(database_->find_key(table_, "primary"));
    by_amount_ = must(database_->find_key(table_, "by_amount"));
    insert(0, kRowsInMain);
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.threads = 1;
    must(database_->merge(table_, options).status());
    database_.reopen();  // index runs of main serve from now on
    insert(kRowsInMain, kRows);
  }

  Database& operator*() { return *database_; }
  Database* operator->() { return &*database_; }
  test::TemporaryDatabase& file() { return database_; }
  TableId table() const { return table_; }
  KeyId id() const { return id_; }
  KeyId by_amount() const { return by_amount_; }

  /// The values of a row; reads all of it.
  std::int64_t read(Transaction& transaction, std::int64_t id) const {
    const Result<Row> row = transaction.get(id_, {Value::int64(id)});
    if (!row.ok()) return -1;
    return row->get_unchecked<std::int64_t>(ColumnId(0)) +
           row->get_unchecked<std::int32_t>(ColumnId(2)) +
           static_cast<std::int64_t>(
               std::string(row->get_unchecked<std::string_view>(ColumnId(1))).size() +
               std::string(row->get_unchecked<std::string_view>(ColumnId(3))).size());
  }
  void insert(std::int64_t from, std::int64_t to) {
    Transaction writer = must(database_->begin());
    for (std::int64_t id = from; id < to; ++id) must(insert_one(writer, id).status());
    must(writer.commit());
  }
  Result<RowId> insert_one(Transaction& writer, std::int64_t id) const {
    const std::string city = "city number " + std::to_string(id % 700);
    const auto amount = static_cast<std::int32_t>(id * 7919 % 100'000);
    return writer.insert(table_, {Value::int64(id), Value::string(city), Value::int32(amount),
                                  Value::string(id % 1000 == 999 ? long_text() : "short")});
  }

 private:
  test::TemporaryDatabase database_;
  TableId table_;
  KeyId id_;
  KeyId by_amount_;
};

void in_transaction(Database& database, const std::function<void(Transaction&)>& work) {
  Transaction transaction = database.begin().value();
  work(transaction);
  if (!transaction.commit().ok()) std::abort();
}

query::RunOptions one_thread() {
  query::RunOptions options;
  options.threads = 1;
  return options;
}

void check_reads(ScmAccounts& accounts) {
  const auto reads = [&](std::int64_t id) {
    return touched_by(
        [&] { in_transaction(*accounts, [&](Transaction& t) { accounts.read(t, id); }); });
  };
  check_charges("find in the delta", reads(2500), 2);
  check_charges("find in main", reads(123), 3);
  check_charges("find what is not there", reads(1'000'000), 0);
  check_charges("find a long text in main", reads(999), long_text().size() / 64);
  check_charges("find a long text in the delta", reads(1999), long_text().size() / 64);
  check_charges(
      "range of an ordered key", touched_by([&] {
        in_transaction(*accounts, [&](Transaction& t) {
          const std::array<Value, 1> from = {Value::int32(10'000)};
          const std::array<Value, 1> to = {Value::int32(20'000)};
          std::int64_t sum = 0;
          const auto add = [&](const Row& row) {
            sum += row.get_unchecked<std::int64_t>(ColumnId(0));
            return true;
          };
          if (!t.rows(accounts.by_amount(), {from, true}, {to, false}, add).ok() || sum == 0)
            std::abort();
        });
      }),
      150);
  check_charges("scan by a query", touched_by([&] {
                  in_transaction(*accounts, [&](Transaction& t) {
                    using namespace query;
                    const Query by_city =
                        Query::table("accounts")
                            .where(col("amount") >= 500)
                            .group_by({"city"}, {sum("amount").as("sum"), count()});
                    if (!by_city.run(t, one_thread()).ok()) std::abort();
                  });
                }),
                500);
  check_charges("scan by a transaction", touched_by([&] {
                  in_transaction(*accounts, [&](Transaction& t) {
                    const auto see = [](const ScanBatch&) { return true; };
                    if (!t.scan(accounts.table(), {ColumnId(0), ColumnId(3)}, see).ok())
                      std::abort();
                  });
                }),
                500);
  check_charges("verify", touched_by([&] {
                  if (!accounts->check().ok()) std::abort();
                }),
                1000);
}

void check_writes(ScmAccounts& accounts) {
  const auto write = [&](const std::function<Status(Transaction&)>& work) {
    return touched_by([&] {
      in_transaction(*accounts, [&](Transaction& t) {
        if (!work(t).ok()) std::abort();
      });
    });
  };
  const auto row = [&](Transaction& t, std::int64_t id) {
    return t.get(accounts.id(), {Value::int64(id)}).value().id();
  };
  const auto update = [&](Transaction& t, std::int64_t id) {
    return t.update(accounts.table(), row(t, id), {{ColumnId(2), Value::int32(5)}}).status();
  };
  check_charges("insert",
                write([&](Transaction& t) { return accounts.insert_one(t, kRows).status(); }), 5);
  check_charges("insert a long text",
                write([&](Transaction& t) { return accounts.insert_one(t, 5999).status(); }),
                long_text().size() / 64);
  check_charges("update in the delta", write([&](Transaction& t) { return update(t, 2400); }), 5);
  check_charges("update in main", write([&](Transaction& t) { return update(t, 400); }), 5);
  check_charges("delete in the delta",
                write([&](Transaction& t) { return t.remove(accounts.table(), row(t, 2401)); }), 3);
  check_charges("delete in main",
                write([&](Transaction& t) { return t.remove(accounts.table(), row(t, 401)); }), 3);
  check_charges("abort", touched_by([&] {
                  Transaction t = accounts->begin().value();
                  if (!accounts.insert_one(t, 7000).ok()) std::abort();
                  t.abort();
                }),
                3);
  check_charges("merge", touched_by([&] {
                  MergeOptions options;
                  options.scope = MergeScope::kEverything;
                  options.threads = 1;
                  if (!accounts->merge(accounts.table(), options).ok()) std::abort();
                }),
                1000);
}

TEST_CASE("every line of the pool that work touches is charged, and no other", "[scm]") {
  for (const IndexPlace mode : {IndexPlace::kPool, IndexPlace::kDram}) {
    CAPTURE(static_cast<int>(mode));
    ScmAccounts accounts(mode);
    check_reads(accounts);
    check_writes(accounts);
  }
}

TEST_CASE("every line that opening after a crash touches is charged", "[scm]") {
  for (const IndexPlace mode : {IndexPlace::kPool, IndexPlace::kDram}) {
    CAPTURE(static_cast<int>(mode));
    ScmAccounts accounts(mode);
    OpenOptions options = accounts.file().options;
    const test::TemporaryPath copy;
    {
      Transaction in_flight = must(accounts->begin());
      must(accounts.insert_one(in_flight, 4000).status());
      std::filesystem::copy_file(options.path, copy.string());
    }
    accounts.file().close();
    options.path = copy.string();
    Result<Database> opened(Status(StatusCode::kNotFound));
    Touched touched = touched_by([&] { opened = Database::open(options); }, true);
    // The root's place is read before the file counts as a pool.
    std::erase(touched.seen, pmem::kRootOffsetOffset / pmem::kLineBytes);
    check_charges("opening after a crash", touched, mode == IndexPlace::kPool ? 50 : 1000);
    must(opened.status());
  }
}

// GCC compiles it without checks, like a function of a library without them.
__attribute__((noinline, no_sanitize("kernel-address"))) int read_unchecked(const std::byte* at) {
  return std::to_integer<int>(*static_cast<const volatile std::byte*>(at));
}

TEST_CASE("the watch finds a line that is read without a check", "[scm]") {
  ScmAccounts accounts(IndexPlace::kPool);
  const std::size_t line = kPoolBytes / 64 - 10;
  const Touched touched = touched_by([&] {
    in_transaction(*accounts, [&](Transaction& t) { accounts.read(t, 5); });
    read_unchecked(LineWatch::pool().data() + line * 64 + 7);
  });
  CHECK(touched.missed() == std::vector<std::size_t>{line});
}

/// Number of lines that `work` is charged for, in full and in sequence.
std::uint64_t lines_read(Database& database, const std::function<void()>& work) {
  const Statistics before = database.statistics();
  work();
  const Statistics after = database.statistics();
  return after.scm_lines_read + after.scm_lines_read_in_sequence - before.scm_lines_read -
         before.scm_lines_read_in_sequence;
}

TEST_CASE("a line is charged once in each transaction", "[scm]") {
  ScmAccounts accounts(IndexPlace::kPool, ScmCache::kTask);
  const auto find = [&](Transaction& t) { return accounts.read(t, 2222); };
  std::array<std::uint64_t, 2> first{};
  for (std::uint64_t& lines : first) {
    Transaction t = must(accounts->begin());
    lines = lines_read(*accounts, [&] { find(t); });
    CHECK(lines_read(*accounts, [&] { find(t); }) == 0);
  }
  CHECK(first[0] >= 3);
  CHECK(first[1] == first[0]);
}

TEST_CASE("lines stay in a processor's cache from one transaction to the next", "[scm]") {
  ScmAccounts accounts(IndexPlace::kPool, ScmCache::kProcessor);
  const auto run = [&] {
    in_transaction(*accounts, [&](Transaction& t) { accounts.read(t, 2223); });
  };
  run();
  CHECK(lines_read(*accounts, run) == 0);
}

TEST_CASE("reads of an index in the pool are charged with waiting, reads in DRAM are not",
          "[scm]") {
  constexpr std::uint32_t kReadNs = 20'090;
  std::array<std::uint64_t, 2> lines{};
  for (const IndexPlace mode : {IndexPlace::kDram, IndexPlace::kPool}) {
    ScmAccounts accounts(mode, ScmCache::kTask, kReadNs);
    Transaction t = must(accounts->begin(AccessMode::kReadOnly));
    const auto begin = std::chrono::steady_clock::now();
    lines[static_cast<std::size_t>(mode)] =
        lines_read(*accounts, [&] { REQUIRE(t.get(accounts.id(), {Value::int64(2600)}).ok()); });
    const auto took = std::chrono::steady_clock::now() - begin;
    CHECK(took >= std::chrono::microseconds(19) * lines[static_cast<std::size_t>(mode)]);
  }
  CHECK(lines[static_cast<std::size_t>(IndexPlace::kPool)] >
        lines[static_cast<std::size_t>(IndexPlace::kDram)]);
}

TEST_CASE("the third line in sequence within a page is charged as one of a stream", "[scm]") {
  ScmAccounts accounts(IndexPlace::kPool);
  const Statistics before = accounts->statistics();
  pmem::begin_scm_task();
  pmem::touch_scm(LineWatch::pool().data() + kPoolBytes / 2, 2 * pmem::kPageBytes);
  const Statistics after = accounts->statistics();
  CHECK(after.scm_lines_read - before.scm_lines_read == 4);
  CHECK(after.scm_lines_read_in_sequence - before.scm_lines_read_in_sequence == 124);
}

}  // namespace
}  // namespace flugs
