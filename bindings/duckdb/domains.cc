#include "bindings/duckdb/domains.h"

#include <algorithm>
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

// Rows of the delta are read one by one, some 75 ns each with twelve columns.
constexpr std::uint64_t kDeltaRowsMax = 100'000;
// Rows of a chunk of the delta, at most.
constexpr std::uint64_t kChunkRows = std::uint64_t{1} << 17;

// Planning must not wait for a large delta. Groups of main know their least and greatest values.
bool is_cheap(Database& database, const Table& table) {
  const Result<TableStatistics> statistics = database.table_statistics(table.id());
  if (!statistics.ok()) return false;
  const std::uint64_t reserved =
      statistics->rows_reserved - std::min(statistics->rows_reserved, statistics->group_rows);
  const std::uint64_t chunks =
      statistics->chunks - std::min(statistics->chunks, statistics->groups);
  return std::min(reserved, chunks * kChunkRows) <= kDeltaRowsMax;
}

bool is_like(std::uint64_t rows, std::uint64_t before) noexcept {
  return std::max(rows, before) - std::min(rows, before) <= before / 4;
}

std::uint64_t span_of(const Value& least, const Value& greatest) noexcept {
  if (least.is_null()) return 0;
  return static_cast<std::uint64_t>(greatest.as_int64()) -
         static_cast<std::uint64_t>(least.as_int64());
}

Result<Domains> look_for(Database& database, const Table& table, std::uint64_t rows,
                         const std::stop_token& stop) {
  const std::vector<ColumnSchema>& columns = table.schema().columns;
  Domains found{.rows = rows, .values = std::vector<std::uint64_t>(columns.size(), rows)};
  std::vector<query::Aggregate> bounds;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!is_counted(columns[c])) continue;
    bounds.push_back(query::min(columns[c].name).as("min " + std::to_string(c)));
    bounds.push_back(query::max(columns[c].name).as("max " + std::to_string(c)));
  }
  if (bounds.empty() || rows <= kSmallMax) return found;
  FLUGS_ASSIGN(const Transaction snapshot, database.begin(AccessMode::kReadOnly));
  FLUGS_ASSIGN(const query::QueryResult result, query::Query::table(table.name())
                                                    .group_by({}, std::move(bounds))
                                                    .run(snapshot, {.threads = 1, .stop = stop}));
  std::size_t next = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!is_counted(columns[c])) continue;
    FLUGS_ASSIGN(const Value least, result.get(0, next++));
    FLUGS_ASSIGN(const Value greatest, result.get(0, next++));
    const std::uint64_t span = span_of(least, greatest);
    if (span < rows / kUniqueShare) found.values[c] = span + 1;
  }
  return found;
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
  // Not kept: a merge does not change the number of rows.
  if (!is_cheap(database, table))
    return Domains{.rows = rows,
                   .values = std::vector<std::uint64_t>(table.schema().columns.size(), rows)};
  FLUGS_ASSIGN(Domains domains, look_for(database, table, rows, stop));
  known_[table.id()] = domains;
  return domains;
}

}  // namespace flugs::duckdb
