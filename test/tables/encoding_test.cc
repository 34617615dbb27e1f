// Columns of numbers turn from codes to values while the table is written (decision 0027): rows,
// keys and queries find the same in both kinds of rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

// More than the number at which a dictionary is judged: 2^16 distinct values.
constexpr std::int64_t kRows = 80'000;
constexpr ColumnId kBig{1};
constexpr ColumnId kKept{2};
constexpr ColumnId kFew{3};
constexpr ColumnId kStamp{4};

/// Row n has numbers that hardly any other row has, and some that many have.
std::vector<Value> row_of(std::int64_t n) {
  // Numbers of all sizes, also below zero, so that cells need either sign and several widths.
  const std::int64_t number = n % 5 == 0 ? -n * 1'000'003 : n * 1'009;
  return {Value::int64(n), n % 11 == 3 ? Value::null() : Value::int64(number),
          Value::int32(static_cast<std::int32_t>(n)),
          Value::int32(static_cast<std::int32_t>(n % 100)), Value::timestamp(n * 1'000'000)};
}

struct Numbers {
  Numbers() {
    TableSchema schema("numbers");
    schema.column("id", Type::kInt64).column("number", Type::kInt64);
    schema.column("pinned", Type::kInt32).dictionary().column("few", Type::kInt32);
    schema.column("stamp", Type::kTimestamp).not_null().primary_key({"id"});
    schema.key("by_number", {"number"}).unique_key("stamped", {"stamp", "few"});
    table = must(database->create_table(schema));
  }

  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    std::vector<Value> values;
    for (std::int64_t n = first; n < end; ++n) {
      const std::vector<Value> row = row_of(n);
      values.insert(values.end(), row.begin(), row.end());
    }
    must(t.insert_rows(table, values));
    must(t.commit());
  }

  bool is_dictionary(ColumnId column) {
    return must(database->table_statistics(table)).columns[column.value()].dictionary_encoded;
  }

  void check_rows(const Transaction& t, std::int64_t end, std::int64_t step = 97) const {
    std::size_t wrong = 0;
    for (std::int64_t n = 0; n < end; n += step) {
      const Row row = must(t.get({table, 0}, {Value::int64(n)}));
      const std::vector<Value> wanted = row_of(n);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        wrong += row.get_unchecked(ColumnId(static_cast<std::uint16_t>(i))) == wanted[i] ? 0 : 1;
      wrong += must(t.get({table, 2}, {wanted[4], wanted[3]})).id() == row.id() ? 0 : 1;
    }
    CHECK(wrong == 0);
  }

  void check_queries(const Transaction& t, std::int64_t end) const {
    using namespace query;
    std::int64_t sum_of = 0;
    std::int64_t sum_below = 0;
    std::int64_t nulls = 0;
    std::int64_t least = 0;
    std::int64_t greatest = 0;
    for (std::int64_t n = 0; n < end; ++n) {
      const Value number = row_of(n)[1];
      nulls += number.is_null() ? 1 : 0;
      sum_of += number.is_null() ? 0 : number.raw();
      least = std::min(least, number.is_null() ? 0 : number.raw());
      greatest = std::max(greatest, number.is_null() ? 0 : number.raw());
      sum_below += !number.is_null() && number.raw() < 5'000'000 ? n % 100 : 0;
    }
    const QueryResult all = must(Query::table("numbers")
                                     .group_by({}, {sum("number"), count_distinct("number"),
                                                    min("number"), max("number"), count()})
                                     .run(t));
    CHECK(all.get_unchecked(0, 0).raw() == sum_of);
    CHECK(all.get_unchecked(0, 1).raw() == end - nulls);
    CHECK(all.get_unchecked(0, 2).raw() == least);
    CHECK(all.get_unchecked(0, 3).raw() == greatest);
    CHECK(all.get_unchecked(0, 4).raw() == end);
    const QueryResult below = must(
        Query::table("numbers").where(col("number") < 5'000'000).group_by({}, {sum("few")}).run(t));
    CHECK(below.get_unchecked(0, 0).raw() == sum_below);
    const QueryResult unknown =
        must(Query::table("numbers").where(col("number").is_null()).group_by({}, {count()}).run(t));
    CHECK(unknown.get_unchecked(0, 0).raw() == nulls);
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{7}, end - 2, end - 1}) {
      if (row_of(n)[1].is_null()) continue;
      const QueryResult one =
          must(Query::table("numbers").where(col("number") == row_of(n)[1].raw()).run(t));
      REQUIRE(one.row_count() == 1);
      CHECK(one.get_unchecked(0, 0).raw() == n);
    }
  }

  void check_order(const Transaction& t, std::int64_t end) const {
    std::int64_t rows = 0;
    std::int64_t wrong = 0;
    Value last = Value::null();
    must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
      const Value number = row.get_unchecked(kBig);
      wrong += !last.is_null() && (number.is_null() || number.raw() < last.raw()) ? 1 : 0;
      last = number;
      ++rows;
      return true;
    }));
    CHECK(rows == end);
    CHECK(wrong == 0);
  }

  void check(std::int64_t end) {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    check_rows(t, end);
    check_queries(t, end);
    check_order(t, end);
  }

  TemporaryDatabase database;
  TableId table;
};

