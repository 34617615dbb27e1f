// Progress of long calls, and stopping them (decision 0037). Public headers only, except for
// helpers of the tests.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flugs/database.h"
#include "flugs/pool_check.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRowsFollowed = 20'000;

/// Follows a long call, and stops it at a call of `progress`.
class Follower {
 public:
  static constexpr std::size_t kNever = ~std::size_t{0};

  /// 0: the call is stopped before it begins.
  explicit Follower(std::size_t stops_at = kNever) : stops_at_(stops_at) {
    if (stops_at == 0) source_.request_stop();
  }
  CallOptions options() {
    return {.progress = [this](const Progress& p) { note(p); }, .stop = source_.get_token()};
  }
  std::size_t calls() const { return calls_; }
  /// Whether progress never went back, never passed its total, and came in one call at a time.
  bool is_sound() const { return is_sound_; }
  bool has_reached_total() const { return last_done_ == last_total_; }

 private:
  void note(const Progress& p) {
    is_sound_ &= inside_.fetch_add(1) == 0;
    is_sound_ &= p.done <= p.total && !p.phase.empty();
    Progress& before = phases_[std::string(p.phase)];
    is_sound_ &= p.done >= before.done && p.total >= before.total;
    before.done = p.done;
    before.total = p.total;
    last_done_ = p.done;
    last_total_ = p.total;
    if (++calls_ == stops_at_) source_.request_stop();
    inside_.fetch_sub(1);
  }

  std::size_t stops_at_;
  std::stop_source source_;
  std::size_t calls_ = 0;
  std::atomic<int> inside_{0};
  bool is_sound_ = true;
  std::map<std::string, Progress> phases_;
  std::uint64_t last_done_ = 0;
  std::uint64_t last_total_ = 0;
};

/// Lets a call come to its end and counts its calls of `progress`; `undo` undoes it. Stops it
/// before it begins, at its first call of `progress` and at a middle one: `is_unchanged` must hold.
/// Then it must succeed. With several threads some calls of `progress` may follow the stop.
template <typename Call, typename Undo, typename IsUnchanged>
void check_long_call(Call&& call, Undo&& undo, IsUnchanged&& is_unchanged,
                     std::uint32_t threads = 1) {
  Follower whole;
  must(call(whole.options()));
  CHECK(whole.is_sound());
  CHECK(whole.has_reached_total());
  REQUIRE(whole.calls() >= 4);
  undo();
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, whole.calls() / 2}) {
    INFO("stopped at call " << at << " of " << whole.calls());
    Follower cut(at);
    const Status status = call(cut.options());
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCancelled);
    CHECK(status.message().find("the caller asked the ") != std::string::npos);
    CHECK(cut.is_sound());
    CHECK(cut.calls() <= at + (threads == 1 ? 0 : 2 * threads));
    CHECK(is_unchanged());
  }
  must(call(CallOptions()));
}

TableSchema followed_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString).column("n", Type::kInt32);
  schema.primary_key({"id"}).key("by_n", {"n", "id"});
  schema.keys.back().ordered = true;
  return schema;
}

std::vector<Value> followed_rows(std::int64_t count, std::vector<std::string>& texts) {
  std::vector<Value> values;
  texts.resize(1000);
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = "text " + std::to_string(i);
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(Value::int64(i));
    values.push_back(Value::string(std::string_view(texts[static_cast<std::size_t>(i) % 1000])));
    values.push_back(Value::int32(static_cast<std::int32_t>(i % 77)));
  }
  return values;
}

TableId make_followed(Database& database, const std::string& name,
                      std::int64_t count = kRowsFollowed) {
  const TableId table = must(database.create_table(followed_schema(name)));
  std::vector<std::string> texts;
  Transaction t = must(database.begin());
  must(t.insert_rows(table, followed_rows(count, texts)));
  must(t.commit());
  return table;
}

std::int64_t rows_of(Database& database, const std::string& name) {
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  const query::QueryResult found =
      must(query::Query::table(name).group_by({}, {query::count().as("n")}).run(t, {.threads = 1}));
  return must(found.get<std::int64_t>(0, "n"));
}

}  // namespace

