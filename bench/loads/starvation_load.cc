#include "bench/loads/starvation_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/support/clock.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr const char* kTable = "contended";
constexpr ColumnId kCount{1};

Status add_one(Transaction& t, KeyId key, std::int64_t id, bool locks) {
  const Result<Row> row = locks ? t.lock(key, {Value::int64(id)}) : t.get(key, {Value::int64(id)});
  if (!row.ok()) return row.status();
  return t
      .update(key.table, row->id(),
              {{kCount, Value::int64(row->get_unchecked<std::int64_t>(kCount) + 1)}})
      .status();
}

/// A short writer, on a line of its own.
struct alignas(64) ShortWriter {
  std::atomic<std::uint64_t> committed{0};
  double ms_max = 0;
  Status status;

  void run(Database& database, KeyId key, const StarvationOptions& options, LongWriter how,
           std::uint32_t number, const std::atomic<bool>& ends) {
    Random random(options.seed * 100 + number);
    while (!ends.load(std::memory_order_relaxed) && status.ok()) {
      const std::int64_t id = options.rows - 1 - random.below(options.hot_rows);
      const std::uint64_t start = monotonic_ns();
      status =
          how == LongWriter::kRuns ? run_once(database, key, id) : insist(database, key, id, ends);
      ms_max = std::max(ms_max, ms_since(start));
    }
  }

 private:
  void note_committed() {
    committed.store(committed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Status run_once(Database& database, KeyId key, std::int64_t id) {
    RetryOptions retry;
    retry.time_limit = std::chrono::milliseconds(0);
    Status done = database.run([&](Transaction& t) { return add_one(t, key, id, false); }, retry);
    if (done.ok()) note_committed();
    return done;
  }
  Status insist(Database& database, KeyId key, std::int64_t id, const std::atomic<bool>& ends) {
    while (!ends.load(std::memory_order_relaxed)) {
      Result<Transaction> t = database.begin();
      if (!t.ok()) return std::move(t).status();
      Status done = add_one(*t, key, id, false);
      if (done.ok()) done = t->commit();
      if (done.ok()) note_committed();
      if (done.code() != StatusCode::kConflict) return done;
    }
    return {};
  }
};

using ShortWriters = std::vector<std::unique_ptr<ShortWriter>>;

std::uint64_t committed_by(const ShortWriters& writers) {
  std::uint64_t sum = 0;
  for (const auto& writer : writers) sum += writer->committed.load(std::memory_order_relaxed);
  return sum;
}

/// Updates every row, the hot ones last: what it meets there is newer than its snapshot.
StarvationRun run_long(Database& database, KeyId key, const StarvationOptions& options,
                       LongWriter how, const ShortWriters& writers, Status& status) {
  StarvationRun run;
  const std::uint64_t alone_from = monotonic_ns();
  const std::uint64_t alone_before = committed_by(writers);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.pause_seconds));
  const std::uint64_t before = committed_by(writers);
  run.short_alone_per_second =
      1e3 * static_cast<double>(before - alone_before) / ms_since(alone_from);
  const bool locks = how == LongWriter::kLocks;
  RetryOptions retry;
  retry.time_limit =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.limit_seconds * 1e3));
  if (locks) retry.isolation = Isolation::kReadCommitted;
  RetryReport report;
  const std::uint64_t start = monotonic_ns();
  const Status done = database.run(
      [&](Transaction& t) {
        for (std::int64_t id = 0; id < options.rows; ++id)
          if (Status s = add_one(t, key, id, locks); !s.ok()) return s;
        return Status();
      },
      retry, &report);
  run.ms = ms_since(start);
  run.attempts = report.attempts;
  run.has_committed = done.ok();
  run.short_per_second = 1e3 * static_cast<double>(committed_by(writers) - before) / run.ms;
  if (!done.ok() && done.code() != StatusCode::kConflict && done.code() != StatusCode::kBusy)
    status = done;
  return run;
}

