#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "test/support/model_value.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

struct Rows {
  MemoryDatabase database{std::size_t{32} << 20};
  TableId table;
  std::vector<ModelRow> rows;
  std::vector<RowId> ids;

  explicit Rows(std::size_t count, std::uint64_t seed = 1) {
    TableSchema schema("rows");
    for (int type = 1; type <= 9; ++type) {
      schema.column("a" + std::to_string(type), static_cast<Type>(type));
      schema.column("d" + std::to_string(type), static_cast<Type>(type)).direct();
    }
    table = must(database->create_table(schema));
    Random random(seed);
    Transaction t = begin();
    for (std::size_t i = 0; i < count; ++i) {
      ModelRow row;
      std::vector<Value> values;
      for (const ColumnSchema& column : schema.columns)
        row.push_back(random_value(column, 8, random));
      for (const ModelValue& value : row) values.push_back(value.view());
      ids.push_back(must(t.insert(table, values)));
      rows.push_back(std::move(row));
    }
    must(t.commit());
  }
  Transaction begin() { return must(database->begin(AccessMode::kReadWrite)); }
};

}  // namespace

TEST_CASE("a scan gives every column of every row, in batches", "[engine]") {
  Rows rows(5000);
  std::vector<ColumnId> columns;
  for (std::uint16_t i = 0; i < 18; ++i) columns.push_back(ColumnId{i});
  std::set<std::uint32_t> ids;
  std::size_t wrong = 0;
  std::size_t next = 0;
  must(rows.begin().scan(rows.table, columns, Predicate::all(), [&](const ScanBatch& batch) {
    wrong += batch.row_count() != 0 && batch.row_count() <= ScanBatch::kRowsMax ? 0 : 1;
    for (std::size_t i = 0; i < batch.row_count(); ++i, ++next) {
      ids.insert(batch.row_ids()[i].value());
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const ModelValue& expected = rows.rows[next][c];
        wrong += batch.get_unchecked(c, i) == expected.view() ? 0 : 1;
        const auto nulls = batch.nulls(c);
        wrong += (!nulls.empty() && nulls[i] != 0) == expected.null ? 0 : 1;
      }
    }
    return true;
  }));
  CHECK(next == 5000);
  CHECK(ids.size() == 5000);
  CHECK(wrong == 0);
}

TEST_CASE("a predicate selects exactly the rows that are equal", "[engine]") {
  Rows rows(3000);
  Random random(9);
  for (std::uint16_t column = 0; column < 18; ++column)
    for (int i = 0; i < 12; ++i) {
      const ModelValue wanted = i == 0 ? ModelValue::of(rows.rows[0][column].type, Value::null())
                                       : rows.rows[random.below(rows.rows.size())][column];
      std::size_t expected = 0;
      for (const ModelRow& row : rows.rows) expected += row[column] == wanted ? 1 : 0;
      std::size_t found = 0;
      const std::vector<ColumnId> columns = {ColumnId{column}};
      must(rows.begin().scan(rows.table, columns, Predicate::equal(ColumnId{column}, wanted.view()),
                             [&](const ScanBatch& batch) {
                               for (std::size_t r = 0; r < batch.row_count(); ++r)
                                 found += batch.get_unchecked(0, r) == wanted.view() ? 1 : 0;
                               return true;
                             }));
      INFO("column " << column << ", " << wanted.view().to_string());
      CHECK(found == expected);
    }
}

TEST_CASE("a scan stops when its visitor says so", "[engine]") {
  Rows rows(5000);
  std::size_t batches = 0;
  must(rows.begin().scan(rows.table, {ColumnId{0}}, [&](const ScanBatch&) {
    ++batches;
    return false;
  }));
  CHECK(batches == 1);
}

TEST_CASE("an empty table has no batches, and no columns still count rows", "[engine]") {
  Rows none(0);
  must(none.begin().scan(none.table, {ColumnId{0}}, [&](const ScanBatch&) {
    FAIL("a batch");
    return true;
  }));
  Rows some(1500);
  std::size_t count = 0;
  must(some.begin().scan(some.table, {}, [&](const ScanBatch& batch) {
    count += batch.row_count();
    return true;
  }));
  CHECK(count == 1500);
}

TEST_CASE("uncommitted, aborted and deleted rows are not scanned", "[engine]") {
  Rows rows(100);
  const auto count = [&](const Transaction& t) {
    std::size_t found = 0;
    must(t.scan(rows.table, {}, [&](const ScanBatch& batch) {
      found += batch.row_count();
      return true;
    }));
    return found;
  };
  const std::vector<Value> nulls(18);
  Transaction open = rows.begin();
  must(open.insert(rows.table, nulls));
  {
    Transaction aborted = rows.begin();
    must(aborted.insert(rows.table, nulls));
    must(aborted.remove(rows.table, rows.ids[3]));
  }
  Transaction before = rows.begin();
  {
    Transaction deleter = rows.begin();
    must(deleter.remove(rows.table, rows.ids[5]));
    must(deleter.commit());
  }
  CHECK(count(before) == 100);
  CHECK(count(rows.begin()) == 99);
  CHECK(count(open) == 101);
  open.abort();
  CHECK(count(rows.begin()) == 99);
}

}  // namespace flugs::test