TEST_CASE("opening tells progress and can be stopped; the pool opens again at once", "[api]") {
  for (const IndexPlace place : {IndexPlace::kPool, IndexPlace::kDram})
    for (const std::uint32_t threads : {1U, 3U}) {
      const TemporaryPath path;
      OpenOptions options = small_options(path.string());
      {
        TemporaryDatabase database([&](OpenOptions& o) {
          o.max_bytes = std::uint64_t{64} << 20;
          o.segment_bytes = std::uint64_t{1} << 20;
          o.index_place = place;
        });
        for (int i = 0; i < 8; ++i) make_followed(*database, "t" + std::to_string(i), 2000);
        Transaction open = must(database->begin());
        must(open.insert(must(database->find_table("t0")),
                         {Value::int64(-1), Value::null(), Value::null()}));
        // As a crash leaves it.
        std::filesystem::copy_file(database.options.path, options.path);
      }
      options.mode = OpenMode::kOpen;
      options.ready = Ready::kIndexesBuilt;
      options.tuning.recovery_threads = threads;
      const auto call = [&](const CallOptions& caller) {
        options.progress = caller.progress;
        options.stop = caller.stop;
        return Database::open(options).status();
      };
      const auto is_whole = [&] {
        options.progress = {};
        options.stop = {};
        Database database = must(Database::open(options));
        return database.check().ok() && rows_of(database, "t0") == 2000 &&
               rows_of(database, "t7") == 2000;
      };
      // Each opening but the first finds a pool that was closed.
      Follower cut(3);
      CHECK(call(cut.options()).code() == StatusCode::kCancelled);
      check_long_call(call, [] {}, is_whole, threads);
    }
}

TEST_CASE("an opening that is stopped before it begins makes no pool", "[api]") {
  const TemporaryPath path;
  OpenOptions options = small_options(path.string());
  std::stop_source source;
  options.stop = source.get_token();
  source.request_stop();
  CHECK(Database::open(options).code() == StatusCode::kCancelled);
  CHECK(!std::filesystem::exists(options.path));
  options.stop = {};
  CHECK(Database::open(options).ok());
}

TEST_CASE("check tells progress and can be stopped", "[api]") {
  TemporaryDatabase database;
  make_followed(*database, "first");
  TableSchema child("child");
  child.column("id", Type::kInt64).column("parent", Type::kInt64).primary_key({"id"});
  child.foreign_key("fk", {"parent"}, "first");
  const TableId table = must(database->create_table(child));
  Transaction t = must(database->begin());
  for (int i = 0; i < 100; ++i) must(t.insert(table, {Value::int64(i), Value::int64(i)}));
  must(t.commit());
  must(database->merge(must(database->find_table("first")), {.scope = MergeScope::kEverything}));
  check_long_call([&](const CallOptions& caller) { return database->check(caller); }, [] {},
                  [&] { return rows_of(*database, "first") == kRowsFollowed; });
}

TEST_CASE("check_pool tells progress and can be stopped", "[api]") {
  TemporaryDatabase database;
  for (int i = 0; i < 4; ++i) make_followed(*database, "t" + std::to_string(i), 1000);
  const std::string path = database.options.path;
  database.close();
  check_long_call(
      [&](const CallOptions& caller) {
        return check_pool({.path = path, .progress = caller.progress, .stop = caller.stop})
            .status();
      },
      [] {}, [&] { return must(check_pool({.path = path})).is_clean(); });
}

