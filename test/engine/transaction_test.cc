// Several transactions in one thread: isolation, conflicts, keys, and the state after a failed
// call.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kOrder{0};
constexpr ColumnId kPart{1};
constexpr ColumnId kRemark{2};

TableSchema items_schema() {
  TableSchema schema("items");
  schema.column("id", Type::kInt64).column("part", Type::kInt64).column("text", Type::kString);
  schema.primary_key({"id", "part"}).hash_prefix(1);
  schema.unique_key("by_text", {"text"});
  return schema;
}

// A database with the table above, and short names for frequent operations.
struct Items {
  MemoryDatabase database;
  TableId table = must(database->create_table(items_schema()));
  KeyId primary{table, 0};
  KeyId by_text{table, 1};

  Transaction begin(AccessMode mode = AccessMode::kReadWrite) {
    return must(database->begin(mode));
  }
  RowId insert(std::int64_t id, std::int64_t part, Value text = Value::null()) {
    Transaction t = begin();
    const RowId row = must(t.insert(table, {Value::int64(id), Value::int64(part), text}));
    must(t.commit());
    return row;
  }
  RowId update(RowId row, ColumnId column, Value value) {
    Transaction t = begin();
    const RowId fresh = must(t.update(table, row, {{column, value}}));
    must(t.commit());
    return fresh;
  }
  void remove(RowId row) {
    Transaction t = begin();
    must(t.remove(table, row));
    must(t.commit());
  }
  std::vector<RowId> all_with(const Transaction& t, std::int64_t id) const {
    std::vector<RowId> found;
    must(t.rows(primary, {Value::int64(id)}, [&](const Row& row) {
      found.push_back(row.id());
      return true;
    }));
    return found;
  }
  std::size_t count(const Transaction& t) const {
    std::size_t rows = 0;
    must(t.scan(table, {kOrder}, [&](const ScanBatch& batch) {
      rows += batch.row_count();
      return true;
    }));
    return rows;
  }
  StatusCode insert_code(Transaction& t, std::int64_t id, Value text) const {
    return t.insert(table, {Value::int64(id), Value::int64(0), text}).code();
  }
};

}  // namespace

TEST_CASE("a key that changes and changes back is found once by its prefix", "[engine]") {
  Items items;
  const RowId first = items.insert(1, 1);
  Transaction old = items.begin(AccessMode::kReadOnly);
  const RowId second = items.update(first, kPart, Value::int64(2));
  const RowId third = items.update(second, kPart, Value::int64(1));
  CHECK(items.all_with(old, 1) == std::vector<RowId>{first});
  CHECK(must(old.get(items.primary, {Value::int64(1), Value::int64(1)})).id() == first);
  CHECK(old.get(items.primary, {Value::int64(1), Value::int64(2)}).code() == StatusCode::kNotFound);
  Transaction now = items.begin(AccessMode::kReadOnly);
  CHECK(items.all_with(now, 1) == std::vector<RowId>{third});
}

TEST_CASE("a recycled row that gets its old key is found once", "[engine]") {
  Items items;
  const RowId first = items.insert(1, 1);
  const RowId second = items.update(first, kRemark, Value::string("second"));
  // Commits to another table: the row becomes free, and is not reused meanwhile.
  TableSchema schema("other");
  schema.column("id", Type::kInt64);
  const TableId other = must(items.database->create_table(schema));
  for (int i = 0; i < 10000; ++i) {
    Transaction t = items.begin();
    must(t.insert(other, {Value::int64(i)}));
    must(t.commit());
  }
  items.remove(second);
  const RowId again = items.insert(1, 1);
  REQUIRE(again == first);
  Transaction now = items.begin(AccessMode::kReadOnly);
  CHECK(items.all_with(now, 1) == std::vector<RowId>{first});
}

