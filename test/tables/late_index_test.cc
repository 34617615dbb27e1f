// Indexes in DRAM of large tables, which opening leaves for later.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "columns/cells/column_layout.h"
#include "flugs/expression.h"
#include "flugs/opening_estimate.h"
#include "tables/catalog/catalog.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kRows = 20'000;  // more than opening indexes itself

TableSchema late_schema(bool is_keyed) {
  TableSchema schema("late");
  schema.column("id", Type::kInt64);
  schema.column("name", Type::kString);
  schema.column("count", Type::kInt32);
  if (is_keyed) schema.primary_key({"id"}).key("by_count", {"count"});
  return schema;
}

std::vector<Value> late_row(std::int64_t id, std::string& name) {
  name = fmt::format("the name of number {}", id);
  return {Value::int64(id), id % 10 == 3 ? Value::null() : Value::string(name),
          Value::int32(static_cast<std::int32_t>(id % 7))};
}

/// One table; no thread makes its indexes by itself.
struct LateTable {
  MemoryDatabase database;
  TableId table;

  explicit LateTable(bool is_keyed, IndexPlace mode = IndexPlace::kDram)
      : database(std::size_t{96} << 20, mode) {
    database.options.tuning.sweeps_in_background = false;
    table = must(database->create_table(late_schema(is_keyed)));
    insert(0, kRows);
  }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    std::string name;
    for (std::int64_t id = first; id < end; ++id) must(t.insert(table, late_row(id, name)));
    must(t.commit());
  }
  std::uint64_t left() { return database->statistics().index_entries_left; }
  engine::Table& rows() { return *database->table(table); }
  /// Rows with this name, by a scan.
  std::size_t count_named(const Value& name) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t count = 0;
    const ColumnId id[] = {ColumnId(0)};
    must(t.scan(table, id, Predicate::equal(ColumnId(1), name), [&](const ScanBatch& batch) {
      count += batch.column_unchecked<std::int64_t>(0).size();
      return true;
    }));
    return count;
  }
};

}  // namespace

TEST_CASE("opening leaves the indexes of large tables, and reads are right without them",
          "[engine]") {
  LateTable late(false);
  late.database.reopen();
  const std::uint64_t left = late.left();
  CHECK(left >= std::uint64_t{2} * kRows * 9 / 10);
  CHECK(late.database->report().dictionary_entries == 0);
  CHECK(late.count_named(Value::string("the name of number 12345")) == 1);
  CHECK(late.count_named(Value::string("the name of nobody")) == 0);
  {
    Transaction t = must(late.database->begin(AccessMode::kReadOnly));
    CHECK(must(t.get(late.table, RowId(17))).get_unchecked(ColumnId(0)) == Value::int64(17));
    CHECK(must(t.get(late.table, RowId(13))).get_unchecked(ColumnId(1)).is_null());
  }
  CHECK(late.left() == left);
  must(late.database->finish_opening());
  CHECK(late.left() == 0);
  const Statistics statistics = late.database->statistics();
  CHECK(statistics.index_entries_built == left);
  CHECK(statistics.index_build_ms > 0);
  CHECK(late.count_named(Value::string("the name of number 12345")) == 1);
  must(late.database->verify({}));
}

TEST_CASE("opening with kIndexesBuilt makes all indexes", "[engine]") {
  LateTable late(true);
  late.database.options.ready = Ready::kIndexesBuilt;
  late.database.reopen();
  CHECK(late.left() == 0);
  CHECK(late.database->report().dictionary_entries >= kRows * 9 / 10);
  CHECK(late.database->report().rows_live == kRows);
}

TEST_CASE("small tables' indexes are made by opening", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(late_schema(true)));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  std::string name;
  for (std::int64_t id = 0; id < 1000; ++id) must(t.insert(table, late_row(id, name)));
  must(t.commit());
  database.reopen();
  CHECK(database->statistics().index_entries_left == 0);
  CHECK(database->report().rows_live == 1000);
}