TEST_CASE("add_key tells progress and can be stopped; nothing has changed", "[api]") {
  TemporaryDatabase database;
  const TableId table = make_followed(*database, "t");
  for (const bool ordered : {false, true})
    for (const bool unique : {false, true}) {
      KeySchema key{.name = "added", .columns = {"text", "id"}};
      key.ordered = ordered;
      key.unique = unique;
      check_long_call(
          [&](const CallOptions& caller) { return database->add_key(table, key, caller).status(); },
          [&] { must(database->drop_key(must(database->find_key(table, "added")))); },
          [&] {
            const std::vector<KeySchema> keys = must(database->schema(table)).keys;
            const auto kept = std::count_if(keys.begin(), keys.end(),
                                            [](const KeySchema& k) { return !k.dropped; });
            return kept == 2 && database->check().ok() &&
                   database->find_key(table, "added").code() == StatusCode::kNotFound;
          });
      const KeyId added = must(database->find_key(table, "added"));
      {
        const Transaction t = must(database->begin(AccessMode::kReadOnly));
        std::int64_t found = 0;
        must(t.rows(added, {Value::string("text 7"), Value::int64(7)}, [&](const Row& row) {
          found += must(row.get<std::int64_t>(ColumnId(0))) == 7 ? 1 : 0;
          return true;
        }));
        CHECK(found == 1);
      }
      must(database->check());
      must(database->drop_key(added));
    }
  check_pool_is_whole(database);
}

TEST_CASE("adding a constraint tells progress and can be stopped; nothing has changed", "[api]") {
  TemporaryDatabase database;
  const TableId table = make_followed(*database, "t");
  const auto is_as_made = [&] {
    const TableSchema now = must(database->schema(table));
    return now.checks.empty() && now.columns[2].nullable && now.foreign_keys.empty() &&
           database->check().ok();
  };
  const CheckSchema check{.name = "small", .condition = query::col("n") < 77};
  check_long_call(
      [&](const CallOptions& caller) { return database->add_check(table, check, caller); },
      [&] { must(database->drop_check(table, "small")); }, is_as_made);
  must(database->drop_check(table, "small"));
  check_long_call(
      [&](const CallOptions& caller) {
        return database->set_not_null(table, ColumnId(2), true, caller);
      },
      [&] { must(database->set_not_null(table, ColumnId(2), false)); }, is_as_made);
  must(database->set_not_null(table, ColumnId(2), false));
  ForeignKeySchema foreign{.name = "itself", .columns = {"id"}};
  foreign.table = "t";
  foreign.key = "primary";
  check_long_call(
      [&](const CallOptions& caller) { return database->add_foreign_key(table, foreign, caller); },
      [&] { must(database->drop_foreign_key(table, "itself")); }, is_as_made);
  check_pool_is_whole(database);
}

TEST_CASE("a schema change that waits for a transaction can be stopped", "[api]") {
  TemporaryDatabase database;
  const TableId table = make_followed(*database, "t", 10);
  ForeignKeySchema itself;
  itself.name = "itself";
  itself.columns = {"id"};
  itself.table = "t";
  using Change = std::function<Status(const CallOptions&)>;
  const std::vector<Change> changes = {
      [&](const CallOptions& options) {
        return database->add_key(table, {.name = "added", .columns = {"n"}}, options).status();
      },
      [&](const CallOptions& options) {
        return database->add_check(table, {"small", query::col("n") < 1000}, options);
      },
      [&](const CallOptions& options) {
        return database->set_not_null(table, ColumnId(1), true, options);
      },
      [&](const CallOptions& options) { return database->add_foreign_key(table, itself, options); },
  };
  const std::size_t which = GENERATE(range(0, 4));
  CAPTURE(which);
  const Change& change = changes[which];
  Transaction open = must(database->begin());
  must(open.insert(table, {Value::int64(-1), Value::null(), Value::null()}));
  std::stop_source source;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    source.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const Status status = change({.stop = source.get_token()});
  const auto taken = std::chrono::steady_clock::now() - begin;
  stopper.join();
  CHECK(status.code() == StatusCode::kCancelled);
  CHECK(taken < std::chrono::milliseconds(900));  // the wait alone has a second
  open.abort();
  must(change({}));
  must(database->check());
}

