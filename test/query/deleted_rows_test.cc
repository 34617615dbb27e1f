// Queries of main with deleted, updated, and currently changing rows.
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/database/database_access.h"
#include "test/query/naive.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

constexpr std::int64_t kChangingRows = 3000;

Query changing() { return Query::table("t"); }

/// The fifteen kinds of the scan benchmark, and some that read whole groups in other ways.
std::vector<std::pair<Query, bool>> queries_of_all_kinds() {
  const auto all = [](std::vector<Aggregate> aggregates) {
    return changing().group_by({}, std::move(aggregates));
  };
  const auto some = [](const Expr& condition, std::vector<Aggregate> aggregates) {
    return changing().where(condition).group_by({}, std::move(aggregates));
  };
  return {{all({sum("a")}), false},
          {all({sum("a"), sum("n"), sum("r"), count("n"), count()}), false},
          {some(col("a") < 10, {sum("n")}), false},
          {some(col("a") < 100, {sum("n"), avg("r")}), false},
          {some(col("a") < 500, {sum("n")}), false},
          {some(col("s") == "text 3", {sum("a")}), false},
          {changing().group_by({"k"}, {sum("a"), count(), min("n"), max("a")}), false},
          {changing().group_by({"s"}, {sum("a"), count("n")}), false},
          {all({count_distinct("a")}), false},
          {all({count_distinct("s"), count_distinct("k")}), false},
          {all({min("a"), max("a")}), false},
          {all({min("n"), max("r"), min("s"), max("k"), min("id"), max("id")}), false},
          {some(col("a") < 100, {min("n"), max("n")}), false},
          {changing().select({"a"}).order_by({desc("a")}).limit(10), true},
          {changing().where(col("a") == 77).order_by({"id"}), true},
          {some(col("a").between(200, 300), {count()}), false},
          {some(col("id") >= 0, {min("a"), count()}), false},
          {all({sum(col("a") + col("k"))}), false}};
}

