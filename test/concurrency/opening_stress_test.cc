// Tables that several threads load while opening.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tables/catalog/catalog.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr int kTables = 64;  // more than one thread would be left alone with
constexpr int kRows = 40;
constexpr int kOpenings = 8;

/// Tables of texts and numbers; each but the first refers to the one before.
struct ManyTables {
  MemoryDatabase database{std::size_t{64} << 20};

  ManyTables() {
    database.options.tuning.recovery_threads = 4;
    for (int i = 0; i < kTables; ++i) {
      TableSchema schema(name_of(i));
      schema.column("id", Type::kInt64).column("text", Type::kString).column("n", Type::kInt32);
      schema.primary_key({"id"}).key("by_n", {"n"});
      if (i > 0) schema.foreign_key("parent", {"id"}, name_of(i - 1));
      insert(must(database->create_table(schema)), 0);
    }
  }
  static std::string name_of(int table) { return fmt::format("t{}", table); }
  TableId id_of(int table) { return must(database->find_table(name_of(table))); }
  std::string text_of(std::int64_t id) {
    return fmt::format("a text that is too long to stand in an entry, of row {}", id);
  }
  void insert(TableId table, std::int64_t first) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = first; id < first + kRows; ++id)
      must(t.insert(table, {Value::int64(id), Value::string(std::string_view(text_of(id))),
                            Value::int32(static_cast<std::int32_t>(id % 7))}));
    must(t.commit());
  }
  /// How many of the rows up to `end` are missing or wrong in a table.
  int wrong_rows(TableId table, std::int64_t end) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    int wrong = 0;
    for (std::int64_t id = 0; id < end; ++id) {
      const Result<Row> row = t.get({table, 0}, {Value::int64(id)});
      if (!row.ok() || row->get_unchecked<std::string_view>(ColumnId(1)) != text_of(id)) ++wrong;
    }
    must(t.commit());
    return wrong;
  }
};

}  // namespace

TEST_CASE("tables that several threads load are all there, and go on", "[concurrency][recovery]") {
  ManyTables tables;
  for (int opening = 1; opening <= kOpenings; ++opening) {
    tables.database.reopen();
    CHECK(tables.database->report().phases.front().items == kTables);
    for (int i = 0; i < kTables; ++i)
      REQUIRE(tables.wrong_rows(tables.id_of(i), std::int64_t{opening} * kRows) == 0);
    for (int i = 0; i < kTables; ++i) tables.insert(tables.id_of(i), std::int64_t{opening} * kRows);
  }
  must(tables.database->verify({}));
}

TEST_CASE("of several damaged tables the first in the catalogue is reported",
          "[concurrency][recovery]") {
  ManyTables tables;
  pmem::Pool& pool = tables.database->pool();
  engine::CatalogLayout& catalog = *must(engine::find_catalog(pool));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::size(catalog.tables); ++i)
    if (catalog.tables[i] != 0) places.push_back(i);
  REQUIRE(places.size() == kTables);
  constexpr std::size_t kFirst = 9;
  std::string first;
  for (std::size_t i = kFirst; i < kTables; i += 5) {
    catalog.tables[places[i]] += 1;
    if (first.empty()) first = fmt::format("{}", catalog.tables[places[i]]);
  }
  for (int opening = 0; opening < kOpenings; ++opening) {
    const Status status = tables.database.try_reopen();
    REQUIRE(status.code() == StatusCode::kCorrupt);
    INFO(status.to_string());
    CHECK(status.message().find(first) != std::string_view::npos);
  }
}

}  // namespace flugs::test
