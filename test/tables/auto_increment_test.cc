// Auto-increment columns: no number is given twice, by any thread, after any events.
#include "tables/transactions/auto_increment.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/audit/pool_audit.h"
#include "tables/catalog/schema_codec.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema tickets(Type type = Type::kInt64) {
  TableSchema schema("tickets");
  schema.column("number", type).auto_increment().column("text", Type::kString);
  return schema.primary_key({"number"});
}

const ColumnId kNumber(0);
const ColumnId kText(1);

std::int64_t add(engine::DatabaseCore& core, TableId table) {
  Transaction t = must(core.begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(table, {{kText, Value::string("x")}}));
  const std::int64_t number = must(t.get(table, row)).get_unchecked<std::int64_t>(kNumber);
  must(t.commit());
  return number;
}

std::vector<std::int64_t> all_numbers(engine::DatabaseCore& core, TableId table) {
  std::vector<std::int64_t> numbers;
  Transaction t = must(core.begin(AccessMode::kReadOnly));
  must(t.scan(table, {kNumber}, [&](const ScanBatch& batch) {
    const auto found = batch.column_unchecked<std::int64_t>(0);
    numbers.insert(numbers.end(), found.begin(), found.end());
    return true;
  }));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

TEST_CASE("rows without a number get one each, from 1 on", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(tickets()));
  for (std::int64_t i = 1; i <= 100; ++i) CHECK(add(*database, table) == i);
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  // NULL requests a number, in many rows as in one; given numbers stay.
  std::vector<RowId> rows(3);
  must(t.insert_rows(table,
                     std::vector<Value>{Value::null(), Value::null(), Value::int64(5000),
                                        Value::null(), Value::null(), Value::null()},
                     rows));
  CHECK(must(t.get(table, rows[0])).get_unchecked<std::int64_t>(kNumber) == 101);
  CHECK(must(t.get(table, rows[1])).get_unchecked<std::int64_t>(kNumber) == 5000);
  CHECK(must(t.get(table, rows[2])).get_unchecked<std::int64_t>(kNumber) == 102);
  CHECK(must(t.get(table, must(t.insert(table, {Value::null(), Value::null()}))))
            .get_unchecked<std::int64_t>(kNumber) == 103);
  CHECK(t.update(table, rows[0], {{kNumber, Value::null()}}).code() ==
        StatusCode::kConstraintViolated);
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("unused and aborted numbers of a block are not given again", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(tickets()));
  std::int64_t last = 0;
  for (int opened = 0; opened < 5; ++opened) {
    const std::int64_t number = add(*database, table);
    CHECK(number > last);
    CHECK(number <= last + engine::AutoIncrement::kBlockMin + 2);
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    last = must(t.get(table, must(t.insert(table, {Value::null(), Value::null()}))))
               .get_unchecked<std::int64_t>(kNumber);
    t.abort();
    database.reopen();
  }
}

TEST_CASE("each slot numbers from blocks of its own, which grow", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(tickets()));
  Transaction a = must(database->begin(AccessMode::kReadWrite));
  Transaction b = must(database->begin(AccessMode::kReadWrite));
  const auto number = [&](Transaction& t) {
    return must(t.get(table, must(t.insert(table, {Value::null(), Value::null()}))))
        .get_unchecked<std::int64_t>(kNumber);
  };
  CHECK(number(a) == 1);
  CHECK(number(b) == 17);
  for (std::int64_t i = 2; i <= 16; ++i) CHECK(number(a) == i);
  CHECK(number(a) == 33);  // 32 of them
  for (std::int64_t i = 18; i <= 32; ++i) CHECK(number(b) == i);
  CHECK(number(b) == 65);
  const std::uint64_t fences = database->statistics().fences;
  std::vector<Value> many(20'000);
  must(a.insert_rows(table, many));
  // Rows and their chunks need some fences, too.
  CHECK(database->statistics().fences - fences < 200);
  must(a.commit());
  must(b.commit());
  const std::vector<std::int64_t> numbers = all_numbers(*database, table);
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
}

