#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/scan/scan_changes.h"
#include "bench/scan/scan_load.h"
#include "bench/scan/scan_queries.h"
#include "bench/scan/scan_updates.h"
#include "bench/support/query_run.h"
#include "flugs/merge.h"
#include "test/support/temporary_database.h"

namespace flugs::bench {

namespace {

constexpr std::uint64_t kRows = 30'000;
constexpr std::uint64_t kDistinct = 7'000;

Json rows_of(const query::QueryResult& result) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < result.columns().size(); ++i) {
      const Value value = result.get_unchecked(row, i);
      if (value.is_null())
        cells.push_back(nullptr);
      else if (value.type() == Type::kString)
        cells.push_back(std::string(value.as_string()));
      else
        cells.push_back(value.raw());
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

/// The results of the queries, by name.
Json answers(Database& database, const ScanData& data) {
  Json answers = Json::object();
  for (const ScanQuery& query : scan_queries(data)) {
    const Result<QueryFigures> figures =
        run_query(database, query.name, query.question, query.query, {2, 1});
    INFO(query.name);
    REQUIRE(figures.ok());
    CHECK(figures->is_repeatable);
    answers[std::string(query.name)] = rows_of(*figures->result);
  }
  return answers;
}

}  // namespace

TEST_CASE("the scan benchmark's queries find the loaded rows, in main and in the delta", "[api]") {
  const std::uint64_t merged = GENERATE(std::uint64_t{0}, kRows / 2, kRows);
  const ScanData data(kRows, kDistinct, 3);
  test::TemporaryDatabase temporary;
  Database& database = *temporary;
  const Result<TableId> table = create_scan_table(database);
  REQUIRE(table.ok());
  ScanTotals totals(data);
  REQUIRE(load_scan_rows(database, *table, data, {0, merged, 2, {}}, totals).ok());
  if (merged > 0) {
    MergeOptions merge;
    merge.scope = MergeScope::kEverything;
    REQUIRE(database.merge(*table, merge).ok());
  }
  REQUIRE(load_scan_rows(database, *table, data, {merged, kRows, 2, {}}, totals).ok());

  const Json found = answers(database, data);
  CHECK(found == totals.expected());
  CHECK(found.size() == 15);
  CHECK(found["point"].size() > 0);
  CHECK(found["top10"].size() == 10);

  // Every query that reads an extra row, which the totals do not count, reports it.
  Result<Transaction> transaction = database.begin();
  REQUIRE(transaction.ok());
  const std::vector<Value> row = {Value::int32(data.wanted()),
                                  Value::int32(1),
                                  Value::int32(2),
                                  Value::int32(3),
                                  Value::int32(4),
                                  Value::string(data.text(data.wanted_text()))};
  REQUIRE(transaction->insert(*table, row).ok());
  REQUIRE(transaction->commit().ok());
  const Json other = answers(database, data);
  for (const char* name : {"sum", "sum4", "filter_string", "group_int", "group_string", "point"}) {
    INFO(name);
    CHECK(other[name] != totals.expected()[name]);
  }
}

TEST_CASE("the scan benchmark's queries are right after updates and deletions, and during them",
          "[api]") {
  const bool together = GENERATE(false, true);
  const std::uint32_t columns = GENERATE(0u, 8u, kScanAllColumns);
  const ScanData data(kRows, kDistinct, 4);
  test::TemporaryDatabase temporary;
  Database& database = *temporary;
  const TableId table = test::must(create_scan_table(database));
  ScanTotals totals(data);
  test::must(load_scan_rows(database, table, data, {0, kRows, 2, {}}, totals));
  MergeOptions merge;
  merge.scope = MergeScope::kEverything;
  test::must(database.merge(table, merge));
  ScanChanges changes(data, {{2, together}, {3, together}, columns});
  test::must(changes.plan(database, table));
  CHECK(answers(database, data) == totals.expected());

  const std::uint64_t updated = test::must(changes.update(database, table));
  CHECK(updated > kRows / 60);
  CHECK(updated < kRows / 40);
  const Json after_updates = answers(database, data);
  CHECK(after_updates == changes.after_updates().expected());
  CHECK(after_updates["sum4"] != totals.expected()["sum4"]);
  if (columns != 8) CHECK(after_updates["group_string"] != totals.expected()["group_string"]);

  const std::uint64_t deleted = test::must(changes.remove(database, table));
  CHECK(deleted > kRows / 40);
  CHECK(deleted < kRows / 27);
  const Json expected = changes.after_deletions().expected();
  CHECK(expected["sum"] != after_updates["sum"]);
  CHECK(answers(database, data) == expected);
  const auto updater = test::must(ScanUpdater::start(database, table, 20'000));
  CHECK(answers(database, data) == expected);
  while (updater->updated() == 0) std::this_thread::yield();
  CHECK(answers(database, data) == expected);
  CHECK(test::must(updater->stop()) > 0);
  test::must(database.merge(table, merge));
  CHECK(answers(database, data) == expected);
}

TEST_CASE("an update of the scan benchmark's rows, done twice, leaves them as they were", "[api]") {
  const ScanData data(1'000, 300, 5);
  for (std::uint32_t columns = 1; columns <= kScanAllColumns; ++columns) {
    ScanRow loaded;
    data.row(columns, loaded);
    ScanRow row = loaded;
    change_scan_row(data, columns, row);
    CHECK(row != loaded);
    change_scan_row(data, columns, row);
    CHECK(row == loaded);
  }
}

TEST_CASE("changes of the scan benchmark refuse a table with other rows", "[api]") {
  const ScanData data(3'000, 300, 6);
  test::TemporaryDatabase temporary;
  const TableId table = test::must(create_scan_table(*temporary));
  ScanTotals totals(data);
  test::must(load_scan_rows(*temporary, table, data, {0, 2'999, 1, {}}, totals));
  ScanChanges changes(data, {{1, false}, {1, false}, 0});
  CHECK(changes.plan(*temporary, table).code() == StatusCode::kCorrupt);
}

TEST_CASE("the scan benchmark's columns have the requested distinct values", "[api]") {
  const std::uint64_t distinct =
      GENERATE(std::uint64_t{1}, std::uint64_t{777}, std::uint64_t{5000});
  const ScanData data(5'000, distinct, 9);
  std::set<std::int32_t> values[kScanIntegers];
  std::set<std::uint32_t> texts;
  for (std::uint64_t i = 0; i < data.rows(); ++i) {
    ScanRow row;
    data.row(i, row);
    for (std::size_t k = 0; k < kScanIntegers; ++k) values[k].insert(row.integers[k]);
    texts.insert(row.text);
  }
  for (const std::set<std::int32_t>& of_column : values) {
    CHECK(of_column.size() == distinct);
    CHECK(*of_column.begin() == 0);
    CHECK(*of_column.rbegin() == static_cast<std::int32_t>(distinct - 1));
  }
  CHECK(texts.size() > 950);
}

}  // namespace flugs::bench