TEST_CASE("values go into dictionaries that wait for their indexes", "[engine]") {
  LateTable late(false);
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);  // as if there were a thread
  const std::uint64_t left = late.left();
  late.insert(kRows - 5, kRows + 20);  // known values, and new ones
  CHECK(late.left() == left);
  CHECK(late.count_named(
            Value::string(std::string_view(fmt::format("the name of number {}", kRows - 1)))) == 2);
  CHECK(late.count_named(
            Value::string(std::string_view(fmt::format("the name of number {}", kRows + 1)))) == 1);
  must(late.database->verify({}));  // one ValueID for each value
  CHECK(late.left() == 0);
  late.database.reopen();
  must(late.database->verify({}));
  CHECK(late.count_named(
            Value::string(std::string_view(fmt::format("the name of number {}", kRows + 1)))) == 1);
}

TEST_CASE("a write makes the indexes when no thread does", "[engine]") {
  LateTable late(false);
  late.database.reopen();
  late.insert(kRows, kRows + 1);
  CHECK(late.left() == 0);
  must(late.database->verify({}));
}

TEST_CASE("a look-up makes the key indexes, and they are right", "[engine]") {
  LateTable late(true);
  {
    Transaction t = must(late.database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 0; id < kRows; id += 3)
      must(t.remove(late.table, must(t.get({late.table, 0}, {Value::int64(id)})).id()));
    must(t.commit());
  }
  late.database.reopen();
  const std::uint64_t left = late.left();
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  SECTION("a look-up") {
    CHECK(t.get({late.table, 0}, {Value::int64(3)}).code() == StatusCode::kNotFound);
    CHECK(must(t.get({late.table, 0}, {Value::int64(4)})).get_unchecked(ColumnId(0)) ==
          Value::int64(4));
  }
  SECTION("a range") {
    std::size_t found = 0;
    const std::vector<Value> five = {Value::int32(5)};
    must(t.rows({late.table, 1}, {five, true}, {five, true}, [&](const Row&) {
      ++found;
      return true;
    }));
    std::size_t expected = 0;
    for (std::int64_t id = 0; id < kRows; ++id) expected += id % 3 != 0 && id % 7 == 5 ? 1 : 0;
    CHECK(found == expected);
  }
  CHECK(late.left() < left);
  CHECK(late.left() != 0);  // dictionaries
  std::string name;
  CHECK(t.insert(late.table, late_row(4, name)).code() == StatusCode::kAlreadyExists);
  must(t.insert(late.table, late_row(3, name)));
  must(t.commit());
  must(late.database->verify({}));
}

TEST_CASE("a key is taken although nothing was looked up yet", "[engine]") {
  LateTable late(true);
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  std::string name;
  CHECK(t.insert(late.table, late_row(77, name)).code() == StatusCode::kAlreadyExists);
  must(t.insert(late.table, late_row(kRows, name)));
  must(t.commit());
  must(late.database->verify({}));
}

TEST_CASE("with hints opening leaves only ordered keys", "[engine]") {
  LateTable late(true, IndexPlace::kPool);
  late.database.reopen();
  const std::uint64_t left = late.left();
  CHECK(left >= kRows);
  CHECK(left < 2 * kRows);
  Transaction t = must(late.database->begin(AccessMode::kReadOnly));
  CHECK(must(t.get({late.table, 0}, {Value::int64(4)})).get_unchecked(ColumnId(0)) ==
        Value::int64(4));
  CHECK(late.left() == left);
  std::size_t found = 0;
  const std::vector<Value> five = {Value::int32(5)};
  must(t.rows({late.table, 1}, five, [&](const Row&) {
    ++found;
    return true;
  }));
  CHECK(found == (kRows + 1) / 7);
  CHECK(late.left() == 0);
  t.abort();
  must(late.database->verify({}));
}

namespace {

/// Counts in the order of a range by count, and all of its ids.
struct Ranged {
  std::vector<std::int32_t> counts;
  std::vector<std::int64_t> ids;
};

Ranged range_of(LateTable& late, Transaction& t, std::int32_t low, std::int32_t high) {
  Ranged ranged;
  const std::vector<Value> lower = {Value::int32(low)};
  const std::vector<Value> upper = {Value::int32(high)};
  must(t.rows({late.table, 1}, {lower, true}, {upper, false}, [&](const Row& row) {
    ranged.counts.push_back(static_cast<std::int32_t>(row.get_unchecked(ColumnId(2)).raw()));
    ranged.ids.push_back(row.get_unchecked(ColumnId(0)).raw());
    return true;
  }));
  CHECK(std::is_sorted(ranged.counts.begin(), ranged.counts.end()));
  std::sort(ranged.ids.begin(), ranged.ids.end());
  CHECK(std::adjacent_find(ranged.ids.begin(), ranged.ids.end()) == ranged.ids.end());
  return ranged;
}

std::size_t rows_with(std::int32_t low, std::int32_t high, std::int64_t first = 0) {
  std::size_t rows = 0;
  for (std::int64_t id = first; id < kRows; ++id) rows += id % 7 >= low && id % 7 < high ? 1 : 0;
  return rows;
}

RowId row_of(LateTable& late, Transaction& t, std::int64_t id) {
  return must(t.get({late.table, 0}, {Value::int64(id)})).id();
}

}  // namespace