/// A table in main whose rows change, and the rows that each transaction must see.
class ChangingTable {
 public:
  /// With holes, every chunk has unused rows between those that are used.
  explicit ChangingTable(std::uint64_t seed, bool has_holes = false) : random_(seed) {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).column("a", Type::kInt32).not_null();
    schema.column("k", Type::kInt32).not_null().column("n", Type::kInt64);
    schema.column("r", Type::kDouble).column("s", Type::kString).primary_key({"id"});
    schema_ = schema;
    table_ = must(database->create_table(schema));
    Transaction writer = begin();
    Transaction aborted = begin();
    Rows nowhere;
    for (std::int64_t id = 0; id < kChangingRows; ++id) {
      put(writer, id, now_);
      if (has_holes && id % 3 == 0) put(aborted, kChangingRows + id, nowhere);
    }
    must(writer.commit());
    aborted.abort();
  }

  using Rows = std::map<std::int64_t, std::vector<Cell>>;
  /// A transaction and the rows that it sees.
  struct Seen {
    Transaction transaction;
    Rows rows;
  };

  Transaction begin() { return must(database->begin()); }
  Seen look() { return {begin(), now_}; }
  void merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(database->merge(table_, options));
  }
  void reopen() { database.reopen(); }
  bool has_holes() {
    const engine::RowStore& rows = engine::DatabaseAccess::core(*database).table(table_)->rows();
    return rows.group(0) != nullptr && !rows.group(0)->stores_every_row();
  }

  /// Deletes, updates and inserts `count` rows; `rows` becomes what the writer sees.
  void change(Transaction& writer, int count, Rows& rows) {
    for (int i = 0; i < count; ++i) {
      const auto id = static_cast<std::int64_t>(random_.below(kChangingRows));
      const bool is_there = rows.contains(id);
      const Result<Row> row = writer.get({table_, 0}, {Value::int64(id)});
      REQUIRE(row.ok() == is_there);
      if (!is_there) {
        put(writer, id, rows);
      } else if (random_.chance(50)) {
        must(writer.remove(table_, row->id()));
        rows.erase(id);
      } else {
        update(writer, row->id(), id, rows);
      }
    }
  }
  void change(int count) {
    Transaction writer = begin();
    change(writer, count, now_);
    must(writer.commit());
  }
  void change_and_abort(int count) {
    Transaction writer = begin();
    Rows rows = now_;
    change(writer, count, rows);
    writer.abort();
  }

  std::uint64_t check(const Seen& seen) { return check(seen.transaction, seen.rows); }
  /// Runs every query twice. Returns the most MVCC entries that one of them read.
  std::uint64_t check(const Transaction& transaction, const Rows& rows) {
    Relation relation;
    for (const ColumnSchema& column : schema_.columns) {
      relation.names.push_back(column.name);
      relation.types.push_back({column.type, column.scale});
    }
    for (const auto& [id, cells] : rows) relation.rows.push_back(cells);
    std::uint64_t most = 0;
    for (const auto& [query, ordered] : queries_of_all_kinds()) {
      const auto table = [&](const std::string&) -> const Relation& { return relation; };
      const std::string expected = text_of(run_naively(*query.node(), table), ordered);
      for (const std::uint32_t threads : {1u, 2u}) {
        RunOptions options;
        options.threads = threads;
        const QueryResult result = must(query.run(transaction, options));
        INFO(result.explain());
        REQUIRE(text_of(relation_of(result), ordered) == expected);
        most = std::max(most, result.statistics().main_entries_read);
      }
    }
    return most;
  }
  std::uint64_t check() { return check(begin(), now_); }

  /// Number of entries that a sum over all rows reads.
  std::uint64_t entries_of_sum(const Transaction& transaction) {
    return must(changing().group_by({}, {sum("a")}).run(transaction))
        .statistics()
        .main_entries_read;
  }
  std::uint64_t entries_of_sum() { return entries_of_sum(begin()); }

  /// Removes rows in order.
  void remove(Transaction& writer, std::int64_t first, std::int64_t step, std::int64_t end) {
    for (std::int64_t id = first; id < end; id += step)
      must(writer.remove(table_, must(writer.get({table_, 0}, {Value::int64(id)})).id()));
  }
  /// Removes the rows with this remainder; returns their number.
  std::uint64_t remove_every(Transaction& writer, std::int64_t step, std::int64_t remainder) {
    std::uint64_t removed = 0;
    for (const auto& [id, cells] : Rows(now_)) {
      if (id % step != remainder) continue;
      remove(writer, id, 1, id + 1);
      now_.erase(id);
      ++removed;
    }
    return removed;
  }
  void forget(std::int64_t first, std::int64_t step, std::int64_t end) {
    for (std::int64_t id = first; id < end; id += step) now_.erase(id);
  }

  TemporaryDatabase database;
  Rows now_;

  std::vector<Value> values(std::int64_t id) {
    texts_ = "text " + std::to_string(random_.below(7));
    return {Value::int64(id),
            Value::int32(static_cast<std::int32_t>(random_.below(1000))),
            Value::int32(static_cast<std::int32_t>(random_.below(9))),
            random_.chance(10) ? Value::null()
                               : Value::int64(static_cast<std::int64_t>(random_.below(1u << 20))),
            random_.chance(10) ? Value::null()
                               : Value::real(static_cast<double>(random_.below(100)) / 4),
            random_.chance(10) ? Value::null() : Value::string(texts_)};
  }
  void note(std::int64_t id, const std::vector<Value>& values, Rows& rows) const {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < values.size(); ++c)
      cells.push_back(Cell::of({schema_.columns[c].type, 0}, values[c]));
    rows[id] = std::move(cells);
  }
  void put(Transaction& writer, std::int64_t id, Rows& rows) {
    const std::vector<Value> row = values(id);
    must(writer.insert(table_, row));
    note(id, row, rows);
  }
  void update(Transaction& writer, RowId row, std::int64_t id, Rows& rows) {
    const std::vector<Value> fresh = values(id);
    std::vector<ColumnValue> changes;
    for (std::uint16_t c = 1; c < fresh.size(); ++c) changes.push_back({ColumnId(c), fresh[c]});
    must(writer.update(table_, row, changes));
    note(id, fresh, rows);
  }

 private:
  Random random_;
  TableSchema schema_{"t"};
  TableId table_;
  std::string texts_;
};

}  // namespace

TEST_CASE("queries see the live rows of main among deleted ones") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2, 3));
  ChangingTable table(seed, seed == 3);
  if (seed != 1) table.change(200);  // the group gets rows that are dead already
  table.merge();
  CHECK((seed != 3 || table.has_holes()));
  table.check();
  CHECK(table.check() == 0);
  const ChangingTable::Seen old = table.look();
  for (int round = 0; round < 3; ++round) {
    table.change(3 + 40 * round);
    table.check();
    table.change_and_abort(30);
    table.check();
    // Its own deletions, and the uncommitted ones of another.
    ChangingTable::Seen writer = table.look();
    table.change(writer.transaction, 20, writer.rows);
    table.check();
    table.check(writer);
    const Savepoint savepoint = must(writer.transaction.savepoint());
    ChangingTable::Rows later = writer.rows;
    table.change(writer.transaction, 20, later);
    table.check(writer.transaction, later);
    must(writer.transaction.rollback_to(savepoint));
    table.check(writer);
    if (round == 1) {
      must(writer.transaction.commit());
      table.now_ = writer.rows;
    } else {
      writer.transaction.abort();
    }
    table.check();
    table.check(old);
  }
}