/// The additions that the rows show.
Result<std::uint64_t> sum_of(Database& database, KeyId key, std::uint32_t rows) {
  const Result<Transaction> t = database.begin(AccessMode::kReadOnly);
  if (!t.ok()) return t.status();
  std::uint64_t sum = 0;
  for (std::int64_t id = 0; id < rows; ++id) {
    const Result<Row> row = t->get(key, {Value::int64(id)});
    if (!row.ok()) return row.status();
    sum += static_cast<std::uint64_t>(row->get_unchecked<std::int64_t>(kCount));
  }
  return sum;
}

}  // namespace

std::uint32_t StarvationFigures::committed() const noexcept {
  return static_cast<std::uint32_t>(std::count_if(
      runs.begin(), runs.end(), [](const StarvationRun& run) { return run.has_committed; }));
}

double StarvationFigures::ms_median() const {
  if (runs.empty()) return 0;
  std::vector<double> sorted;
  sorted.reserve(runs.size());
  for (const StarvationRun& run : runs) sorted.push_back(run.ms);
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

double StarvationFigures::ms_max() const noexcept {
  double most = 0;
  for (const StarvationRun& run : runs) most = std::max(most, run.ms);
  return most;
}

std::uint32_t StarvationFigures::attempts_max() const noexcept {
  std::uint32_t most = 0;
  for (const StarvationRun& run : runs) most = std::max(most, run.attempts);
  return most;
}

double StarvationFigures::short_share() const noexcept {
  double committed = 0;
  double alone = 0;
  for (const StarvationRun& run : runs) {
    committed += run.short_per_second * run.ms;
    alone += run.short_alone_per_second * run.ms;
  }
  return alone > 0 ? committed / alone : 0;
}

Status create_starvation_rows(Database& database, const StarvationOptions& options) {
  TableSchema schema(kTable);
  schema.column("id", Type::kInt64).not_null().direct();
  schema.column("count", Type::kInt64).not_null().direct();
  schema.primary_key({"id"});
  const Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table.status();
  std::vector<Value> values;
  for (std::int64_t id = 0; id < options.rows; ++id) {
    values.push_back(Value::int64(id));
    values.push_back(Value::int64(0));
  }
  Result<Transaction> t = database.begin();
  if (!t.ok()) return std::move(t).status();
  if (Status s = t->insert_rows(*table, values); !s.ok()) return s;
  return t->commit();
}

Result<StarvationFigures> run_starvation(Database& database, const StarvationOptions& options,
                                         LongWriter how) {
  const Result<TableId> table = database.find_table(kTable);
  if (!table.ok()) return table.status();
  const KeyId key{*table, 0};
  const Result<std::uint64_t> sum_before = sum_of(database, key, options.rows);
  if (!sum_before.ok()) return sum_before.status();
  std::atomic<bool> ends{false};
  ShortWriters writers;
  std::vector<std::thread> running;
  for (std::uint32_t i = 0; i < options.users; ++i) {
    writers.push_back(std::make_unique<ShortWriter>());
    running.emplace_back([&, i] { writers[i]->run(database, key, options, how, i, ends); });
  }
  StarvationFigures figures;
  Status status;
  for (std::uint32_t i = 0; i < options.runs && status.ok(); ++i)
    figures.runs.push_back(run_long(database, key, options, how, writers, status));
  ends = true;
  for (std::thread& thread : running) thread.join();
  if (!status.ok()) return status;
  for (const auto& writer : writers) {
    if (!writer->status.ok()) return writer->status;
    figures.short_ms_max = std::max(figures.short_ms_max, writer->ms_max);
  }
  const Result<std::uint64_t> sum_after = sum_of(database, key, options.rows);
  if (!sum_after.ok()) return sum_after.status();
  const std::uint64_t added =
      committed_by(writers) + std::uint64_t{figures.committed()} * options.rows;
  figures.lost = added > *sum_after - *sum_before ? added - (*sum_after - *sum_before) : 0;
  return figures;
}

}  // namespace flugs::bench
