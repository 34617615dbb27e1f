// Rows that are pulled one by one: order, direction, limit, writes meanwhile, and what ends them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "flugs/flugs.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Ids = std::vector<std::int64_t>;

// Orders of a few customers; customer n has the orders whose number leaves n when divided by 4.
struct Orders {
  explicit Orders(std::int64_t count, bool is_merged = false) {
    TableSchema schema("orders");
    schema.column("id", Type::kInt64).not_null();
    schema.column("customer", Type::kInt64).not_null();
    schema.column("note", Type::kString);
    schema.primary_key({"id"}).ordered();
    schema.key("by_customer", {"customer"}).unique_key("by_note", {"note"});
    table = must(database->ensure_table(schema));
    primary = must(table.primary_key());
    by_customer = must(table.key("by_customer"));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < count; ++id) {
      const std::string note = "note " + std::to_string(id);
      must(t.insert(table, {id, id % 4, note}));
    }
    must(t.commit());
    if (is_merged) merge_and_reopen();
  }
  void merge_and_reopen() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database->merge(table, everything));
    database.reopen();
  }

  TemporaryDatabase database;
  Table table;
  KeyId primary;
  KeyId by_customer;
};

Ids ids_of(Rows rows) {
  Ids ids;
  for (const Row& row : rows) ids.push_back(row.get_unchecked<std::int64_t>(ColumnId(0)));
  INFO(rows.status().to_string());
  CHECK(rows.status().ok());
  CHECK(rows.next() == nullptr);
  return ids;
}

Ids every_fourth(std::int64_t first, std::int64_t end) {
  Ids ids;
  for (std::int64_t id = first; id < end; id += 4) ids.push_back(id);
  return ids;
}

Ids reversed(Ids ids) {
  std::reverse(ids.begin(), ids.end());
  return ids;
}

TEST_CASE("rows come in order, in reverse, and up to a limit", "[api]") {
  for (const bool is_merged : {false, true}) {
    const std::int64_t count = 20'000;  // several batches of a walk
    Orders orders(count, is_merged);
    const Transaction t = must(orders.database->begin());
    CHECK(ids_of(t.rows(orders.by_customer, {1})) == every_fourth(1, count));
    CHECK(ids_of(t.rows(orders.by_customer, {1}).reverse()) == reversed(every_fourth(1, count)));
    CHECK(ids_of(t.rows(orders.by_customer, {3}).reverse().limit(3)) ==
          Ids{count - 1, count - 5, count - 9});
    CHECK(ids_of(t.rows(orders.by_customer, {3}).reverse().reverse().limit(3).limit(2)) ==
          Ids{3, 7});
    CHECK(ids_of(t.rows(orders.by_customer, {7})).empty());
    CHECK(ids_of(t.rows(orders.by_customer, {7}).reverse()).empty());
    CHECK(ids_of(t.rows(orders.by_customer, {2}).limit(0)).empty());
    const std::array<Value, 1> from = {10};
    const std::array<Value, 1> to = {13};
    CHECK(ids_of(t.rows(orders.primary, {from, true}, {to, false})) == Ids{10, 11, 12});
    CHECK(ids_of(t.rows(orders.primary, {from, false}, {to, true}).reverse()) == Ids{13, 12, 11});
    CHECK(ids_of(t.rows(orders.primary, {}, {from, false})).size() == 10);
    CHECK(ids_of(t.rows(orders.primary, {to, true}, {}).reverse()).size() == count - 13);
    CHECK(ids_of(t.rows(orders.primary, {})) ==
          reversed(ids_of(t.rows(orders.primary, {}).reverse())));
    // A key without order: one row.
    const KeyId by_note = must(orders.table.key("by_note"));
    CHECK(ids_of(t.rows(by_note, {"note 17"})) == Ids{17});
    Rows no_order = t.rows(by_note, {"note 17"}).reverse();
    CHECK(no_order.next() == nullptr);
    CHECK(no_order.status().message() ==
          "table orders, key by_note: not ordered, so it cannot be walked in reverse");
  }
}