TEST_CASE("a snapshot stays as it was while rows are updated and recycled", "[engine]") {
  Items items;
  std::vector<RowId> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(items.insert(i, 1));
  constexpr int kRounds = 400;
  const auto update_all = [&](std::vector<RowId>& versions) {
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < versions.size(); ++i) {
        const std::string text = std::to_string(round) + "/" + std::to_string(i);
        versions[i] = items.update(versions[i], kRemark, Value::string(text));
      }
  };
  // Versions that died before the snapshot are written again while it is open.
  update_all(rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = items.update(rows[i], kRemark, Value::string(std::string_view(std::to_string(i))));
  const auto reserved = [&] { return must(items.database->statistics(items.table)).rows_reserved; };
  const std::uint64_t reserved_before = reserved();
  Transaction old = items.begin(AccessMode::kReadOnly);
  std::vector<RowId> latest = rows;
  update_all(latest);
  CHECK(reserved() < reserved_before + kRounds * rows.size());
  for (int i = 0; i < 20; ++i) {
    const Row row = must(old.get(items.primary, {Value::int64(i), Value::int64(1)}));
    CHECK(row.id() == rows[static_cast<std::size_t>(i)]);
    CHECK(row.get_unchecked<std::string_view>(kRemark) == std::to_string(i));
    CHECK(must(old.get(items.by_text, {Value::string(std::string_view(std::to_string(i)))})).id() ==
          row.id());
  }
  CHECK(items.count(old) == 20);
  old.abort();
  must(items.database->verify({}));
}

TEST_CASE("dead versions are used again once no transaction can see them", "[engine]") {
  Items items;
  RowId row = items.insert(1, 1);
  for (int i = 0; i < 60000; ++i) row = items.update(row, kRemark, Value::string("same"));
  const auto reserved = must(items.database->statistics(items.table)).rows_reserved;
  CHECK(reserved < 12000);  // two collections' worth, far from one row for each update
}

TEST_CASE("dead versions of large transactions are used again by the next ones", "[engine]") {
  Items items;
  constexpr std::size_t kRows = 20000;
  std::vector<RowId> rows;
  Transaction first = items.begin();
  for (std::size_t i = 0; i < kRows; ++i)
    rows.push_back(must(first.insert(items.table, {Value::int64(static_cast<std::int64_t>(i)),
                                                   Value::int64(1), Value::null()})));
  must(first.commit());
  for (std::int64_t round = 0; round < 10; ++round) {
    Transaction t = items.begin();
    for (RowId& row : rows)
      row = must(t.update(items.table, row, {{kPart, Value::int64(round + 2)}}));
    // Rows that were flushed ahead may change again, and some may be undone.
    const Savepoint savepoint = must(t.savepoint());
    for (std::size_t i = 0; i < 200; ++i) must(t.remove(items.table, rows[kRows - 1 - i]));
    must(t.rollback_to(savepoint));
    must(t.commit());
  }
  // Live rows, the rows that died last, and those that wait for a commit's fence.
  CHECK(must(items.database->statistics(items.table)).rows_reserved < 5 * kRows);
  CHECK(items.count(items.begin(AccessMode::kReadOnly)) == kRows);
  must(items.database->verify({}));
}

TEST_CASE("rows of aborted transactions are used again", "[engine]") {
  Items items;
  for (int i = 0; i < 60000; ++i) {
    Transaction t = items.begin();
    must(t.insert(items.table, {Value::int64(i), Value::int64(1), Value::null()}));
  }
  CHECK(must(items.database->statistics(items.table)).rows_reserved < 12000);
  Transaction now = items.begin(AccessMode::kReadOnly);
  CHECK(items.count(now) == 0);
}

TEST_CASE("a transaction sees its own writes, others do not", "[engine]") {
  Items items;
  const RowId row = items.insert(1, 1, Value::string("one"));
  Transaction writer = items.begin();
  Transaction other = items.begin(AccessMode::kReadOnly);
  const RowId fresh = must(writer.update(items.table, row, {{kRemark, Value::string("two")}}));
  const RowId added =
      must(writer.insert(items.table, {Value::int64(2), Value::int64(1), Value::string("three")}));
  CHECK(fresh != row);
  CHECK(writer.get(items.table, row).code() == StatusCode::kNotFound);
  CHECK(must(writer.get(items.table, fresh)).get_unchecked<std::string_view>(kRemark) == "two");
  CHECK(items.count(writer) == 2);
  CHECK(items.count(other) == 1);
  CHECK(other.get(items.table, fresh).code() == StatusCode::kNotFound);
  CHECK(other.get(items.table, added).code() == StatusCode::kNotFound);
  CHECK(must(other.get(items.by_text, {Value::string("one")})).id() == row);
  CHECK(other.get(items.by_text, {Value::string("two")}).code() == StatusCode::kNotFound);
  must(writer.commit());
  CHECK(items.count(other) == 1);
  CHECK(items.count(items.begin()) == 2);
}

