// Writes and scans by an expression.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flugs/flugs.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using query::col;

struct Items {
  Items() {
    TableSchema schema("items");
    schema.column("id", Type::kInt64).column("stock", Type::kInt32).not_null();
    schema.column("price", Type::kDecimal).scale(2).column("name", Type::kString);
    schema.primary_key({"id"}).unique_key("by_name", {"name"}).key("by_stock", {"stock"});
    schema.check("some", col("stock") >= 0);
    table = must(database->ensure_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < 10'000; ++id) {
      const std::string name = "item " + std::to_string(id);
      must(t.insert(table, {id, id % 10, Value::decimal(id, 2), name}));
    }
    must(t.commit());
  }
  std::int64_t sum(const Transaction& t, const char* of) {
    const query::QueryResult result =
        must(query::Query::table("items").group_by({}, {query::sum(of).as("sum")}).run(t));
    return must(result.get<Value>(0, "sum")).raw();
  }
  void merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database->merge(table, everything));
  }

  TemporaryDatabase database;
  Table table;
};

TEST_CASE("rows are changed and deleted by a condition", "[api]") {
  for (const bool is_merged : {false, true}) {
    Items items;
    if (is_merged) items.merge();
    Transaction t = must(items.database->begin());
    CHECK(must(t.update_where(items.table, col("stock") < 2, {{"stock", col("stock") + 100}})) ==
          2000);
    CHECK(items.sum(t, "stock") == 45'000 + 2000 * 100);
    // The values of both columns are computed from the row before the call.
    CHECK(must(t.update_where(
              items.table, col("id") == 7,
              {{"stock", query::constant(1)}, {"price", col("price") + col("stock")}})) == 1);
    const Row seven = must(t.get(must(items.table.primary_key()), {7}));
    CHECK(must(seven.get<std::int32_t>("stock")) == 1);
    CHECK(must(seven.get<Decimal>("price")) == Decimal{707, 2});
    CHECK(must(t.remove_where(items.table, col("name").ends_with("9") || col("id") >= 9000)) ==
          1000 + 900);
    CHECK(must(t.remove_where(items.table, col("id") >= 9000)) == 0);
    must(t.commit());
    items.merge();
    const Transaction after = must(items.database->begin());
    CHECK(must(query::Query::table("items").run(after)).row_count() == 8100);
  }
}

TEST_CASE("a write by condition that fails has changed nothing", "[api]") {
  Items items;
  Transaction t = must(items.database->begin());
  const auto update = [&](const query::Expr& where, const char* column, const query::Expr& value) {
    const Result<std::uint64_t> done = t.update_where(items.table, where, {{column, value}});
    CHECK(items.sum(t, "stock") == 45'000);
    return done.status();
  };
  CHECK(update(col("id") >= 0, "stock", col("stock") - 1).code() ==
        StatusCode::kConstraintViolated);
  CHECK(update(col("id") < 2, "name", query::constant("item 500")).code() ==
        StatusCode::kAlreadyExists);
  CHECK(update(col("id") < 2, "stock", query::constant(Value::null())).code() ==
        StatusCode::kConstraintViolated);
  CHECK(update(col("id") < 2, "stock", col("name")).code() == StatusCode::kConstraintViolated);
  CHECK(update(col("id") < 2, "none", col("id")).message() ==
        "table items: no column none, it has id, stock, price, name");
  CHECK(update(col("none") < 2, "stock", col("id")).message() ==
        "no column none; there are: id, stock, price, name");
  CHECK(update(col("id"), "stock", col("id")).code() == StatusCode::kInvalidArgument);
  CHECK(t.update_where(items.table, col("id") < 2, {}).code() == StatusCode::kInvalidArgument);
  CHECK(t.remove_where(TableId(99), col("id") < 2).code() == StatusCode::kNotFound);
  CHECK(t.remove_where(items.table, {}).code() == StatusCode::kInvalidArgument);
  Transaction reader = must(items.database->begin(AccessMode::kReadOnly));
  CHECK(reader.remove_where(items.table, col("id") < 2).code() == StatusCode::kReadOnly);
  must(t.commit());
}

TEST_CASE("with read committed a write by condition meets newer rows", "[api]") {
  Items items;
  const KeyId primary = must(items.table.primary_key());
  Transaction t = must(items.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted));
  Transaction other = must(items.database->begin());
  must(other.update(primary, {5}, {{must(items.table.column("stock")), 50}}));
  must(other.commit());
  CHECK(must(t.update_where(items.table, col("stock") == 50, {{"stock", col("stock") + 1}})) == 1);
  CHECK(must(must(t.get(primary, {5})).get<std::int32_t>("stock")) == 51);
  must(t.commit());
}

/// A table whose column `n` is in no key, so that the transaction that inserts a row may change it
/// in place.
struct Counters {
  Counters() {
    TableSchema schema("counters");
    schema.column("id", Type::kInt64).column("n", Type::kInt32).primary_key({"id"});
    table = must(database->ensure_table(schema));
  }
  void insert(Transaction& t, std::int64_t first, std::int64_t count, std::int32_t n) const {
    for (std::int64_t id = first; id < first + count; ++id) must(t.insert(table, {id, n}));
  }
  /// The sum of `n` over the rows from `first` on.
  std::int64_t sum(const Transaction& t, std::int64_t first = 0) const {
    const query::QueryResult found = must(query::Query::table("counters")
                                              .where(col("id") >= first)
                                              .group_by({}, {query::sum("n").as("sum")})
                                              .run(t));
    return must(found.get<std::int64_t>(0, "sum"));
  }

  TemporaryDatabase database;
  Table table;
};

TEST_CASE("an update_where that fails has not changed the transaction's own rows", "[api]") {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  for (const bool has_savepoint : {false, true}) {
    CAPTURE(has_savepoint);
    Counters counters;
    Transaction t = must(counters.database->begin());
    counters.insert(t, 0, 10, 1);
    if (has_savepoint) must(t.savepoint());
    counters.insert(t, 10, 1, kMax);
    const auto add_one = [&](const query::Expr& where) {
      return t.update_where(counters.table, where, {{"n", col("n") + 1}});
    };
    CHECK(add_one(col("id") >= 0).code() == StatusCode::kConstraintViolated);
    CHECK(counters.sum(t) == 10 + std::int64_t{kMax});
    CHECK(must(add_one(col("id") < 10)) == 10);
    CHECK(add_one(col("id") >= 0).code() == StatusCode::kConstraintViolated);
    CHECK(counters.sum(t) == 20 + std::int64_t{kMax});
    must(t.commit());
    must(counters.database->check());
    counters.database.reopen();
    CHECK(counters.sum(must(counters.database->begin())) == 20 + std::int64_t{kMax});
  }
}

TEST_CASE("an update_where that is stopped has not changed the transaction's own rows", "[api]") {
  constexpr std::int64_t kRows = 5000;
  Counters counters;
  Transaction t = must(counters.database->begin());
  counters.insert(t, 0, kRows, 0);
  std::stop_source source;
  std::uint64_t told = 0;
  const CallOptions options{.progress =
                                [&](const Progress& progress) {
                                  told = progress.done;
                                  if (progress.phase == "update_where" && told != 0)
                                    source.request_stop();
                                },
                            .stop = source.get_token()};
  const Status stopped =
      t.update_where(counters.table, col("n") >= 0, {{"n", col("n") + 1}}, options).status();
  CHECK(stopped.code() == StatusCode::kCancelled);
  CHECK(stopped.message() == "table counters: the caller asked the call to stop");
  CHECK((told > 0 && told < static_cast<std::uint64_t>(kRows)));
  CHECK(counters.sum(t) == 0);
  CHECK(must(t.update_where(counters.table, col("n") >= 0, {{"n", col("n") + 1}})) == kRows);
  CHECK(counters.sum(t) == kRows);
  must(t.commit());
  must(counters.database->check());
}

TEST_CASE("an update_where that meets a newer row has not changed the transaction's own rows",
          "[api]") {
  constexpr std::int64_t kOthers = 100;
  const bool commits = GENERATE(true, false);
  CAPTURE(commits);
  Counters counters;
  Transaction t = must(counters.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted));
  counters.insert(t, kOthers, 10, 0);
  {
    Transaction other = must(counters.database->begin());
    counters.insert(other, 0, kOthers, 0);
    must(other.commit());
  }
  // When the first row is about to be changed, another thread changes all others.
  bool is_changed = false;
  Transaction open;
  const CallOptions options{.progress = [&](const Progress& progress) {
    if (progress.phase != "update_where" || std::exchange(is_changed, true)) return;
    std::thread([&] {
      Result<Transaction> other = counters.database->begin();
      if (!other.ok()) return;
      const query::Expr where = col("id") < kOthers;
      if (!other->update_where(counters.table, where, {{"n", query::constant(100)}}).ok()) return;
      if (commits)
        static_cast<void>(other->commit());
      else
        open = *std::move(other);
    }).join();
  }};
  const auto add_one = [&] {
    return t.update_where(counters.table, col("n") < 50, {{"n", col("n") + 1}}, options);
  };
  const std::uint64_t conflicts = counters.database->statistics().conflicts;
  if (commits) {
    // The call begins again, and finds only its own rows.
    CHECK(must(add_one()) == 10);
    CHECK(counters.database->statistics().conflicts == conflicts);
  } else {
    CHECK(add_one().code() == StatusCode::kConflict);
    CHECK(counters.database->statistics().conflicts == conflicts + 1);
    CHECK(counters.sum(t, kOthers) == 0);
    must(open.commit());
    CHECK(must(add_one()) == 10);
  }
  CHECK(is_changed);
  CHECK(counters.sum(t, kOthers) == 10);
  CHECK(counters.sum(t) == 10 + 100 * kOthers);
  must(t.commit());
  must(counters.database->check());
}

