// A table's own work: encodings, widening cells, versions across chunks.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {

TEST_CASE("codes of large dictionaries fit into the row", "[engine]") {
  MemoryDatabase database(std::size_t{64} << 20);
  TableSchema schema("t");
  for (const char* name : {"a", "b", "c", "d", "few"})
    schema.column(name, Type::kInt32).dictionary();
  const TableId table = must(database->create_table(schema));
  constexpr std::int32_t kRows = 70000;  // more values than 16 bits distinguish
  std::vector<Value> values;
  for (std::int32_t row = 0; row < kRows; ++row) {
    for (std::int32_t column = 0; column < 4; ++column)
      values.push_back(Value::int32(row * 4 + column));
    values.push_back(Value::int32(row % 5));
  }
  std::vector<RowId> rows(kRows);
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  must(t.insert_rows(table, values, rows));
  must(t.commit());
  const TableStatistics found = must(database->statistics(table));
  // 128 bits for cells in two words: two codes of 28 bits in each, and one of 8.
  CHECK(found.row_bytes == 32);
  for (std::size_t column = 0; column < 4; ++column) CHECK(found.columns[column].cell_bits == 28);
  CHECK(found.columns[4].cell_bits == 8);
  Transaction reader = must(database->begin(AccessMode::kReadOnly));
  std::size_t wrong = 0;
  for (std::int32_t row = 0; row < kRows; ++row) {
    const Row read = must(reader.get(table, rows[static_cast<std::size_t>(row)]));
    for (std::uint16_t column = 0; column < 4; ++column)
      wrong += read.get_unchecked<std::int32_t>(ColumnId{column}) == row * 4 + column ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rows keep their values while cells get wider", "[engine]") {
  MemoryDatabase database(std::size_t{64} << 20);
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("code", Type::kInt64).dictionary();
  schema.column("text", Type::kString);
  schema.column("number", Type::kDecimal).direct().primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  std::vector<RowId> rows;
  constexpr std::int64_t kRows = 70000;  // more values than 16 bits distinguish
  const auto number = [](std::int64_t i) { return i % 1000 == 999 ? -i : i; };
  for (std::int64_t i = 0; i < kRows;) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (int k = 0; k < 100; ++k, ++i)
      rows.push_back(must(t.insert(table, {Value::int64(i), Value::int64(i * 3),
                                           Value::string(std::string_view(std::to_string(i % 5))),
                                           Value::decimal_units(number(i))})));
    must(t.commit());
  }
  for (int opened = 0; opened < 2; ++opened) {
    CHECK(must(database->statistics(table)).columns[1].cell_bits == 28);
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const auto row = t.get(table, rows[static_cast<std::size_t>(i)]);
      wrong += row.ok() && row->get_unchecked<std::int64_t>(ColumnId{1}) == i * 3 &&
                       row->get_unchecked<std::string_view>(ColumnId{2}) == std::to_string(i % 5) &&
                       row->get_unchecked<std::int64_t>(ColumnId{3}) == number(i)
                   ? 0
                   : 1;
    }
    CHECK(wrong == 0);
    t.abort();
    database.reopen();
  }
}

TEST_CASE("an update moves a row from a narrow chunk to a wide one", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("wide", Type::kInt64).direct();
  schema.column("text", Type::kBytes).direct().column("flag", Type::kBool).direct();
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId first =
      must(t.insert(table, {Value::int64(1), Value::int64(5),
                            Value::bytes("bytes that are not in the cell"), Value::boolean(true)}));
  must(t.commit());
  Transaction old = must(database->begin(AccessMode::kReadOnly));
  Transaction writer = must(database->begin(AccessMode::kReadWrite));
  const RowId second = must(writer.update(table, first, {{ColumnId{1}, Value::int64(-5)}}));
  CHECK(&database->table(table)->rows().layout(first.value()) !=
        &database->table(table)->rows().layout(second.value()));
  const Row row = must(writer.get({table, 0}, {Value::int64(1)}));
  CHECK(row.id() == second);
  CHECK(row.get_unchecked<std::int64_t>(ColumnId{1}) == -5);
  CHECK(row.get_unchecked<std::string_view>(ColumnId{2}) == "bytes that are not in the cell");
  CHECK(row.get_unchecked<bool>(ColumnId{3}));
  // Also within the transaction that inserted it.
  const RowId fresh =
      must(writer.insert(table, {Value::int64(2), Value::null(), Value::null(), Value::null()}));
  must(writer.update(table, fresh, {{ColumnId{1}, Value::int64(INT64_MIN)}}));
  CHECK(must(writer.get({table, 0}, {Value::int64(2)})).get_unchecked<std::int64_t>(ColumnId{1}) ==
        INT64_MIN);
  must(writer.commit());
  CHECK(must(old.get({table, 0}, {Value::int64(1)})).get_unchecked<std::int64_t>(ColumnId{1}) == 5);
  old.abort();
  must(database->verify({}));
}

TEST_CASE("a row gives its columns one by one, some, or all", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("b", Type::kBool).column("i", Type::kInt32).column("l", Type::kInt64);
  schema.column("d", Type::kDouble).column("s", Type::kString).column("n", Type::kInt64);
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const std::vector<Value> values = {Value::boolean(true), Value::int32(-3),   Value::int64(4),
                                     Value::real(0.5),     Value::string("s"), Value::null()};
  const Row row = must(t.get(table, must(t.insert(table, values))));
  CHECK(row.get_unchecked<bool>(ColumnId{0}));
  CHECK(row.get_unchecked<std::int32_t>(ColumnId{1}) == -3);
  CHECK(row.get_unchecked<std::int64_t>(ColumnId{2}) == 4);
  CHECK(row.get_unchecked<double>(ColumnId{3}) == 0.5);
  CHECK(row.get_unchecked<std::string_view>(ColumnId{4}) == "s");
  CHECK(row.is_null_unchecked(ColumnId{5}));
  CHECK(row.get_unchecked<std::int64_t>(ColumnId{5}) == 0);
  std::vector<Value> all(6);
  row.get_all(all);
  CHECK((all == values));
  const std::vector<ColumnId> some = {ColumnId{4}, ColumnId{0}};
  std::vector<Value> two(2);
  row.get_unchecked(some, two);
  CHECK((two[0] == values[4]));
  CHECK((two[1] == values[0]));
  CHECK(RowId(row.id()) == row.id());
}

// Values of aborted transactions stay in the dictionary, durable or not: a later transaction that
// uses one makes it durable, and finds it after reopening.
TEST_CASE("another transaction uses a value that an aborted one added", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("text", Type::kString);
  const TableId table = must(database->create_table(schema));
  const Value text = Value::string("a text that an aborted transaction brought");
  {
    Transaction aborted = must(database->begin(AccessMode::kReadWrite));
    must(aborted.insert(table, {text}));
  }
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(table, {text}));
  must(t.commit());
  CHECK(must(database->statistics(table)).columns[0].dictionary_entries == 1);
  database.reopen();
  CHECK(must(must(database->begin(AccessMode::kReadOnly)).get(table, row))
            .get_unchecked<std::string_view>(ColumnId{0}) == text.as_string());
  must(database->verify({}));
}

}  // namespace flugs::test