TEST_CASE("ranges and writes are right before ordered indexes are made", "[engine]") {
  LateTable late(true, GENERATE(IndexPlace::kPool, IndexPlace::kDram));
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  Transaction before = must(late.database->begin(AccessMode::kReadOnly));
  const std::size_t in_range = rows_with(2, 4);
  CHECK(range_of(late, before, 2, 4).ids.size() == in_range);
  std::string name;
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  must(t.update(late.table, row_of(late, t, 2), {{ColumnId(2), Value::int32(3)}}));
  must(t.update(late.table, row_of(late, t, 3), {{ColumnId(2), Value::int32(6)}}));
  must(t.remove(late.table, row_of(late, t, 9)));
  must(t.insert(late.table, late_row(kRows + (2 - kRows % 7 + 7) % 7, name)));
  CHECK(range_of(late, t, 2, 4).ids.size() == in_range - 1);
  CHECK(range_of(late, before, 2, 4).ids.size() == in_range);
  {
    Transaction undone = must(late.database->begin(AccessMode::kReadWrite));
    must(undone.remove(late.table, row_of(late, undone, 16)));
    CHECK(range_of(late, undone, 2, 4).ids.size() == in_range - 1);
  }
  must(t.commit());
  CHECK(late.left() >= kRows);  // not made yet
  must(late.database->finish_opening());
  CHECK(late.left() == 0);
  // A row that this snapshot sees was deleted before its key was made, and is in no index.
  CHECK(range_of(late, before, 2, 4).ids.size() == in_range);
  CHECK(range_of(late, before, 3, 4).ids.size() == rows_with(3, 4));
  before.abort();
  Transaction after = must(late.database->begin(AccessMode::kReadOnly));
  CHECK(range_of(late, after, 2, 4).ids.size() == in_range - 1);
  after.abort();
  must(late.database->verify({}));
}

