#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "flugs/query.h"

namespace flugs::bench {

/// The table of the streams' figures: id (int64), n (int32), v (double), day (date), price
/// (decimal), name (a text of 20 bytes or a few more), rows in the order of the id.
struct StreamLoad {
  std::uint64_t rows = 0;
  std::uint32_t threads = 1;
  bool merges = true;          ///< the rows end in main
  std::uint64_t texts = 1000;  ///< different names
};

/// Fails as create_table, Transaction::insert_rows, commit and merge.
Result<TableId> load_stream_table(Database& database, const StreamLoad& load);

/// A way out of the engine.
enum class StreamWay : std::uint8_t {
  kStream,  ///< Query::stream, nothing is done with the batches
  kArrow,   ///< to_arrow; each array is released at once
  kRun,     ///< Query::run: the whole result
};
std::string to_string(StreamWay way);

/// Figures of one query on one way, of each run.
struct StreamFigures {
  std::vector<std::string> columns;
  StreamWay way = StreamWay::kStream;
  std::uint64_t rows = 0;
  std::vector<double> wall_ns;     ///< a row
  std::vector<double> cpu_ns;      ///< a row, on all processors together
  std::vector<double> first_ms;    ///< until the first batch; kRun: until the result
  std::uint64_t memory_bytes = 0;  ///< QueryStatistics::memory_bytes_peak, the largest
};

/// Reads the columns of all rows `runs` times, after once that is not counted. Fails as
/// Query::stream, and with kCorrupt when a run gives another number of rows than the table has.
Result<StreamFigures> read_stream(Database& database, const std::vector<std::string>& columns,
                                  StreamWay way, std::uint32_t threads, std::uint32_t runs);

}  // namespace flugs::bench