TEST_CASE("a remove_where that meets newer rows looks again", "[api]") {
  constexpr std::int64_t kRows = 100;
  Counters counters;
  Transaction setup = must(counters.database->begin());
  counters.insert(setup, 0, kRows, 0);
  must(setup.commit());
  Transaction t = must(counters.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted));
  // When the first row is about to be deleted, another thread commits a change of the even rows.
  bool is_changed = false;
  const CallOptions options{.progress = [&](const Progress& progress) {
    if (progress.phase != "remove_where" || std::exchange(is_changed, true)) return;
    std::thread([&] {
      Result<Transaction> other = counters.database->begin();
      if (!other.ok()) return;
      const query::Expr where = col("id") % 2 == 0;
      if (other->update_where(counters.table, where, {{"n", query::constant(100)}}).ok())
        static_cast<void>(other->commit());
    }).join();
  }};
  CHECK(must(t.remove_where(counters.table, col("n") < 50, options)) == kRows / 2);
  CHECK(is_changed);
  CHECK(counters.sum(t) == 100 * kRows / 2);
  must(t.commit());
  must(counters.database->check());
}

TEST_CASE("an update_where changes rows to which its own cascades have come before", "[api]") {
  TemporaryDatabase database;
  TableSchema schema("tree");
  schema.column("id", Type::kInt64).column("parent", Type::kInt64).column("n", Type::kInt64);
  schema.primary_key({"id"}).key("by_parent", {"parent"}).foreign_key("up", {"parent"}, "tree");
  schema.foreign_keys.back().on_update = ReferenceAction::kCascade;
  const Table table = must(database->ensure_table(schema));
  constexpr std::int64_t kRows = 100;
  Transaction t = must(database->begin());
  must(t.insert(table, {0, Value::null(), 0}));
  for (std::int64_t id = 1; id < kRows; ++id) must(t.insert(table, {id, id - 1, 0}));
  must(t.commit());
  for (const Isolation isolation : {Isolation::kSnapshot, Isolation::kReadCommitted}) {
    t = must(database->begin(AccessMode::kReadWrite, isolation));
    CHECK(must(t.update_where(table, col("id") >= 0,
                              {{"id", col("id") + 1000}, {"n", col("n") + 1}})) == kRows);
    const query::QueryResult after =
        must(query::Query::table("tree")
                 .where(col("n") == 1 && (col("id") == 1000 || col("parent") == col("id") - 1))
                 .run(t));
    CHECK(after.row_count() == kRows);
    t.abort();
  }
  must(database->check());
}

