#include "bench/loads/stream_load.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "bench/support/bulk_load.h"
#include "bench/support/clock.h"
#include "flugs/arrow_export.h"

namespace flugs::bench {

namespace {

using query::Query;
using query::QueryStatistics;
using query::ResultStream;

Status insert_range(Database& database, TableId table, std::uint64_t names, std::uint64_t begin,
                    std::uint64_t end) {
  Result<Transaction> writer = database.begin();
  if (!writer.ok()) return writer.status();
  std::array<char, 40> name{};
  for (std::uint64_t row = begin; row < end; ++row) {
    const auto id = static_cast<std::int64_t>(row);
    const int length = std::snprintf(name.data(), name.size(), "the name of item %03llu",
                                     static_cast<unsigned long long>(row * 7919 % names));
    const std::array<Value, 6> values = {
        Value::int64(id),
        Value::int32(static_cast<std::int32_t>(row * 31 % 100'000)),
        Value::real(static_cast<double>(row) * 0.25),
        Value::date(static_cast<std::int32_t>(row % 3000)),
        Value::decimal(id * 17 % 1'000'000, 2),
        Value::string(std::string_view(name.data(), static_cast<std::size_t>(length)))};
    const Result<Inserted> inserted = writer->insert(table, values);
    if (!inserted.ok()) return inserted.status();
  }
  return writer->commit();
}

/// What one run adds to the figures.
struct StreamRun {
  std::uint64_t rows = 0;
  double first_ms = 0;
  QueryStatistics statistics;
};

Status pull(ResultStream stream, std::uint64_t begin_ns, StreamRun& run) {
  for (const query::StreamBatch& batch : stream) {
    if (run.rows == 0) run.first_ms = ms_since(begin_ns);
    run.rows += batch.row_count();
  }
  run.statistics = stream.statistics();
  return stream.status();
}

Status pull_arrow(ResultStream stream, std::uint64_t begin_ns, StreamRun& run) {
  ArrowArrayStream arrow;
  query::to_arrow(std::move(stream), arrow);
  int failed = 0;
  for (;;) {
    ArrowArray array;
    failed = arrow.get_next(&arrow, &array);
    if (failed != 0 || array.release == nullptr) break;
    if (run.rows == 0) run.first_ms = ms_since(begin_ns);
    run.rows += static_cast<std::uint64_t>(array.length);
    array.release(&array);
  }
  const Status status =
      failed == 0 ? Status() : Status(StatusCode::kIoError, arrow.get_last_error(&arrow));
  arrow.release(&arrow);
  return status;
}

Status run_once(const Query& query, const Transaction& reader, StreamWay way,
                const query::RunOptions& options, StreamRun& run) {
  const std::uint64_t begin = monotonic_ns();
  if (way == StreamWay::kRun) {
    const Result<query::QueryResult> result = query.run(reader, options);
    if (!result.ok()) return result.status();
    run = {result->row_count(), ms_since(begin), result->statistics()};
    return {};
  }
  Result<ResultStream> stream = query.stream(reader, options);
  if (!stream.ok()) return stream.status();
  return way == StreamWay::kStream ? pull(*std::move(stream), begin, run)
                                   : pull_arrow(*std::move(stream), begin, run);
}

}  // namespace

std::string to_string(StreamWay way) {
  switch (way) {
    case StreamWay::kStream:
      return "stream";
    case StreamWay::kArrow:
      return "arrow";
    case StreamWay::kRun:
      return "run";
  }
  return "";
}

Result<TableId> load_stream_table(Database& database, const StreamLoad& load) {
  TableSchema schema("streamed");
  schema.column("id", Type::kInt64).column("n", Type::kInt32).column("v", Type::kDouble);
  schema.column("day", Type::kDate).column("price", Type::kDecimal, {.scale = 2});
  schema.column("name", Type::kString);
  Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table;
  BulkLoad bulk;
  bulk.end = load.rows;
  bulk.threads = load.threads;
  bulk.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) {
    return insert_range(database, *table, load.texts, begin, end);
  };
  if (Status s = load_in_parallel(bulk); !s.ok()) return s;
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  if (load.merges)
    if (const auto merged = database.merge(*table, everything); !merged.ok())
      return merged.status();
  return table;
}

Result<StreamFigures> read_stream(Database& database, const std::vector<std::string>& columns,
                                  StreamWay way, std::uint32_t threads, std::uint32_t runs) {
  StreamFigures figures;
  figures.columns = columns;
  figures.way = way;
  const Query query =
      Query::table("streamed").select(std::vector<query::Item>(columns.begin(), columns.end()));
  query::RunOptions options;
  options.threads = threads;
  const Result<Transaction> reader = database.begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  for (std::uint32_t i = 0; i <= runs; ++i) {
    StreamRun run;
    const std::uint64_t begin = monotonic_ns();
    const std::uint64_t cpu_begin = process_cpu_ns();
    if (Status s = run_once(query, *reader, way, options, run); !s.ok()) return s;
    const auto wall = static_cast<double>(monotonic_ns() - begin);
    const auto cpu = static_cast<double>(process_cpu_ns() - cpu_begin);
    if (i == 0) figures.rows = run.rows;
    if (run.rows != figures.rows)
      return Status(StatusCode::kCorrupt,
                    "two runs on one snapshot gave different numbers of rows");
    figures.memory_bytes = std::max(figures.memory_bytes, run.statistics.memory_bytes_peak);
    if (i == 0) continue;
    const auto rows = static_cast<double>(std::max<std::uint64_t>(run.rows, 1));
    figures.wall_ns.push_back(wall / rows);
    figures.cpu_ns.push_back(cpu / rows);
    figures.first_ms.push_back(run.first_ms);
  }
  return figures;
}

}  // namespace flugs::bench
