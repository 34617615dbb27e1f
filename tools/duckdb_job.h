#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/json.h"
#include "flugs/database.h"
#include "flugs/query_result.h"

namespace flugs::tools {

/// Queries for DuckDB, on tables that are copied from a database of ours.
struct DuckdbJob {
  struct Table {
    std::string name;
    std::vector<std::string> columns;  ///< those that the queries read
  };
  struct Query {
    std::string name;
    std::string sql;
  };

  std::string program;  ///< tools/duckdb
  std::uint32_t threads = 1;
  std::uint32_t runs = 5;  ///< of each query, after one that is not counted
  std::vector<Table> tables;
  std::vector<Query> queries;
  bench::Json parameters;  ///< integers, which the SQL names as $name
};

struct DuckdbAnswer {
  std::string version;
  double load_seconds = 0;
  struct Query {
    std::vector<double> ms;  ///< of each run: all rows fetched
    bench::Json rows;        ///< an array of rows, which are arrays

    double median_ms() const;
  };
  std::vector<Query> queries;  ///< in the order of the job's
};

/// Has DuckDB do it, in another process, with a database in a file beside our pools. Decimals,
/// dates and timestamps are there as integers, in what they are counted in.
/// Fails with: kNotFound (table, column), kIoError (files; the program, in its own words).
Result<DuckdbAnswer> ask_duckdb(const Database& database, const Transaction& transaction,
                                const DuckdbJob& job);

/// Where a result and DuckDB's rows differ, in words; empty: nowhere. Doubles may differ in the
/// rounding of their last operations, a part in 10^12.
std::string difference(const query::QueryResult& result, const bench::Json& rows);

}  // namespace flugs::tools