/// A parent with the id 2, whose children are deleted with it.
struct Family {
  explicit Family(std::int64_t count) {
    TableSchema parents("parents");
    parents.column("id", Type::kInt64).primary_key({"id"});
    parent = must(database->ensure_table(parents));
    TableSchema children("children");
    children.column("id", Type::kInt64).column("parent", Type::kInt64).primary_key({"id"});
    children.foreign_key("up", {"parent"}, "parents", ReferenceAction::kCascade);
    child = must(database->ensure_table(children));
    Transaction t = must(database->begin());
    must(t.insert(parent, {2}));
    for (std::int64_t id = 0; id < count; ++id) must(t.insert(child, {id, 2}));
    must(t.commit());
  }
  Status give_other_id(Transaction& t, std::int64_t id) const {
    return t.update(must(child.primary_key()), {id}, {{must(child.column("id")), -1}}).status();
  }

  TemporaryDatabase database;
  Table parent;
  Table child;
};

TEST_CASE("a cascade that meets a row of another transaction is one conflict", "[api]") {
  const Isolation isolation = GENERATE(Isolation::kSnapshot, Isolation::kReadCommitted);
  const bool is_committed = GENERATE(true, false);
  Family family(1);
  TemporaryDatabase& database = family.database;
  Transaction t = must(database->begin(AccessMode::kReadWrite, isolation));
  const RowId two = must(t.get(must(family.parent.primary_key()), {2})).id();
  Transaction other = must(database->begin());
  must(family.give_other_id(other, 0));
  if (is_committed) must(other.commit());
  const std::uint64_t before = database->statistics().conflicts;
  // With read committed the cascade looks for children behind a change that was committed.
  const bool is_conflict = isolation == Isolation::kSnapshot || !is_committed;
  const Status removed = t.remove(family.parent, two);
  CHECK(removed.code() == (is_conflict ? StatusCode::kConflict : StatusCode::kOk));
  CHECK(database->statistics().conflicts == before + (is_conflict ? 1 : 0));
  must(t.commit());
  if (!is_committed) must(other.commit());
  must(database->check());
}