TEST_CASE("rows of main and delta come in one order", "[api]") {
  Orders orders(3000, true);
  Transaction t = must(orders.database->begin());
  Ids expected;
  for (std::int64_t id = 0; id < 3000; ++id) {
    if (id % 7 == 0) must(t.update(orders.primary, {id}, {{ColumnId(2), Value::null()}}));
    if (id % 5 == 0) must(t.remove(orders.primary, {id}));
    if (id % 5 != 0 && id % 4 == 2) expected.push_back(id);
  }
  for (std::int64_t id = 3002; id < 3100; id += 4) {
    must(t.insert(orders.table, {id, 2, Value::null()}));
    expected.push_back(id);
  }
  Ids found = ids_of(t.rows(orders.by_customer, {2}));
  std::sort(found.begin(), found.end());  // rows of one customer come by row id
  CHECK(found == expected);
  found = ids_of(t.rows(orders.by_customer, {2}).reverse());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
  must(t.commit());
}

TEST_CASE("a walk shows the rows as they were when it began", "[api]") {
  for (const std::int64_t count : {40, 4000}) {
    Orders orders(count);
    Transaction t = must(orders.database->begin());
    const std::int64_t own = count;
    must(t.insert(orders.table, {own, 0, "own"}));
    Rows rows = t.rows(orders.by_customer, {0});
    Ids ids;
    std::vector<std::string> notes;
    for (const Row& row : rows) {
      const auto id = row.get_unchecked<std::int64_t>(ColumnId(0));
      ids.push_back(id);
      notes.emplace_back(row.get_unchecked<std::string_view>(ColumnId(2)));
      // Writes the row just given, later rows, and rows that would come again.
      const std::string note = "visited " + std::to_string(id);
      const bool is_gone = id == 12 || id == own;  // deleted or changed before the walk came to it
      CHECK(t.update(row, {{ColumnId(2), note}}).code() ==
            (is_gone ? StatusCode::kNotFound : StatusCode::kOk));
      must(t.insert(orders.table, {10'000 + id, 0, Value::null()}));
      if (id == 8) must(t.remove(orders.primary, {12}));
      if (id == 8) must(t.update(orders.primary, {own}, {{ColumnId(2), "changed"}}));
    }
    must(rows.status());
    CHECK(ids == every_fourth(0, count + 1));
    CHECK(notes.back() == "own");
    CHECK(notes[3] == "note 12");
    CHECK(ids_of(t.rows(orders.by_customer, {0})).size() == 2 * ids.size() - 1);  // without 12
    must(t.commit());
  }
}

TEST_CASE("a visitor that writes to its table is refused", "[api]") {
  Orders orders(8);
  Transaction t = must(orders.database->begin());
  const Status done = t.rows(orders.by_customer, {0}, [&](const Row& row) {
    must(t.update(row, {{ColumnId(2), Value::null()}}));
    return true;
  });
  CHECK(done.code() == StatusCode::kInvalidArgument);
  CHECK(done.message().find("pull the rows") != std::string::npos);
}

TEST_CASE("a walk ends with its transaction, and with writes that it may show", "[api]") {
  Orders orders(100);
  Transaction t = must(orders.database->begin());
  const Savepoint first = must(t.savepoint());
  Rows before = t.rows(orders.primary, {});
  REQUIRE(before.next() != nullptr);
  must(t.insert(orders.table, {500, 0, Value::null()}));
  Rows behind = t.rows(orders.primary, {});
  REQUIRE(behind.next() != nullptr);
  must(t.rollback_to(first));
  CHECK(behind.next() == nullptr);
  CHECK(behind.status().code() == StatusCode::kInvalidArgument);
  REQUIRE(before.next() != nullptr);
  REQUIRE(ids_of(std::move(before)).size() == 98);

  Rows left = t.rows(orders.primary, {});
  REQUIRE(left.next() != nullptr);
  Rows moved = std::move(left);
  must(t.commit());
  CHECK(moved.next() == nullptr);
  CHECK(moved.status().code() == StatusCode::kInvalidArgument);
  CHECK(moved.status().message().find("has ended") != std::string::npos);
  Rows ended = t.rows(orders.primary, {});
  CHECK(ended.next() == nullptr);
  CHECK(ended.status().code() == StatusCode::kInvalidArgument);

  std::optional<Transaction> cancelled = must(orders.database->begin());
  Rows of_cancelled = cancelled->rows(orders.primary, {});
  REQUIRE(of_cancelled.next() != nullptr);
  must(orders.database->cancel(cancelled->id()));
  CHECK(of_cancelled.next() == nullptr);
  CHECK(of_cancelled.status().code() == StatusCode::kCancelled);
  cancelled.reset();
  must(orders.database->close());
}

TEST_CASE("a walk says what is wrong with its arguments", "[api]") {
  Orders orders(10);
  const Transaction t = must(orders.database->begin());
  const auto refusal = [](Rows rows) {
    CHECK(rows.next() == nullptr);
    return rows.status();
  };
  CHECK(refusal(t.rows(KeyId{orders.table, 9}, {})).code() == StatusCode::kInvalidArgument);
  CHECK(refusal(t.rows(KeyId{TableId(77), 0}, {})).code() == StatusCode::kNotFound);
  CHECK(refusal(t.rows(orders.primary, {"text"})).code() == StatusCode::kInvalidArgument);
  CHECK(refusal(t.rows(orders.primary, {1, 2})).code() == StatusCode::kInvalidArgument);
  const KeyId by_note = must(orders.table.key("by_note"));
  CHECK(refusal(t.rows(by_note, {}, {})).message() == "table orders, key by_note: not ordered");
  Rows begun = t.rows(orders.primary, {});
  REQUIRE(begun.next() != nullptr);
  begun = std::move(begun).limit(3);
  CHECK(begun.next() == nullptr);
  CHECK(begun.status().message() == "limit: the first row has been read");
}

TEST_CASE("a serializable transaction answers for the rows that it pulled", "[api]") {
  for (const bool down : {false, true}) {
    Orders orders(100);
    const auto outcome = [&](std::int64_t inserted, std::uint64_t limit) {
      Transaction t =
          must(orders.database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
      Rows rows = t.rows(orders.primary, {});
      if (down) rows = std::move(rows).reverse();
      CHECK(ids_of(std::move(rows).limit(limit)).size() == limit);
      Transaction other = must(orders.database->begin());
      must(other.insert(orders.table, {inserted, 0, Value::null()}));
      must(other.commit());
      must(t.insert(orders.table, {1000 + inserted, 0, Value::null()}));
      return t.commit().code();
    };
    // The walk read the first rows on its way, and nothing behind them.
    CHECK(outcome(down ? -5 : 200, 10) == StatusCode::kOk);
    CHECK(outcome(down ? 3000 : -10, 10) == StatusCode::kConflict);
  }
}

TEST_CASE("a row that was read is locked by itself", "[api]") {
  Orders orders(10);
  constexpr LockWait kNoWaiting{std::chrono::milliseconds(0)};
  const auto change = [&](const char* note) {
    Transaction t = must(orders.database->begin());
    const Status changed = t.update(orders.primary, {3}, {{ColumnId(2), note}}).status();
    return changed.ok() ? t.commit() : changed;
  };
  {
    Transaction t = must(orders.database->begin());
    const Row row = must(t.get(orders.primary, {3}));
    CHECK(must(t.lock(row, kNoWaiting)).id() == row.id());
    CHECK(change("refused").code() == StatusCode::kConflict);
    CHECK(t.lock(row, LockWait{std::chrono::milliseconds(-1)}).code() ==
          StatusCode::kInvalidArgument);
    must(t.remove(row));
    CHECK(t.lock(row, kNoWaiting).code() == StatusCode::kNotFound);
  }
  Transaction snapshot = must(orders.database->begin());
  Transaction anew =
      must(orders.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted));
  const Row of_snapshot = must(snapshot.get(orders.primary, {3}));
  const Row of_anew = must(anew.get(orders.primary, {3}));
  must(change("newer"));
  CHECK(snapshot.lock(of_snapshot, kNoWaiting).code() == StatusCode::kConflict);
  const Row newer = must(anew.lock(of_anew, kNoWaiting));  // found by the primary key
  CHECK(must(newer.get<std::string_view>("note")) == "newer");
  CHECK(change("refused").code() == StatusCode::kConflict);
  Transaction reader = must(orders.database->begin(AccessMode::kReadOnly));
  CHECK(reader.lock(must(reader.get(orders.primary, {3}))).code() == StatusCode::kReadOnly);
}

TEST_CASE("batches of rows have the columns asked for, in the order of the key", "[api]") {
  const std::int64_t count = 5000;
  for (const bool is_merged : {false, true}) {
    Orders orders(count, is_merged);
    Transaction t = must(orders.database->begin());
    Rows rows = t.rows(orders.primary, {}, {}).reverse().limit(4000);
    // A row by itself in between.
    CHECK(rows.next()->get_unchecked<std::int64_t>(ColumnId(0)) == count - 1);
    std::int64_t expected = count - 1;
    bool right = true;
    while (const ScanBatch* batch = rows.next_batch({ColumnId(2), ColumnId(0)})) {
      CHECK(batch->row_count() <= ScanBatch::kRowsMax);
      const auto notes = must(batch->column<std::string_view>(0));
      const auto ids = must(batch->column<std::int64_t>(1));
      for (std::size_t i = 0; i < batch->row_count(); ++i)
        right &= ids[i] == --expected && notes[i] == "note " + std::to_string(ids[i]);
    }
    CHECK(right);
    CHECK(rows.status().ok());
    CHECK(expected == count - 4000);
    CHECK(rows.next() == nullptr);
  }
}

TEST_CASE("a batch of rows shows the rows as they were when the walk began", "[api]") {
  Orders orders(5000);
  Transaction t = must(orders.database->begin());
  Rows rows = t.rows(orders.by_customer, {1});
  Ids ids;
  const ScanBatch* batch = rows.next_batch({ColumnId(0)});
  REQUIRE(batch != nullptr);
  for (const std::int64_t id : must(batch->column<std::int64_t>(0))) ids.push_back(id);
  for (std::int64_t id = 1; id < 5000; id += 4) must(t.remove(orders.primary, {id}));
  while ((batch = rows.next_batch({ColumnId(0)})) != nullptr)
    for (const std::int64_t id : must(batch->column<std::int64_t>(0))) ids.push_back(id);
  CHECK(rows.status().ok());
  std::sort(ids.begin(), ids.end());
  CHECK(ids == every_fourth(1, 5000));
}

TEST_CASE("a batch of rows fails as the walk does, and for a column that is not there", "[api]") {
  Orders orders(100);
  Transaction t = must(orders.database->begin());
  Rows rows = t.rows(orders.primary, {}, {});
  CHECK(rows.next_batch({ColumnId(7)}) == nullptr);
  CHECK(rows.status().code() == StatusCode::kInvalidArgument);
  CHECK(rows.next_batch({ColumnId(0)}) == nullptr);
  Rows late = t.rows(orders.primary, {}, {});
  t.abort();
  CHECK(late.next_batch({ColumnId(0)}) == nullptr);
  CHECK(late.status().code() == StatusCode::kInvalidArgument);
  Transaction empty = must(orders.database->begin());
  Rows none = empty.rows(orders.by_customer, {17});
  CHECK(none.next_batch({ColumnId(0)}) == nullptr);
  CHECK(none.status().ok());
}

}  // namespace
}  // namespace flugs::test
