#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/json.h"
#include "bench/support/median.h"
#include "bench/support/query_run.h"
#include "flugs/database.h"
#include "flugs/query_result.h"
#include "tools/support/child_process.h"
#include "tools/support/cleanup.h"

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
  std::uint64_t file_bytes = std::uint64_t{2} << 30;  ///< what its file should not exceed
  std::uint64_t memory_bytes_max = 0;                 ///< 0: as DuckDB chooses
  std::vector<Table> tables;
  std::vector<Query> queries;
  /// Executed one after the other when all queries have been run; after each of them they are run
  /// once more.
  std::vector<Query> changes;
  bench::Json parameters;  ///< integers, texts and arrays, which the SQL names as $name
};

struct DuckdbAnswer {
  std::string version;
  double load_seconds = 0;
  std::uint64_t file_bytes = 0;  ///< of the database, loaded
  struct Query {
    double first_ms = 0;               ///< of the run that is not counted
    std::vector<double> ms;            ///< of each run: all rows fetched
    std::vector<double> cpu_ms;        ///< of each run, on all processors together
    std::uint64_t resident_bytes = 0;  ///< by which its resident memory rose at most, in any run
    bench::Json rows;                  ///< an array of rows, which are arrays

    double median_ms() const { return bench::median(ms); }
    double median_cpu_ms() const { return bench::median(cpu_ms); }
  };
  std::vector<Query> queries;  ///< in the order of the job's
  /// The same after each of DuckdbJob::changes, with its name.
  struct State {
    std::string name;
    std::vector<Query> queries;
  };
  std::vector<State> states;
};

/// DuckDB in another process, with a database in a file beside our pools. Decimals, dates and
/// timestamps are there as integers, in what they are counted in.
class DuckdbProcess {
 public:
  /// Starts it. Fails with kNotFound (table, column), kIoError.
  static Result<DuckdbProcess> start(const Database& database, const DuckdbJob& job);

  DuckdbProcess(DuckdbProcess&& other) noexcept;
  DuckdbProcess& operator=(DuckdbProcess&&) = delete;
  ~DuckdbProcess();

  /// Copies the job's tables to it, as the transaction sees them: through a socket, which it reads
  /// as fast as it loads. Fails as stream_table; kIoError: it ended, with reasons of its own.
  Status copy(const Database& database, const Transaction& transaction);
  /// Lets it run the queries, and waits. Our database may be closed by then.
  /// Fails with kIoError: the program, in its own words on standard error.
  Result<DuckdbAnswer> answer();

 private:
  DuckdbProcess() = default;
  Status send(std::span<const char> bytes);
  Status describe_end();
  void close_input() noexcept;

  DuckdbJob job_;
  std::vector<TemporaryFile> files_;
  std::string answer_path_;
  int input_ = -1;  ///< our end of its standard input
  ChildProcess child_;
};

/// All of that at once.
Result<DuckdbAnswer> ask_duckdb(const Database& database, const Transaction& transaction,
                                const DuckdbJob& job);

/// Where a result and the rows of `whose` differ, in words; empty: nowhere. Doubles may differ in
/// the rounding of their last operations, a part in 10^12.
std::string difference(const query::QueryResult& result, const bench::Json& rows,
                       std::string_view whose);

}  // namespace flugs::tools