TEST_CASE("writes by condition tell their progress, and undo their rows when they are stopped",
          "[api]") {
  TemporaryDatabase database;
  const TableId table = make_followed(*database, "t");
  Transaction t = must(database->begin());
  const Savepoint before = must(t.savepoint());
  const auto sum = [&] {
    const query::QueryResult all = must(query::Query::table("t")
                                            .group_by({}, {query::sum(query::col("n")).as("s")})
                                            .run(t, {.threads = 1}));
    return must(all.get<std::int64_t>(0, "s"));
  };
  const std::int64_t expected = sum();
  const bool removes = GENERATE(false, true);
  CAPTURE(removes);
  check_long_call(
      [&](const CallOptions& options) {
        const query::Expr where = query::col("id") >= 10;
        Status status =
            removes ? t.remove_where(table, where, options).status()
                    : t.update_where(table, where, {{"n", query::col("n") + 1}}, options).status();
        // Also if it was stopped while it searched.
        if (status.code() == StatusCode::kCancelled)
          CHECK(status.message() == "table t: the caller asked the call to stop");
        return status;
      },
      [&] { must(t.rollback_to(before)); }, [&] { return sum() == expected; },
      std::max(std::thread::hardware_concurrency(), 2U));
  CHECK(sum() == (removes ? 45 : expected + kRowsFollowed - 10));
  must(t.commit());
  must(database->check());
}

TEST_CASE("a cascade of remove_where tells its progress, and is undone when it is stopped",
          "[api]") {
  TemporaryDatabase database;
  const TableId parents = make_followed(*database, "parents", 3);
  TableSchema schema("children");
  schema.column("id", Type::kInt64).column("parent", Type::kInt64).primary_key({"id"});
  schema.key("by_parent", {"parent"});
  const bool sets_null = GENERATE(false, true);
  CAPTURE(sets_null);
  schema.foreign_key("fk", {"parent"}, "parents");
  schema.foreign_keys.back().on_delete =
      sets_null ? ReferenceAction::kSetNull : ReferenceAction::kCascade;
  const TableId children = must(database->create_table(schema));
  Transaction t = must(database->begin());
  for (std::int64_t i = 0; i < kRowsFollowed; ++i)
    must(t.insert(children, {Value::int64(i), Value::int64(1)}));
  must(t.commit());
  t = must(database->begin());
  const auto referring = [&] {
    const query::QueryResult found = must(query::Query::table("children")
                                              .where(query::col("parent") == 1)
                                              .group_by({}, {query::count().as("n")})
                                              .run(t, {.threads = 1}));
    return must(found.get<std::int64_t>(0, "n"));
  };
  const Savepoint before = must(t.savepoint());
  check_long_call(
      [&](const CallOptions& options) {
        return t.remove_where(parents, query::col("id") == 1, options).status();
      },
      [&] { must(t.rollback_to(before)); },
      [&] { return referring() == kRowsFollowed && t.get({parents, 0}, {Value::int64(1)}).ok(); });
  CHECK(referring() == 0);
  must(t.commit());
  CHECK(rows_of(*database, "children") == (sets_null ? kRowsFollowed : 0));
  must(database->check());
}

TEST_CASE("a merge that is stopped keeps what it has merged", "[api]") {
  TemporaryDatabase database([](OpenOptions& o) { o.segment_bytes = std::uint64_t{1} << 20; });
  const TableId table = make_followed(*database, "t");
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 1;
  const auto merge = [&](Follower& follower) {
    options.progress = follower.options().progress;
    options.stop = follower.options().stop;
    return database->merge(table, options);
  };
  const std::uint64_t chunks = must(database->table_statistics(table)).chunks;
  REQUIRE(chunks >= 4);
  std::uint64_t merged = 0;
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    Follower cut(at);
    const Status status = merge(cut).status();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCancelled);
    CHECK(cut.is_sound());
    CHECK(cut.calls() == at);
    merged += at;
    CHECK(must(database->table_statistics(table)).groups == merged);
    CHECK(must(database->merge_status(table)).failures == 0);
    CHECK(rows_of(*database, "t") == kRowsFollowed);
    must(database->check());
    if (at == 1) database.reopen();
  }
  Follower whole;
  const MergeReport report = must(merge(whole));
  CHECK(whole.is_sound());
  CHECK(whole.has_reached_total());
  CHECK(report.chunks_merged == whole.calls());
  CHECK(rows_of(*database, "t") == kRowsFollowed);
  must(database->check());
}

