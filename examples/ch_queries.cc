// Eleven queries of CH-benCHmark on TPC-C's tables: their results, and how they were found. The
// queries themselves are in bench/tpcc/ch_queries.cc, one function each: read that file.
//
//   ch_queries [QUERY...]      all of them, or some: ch_queries Q3 Q18
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "bench/tpcc/ch_queries.h"
#include "bench/tpcc/tpcc_history.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_population.h"
#include "flugs/database.h"
#include "flugs/query.h"

using namespace flugs;

namespace {

const std::string kPool = "/dev/shm/flugs-ch-queries-" + std::to_string(getpid());

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "ch_queries: %s\n", status.to_string().c_str());
  std::exit(1);
}

template <typename T>
T check(Result<T> result) {
  if (!result.ok()) fail(result.status());
  return std::move(result).value();
}

/// Fills a tenth of a warehouse, so that it takes no time, and a history.
bench::ChPeriod fill(Database& database) {
  bench::TpccOptions population;
  population.customers_per_district = 300;
  population.items = 10'000;
  const bench::TpccTables tables =
      check(bench::create_tpcc_tables(database, population.warehouses));
  check(bench::load_tpcc(database, tables, population));
  const bench::TpccHistory history = check(
      bench::run_tpcc_history(database, tables, population, {bench::enough_rounds(population), 1}));
  return {population.first_entry_us - 1, history.last_us + 1};
}

std::string text_of(const Value& value, std::uint8_t scale) {
  if (value.is_null() || value.type() != Type::kDecimal || scale != 2) return value.to_string();
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(value.as_int64()) / 100);
  return text;
}

void print(const query::QueryResult& result) {
  constexpr std::size_t kRowsShown = 5;
  for (const query::ResultColumn& column : result.columns())
    std::printf("%16s", column.name.c_str());
  std::printf("\n");
  for (std::size_t row = 0; row < std::min(result.row_count(), kRowsShown); ++row) {
    for (std::size_t i = 0; i < result.columns().size(); ++i)
      std::printf("%16s", text_of(result.get_unchecked(row, i), result.columns()[i].scale).c_str());
    std::printf("\n");
  }
  if (result.row_count() > kRowsShown) std::printf("... %zu rows\n", result.row_count());
}

bool is_wanted(int argc, char** argv, const bench::ChQuery& query) {
  for (int i = 1; i < argc; ++i)
    if (query.name == argv[i]) return true;
  return argc < 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::atexit([] { unlink(kPool.c_str()); });
  OpenOptions options;
  options.path = kPool;
  Database database = check(Database::open(options));
  const bench::ChPeriod period = fill(database);
  const Transaction snapshot = check(database.begin(AccessMode::kReadOnly));
  for (const bench::ChQuery& query : bench::ch_queries()) {
    if (!is_wanted(argc, argv, query)) continue;
    const query::QueryResult result = check(query.make(period).run(snapshot));
    std::printf("\n%s: %s\n\n", std::string(query.name).c_str(),
                std::string(query.question).c_str());
    print(result);
    std::printf("\n%s\n", result.explain().c_str());
  }
  return 0;
}