TEST_CASE("numbers that rows bring with them do not move the counter; skipping does", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(tickets()));
  CHECK(add(*database, table) == 1);
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  must(t.insert(table, {Value::int64(2), Value::null()}));
  must(t.insert(table, {Value::int64(100), Value::null()}));
  must(t.commit());
  t = must(database->begin(AccessMode::kReadWrite));
  const Status taken = t.insert(table, {Value::null(), Value::null()}).status();
  CHECK(taken.code() == StatusCode::kAlreadyExists);
  CHECK(taken.message() == "table tickets, key primary: number = 2 exists");
  t.abort();
  CHECK(add(*database, table) == 3);
  must(database->skip_numbers(table, 5));  // within the slot's block
  CHECK(add(*database, table) == 6);
  must(database->skip_numbers(table, 2));
  CHECK(add(*database, table) == 7);
  must(database->skip_numbers(table, 100));
  CHECK(add(*database, table) == 101);
  must(database->skip_numbers(table, 1000));
  database.reopen();
  CHECK(add(*database, table) == 1001);
  CHECK(database->skip_numbers(table, -1).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("an upsert numbers a new row, and leaves another its number", "[engine]") {
  MemoryDatabase database;
  TableSchema schema = tickets();
  schema.column("note", Type::kInt32).unique_key("by_text", {"text"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const auto upsert = [&](std::int32_t note) {
    const Upserted done =
        must(t.upsert({table, 1}, {Value::null(), Value::string("one"), Value::int32(note)}));
    const Row row = must(t.get(table, done.row));
    CHECK(row.get_unchecked<std::int32_t>(ColumnId(2)) == note);
    return row.get_unchecked<std::int64_t>(kNumber);
  };
  CHECK(upsert(1) == 1);
  CHECK(upsert(2) == 1);
  must(t.commit());
}

TEST_CASE("when a type has no more numbers, an insert says so", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(tickets(Type::kInt32)));
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  CHECK(database->skip_numbers(table, kMax + 1).code() == StatusCode::kInvalidArgument);
  must(database->skip_numbers(table, kMax - 2));
  CHECK(add(*database, table) == kMax - 1);
  CHECK(add(*database, table) == kMax);
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const Status full = t.insert(table, {Value::null(), Value::null()}).status();
    INFO(full.to_string());
    CHECK(full.code() == StatusCode::kOutOfSpace);
    CHECK(full.message() ==
          "table tickets, column number: all numbers up to 2147483647 have been taken");
    t.abort();
    database.reopen();
  }
}

TEST_CASE("threads get no number twice", "[engine]") {
  MemoryDatabase database(std::size_t{64} << 20);
  const TableId table = must(database->create_table(tickets()));
  constexpr int kThreads = 4;
  constexpr int kRows = 3000;
  std::vector<int> failures(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int row = 0; row < kRows; ++row) {
        Result<Transaction> t = database->begin(AccessMode::kReadWrite);
        const bool done = t.ok() && t->insert(table, {Value::null(), Value::null()}).ok() &&
                          (row % 7 == 0 || t->commit().ok());
        failures[static_cast<std::size_t>(i)] += done ? 0 : 1;
        if (i == 0 && row % 500 == 0 && !database->skip_numbers(table, row * 3).ok()) ++failures[0];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(kThreads));
  const std::vector<std::int64_t> numbers = all_numbers(*database, table);
  CHECK(numbers.size() == kThreads * (kRows - (kRows + 6) / 7));
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  must(database->verify({}));
}

TEST_CASE("columns that cannot be numbered are refused", "[engine]") {
  const auto refused = [](const TableSchema& schema) {
    return std::string(engine::complete_schema(schema).status().message());
  };
  CHECK(
      refused(tickets(Type::kDecimal)) ==
      "table tickets, column number: auto-increment of type decimal, allowed are int32 and int64");
  TableSchema schema = tickets();
  schema.columns[0].default_value = Value::int64(1);
  CHECK(refused(schema) ==
        "table tickets, column number: an auto-increment column cannot have a default");
  schema = tickets();
  schema.column("second", Type::kInt32).auto_increment();
  CHECK(refused(schema) ==
        "table tickets, column second: column number is auto-increment already, a table can have "
        "only one");
  MemoryDatabase database;
  TableSchema plain("plain");
  const TableId table = must(database->create_table(plain.column("a", Type::kInt64)));
  CHECK(database->skip_numbers(table, 1).code() == StatusCode::kInvalidArgument);
  CHECK(database->skip_numbers(TableId(77), 1).code() == StatusCode::kNotFound);
}

TEST_CASE("a counter beyond its type is found at opening, and by an audit", "[engine]") {
  MemoryDatabase database(std::size_t{2} << 20);
  const TableId table = must(database->create_table(tickets(Type::kInt32)));
  add(*database, table);
  engine::DatabaseLayout& root = engine::root_of(database->pool());
  const auto& catalog = *database->pool().at(pmem::OffsetPtr<engine::CatalogLayout>{root.catalog});
  auto* layout = database->pool().at(pmem::OffsetPtr<engine::TableLayout>{catalog.tables[0]});
  reinterpret_cast<columns::ColumnLayout*>(layout + 1)->last_taken = std::uint64_t{1} << 31;
  PoolBuffer copy(database.span().size());
  std::copy(database.span().begin(), database.span().end(), copy.span().begin());
  const PoolCheckReport report = must(engine::check_pool_in_memory(copy.span()));
  REQUIRE(!report.findings.empty());
  CHECK(report.findings[0].part == "table tickets, column number");
  const Status opened = database.try_reopen();
  INFO(opened.to_string());
  CHECK(opened.code() == StatusCode::kCorrupt);
  CHECK(opened.message().find("last value taken: expected at most 2147483647, found 2147483648") !=
        std::string_view::npos);
}

}  // namespace flugs::test