TEST_CASE("a query tells progress and can be stopped; its transaction goes on", "[api]") {
  TemporaryDatabase database;
  make_followed(*database, "delta", 100'000);
  const TableId merged = make_followed(*database, "main", 100'000);
  must(database->merge(merged, {.scope = MergeScope::kEverything}));
  const query::Query joined =
      query::Query::table("delta")
          .where(query::col("text") != "text 3")
          .join(query::Query::table("main").where(query::col("n") > 3).as("m"), {{"id", "m.id"}})
          .group_by({"text"}, {query::sum("n").as("sum"), query::count().as("rows")})
          .order_by({"sum"});
  Transaction t = must(database->begin());
  for (const std::uint32_t threads : {1U, 3U}) {
    std::size_t rows = 0;
    check_long_call(
        [&](const CallOptions& caller) {
          const Result<query::QueryResult> result =
              joined.run(t, {.threads = threads, .progress = caller.progress, .stop = caller.stop});
          if (result.ok()) rows = result->row_count();
          return result.status();
        },
        [] {}, [&] { return t.is_open(); }, threads);
    CHECK(rows == 999);
    Follower first;  // the rows that are not needed count as done
    must(query::Query::table("delta")
             .limit(1)
             .run(t, {.threads = threads, .progress = first.options().progress})
             .status());
    CHECK(first.is_sound());
    CHECK(first.has_reached_total());
  }
  must(t.insert(must(database->find_table("delta")),
                {Value::int64(-1), Value::null(), Value::null()}));
  must(t.commit());
}

TEST_CASE("insert_rows tells progress and can be stopped; the transaction goes on", "[api]") {
  for (const bool constrained : {false, true}) {
    TemporaryDatabase database;
    TableSchema schema = followed_schema("t");
    if (constrained) schema.check("small", query::col("n") < 1000);
    const TableId table = must(database->create_table(schema));
    std::vector<std::string> texts;
    const std::vector<Value> values = followed_rows(kRowsFollowed, texts);
    Transaction t = must(database->begin());
    must(t.insert(table, {Value::int64(-1), Value::null(), Value::int32(1)}));
    const auto count = [&] {
      const query::QueryResult found = must(
          query::Query::table("t").group_by({}, {query::count().as("n")}).run(t, {.threads = 1}));
      return must(found.get<std::int64_t>(0, "n"));
    };
    const Savepoint before = must(t.savepoint());
    check_long_call(
        [&](const CallOptions& caller) { return t.insert_rows(table, values, {}, caller); },
        [&] { must(t.rollback_to(before)); },
        [&] {
          return count() == 1 &&
                 t.get({table, 0}, {Value::int64(0)}).code() == StatusCode::kNotFound;
        });
    CHECK(count() == kRowsFollowed + 1);
    must(t.commit());
    must(database->check());
    database.reopen();
    CHECK(rows_of(*database, "t") == kRowsFollowed + 1);
  }
}

TEST_CASE("Database::cancel and a time limit end insert_rows within a batch", "[api]") {
  for (const bool by_limit : {false, true}) {
    TemporaryDatabase database;
    const TableId table = must(database->create_table(followed_schema("t")));
    std::vector<std::string> texts;
    const std::vector<Value> values = followed_rows(kRowsFollowed, texts);
    Transaction t = must(database->begin());
    const TransactionId id = t.id();
    if (by_limit) must(t.set_time_limit(std::chrono::milliseconds(400)));
    std::atomic<bool> runs{false};
    std::atomic<bool> is_cancelled{false};
    std::thread canceller([&] {
      while (!runs.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (by_limit)
        std::this_thread::sleep_for(std::chrono::milliseconds(450));
      else
        static_cast<void>(database->cancel(id));
      is_cancelled.store(true);
    });
    std::size_t calls = 0;
    const Status status =
        t.insert_rows(table, values, {}, {.progress = [&](const Progress&) {
                        if (++calls != 2) return;
                        runs.store(true);
                        while (!is_cancelled.load())
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      }});
    runs.store(true);  // the limit may have passed before the second call
    canceller.join();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCancelled);
    CHECK(status.message().find("the transaction was ended") == 0);
    CHECK(calls <= 2);
    CHECK((by_limit || calls == 2));
    CHECK(t.commit().code() == StatusCode::kCancelled);
    CHECK(rows_of(*database, "t") == 0);
    must(database->check());
  }
}

}  // namespace flugs::test
