// The process forks while a database is open. In the child every call fails and says why, and
// destroying the database returns at once. The parent goes on, and gives the pool back when it
// closes it, whatever its children do.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kForkRows = 3000;
/// SIGALRM kills a hanging child after this many seconds.
constexpr unsigned kSecondsMax = 60;
constexpr std::array kFolders = {"/dev/shm", "/var/tmp"};  // memory, and in most places a disk

/// A child process that does `work` and exits with its result: 0 means success.
class Child {
 public:
  explicit Child(const std::function<int()>& work) : process_(::fork()) {
    if (process_ != 0) return;
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGALRM})
      std::signal(signal, SIG_DFL);  // not the handlers of the tests
    ::alarm(kSecondsMax);
    ::_exit(work());
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ > 0) wait();
  }
  /// Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    if (::waitpid(std::exchange(process_, -1), &status, 0) < 0) return -1000;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t process_;
};

/// A child waits for it.
class Signal {
 public:
  Signal() { REQUIRE(::pipe2(ends_.data(), O_CLOEXEC) == 0); }
  ~Signal() {
    for (const int end : ends_) ::close(end);
  }
  void give() const { REQUIRE(::write(ends_[1], "+", 1) == 1); }
  bool wait() const {
    char byte = 0;
    return ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> ends_{};
};

OpenOptions threads_at(const std::string& path) {
  OpenOptions options = small_options(path);
  options.segment_bytes = std::uint64_t{1} << 20;
  options.tuning.grow_ahead_bytes = std::uint64_t{1} << 20;
  return options;
}

TableSchema forked_schema() {
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).column("city", Type::kString);
  schema.columns[1].encoding = Encoding::kDirect;
  schema.columns[2].encoding = Encoding::kDictionary;
  return schema.primary_key({"id"});
}

Status put(Transaction& t, TableId table, std::int64_t id) {
  const std::string text =
      "a text that is long enough for a place of its own " + std::to_string(id);
  return t.insert(table, {Value::int64(id), Value::string(text), Value::string(text)}).status();
}

Status put(Database& database, TableId table, std::int64_t first, std::int64_t end) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return t.status();
  for (std::int64_t id = first; id < end; ++id)
    if (Status s = put(*t, table, id); !s.ok()) return s;
  return t->commit();
}

std::size_t count_rows(Database& database) {
  Transaction t = must(database.begin(AccessMode::kReadOnly));
  std::size_t rows = 0;
  must(t.scan(must(database.find_table("rows")), {ColumnId(0)}, [&](const ScanBatch& batch) {
    rows += batch.row_count();
    return true;
  }));
  return rows;
}

bool says_fork(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument &&
         status.message().find("fork") != std::string_view::npos;
}

/// The number, from 1, of the first call without that error; 0: all have it.
int first_other(const std::vector<std::function<Status()>>& calls, int base) {
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (!says_fork(calls[i]())) return base + static_cast<int>(i) + 1;
  return 0;
}

int check_database_calls(Database& d, TableId table) {
  const auto nothing = [](Transaction&) { return Status(); };
  MergePolicy policy;
  if (!d.tables().empty() || !d.transactions().empty()) return 1;
  if (d.statistics().pool_used_bytes != 0) return 2;
  d.prefetch({table, 0}, {Value::int64(1)});
  return first_other(
      {
          [&] { return d.begin().status(); },
          [&] { return d.begin(AccessMode::kReadOnly).status(); },
          [&] { return d.run(nothing); },
          [&] { return d.create_table(TableSchema("t").column("c", Type::kInt32)).status(); },
          [&] { return d.drop_table(table); },
          [&] { return d.rename_table(table, "other"); },
          [&] { return d.rename_column(table, ColumnId(0), "other"); },
          [&] { return d.rename_key({table, 0}, "other"); },
          [&] { return d.add_column(table, ColumnSchema()).status(); },
          [&] { return d.drop_column(table, ColumnId(1)); },
          [&] { return d.change_type(table, ColumnId(1), Type::kBytes); },
          [&] { return d.add_key(table, KeySchema()).status(); },
          [&] { return d.drop_key({table, 0}); },
          [&] { return d.add_check(table, CheckSchema()); },
          [&] { return d.drop_check(table, "none"); },
          [&] { return d.set_not_null(table, ColumnId(1)); },
          [&] { return d.set_default(table, ColumnId(1), Value::null()); },
          [&] { return d.add_foreign_key(table, ForeignKeySchema()); },
          [&] { return d.drop_foreign_key(table, "none"); },
          [&] { return d.skip_numbers(table, 7); },
          [&] { return d.find_table("rows").status(); },
          [&] { return d.find_column(table, "id").status(); },
          [&] { return d.find_key(table, "primary").status(); },
          [&] { return d.schema(table).status(); },
          [&] { return d.cancel(TransactionId(1)); },
          [&] { return d.end_abandoned(TransactionId(1), std::chrono::seconds(1)); },
          [&] { return d.finish_opening(); },
          [&] { return d.table_statistics(table).status(); },
          [&] { return d.merge(table).status(); },
          [&] { return d.set_merge_policy(table, policy); },
          [&] { return d.merge_policy(table).status(); },
          [&] { return d.merge_status(table).status(); },
          [&] { return d.check(); },
      },
      10);
}

