// Tables of a database: created, found, dropped, and still there after reopening.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/database/database_core.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema schema_of(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  return schema;
}

void fill(Database& database, TableId table, std::int64_t rows) {
  Transaction t = must(database.begin());
  for (std::int64_t i = 0; i < rows; ++i)
    must(t.insert(table,
                  {Value::int64(i), Value::string(std::string_view("a text longer than a cell " +
                                                                   std::to_string(i)))}));
  must(t.commit());
}

}  // namespace

TEST_CASE("tables are listed in the order of creation, also after reopening", "[engine]") {
  TemporaryDatabase database;
  std::vector<TableId> made;
  for (int i = 0; i < 20; ++i)
    made.push_back(must(database->create_table(schema_of("t" + std::to_string(i)))));
  CHECK(database->tables() == made);
  must(database->drop_table(made[3]));
  must(database->drop_table(made[19]));
  made.erase(made.begin() + 19);
  made.erase(made.begin() + 3);
  CHECK(database->tables() == made);
  database.reopen();
  CHECK(database->tables() == made);
  CHECK(must(database->find_table("t7")) == made[6]);
  CHECK(database->find_table("t3").code() == StatusCode::kNotFound);
  CHECK(must(database->schema(made[0])).columns[1].name == "text");
  CHECK(must(database->find_column(made[0], "text")) == ColumnId{1});
  CHECK(must(database->find_key(made[0], "primary")) == KeyId{made[0], 0});
  CHECK(database->path() == database.options.path);
}

TEST_CASE("a dropped table gives all its space back", "[engine]") {
  TemporaryDatabase database;
  must(database->create_table(schema_of("stays")));
  std::uint64_t before = 0;
  for (int i = 0; i < 7; ++i) {
    const TableId table = must(database->create_table(schema_of("passes")));
    fill(*database, table, 20000);
    CHECK(database->statistics().pool_used_bytes > before + 1000000);
    must(database->drop_table(table));
    // The first two leave space for the list of writes of a large transaction, which a slot keeps.
    if (i == 1) before = database->statistics().pool_used_bytes;
    if (i > 1) CHECK(database->statistics().pool_used_bytes == before);
  }
  const std::uint64_t allocated = database->statistics().pool_allocated_bytes;
  CHECK(allocated < std::uint64_t{24} << 20);  // the space was used again
  database.reopen();
  CHECK(database->statistics().pool_used_bytes == before);
  must(database->check());
}

TEST_CASE("space from another table holds no rows", "[engine]") {
  TemporaryDatabase database;
  const TableId first = must(database->create_table(schema_of("first")));
  fill(*database, first, 5000);
  must(database->drop_table(first));
  const TableId second = must(database->create_table(schema_of("second")));
  fill(*database, second, 10);
  for (int opened = 0; opened < 2; ++opened) {
    std::size_t rows = 0;
    must(must(database->begin()).scan(second, {ColumnId{0}}, [&](const ScanBatch& batch) {
      rows += batch.row_count();
      return true;
    }));
    CHECK(rows == 10);
    database.reopen();
  }
}

TEST_CASE("no more tables than the catalogue has places for", "[engine]") {
  TemporaryDatabase database;
  TableSchema small("t");
  small.column("x", Type::kInt32);
  std::size_t made = 0;
  Status failure;
  while (failure.ok() && made < 1000) {
    small.name = "t" + std::to_string(made);
    failure = database->create_table(small).status();
    made += failure.ok() ? 1 : 0;
  }
  CHECK(made == engine::CatalogLayout::kTablesMax);
  CHECK(failure.code() == StatusCode::kOutOfSpace);
  must(database->drop_table(must(database->find_table("t100"))));
  small.name = "again";
  CHECK(database->create_table(small).ok());
}

TEST_CASE("a transaction spans tables", "[engine]") {
  TemporaryDatabase database;
  const TableId a = must(database->create_table(schema_of("a")));
  const TableId b = must(database->create_table(schema_of("b")));
  {
    Transaction t = must(database->begin());
    must(t.insert(a, {Value::int64(1), Value::null()}));
    must(t.insert(b, {Value::int64(1), Value::null()}));
    CHECK(must(database->begin()).get({a, 0}, {Value::int64(1)}).code() == StatusCode::kNotFound);
    must(t.commit());
  }
  {
    Transaction t = must(database->begin());
    must(t.insert(a, {Value::int64(2), Value::null()}));
    must(t.insert(b, {Value::int64(2), Value::null()}));
  }  // aborted
  database.reopen();
  const Transaction t = must(database->begin());
  for (const TableId table : {a, b}) {
    CHECK(t.get({table, 0}, {Value::int64(1)}).ok());
    CHECK(t.get({table, 0}, {Value::int64(2)}).code() == StatusCode::kNotFound);
  }
}

TEST_CASE("insert_rows inserts all rows or none", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(schema_of("t")));
  std::vector<Value> values;
  std::vector<std::string> texts(1000);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i] = "text " + std::to_string(i % 100) + " of some length";
    values.push_back(Value::int64(static_cast<std::int64_t>(i)));
    values.push_back(Value::string(texts[i]));
  }
  const auto count = [&] {
    std::size_t rows = 0;
    must(must(database->begin()).scan(table, {ColumnId{0}}, [&](const ScanBatch& batch) {
      rows += batch.row_count();
      return true;
    }));
    return rows;
  };
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(700), Value::null()}));
  CHECK(t.insert_rows(table, values).code() == StatusCode::kAlreadyExists);
  must(t.commit());
  CHECK(count() == 1);
  Transaction wrong = must(database->begin());
  CHECK(wrong.insert_rows(table, std::span(values).first(3)).code() ==
        StatusCode::kInvalidArgument);
  values[1001] = Value::int64(1);
  CHECK(wrong.insert_rows(table, values).code() == StatusCode::kConstraintViolated);
  values[1001] = Value::null();
  must(wrong.remove(table, must(wrong.get({table, 0}, {Value::int64(700)})).id()));
  CHECK(wrong.insert_rows(table, values).ok());
  must(wrong.commit());
  CHECK(count() == 1000);
  must(database->check());
  database.reopen();
  CHECK(count() == 1000);
  must(database->check());
}

}  // namespace flugs::test
