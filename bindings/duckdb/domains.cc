#include "bindings/duckdb/domains.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "flugs/try.h"

namespace flugs::duckdb {

namespace {

// A table of fewer positions is counted, which takes some microseconds.
constexpr std::uint64_t kCountedMax = 16384;

// The least and the greatest value of a column of whole numbers or dates say how many values it can
// have. Other columns are not read.
bool is_counted(const ColumnSchema& column) noexcept {
  return !column.dropped &&
         (column.type == Type::kInt32 || column.type == Type::kInt64 || column.type == Type::kDate);
}

// A column of fewer rows has few values anyway.
constexpr std::uint64_t kSmallMax = 1000;
// A column with an eighth as many values as rows is taken for unique.
constexpr std::uint64_t kUniqueShare = 8;

// Rows of the delta are read one by one, some 75 ns each with twelve columns. If a table has more
// places for them than this, a sample is read instead.
constexpr std::uint64_t kDeltaRowsMax = 20'000;
// Rows of a chunk of the delta, at most.
constexpr std::uint64_t kChunkRows = std::uint64_t{1} << 17;
// DuckDB does not tell an extension of an interrupt. So a look that takes longer ends by itself,
// and a sample is read instead. Groups with many dead rows take long: their columns are read.
constexpr std::chrono::milliseconds kLookMax{20};

// Rows of a sample. Its least and greatest values are near those of the table, unless few rows have
// them. One costs three microseconds with twelve columns.
constexpr std::uint32_t kSampleRows = 4096;
// A sample with fewer rows tells nothing.
constexpr std::uint32_t kSampleRowsMin = 512;
// Places that are looked at: many may be free, or rows may lie behind places that merges gave back.
constexpr std::uint32_t kSamplePlacesMax = 4 * kSampleRows;

/// The least and the greatest value of a column, as `raw` has them. Nothing: all are NULL.
struct Bounds {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t greatest = std::numeric_limits<std::int64_t>::min();