int check_transaction_calls(Transaction& t, TableId table, RowId row) {
  const KeyId key{table, 0};
  const std::array<Value, 1> one = {Value::int64(1)};
  const auto goes_on = [](const auto&) { return true; };
  t.prefetch(key, one);
  return first_other(
      {
          [&] { return put(t, table, 1'000'000); },
          [&] { return t.insert(table, {{ColumnId(0), Value::int64(-1)}}).status(); },
          [&] { return t.update(table, row, {{ColumnId(1), Value::null()}}).status(); },
          [&] { return t.remove(table, row); },
          [&] { return t.get(table, row).status(); },
          [&] { return t.get(key, one).status(); },
          [&] { return t.lock(key, one).status(); },
          [&] { return t.rows(key, one, goes_on); },
          [&] { return t.rows(key, {one, true}, {one, true}, goes_on); },
          [&] { return t.scan(table, {ColumnId(0)}, goes_on); },
          [&] { return t.add(key, one, ColumnId(0), Value::int64(1)).status(); },
          [&] { return t.remove_range(key, {one, true}, {one, true}).status(); },
          [&] { return query::Query::table("rows").run(t).status(); },
          [&] { return query::Query::table("rows").explain(t).status(); },
          [&] { return t.savepoint().status(); },
          [&] { return t.rollback_to(Savepoint()); },
          [&] { return t.release(Savepoint()); },
          [&] { return t.set_time_limit(std::chrono::seconds(1)); },
          [&] { return t.commit(); },
      },
      50);
}

/// Reads all rows that a child has inherited: they hold nothing of the pool, and reading does not
/// crash.
int read_inherited(const std::vector<Row>& rows) {
  std::size_t bytes = 0;
  for (const Row& row : rows) {
    std::array<Value, 3> values;
    row.get_all(values);
    bytes += row.get_unchecked<std::string_view>(ColumnId(1)).size() +
             (row.is_null_unchecked(ColumnId(2)) ? 1 : 0);
  }
  return bytes < rows.size() * 10 ? 0 : 5;
}

}  // namespace

TEST_CASE("an idle child keeps nothing of the pool", "[fork]") {
  for (const char* folder : kFolders) {
    const TemporaryPath path(folder);
    const OpenOptions options = threads_at(path.string());
    const Signal end;
    std::optional<Database> database(must(Database::open(options)));
    const TableId table = must(database->create_table(forked_schema()));
    Child child([&] { return end.wait() ? 0 : 1; });
    must(put(*database, table, 0, kForkRows));
    database.reset();
    database.emplace(must(Database::open(options)));
    CHECK(count_rows(*database) == kForkRows);
    end.give();
    CHECK(child.wait() == 0);
  }
}

TEST_CASE("the lock stays with the parent when a child ends", "[fork]") {
  const TemporaryPath path;
  const OpenOptions options = threads_at(path.string());
  Database database = must(Database::open(options));
  CHECK(Child([] { return 0; }).wait() == 0);
  CHECK(Child([&] {
          database = Database();
          return 0;
        }).wait() == 0);
  CHECK(Database::open(options).code() == StatusCode::kBusy);
}

TEST_CASE("every call in a child says that it is a fork", "[fork]") {
  for (const char* folder : kFolders)
    for (const bool is_merged : {false, true}) {
      const TemporaryPath path(folder);
      const OpenOptions options = threads_at(path.string());
      std::optional<Database> database(must(Database::open(options)));
      const TableId table = must(database->create_table(forked_schema()));
      must(put(*database, table, 0, kForkRows));
      MergeOptions merge;
      merge.scope = MergeScope::kEverything;
      if (is_merged) must(database->merge(table, merge));
      Transaction writer = must(database->begin());
      must(put(writer, table, kForkRows));
      Transaction reader = must(database->begin(AccessMode::kReadOnly));
      std::vector<Row> rows;
      for (std::int64_t id = 0; id < 10; ++id)
        rows.push_back(must(reader.get({table, 0}, {Value::int64(id)})));
      Child child([&] {
        if (const int wrong = check_database_calls(*database, table); wrong != 0) return wrong;
        if (const int wrong = read_inherited(rows); wrong != 0) return wrong;
        for (Transaction* t : {&writer, &reader})
          if (const int wrong = check_transaction_calls(*t, table, rows[0].id()); wrong != 0)
            return wrong;
        writer = Transaction();
        database.reset();
        return 0;
      });
      must(put(*database, table, kForkRows + 1, kForkRows + 100));
      CHECK(child.wait() == 0);
      must(writer.commit());
      CHECK(rows[3].get_unchecked<std::int64_t>(ColumnId(0)) == 3);
      reader.abort();
      must(database->check());
      CHECK(count_rows(*database) == kForkRows + 100);
      database.reset();
      database.emplace(must(Database::open(options)));
      must(database->check());
      CHECK(count_rows(*database) == kForkRows + 100);
    }
}