TEST_CASE("serializable: a range read before its index was made is read again", "[engine]") {
  LateTable late(true, IndexPlace::kPool);
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  std::string name;
  const bool is_made_between = GENERATE(false, true);
  Transaction reader = must(late.database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
  CHECK(range_of(late, reader, 2, 3).ids.size() == rows_with(2, 3));
  must(reader.update(late.table, row_of(late, reader, 0), {{ColumnId(2), Value::int32(100)}}));
  const bool is_changed = GENERATE(false, true);
  {
    Transaction writer = must(late.database->begin(AccessMode::kReadWrite));
    const std::int64_t id = is_changed ? 9 : 10;  // in the range, outside of it
    must(writer.remove(late.table, row_of(late, writer, id)));
    must(writer.commit());
  }
  if (is_made_between) must(late.database->finish_opening());
  CHECK(reader.commit().code() == (is_changed ? StatusCode::kConflict : StatusCode::kOk));
  must(late.database->verify({}));
}

TEST_CASE("a range covers runs of main and rows of a key without its index", "[engine]") {
  LateTable late(true, IndexPlace::kPool);
  must(late.database->merge(late.table, {}));
  late.insert(kRows, 2 * kRows);
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  Transaction t = must(late.database->begin(AccessMode::kReadOnly));
  std::size_t expected = 0;
  for (std::int64_t id = 0; id < 2 * kRows; ++id) expected += id % 7 >= 2 && id % 7 < 5 ? 1 : 0;
  CHECK(range_of(late, t, 2, 5).ids.size() == expected);
  std::size_t seen = 0;
  must(t.rows({late.table, 1}, {{}, true}, {{}, true}, [&](const Row&) { return ++seen < 10; }));
  CHECK(seen == 10);
  CHECK(late.left() != 0);
  t.abort();
  must(late.database->verify({}));
}

TEST_CASE("a merge makes the key indexes that it needs entries from", "[engine]") {
  LateTable late(true);
  late.database.reopen();
  must(late.database->merge(late.table, {}));
  Transaction t = must(late.database->begin(AccessMode::kReadOnly));
  CHECK(must(t.get({late.table, 0}, {Value::int64(4)})).get_unchecked(ColumnId(0)) ==
        Value::int64(4));
  t.abort();
  must(late.database->verify({}));
}

TEST_CASE("a table is dropped, and a database closed, before its indexes are made", "[engine]") {
  LateTable late(true);
  late.database.reopen();
  SECTION("dropped") {
    must(late.database->drop_table(late.table));
    CHECK(late.left() == 0);
    must(late.database->finish_opening());
  }
  SECTION("closed") { CHECK(late.left() != 0); }
  late.database.reopen();
  must(late.database->verify({}));
}

TEST_CASE("a table whose drop was taken back still gets its key indexes", "[engine]") {
  LateTable late(true, IndexPlace::kPool);
  for (int attempt = 0; attempt < 40; ++attempt) {
    late.database.reopen();
    engine::Table& table = late.rows();
    table.index_build().set_builds_later(true);
    std::atomic<bool> is_over{false};
    std::thread dropping([&] {  // as drop_table does, and undoes when a transaction is in its way
      while (!is_over.load()) {
        table.set_dropped(true);
        table.set_dropped(false);
      }
    });
    for (int call = 0; call < 3; ++call)
      static_cast<void>(table.index_build().build(engine::DeferredIndexes::kOrderedIndexes));
    is_over.store(true);
    dropping.join();
    must(table.index_build().build(engine::DeferredIndexes::kOrderedIndexes));
    CHECK(late.left() == 0);
  }
  std::string name;
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  must(t.insert(late.table, late_row(kRows, name)));
  CHECK(range_of(late, t, 2, 4).ids.size() ==
        rows_with(2, 4) + (kRows % 7 == 2 ? 1 : 0) + (kRows % 7 == 3 ? 1 : 0));
  must(t.commit());
  must(late.database->verify({}));
}

TEST_CASE("a merge gives back a dictionary without rows before its index is made", "[engine]") {
  LateTable late(false);
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  CHECK(must(t.remove_where(late.table, query::col("id") >= 0)) == kRows);
  must(t.commit());
  const std::uint64_t left = late.left();
  REQUIRE(left >= std::uint64_t{kRows} * 9 / 10);
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  everything.waste_bytes = 1;
  const MergeReport report = must(late.database->merge(late.table, everything));
  CHECK(report.columns_rewritten == 2);  // the third has seven values
  CHECK(report.bytes_given_back > std::uint64_t{kRows} * 30);
  CHECK(late.left() == 7);
  late.insert(0, 100);
  must(late.database->finish_opening());
  CHECK(late.count_named(Value::string("the name of number 99")) == 1);
  must(late.database->verify({}));
  late.database.reopen();
  CHECK(late.count_named(Value::string("the name of number 99")) == 1);
}

TEST_CASE("a damaged dictionary is read as far as possible, and not written", "[engine]") {
  LateTable late(false);
  // Not the entry of NULL.
  const std::uint64_t offset = must(engine::find_catalog(late.database->pool()))->tables[0];
  auto* columns = reinterpret_cast<columns::ColumnLayout*>(late.database->pool().base() + offset +
                                                           sizeof(engine::TableLayout));
  columns[1].dictionary.null_code -= 1;
  late.database.reopen();
  late.rows().index_build().set_builds_later(true);
  CHECK(late.count_named(Value::string("the name of number 12345")) == 1);
  const Status status = late.database->finish_opening();
  CHECK(status.code() == StatusCode::kCorrupt);
  Transaction t = must(late.database->begin(AccessMode::kReadWrite));
  std::string name;
  CHECK(t.insert(late.table, late_row(kRows, name)).code() == StatusCode::kCorrupt);
  t.abort();
  CHECK(late.count_named(Value::string("the name of number 12345")) == 1);
}

}  // namespace flugs::test