TEST_CASE("a row inserted and removed by one transaction never existed", "[engine]") {
  Items items;
  Transaction t = items.begin();
  const RowId row =
      must(t.insert(items.table, {Value::int64(1), Value::int64(1), Value::string("gone")}));
  must(t.remove(items.table, row));
  CHECK(t.get(items.table, row).code() == StatusCode::kNotFound);
  CHECK(t.get(items.by_text, {Value::string("gone")}).code() == StatusCode::kNotFound);
  CHECK(t.remove(items.table, row).code() == StatusCode::kNotFound);
  must(t.insert(items.table, {Value::int64(1), Value::int64(1), Value::string("gone")}));
  must(t.commit());
  CHECK(items.count(items.begin()) == 1);
  must(items.database->verify({}));
}

TEST_CASE("a row that the transaction inserted is changed in place unless it is in a key",
          "[engine]") {
  Items items;
  TableSchema schema("plain");
  schema.column("id", Type::kInt64).column("value", Type::kInt64).primary_key({"id"});
  const TableId plain = must(items.database->create_table(schema));
  Transaction t = items.begin();
  const RowId row = must(t.insert(plain, {Value::int64(1), Value::int64(1)}));
  CHECK(must(t.update(plain, row, {{ColumnId{1}, Value::int64(2)}})) == row);
  const RowId moved = must(t.update(plain, row, {{ColumnId{0}, Value::int64(7)}}));
  CHECK(moved != row);
  CHECK(must(t.get({plain, 0}, {Value::int64(7)})).get_unchecked<std::int64_t>(ColumnId{1}) == 2);
  CHECK(t.get({plain, 0}, {Value::int64(1)}).code() == StatusCode::kNotFound);
  must(t.commit());
  Transaction now = items.begin();
  CHECK(now.get(plain, row).code() == StatusCode::kNotFound);
  CHECK(must(now.get(plain, moved)).get_unchecked<std::int64_t>(ColumnId{1}) == 2);
}

TEST_CASE("the first to change a row wins, the second gets a conflict at once", "[engine]") {
  Items items;
  const RowId row = items.insert(1, 1, Value::string("a"));
  Transaction first = items.begin();
  Transaction second = items.begin();
  must(first.update(items.table, row, {{kRemark, Value::string("b")}}));
  CHECK(second.update(items.table, row, {{kRemark, Value::string("c")}}).code() ==
        StatusCode::kConflict);
  CHECK(second.remove(items.table, row).code() == StatusCode::kConflict);
  must(first.commit());
  // Still a conflict: the second snapshot is older than the change.
  CHECK(second.remove(items.table, row).code() == StatusCode::kConflict);
  second.abort();
  CHECK(items.database->statistics().conflicts == 3);
}

TEST_CASE("an aborted change leaves the row free for others", "[engine]") {
  Items items;
  const RowId row = items.insert(1, 1, Value::string("a"));
  Transaction reader = items.begin(AccessMode::kReadOnly);
  Transaction first = items.begin();
  must(first.update(items.table, row, {{kRemark, Value::string("b")}}));
  first.abort();
  CHECK(must(reader.get(items.primary, {Value::int64(1), Value::int64(1)})).id() == row);
  Transaction second = items.begin();
  must(second.update(items.table, row, {{kRemark, Value::string("b")}}));
  must(second.commit());
  reader.abort();
  must(items.database->verify({}));
}