TEST_CASE("a child opens the pool anew once the parent has closed it", "[fork]") {
  for (const char* folder : kFolders) {
    const TemporaryPath path(folder);
    const OpenOptions options = threads_at(path.string());
    const Signal tried;
    const Signal closed;
    std::optional<Database> database(must(Database::open(options)));
    const TableId table = must(database->create_table(forked_schema()));
    must(put(*database, table, 0, kForkRows));
    Child child([&] {
      const StatusCode while_open = Database::open(options).code();
      tried.give();
      if (while_open != StatusCode::kBusy) return 1;
      if (!closed.wait()) return 2;
      Result<Database> own = Database::open(options);
      if (!own.ok()) return 3;
      *database = *std::move(own);  // destroys the inherited database at once
      if (!put(*database, table, kForkRows, kForkRows + 10).ok()) return 4;
      std::optional<Transaction> t(*database->begin());
      query::RunOptions threads;
      threads.threads = 2;
      const auto rows = query::Query::table("rows").group_by({"city"}, {}).run(*t, threads);
      t.reset();
      if (!rows.ok() || rows->row_count() != kForkRows + 10) return 5;
      return database->check().ok() ? 0 : 6;
    });
    CHECK(tried.wait());
    database.reset();
    closed.give();
    CHECK(child.wait() == 0);
    database.emplace(must(Database::open(options)));
    must(database->check());
  }
}

TEST_CASE("children of a process whose threads are at work do not hang", "[fork]") {
  const TemporaryPath path;
  Database database = must(Database::open(threads_at(path.string())));
  const TableId table = must(database.create_table(forked_schema()));
  std::atomic<bool> stops{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (std::int64_t id = 0; !stops; id += 10)
      if (!put(database, table, id, id + 10).ok()) ++failures;
  });
  threads.emplace_back([&] {
    while (!stops) {
      const Result<Transaction> t = database.begin(AccessMode::kReadOnly);
      query::RunOptions options;
      options.threads = 2;
      if (!t.ok() || !query::Query::table("rows").run(*t, options).ok()) ++failures;
    }
  });
  threads.emplace_back([&] {
    while (!stops) {
      if (!database.merge(table).ok()) ++failures;
      static_cast<void>(database.statistics());
    }
  });
  // GCC 12's address sanitizer does not keep its allocator consistent over fork: under it a child
  // of busy threads must not allocate.
#ifdef __SANITIZE_ADDRESS__
  constexpr bool may_allocate = false;
#else
  constexpr bool may_allocate = true;
#endif
  int wrong = 0;
  for (int round = 0; round < 60; ++round)
    wrong += Child([&] {
               const int first = may_allocate ? check_database_calls(database, table) : 0;
               if (first != 0) return first;
               database = Database();
               return 0;
             }).wait() != 0;
  stops = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(failures == 0);
  must(database.check());
}

TEST_CASE("no child keeps a pool that another thread creates, opens or closes", "[fork]") {
  const TemporaryPath path;
  const Signal end;
  std::atomic<bool> stops{false};
  std::string failure;
  std::thread opener([&] {
    while (!stops && failure.empty()) {
      for (int i = 0; i < 2 && failure.empty(); ++i)
        if (const auto database = Database::open(threads_at(path.string())); !database.ok())
          failure = database.status().to_string();
      ::unlink(path.string().c_str());
    }
  });
  constexpr int kChildren = 60;
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kSecondsMax);
      ::_exit(end.wait() ? 0 : 1);
    }
    children.push_back(child);
    ::usleep(1500);
  }
  stops = true;
  opener.join();
  for (int i = 0; i < kChildren; ++i) end.give();
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  INFO(failure);
  CHECK(failure.empty());
}

TEST_CASE("an executed program has no descriptor of the pool", "[fork]") {
  const TemporaryPath path;
  const Database database = must(Database::open(threads_at(path.string())));
  const std::string command = "for f in /proc/self/fd/*; do readlink $f; done | grep -c " +
                              path.string().substr(path.string().rfind('/') + 1);
  std::FILE* const found = ::popen(command.c_str(), "re");
  REQUIRE(found != nullptr);
  int count = -1;
  CHECK(std::fscanf(found, "%d", &count) == 1);
  ::pclose(found);
  CHECK(count == 0);
}

}  // namespace flugs::test
