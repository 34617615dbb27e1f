// Inserts: the form of what is stored, and what an aborted transaction leaves.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "test/engine/texts_schema.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

std::uint64_t lines_of_insert(Database& database, TableId table, std::int64_t id) {
  const std::uint64_t before = database.statistics().lines_flushed;
  Transaction t = must(database.begin());
  must(t.insert(table, {Value::int64(id), Value::string("one and the same")}));
  must(t.commit());
  return database.statistics().lines_flushed - before;
}

}  // namespace

TEST_CASE("insert_rows normalises a bool with a foreign payload", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("flags");
  schema.column("id", Type::kInt64).column("flag", Type::kBool).primary_key({"id"});
  schema.key("by_flag", {"flag"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin());
  const std::vector<Value> rows = {Value::int64(1), Value::from_raw(Type::kBool, 2),
                                   Value::int64(2), Value::boolean(true)};
  must(t.insert_rows(table, rows));
  std::size_t found = 0;
  must(t.rows(must(database->find_key(table, "by_flag")), {Value::boolean(true)}, [&](const Row&) {
    ++found;
    return true;
  }));
  CHECK(found == 2);
}

TEST_CASE("values of an aborted transaction do not hold up the durable prefix", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(texts_schema()));
  {
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < 1000; ++id)
      must(t.insert(table, {Value::int64(id), Value::string(std::string_view(
                                                  "never committed " + std::to_string(id)))}));
  }
  for (std::int64_t id = 0; id < 10; ++id) lines_of_insert(*database, table, id);
  const std::uint64_t lines = lines_of_insert(*database, table, 10);

  TemporaryDatabase quiet;
  const TableId same = must(quiet->create_table(texts_schema()));
  for (std::int64_t id = 0; id < 10; ++id) lines_of_insert(*quiet, same, id);
  CHECK(lines == lines_of_insert(*quiet, same, 10));
}

}  // namespace flugs::test