TEST_CASE("uniqueness is decided by visibility", "[engine]") {
  Items items;
  const Value key = Value::string("key");
  Transaction early = items.begin();
  CHECK(items.insert_code(early, 9, Value::string("unrelated")) == StatusCode::kOk);

  SECTION("taken by a committed row that is visible") {
    items.insert(1, 1, key);
    Transaction t = items.begin();
    CHECK(items.insert_code(t, 2, key) == StatusCode::kAlreadyExists);
    CHECK(items.insert_code(early, 2, key) == StatusCode::kConflict);  // not visible to it
    must(t.commit());
  }
  SECTION("perhaps taken by a transaction in flight") {
    Transaction first = items.begin();
    CHECK(items.insert_code(first, 1, key) == StatusCode::kOk);
    Transaction second = items.begin();
    CHECK(items.insert_code(second, 2, key) == StatusCode::kConflict);
    first.abort();
    CHECK(items.insert_code(second, 2, key) == StatusCode::kOk);
    must(second.commit());
  }
  SECTION("perhaps freed by a transaction in flight") {
    const RowId row = items.insert(1, 1, key);
    Transaction first = items.begin();
    must(first.remove(items.table, row));
    Transaction second = items.begin();
    CHECK(items.insert_code(second, 2, key) == StatusCode::kConflict);
    must(first.commit());
    CHECK(items.insert_code(second, 2, key) == StatusCode::kConflict);  // freed after its snapshot
    Transaction third = items.begin();
    CHECK(items.insert_code(third, 2, key) == StatusCode::kOk);
    must(third.commit());
  }
  SECTION("freed by the transaction itself") {
    const RowId row = items.insert(1, 1, key);
    Transaction t = items.begin();
    must(t.update(items.table, row, {{kRemark, Value::string("other")}}));
    CHECK(items.insert_code(t, 2, key) == StatusCode::kOk);
    CHECK(items.insert_code(t, 3, key) == StatusCode::kAlreadyExists);
    must(t.commit());
  }
  SECTION("NULL takes no key") {
    items.insert(1, 1);
    items.insert(2, 1);
  }
  early.abort();
  must(items.database->verify({}));
}

TEST_CASE("a failed call has no effect and leaves the transaction usable", "[engine]") {
  Items items;
  items.insert(1, 1, Value::string("taken"));
  const RowId mine = items.insert(2, 1, Value::string("mine"));
  Transaction t = items.begin();
  // The first key fits, the second fails: the entry of the first must be removed.
  CHECK(t.insert(items.table, {Value::int64(3), Value::int64(1), Value::string("taken")}).code() ==
        StatusCode::kAlreadyExists);
  CHECK(items.all_with(t, 3).empty());
  CHECK(t.update(items.table, mine, {{kOrder, Value::int64(3)}, {kRemark, Value::string("taken")}})
            .code() == StatusCode::kAlreadyExists);
  CHECK(must(t.get(items.table, mine)).get_unchecked<std::int64_t>(kOrder) == 2);
  CHECK(items.all_with(t, 3).empty());
  must(t.insert(items.table, {Value::int64(3), Value::int64(1), Value::string("free")}));
  must(t.update(items.table, mine, {{kOrder, Value::int64(4)}}));
  must(t.commit());
  CHECK(items.count(items.begin()) == 3);
  must(items.database->verify({}));
}

TEST_CASE("write skew is possible: that is what snapshot isolation allows", "[engine]") {
  Items items;
  const RowId a = items.insert(1, 1, Value::string("on call 1"));
  const RowId b = items.insert(2, 1, Value::string("on call 2"));
  Transaction first = items.begin();
  Transaction second = items.begin();
  CHECK(items.count(first) == 2);
  CHECK(items.count(second) == 2);
  must(first.remove(items.table, a));
  must(second.remove(items.table, b));
  must(first.commit());
  must(second.commit());
  CHECK(items.count(items.begin()) == 0);
}

TEST_CASE("an empty transaction commits without a time-stamp", "[engine]") {
  Items items;
  Transaction t = items.begin();
  const std::uint64_t snapshot = t.snapshot();
  must(t.commit());
  CHECK(t.commit_timestamp() == 0);
  CHECK_FALSE(t.is_open());
  CHECK(items.begin().snapshot() == snapshot);
}

TEST_CASE("commit time-stamps rise and are at or below later snapshots", "[engine]") {
  Items items;
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    Transaction t = items.begin();
    CHECK(t.snapshot() >= last);
    must(t.insert(items.table, {Value::int64(i), Value::int64(1), Value::null()}));
    must(t.commit());
    CHECK(t.commit_timestamp() > last);
    last = t.commit_timestamp();
  }
}

}  // namespace flugs::test
