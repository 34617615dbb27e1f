#include "bench/support/query_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

using query::QueryResult;

std::uint64_t hash_of(const Value& value) noexcept {
  if (value.is_null()) return 1;
  std::uint64_t hash = mix64(static_cast<std::uint64_t>(value.raw()));
  for (const char letter : value.as_string())
    hash = mix64(hash ^ static_cast<unsigned char>(letter));
  return hash;
}

/// Checksum of all values, in their order.
std::uint64_t checksum_of(const QueryResult& result) noexcept {
  std::uint64_t hash = 0;
  for (std::size_t row = 0; row < result.row_count(); ++row)
    for (std::size_t i = 0; i < result.columns().size(); ++i)
      hash = mix64(hash ^ hash_of(result.get_unchecked(row, i)));
  return hash;
}

struct RunTime {
  double ms = 0;
  double cpu_ms = 0;
};

/// One run, timed from the snapshot to the whole result.
Result<QueryResult> run_once(Database& database, const query::Query& query,
                             const query::RunOptions& options, RunTime& time) {
  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = monotonic_ns();
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  if (!snapshot.ok()) return snapshot.status();
  Result<QueryResult> result = query.run(*snapshot, options);
  time.ms = static_cast<double>(monotonic_ns() - begin) * 1e-6;
  time.cpu_ms = static_cast<double>(process_cpu_ns() - cpu_begin) * 1e-6;
  return result;
}

}  // namespace

Result<QueryFigures> run_query(Database& database, std::string_view name, std::string_view question,
                               const query::Query& query, const QueryRunOptions& options) {
  QueryFigures figures;
  figures.name = name;
  figures.question = question;
  query::RunOptions run_options;
  run_options.threads = options.threads;
  run_options.memory_bytes_max = options.memory_bytes_max;
  run_options.temporary_folder = options.temporary_folder;
  for (std::uint32_t run = 0; run <= options.runs; ++run) {
    RunTime time;
    const std::uint64_t resident = options.measures_resident ? begin_resident_peak() : 0;
    Result<QueryResult> result = run_once(database, query, run_options, time);
    if (options.measures_resident)
      figures.resident_bytes =
          std::max(figures.resident_bytes, std::max(resident_peak_bytes(), resident) - resident);
    if (!result.ok())
      return Status(result.code(),
                    std::string(name) + ": " + std::string(result.status().message()));
    const std::uint64_t checksum = checksum_of(*result);
    if (run == 0) figures.first_ms = time.ms;
    if (run > 0) {
      figures.ms.push_back(time.ms);
      figures.cpu_ms.push_back(time.cpu_ms);
    }
    figures.is_repeatable = figures.is_repeatable && (run == 0 || checksum == figures.checksum);
    figures.checksum = checksum;
    figures.result = std::move(*result);
  }
  return figures;
}

}  // namespace flugs::bench
