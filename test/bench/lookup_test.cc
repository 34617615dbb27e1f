// The benchmark of look-ups: it finds the rows that were loaded, and sees those that are others.
#include <catch2/catch.hpp>
#include <cstdint>

#include "bench/loads/lookup_load.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

using bench::LookupForm;
using bench::LookupOrder;

constexpr std::uint64_t kLookupRows = 1000;
/// Two runs, a timed and an untimed turn in each, with the 4100 keys that 100 calls of 41 have.
constexpr std::uint64_t kLookedUp = std::uint64_t{2} * 2 * 4100;

bench::LookupPlan plan(LookupOrder order) {
  return {.batch = 41, .order = order, .keys = 1, .runs = 1};
}

}  // namespace

TEST_CASE("each form of look-up finds every row as it was loaded", "[lookups]") {
  const bool is_scattered = GENERATE(false, true);
  const bool merges = GENERATE(false, true);
  TemporaryDatabase database;
  const bench::LookupTable table = must(bench::load_lookup_table(
      *database, {.rows = kLookupRows, .is_scattered = is_scattered, .merges = merges}));
  for (const LookupOrder order : {LookupOrder::kKey, LookupOrder::kRandom}) {
    const bench::LookupResult result = must(bench::run_lookups(*database, table, plan(order)));
    for (const bench::LookupForm form : bench::kLookupForms) {
      const bench::LookupFigures& figures = result[static_cast<std::size_t>(form)];
      INFO(to_string(form));
      CHECK(figures.rows == kLookedUp);
      CHECK(figures.missing == 0);
      CHECK(figures.wrong == 0);
      CHECK(figures.row_ns.size() == 1);
      CHECK(figures.thread_row_ns.size() == 1);
      CHECK(figures.call_ns.count() == (form == LookupForm::kGetMany ? 100 : 4100));
    }
  }
  must(database->check());
}

TEST_CASE("each form of look-up counts rows that are missing or have other values", "[lookups]") {
  TemporaryDatabase database;
  const bench::LookupTable table =
      must(bench::load_lookup_table(*database, {.rows = kLookupRows, .merges = false}));
  Transaction t = must(database->begin());
  for (std::int64_t id = 0; id < 30; ++id) must(t.remove(table.key, {Value::int64(id)}));
  for (std::int64_t id = 30; id < 50; ++id)
    must(t.update(table.key, {Value::int64(id)}, {{ColumnId(1), Value::int64(-1)}}));
  for (std::int64_t id = 50; id < 60; ++id)
    must(t.update(table.key, {Value::int64(id)}, {{ColumnId(2), Value::null()}}));
  must(t.commit());
  const bench::LookupResult result =
      must(bench::run_lookups(*database, table, plan(LookupOrder::kKey)));
  // In key order 4100 keys are the table four times, and 100 rows more; the forms take turns.
  std::uint64_t missing = 0;
  std::uint64_t wrong = 0;
  for (const bench::LookupFigures& figures : result) {
    CHECK(figures.rows == kLookedUp);
    CHECK(figures.missing >= 4 * 4 * 30);
    CHECK(figures.wrong >= 4 * 4 * 30);
    missing += figures.missing;
    wrong += figures.wrong;
  }
  // All turns together have 49,200 keys: the table 49 times, and its first 200 rows.
  CHECK(missing == 50 * 30);
  CHECK(wrong == 50 * 30);
}

}  // namespace flugs::test