TEST_CASE("a column of numbers gives up a dictionary that does not pay, while rows are written") {
  Numbers numbers;
  numbers.insert(0, 1'000);
  CHECK(numbers.is_dictionary(kBig));
  Transaction before = must(numbers.database->begin(AccessMode::kReadOnly));
  for (std::int64_t n = 1'000; n < kRows; n += 10'000)
    numbers.insert(n, std::min(n + 10'000, kRows));
  CHECK_FALSE(numbers.is_dictionary(kBig));
  CHECK_FALSE(numbers.is_dictionary(kStamp));
  CHECK(numbers.is_dictionary(kKept));  // as its schema says
  CHECK(numbers.is_dictionary(kFew));   // its dictionary is small
  numbers.check(kRows);
  numbers.check_rows(before, 1'000);
  numbers.check_queries(before, 1'000);
  before.abort();
  must(numbers.database->check());
}

TEST_CASE("a table that gave up a dictionary is opened, written and merged like any other") {
  Numbers numbers;
  numbers.insert(0, kRows);
  REQUIRE_FALSE(numbers.is_dictionary(kBig));
  numbers.database.reopen();
  numbers.check(kRows);
  // Rows with codes become rows with values; older snapshots see the old ones.
  {
    Transaction t = must(numbers.database->begin());
    for (std::int64_t n = 0; n < 2'000; ++n) {
      const Row row = must(t.get({numbers.table, 0}, {Value::int64(n)}));
      must(t.update(numbers.table, row.id(), {{kFew, Value::int32(77)}}));
      CHECK(must(t.get({numbers.table, 0}, {Value::int64(n)})).get_unchecked(kBig) == row_of(n)[1]);
    }
    t.abort();
  }
  numbers.check(kRows);
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  must(numbers.database->merge(numbers.table, everything));
  numbers.check(kRows);
  numbers.insert(kRows, kRows + 500);
  numbers.check(kRows + 500);
  numbers.database.reopen();
  numbers.check(kRows + 500);
  must(numbers.database->check());
}

TEST_CASE("a change of a column leaves a running statement and a savepoint whole") {
  Numbers numbers;
  Transaction t = must(numbers.database->begin());
  for (std::int64_t n = 0; n < 60'000; ++n) must(t.insert(numbers.table, row_of(n)));
  CHECK(numbers.is_dictionary(kBig));
  const Savepoint here = must(t.savepoint());
  for (std::int64_t n = 60'000; n < kRows; ++n) must(t.insert(numbers.table, row_of(n)));
  CHECK_FALSE(numbers.is_dictionary(kBig));
  numbers.check_queries(t, kRows);
  must(t.rollback_to(here));
  numbers.check_queries(t, 60'000);
  must(t.commit());
  numbers.check(60'000);
  numbers.insert(60'000, kRows);
  numbers.check(kRows);
}

TEST_CASE("a dictionary that pays is kept, however many values there are of a wide type") {
  TemporaryDatabase database;
  TableSchema schema("readings");
  schema.column("at", Type::kTimestamp).not_null().column("sensor", Type::kInt32).not_null();
  const TableId table = must(database->create_table(schema));
  // Each value eight times: 5.5 bytes a row are more than 31 a value, but only just.
  constexpr std::int64_t kValues = 66'000;
  std::vector<Value> values;
  Transaction t = must(database->begin());
  for (std::int64_t n = 0; n < kValues * 8; ++n) {
    values.push_back(Value::timestamp(n / 8 * 1'000));
    values.push_back(Value::int32(static_cast<std::int32_t>(n % 50)));
    if (values.size() < 20'000 && n + 1 != kValues * 8) continue;
    must(t.insert_rows(table, values));
    values.clear();
  }
  must(t.commit());
  CHECK(must(database->table_statistics(table)).columns[0].dictionary_encoded);
}

TEST_CASE("no column turns direct while the table is merged, nor does a writer wait for that") {
  Numbers numbers;
  numbers.insert(0, 65'000);
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  std::int64_t next = 65'000;
  // Called from within the merge, which holds the mutex that a change of the column needs.
  everything.progress = [&](const Progress&) {
    if (next != 65'000) return;
    std::thread([&] { numbers.insert(next, kRows); }).join();
    next = kRows;
  };
  must(numbers.database->merge(numbers.table, everything));
  REQUIRE(next == kRows);
  CHECK(numbers.is_dictionary(kBig));
  numbers.check(kRows);
  numbers.insert(kRows, kRows + 1'000);
  CHECK_FALSE(numbers.is_dictionary(kBig));
  numbers.check(kRows + 1'000);
}

TEST_CASE("the next merge gives back the space of a dictionary that was given up") {
  TemporaryDatabase database;
  TableSchema schema("late");
  schema.column("id", Type::kInt64).column("number", Type::kInt64).primary_key({"id"});
  schema.columns[0].encoding = Encoding::kDirect;
  const TableId table = must(database->create_table(schema));
  constexpr std::int64_t kAlike = 50'000;  // equal values until a chunk was made ahead
  std::int64_t n = 0;
  const auto insert = [&](std::int64_t end) {
    for (std::vector<Value> values; n < end; values.clear()) {
      Transaction t = must(database->begin());
      for (int i = 0; i < 1'000; ++i, ++n) {
        values.push_back(Value::int64(n));
        values.push_back(Value::int64(std::max<std::int64_t>(0, n - kAlike) * 1'009));
      }
      must(t.insert_rows(table, values));
      must(t.commit());
    }
  };
  const auto column = [&] { return must(database->table_statistics(table)).columns[1]; };
  while (n < 200'000 && (n == 0 || column().dictionary_encoded)) insert(n + 1'000);
  REQUIRE_FALSE(column().dictionary_encoded);
  REQUIRE(column().dictionary_bytes > 60'000 * 16);
  if (GENERATE(false, true)) insert(n + 100'000);
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  const MergeReport report = must(database->merge(table, options));
  CHECK_FALSE(report.releases_later);
  CHECK(report.bytes_given_back > 60'000 * 16);
  CHECK(column().dictionary_bytes == 0);
  const Transaction t = must(database->begin(AccessMode::kReadOnly));
  for (std::int64_t id = 0; id < n; id += 997)
    CHECK(must(t.get({table, 0}, {Value::int64(id)})).get_unchecked<std::int64_t>(ColumnId(1)) ==
          std::max<std::int64_t>(0, id - kAlike) * 1'009);
}

}  // namespace
}  // namespace flugs::test