  void add(const Value& value) noexcept {
    if (value.is_null()) return;
    least = std::min(least, value.raw());
    greatest = std::max(greatest, value.raw());
  }
  std::uint64_t span() const noexcept {
    if (least > greatest) return 0;
    return static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least);
  }
};

// Whether all rows can be asked. Groups of main know their least and greatest values.
bool is_cheap(const TableStatistics& statistics) noexcept {
  const std::uint64_t reserved =
      statistics.rows_reserved - std::min(statistics.rows_reserved, statistics.group_rows);
  const std::uint64_t chunks = statistics.chunks - std::min(statistics.chunks, statistics.groups);
  return std::min(reserved, chunks * kChunkRows) <= kDeltaRowsMax;
}

bool is_like(std::uint64_t rows, std::uint64_t before) noexcept {
  return std::max(rows, before) - std::min(rows, before) <= before / 4;
}

// Reads the bounds of the columns `counted`, in that order, from all rows. Fails with kCancelled
// after kLookMax, or when `stop` is requested.
Result<std::vector<Bounds>> read_bounds(const Transaction& snapshot, const Table& table,
                                        const std::vector<std::uint16_t>& counted,
                                        const std::stop_token& stop) {
  std::vector<query::Aggregate> wanted;
  for (const std::uint16_t c : counted) {
    const std::string& name = table.schema().columns[c].name;
    wanted.push_back(query::min(name).as("min " + std::to_string(c)));
    wanted.push_back(query::max(name).as("max " + std::to_string(c)));
  }
  const auto end = std::chrono::steady_clock::now() + kLookMax;
  std::stop_source ends;
  query::RunOptions options;
  options.threads = 1;
  options.stop = ends.get_token();
  options.progress = [&](const Progress&) {
    if (stop.stop_requested() || std::chrono::steady_clock::now() > end) ends.request_stop();
  };
  FLUGS_ASSIGN(
      const query::QueryResult result,
      query::Query::table(table.name()).group_by({}, std::move(wanted)).run(snapshot, options));
  std::vector<Bounds> bounds(counted.size());
  for (std::size_t i = 0; i < counted.size(); ++i) {
    FLUGS_ASSIGN(const Value least, result.get(0, 2 * i));
    FLUGS_ASSIGN(const Value greatest, result.get(0, 2 * i + 1));
    bounds[i].add(least);
    bounds[i].add(greatest);
  }
  return bounds;
}

// Reads the same bounds from rows at random places. Nothing: too few rows were found.
Result<std::optional<std::vector<Bounds>>> sample_bounds(const Transaction& snapshot,
                                                         const Table& table, std::uint64_t places,
                                                         const std::vector<std::uint16_t>& counted,
                                                         const std::stop_token& stop) {
  std::vector<Bounds> bounds(counted.size());
  std::mt19937_64 random(places);  // the same places each time
  std::uint32_t found = 0;
  for (std::uint32_t looked = 0; looked < kSamplePlacesMax && found < kSampleRows; ++looked) {
    if (stop.stop_requested()) return Status(StatusCode::kCancelled, "the pool is being closed");
    const std::uint64_t place =
        random() % std::min<std::uint64_t>(places, std::numeric_limits<std::uint32_t>::max());
    const Result<Row> row = snapshot.get(table.id(), RowId(static_cast<std::uint32_t>(place)));
    if (row.code() == StatusCode::kNotFound) continue;
    FLUGS_TRY(row.status());
    ++found;
    for (std::size_t i = 0; i < counted.size(); ++i) {
      FLUGS_ASSIGN(const Value value, row->get(ColumnId(counted[i])));
      bounds[i].add(value);
    }
  }
  if (found < kSampleRowsMin) return std::optional<std::vector<Bounds>>();
  return std::optional(std::move(bounds));
}

// Nothing: the table has too few rows for a sample of its places.
Result<std::optional<Domains>> look_for(Database& database, const Table& table, std::uint64_t rows,
                                        const std::stop_token& stop) {
  const std::vector<ColumnSchema>& columns = table.schema().columns;
  Domains found{.rows = rows, .values = std::vector<std::uint64_t>(columns.size(), rows)};
  std::vector<std::uint16_t> counted;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (is_counted(columns[c])) counted.push_back(static_cast<std::uint16_t>(c));
  if (counted.empty() || rows <= kSmallMax) return std::optional(std::move(found));
  FLUGS_ASSIGN(const TableStatistics statistics, database.table_statistics(table.id()));
  FLUGS_ASSIGN(const Transaction snapshot, database.begin(AccessMode::kReadOnly));
  std::optional<std::vector<Bounds>> bounds;
  if (is_cheap(statistics)) {
    Result<std::vector<Bounds>> read = read_bounds(snapshot, table, counted, stop);
    if (!read.ok() && (read.code() != StatusCode::kCancelled || stop.stop_requested()))
      return read.status();
    if (read.ok()) bounds = *std::move(read);
  }
  if (!bounds) {
    const std::uint64_t places = std::max<std::uint64_t>(statistics.rows_reserved, 1);
    FLUGS_ASSIGN(bounds, sample_bounds(snapshot, table, places, counted, stop));
  }
  if (!bounds) return std::optional<Domains>();
  for (std::size_t i = 0; i < counted.size(); ++i)
    if (const std::uint64_t span = (*bounds)[i].span(); span < rows / kUniqueShare)
      found.values[counted[i]] = span + 1;
  return std::optional(std::move(found));
}

}  // namespace

// An estimate: positions of rows that are in use. They are handed out a thousand at a time: DuckDB
// would take a table of 25 rows for a larger one, and order joins by that.
std::uint64_t estimate_rows(Database& database, const Table& table) {
  const Result<TableStatistics> statistics = database.table_statistics(table.id());
  if (!statistics.ok()) return 0;
  const std::uint64_t estimate =
      statistics->rows_reserved - std::min(statistics->rows_reserved, statistics->rows_free);
  if (estimate > kCountedMax) return estimate;
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  if (!snapshot.ok()) return estimate;
  const Result<query::QueryResult> counted = query::Query::table(table.name())
                                                 .group_by({}, {query::count()})
                                                 .run(*snapshot, {.threads = 1});
  if (!counted.ok()) return estimate;
  const Result<Value> count = counted->get(0, 0);
  return count.ok() ? static_cast<std::uint64_t>(count->as_int64()) : estimate;
}

Result<Domains> KnownDomains::of(Database& database, const Table& table,
                                 const std::stop_token& stop) {
  const std::uint64_t rows = estimate_rows(database, table);
  // One thread looks. Others that plan meanwhile wait for what it finds.
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(table.id());
  if (found != known_.end() && is_like(rows, found->second.rows) &&
      found->second.values.size() == table.schema().columns.size())
    return found->second;
  FLUGS_ASSIGN(std::optional<Domains> domains, look_for(database, table, rows, stop));
  // Not kept: the next statement may find more.
  if (!domains)
    return Domains{.rows = rows,
                   .values = std::vector<std::uint64_t>(table.schema().columns.size(), rows)};
  known_[table.id()] = *domains;
  return *std::move(domains);
}

}  // namespace flugs::duckdb
