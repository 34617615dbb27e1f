// When a query has helpers: threads of the database's crew.
#include <catch2/catch.hpp>
#include <cstdint>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

/// A table with all its rows in eight row groups.
struct MergedTable {
  MergedTable() {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).column("n", Type::kInt64).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    for (int group = 0; group < 8; ++group) {
      Transaction t = must(database->begin(AccessMode::kReadWrite));
      for (std::int64_t row = 0; row < 500; ++row) {
        const std::int64_t id = group * 500 + row;
        must(t.insert(table, {Value::int64(id), Value::int64(id * 3)}));
      }
      must(t.commit());
      MergeOptions options;
      options.scope = MergeScope::kEverything;
      must(database->merge(table, options));
    }
  }
  void run(const Query& query) {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    RunOptions options;
    options.threads = 2;
    must(query.run(t, options));
  }

  std::size_t helpers() { return database->query_crew().thread_count(); }

  MemoryDatabase database{std::size_t{64} << 20};
  TableId table{};
};

}  // namespace

TEST_CASE("what row groups have in their headers is read without helpers") {
  MergedTable merged;
  merged.run(Query::table("t").group_by({}, {min("n"), max("id"), count()}));
  CHECK(merged.helpers() == 0);
  merged.run(Query::table("t").group_by({}, {min("n"), sum("n")}));
  CHECK(merged.helpers() == 1);
}

TEST_CASE("row groups that must be read for their least values are read with helpers") {
  MergedTable merged;
  Transaction t = must(merged.database->begin(AccessMode::kReadWrite));
  for (const std::int64_t id : {0, 500, 1000})
    must(t.remove(merged.table, must(t.get({merged.table, 0}, {Value::int64(id)})).id()));
  must(t.commit());
  merged.run(Query::table("t").group_by({}, {min("n")}));
  CHECK(merged.helpers() == 1);
}