TEST_CASE("a cascade whose rows are changed on its way is a conflict at every level", "[api]") {
  constexpr std::int64_t kChildren = 3000;
  const Isolation isolation = GENERATE(Isolation::kSnapshot, Isolation::kReadCommitted);
  Family family(kChildren);
  TemporaryDatabase& database = family.database;
  Transaction t = must(database->begin(AccessMode::kReadWrite, isolation));
  // When the first children are deleted, another thread commits a change of the last one.
  bool is_changed = false;
  const CallOptions options{.progress = [&](const Progress& progress) {
    if (progress.done < 2 || std::exchange(is_changed, true)) return;
    std::thread([&] {
      Result<Transaction> other = database->begin();
      if (other.ok() && family.give_other_id(*other, kChildren - 1).ok())
        static_cast<void>(other->commit());
    }).join();
  }};
  const std::uint64_t before = database->statistics().conflicts;
  CHECK(t.remove_where(family.parent, col("id") == 2, options).code() == StatusCode::kConflict);
  CHECK(is_changed);
  CHECK(database->statistics().conflicts == before + 1);
  CHECK(must(t.get(must(family.parent.primary_key()), {2})).id().value() == 0);
  t.abort();
  must(database->check());
}

TEST_CASE("a scan by an expression gives no batch of more than kRowsMax rows", "[api]") {
  for (const bool is_merged : {false, true}) {
    Items items;
    if (is_merged) items.merge();
    const Transaction t = must(items.database->begin(AccessMode::kReadOnly));
    const std::vector<ColumnId> columns = {must(items.table.column("id")),
                                           must(items.table.column("name"))};
    std::vector<std::int64_t> ids;
    std::size_t most = 0;
    must(t.scan(items.table, columns, col("id") >= 0, [&](const ScanBatch& batch) {
      most = std::max(most, batch.row_count());
      for (std::size_t i = 0; i < batch.row_count(); ++i) {
        const std::int64_t id = batch.get_unchecked(0, i).as_int64();
        CHECK(batch.get_unchecked(1, i).as_string() == "item " + std::to_string(id));
        CHECK(must(t.get(items.table, batch.row_ids()[i])).get_unchecked(ColumnId(0)) ==
              Value::int64(id));
        ids.push_back(id);
      }
      return true;
    }));
    CHECK(most <= ScanBatch::kRowsMax);
    std::sort(ids.begin(), ids.end());
    REQUIRE(ids.size() == 10'000);
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  }
}

TEST_CASE("scans and queries by an expression, with the ids of rows", "[api]") {
  for (const bool is_merged : {false, true}) {
    Items items;
    if (is_merged) items.merge();
    Transaction t = must(items.database->begin());
    must(t.remove(must(items.table.primary_key()), {7000}));
    std::size_t rows = 0;
    const std::vector<ColumnId> columns = {must(items.table.column("name")),
                                           must(items.table.column("id"))};
    must(t.scan(items.table, columns, col("id") % 7 == 0 && col("id") >= 3500,
                [&](const ScanBatch& batch) {
                  for (std::size_t i = 0; i < batch.row_count(); ++i) {
                    const Row row = must(t.get(items.table, batch.row_ids()[i]));
                    CHECK(must(row.get("name")) == batch.get_unchecked(0, i));
                    CHECK(must(row.get("id")) == batch.get_unchecked(1, i));
                  }
                  rows += batch.row_count();
                  return true;
                }));
    CHECK(rows == 928);  // 3500, 3507, ..., 9996, without 7000
    rows = 0;
    must(t.scan(items.table, columns, col("id") >= 0, [&](const ScanBatch& batch) {
      rows += batch.row_count();
      return false;
    }));
    CHECK(rows <= ScanBatch::kRowsMax);
    CHECK(t.scan(items.table, columns, col("no") >= 0, [](const ScanBatch&) {
             return true;
           }).message() == "no column no; there are: id, stock, price, name");
    const query::QueryResult found = must(query::Query::table("items")
                                              .where(col("name") == "item 42")
                                              .select({query::row_id(), "id"})
                                              .run(t));
    const RowId id(static_cast<std::uint32_t>(must(found.get<std::int64_t>(0, "row_id()"))));
    CHECK(must(must(t.get(items.table, id)).get<std::int64_t>("id")) == 42);
  }
  Items items;
  TableSchema schema("other");
  schema.column("row_id()", Type::kInt64);
  CHECK(items.database->ensure_table(schema).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a scan by an expression ends a transaction that must end", "[api]") {
  Items items;
  Transaction t = must(items.database->begin());
  const std::vector<ColumnId> columns = {must(items.table.column("id"))};
  std::size_t batches = 0;
  const Status done = t.scan(items.table, columns, col("id") >= 0, [&](const ScanBatch&) {
    if (++batches == 1) must(items.database->cancel(t.id()));
    return true;
  });
  CHECK(done.code() == StatusCode::kCancelled);
  CHECK(batches < 9);
  const std::vector<TransactionInfo> open = items.database->transactions();
  REQUIRE(open.size() == 1);
  CHECK(open[0].is_ended);
}

TEST_CASE("writes by condition come before indexes are made", "[api]") {
  Items items;
  items.database.options.tuning.sweeps_in_background =
      false;  // indexes are made when they are needed
  items.database.reopen();
  Transaction t = must(items.database->begin());
  CHECK(t.update_where(items.table, col("id") == 1, {{"name", query::constant("item 2")}}).code() ==
        StatusCode::kAlreadyExists);
  CHECK(must(t.remove_where(items.table, col("id") == 2)) == 1);
  CHECK(must(t.update_where(items.table, col("id") == 1, {{"name", query::constant("item 2")}})) ==
        1);
  // Indexes that are made only now have the rows once.
  CHECK(must(t.update_where(items.table, col("stock") == 3, {{"stock", query::constant(77)}})) ==
        1000);
  const KeyId by_stock = must(items.table.key("by_stock"));
  const auto count = [&](std::int32_t stock) {
    std::size_t rows = 0;
    must(t.rows(by_stock, {stock}, [&](const Row&) { return ++rows > 0; }));
    return rows;
  };
  CHECK(count(3) == 0);
  CHECK(count(77) == 1000);
  CHECK(count(4) == 1000);
  must(t.commit());
  must(items.database->check());
}

}  // namespace
}  // namespace flugs::test