TEST_CASE("queries see the live rows, after merges and reopening") {
  ChangingTable table(7, GENERATE(false, true));
  for (int round = 0; round < 4; ++round) {
    table.change(150);
    table.merge();
    table.check();
    table.change(round == 2 ? 700 : 20);
    table.reopen();
    table.check();
    CHECK(table.check() <= 2);
    table.change(20);
    table.check();
  }
}

TEST_CASE("a query reads the stamps of rows that are being deleted, and of no others") {
  const bool has_holes = GENERATE(false, true);
  ChangingTable table(8, has_holes);
  if (has_holes) table.change(50);
  table.merge();
  REQUIRE((!has_holes || table.has_holes()));
  table.entries_of_sum();  // finds what the merge has put into the group
  CHECK(table.entries_of_sum() == 0);
  ChangingTable::Seen old = table.look();
  Transaction writer = table.begin();
  const std::uint64_t removed = table.remove_every(writer, 100, 5);
  REQUIRE(removed >= 25);
  // Before the commit: by the writer and by others.
  CHECK(table.entries_of_sum(writer) == removed);
  CHECK(table.entries_of_sum() == removed);
  must(writer.commit());
  CHECK(table.check() == 0);
  CHECK(table.check(old) == 0);
}

TEST_CASE("a snapshot from before many deletions reads the stamps of all deleted rows") {
  const bool has_holes = GENERATE(false, true);
  ChangingTable table(8, has_holes);
  if (has_holes) table.change(50);
  table.merge();
  const std::uint64_t before = table.entries_of_sum();
  ChangingTable::Seen old = table.look();
  Transaction writer = table.begin();
  const std::uint64_t removed = table.remove_every(writer, 10, 5);
  REQUIRE(removed > 3 * engine::DeletionMarks::kRecentMax);
  must(writer.commit());
  CHECK(table.check() == 0);
  // Groups with few deleted rows need none of their entries: the last of either merge may be one.
  const std::uint64_t read = table.entries_of_sum(old.transaction);
  CHECK(read <= before + removed);
  CHECK(read + 2 * engine::DeletionMarks::kRecentMax >= removed);
  CHECK(table.check(old) == read);
  // Deletions newer than the settled ones are distinguished by their time-stamps.
  ChangingTable::Seen later = table.look();
  table.change(10);
  CHECK(table.check(later) == 0);
  CHECK(table.check() == 0);
}

TEST_CASE("rows that a transaction has undone are read no more") {
  ChangingTable table(9);
  table.merge();
  {
    Transaction writer = table.begin();
    table.remove(writer, 0, 2, kChangingRows);
    CHECK(table.entries_of_sum() == kChangingRows / 2);
    writer.abort();
  }
  CHECK(table.entries_of_sum() == 0);
  Transaction writer = table.begin();
  table.remove(writer, 7, 1, 8);
  const Savepoint savepoint = must(writer.savepoint());
  table.remove(writer, 0, 2, kChangingRows);
  must(writer.rollback_to(savepoint));
  CHECK(table.entries_of_sum() == 1);
  must(writer.commit());
  table.forget(7, 1, 8);
  CHECK(table.check() == 0);
}

TEST_CASE("the first query after opening finds what was deleted, the next one reads nothing") {
  ChangingTable table(10, GENERATE(false, true));
  table.merge();
  Transaction writer = table.begin();
  table.remove(writer, 3, 50, kChangingRows);
  must(writer.commit());
  table.forget(3, 50, kChangingRows);
  table.reopen();
  CHECK(table.entries_of_sum() == kChangingRows / 50);
  CHECK(table.entries_of_sum() == 0);
  CHECK(table.check() == 0);
}

TEST_CASE("minimum and maximum of a group are known in spite of deleted rows") {
  ChangingTable table(11);
  table.merge();
  // The row with the least id, and some in between.
  Transaction writer = table.begin();
  table.remove(writer, 0, 500, kChangingRows);
  must(writer.commit());
  table.forget(0, 500, kChangingRows);
  table.check();
  const QueryResult result =
      must(changing().group_by({}, {min("id"), max("id")}).run(table.begin()));
  CHECK(result.get_unchecked(0, 0) == Value::int64(1));
  CHECK(result.get_unchecked(0, 1) == Value::int64(kChangingRows - 1));
}
