#include "bench/scan/scan_updates.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kA{0};
constexpr ColumnId kB{1};
constexpr ColumnId kD{3};
constexpr std::size_t kRowsPerUpdate = 1000;
// Rows that a ScanUpdater takes in turn, at random.
constexpr std::size_t kUpdaterRows = 100'000;

struct FoundRow {
  RowId id;
  std::int32_t d = 0;
};

// Calls `take(id, a, b, d)` for every row.
template <typename Take>
Status for_each_row(Database& database, TableId table, const Take& take) {
  const Result<Transaction> reader = database.begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  return reader->scan(table, {kA, kB, kD}, [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i)
      take(batch.row_ids()[i], batch.column_unchecked<std::int64_t>(0)[i],
           batch.column_unchecked<std::int64_t>(1)[i], batch.column_unchecked<std::int64_t>(2)[i]);
    return true;
  });
}

}  // namespace

Result<std::uint64_t> update_scan_rows(Database& database, TableId table, const ScanData& data,
                                       std::uint64_t every, ScanTotals& totals) {
  const auto remainder = static_cast<std::int64_t>(every) - 1;
  const auto greatest = static_cast<std::int64_t>(data.distinct()) - 1;
  std::vector<FoundRow> rows;
  Status found =
      for_each_row(database, table, [&](RowId id, std::int64_t a, std::int64_t b, std::int64_t d) {
        if (b % static_cast<std::int64_t>(every) == remainder && a != data.wanted())
          rows.push_back({id, static_cast<std::int32_t>(d)});
      });
  if (!found.ok()) return found;
  for (std::size_t first = 0; first < rows.size(); first += kRowsPerUpdate) {
    Result<Transaction> writer = database.begin();
    if (!writer.ok()) return std::move(writer).status();
    const std::size_t end = std::min(first + kRowsPerUpdate, rows.size());
    for (std::size_t i = first; i < end; ++i) {
      const auto d = static_cast<std::int32_t>(greatest - rows[i].d);
      Result<RowId> updated = writer->update(table, rows[i].id, {{kD, Value::int32(d)}});
      if (!updated.ok()) return std::move(updated).status();
      totals.change_sum_of_d(std::int64_t{d} - rows[i].d);
    }
    if (Status committed = writer->commit(); !committed.ok()) return committed;
  }
  return std::uint64_t{rows.size()};
}

const char* scan_update_sql() noexcept {
  return "update r set d = $greatest - d where b % $every = $every - 1 and a <> $wanted";
}

Json scan_update_parameters(const ScanData& data, std::uint64_t every) {
  return {{"greatest", data.distinct() - 1}, {"every", every}};
}

Result<std::unique_ptr<ScanUpdater>> ScanUpdater::start(Database& database, TableId table,
                                                        std::uint32_t rows_per_second) {
  std::unique_ptr<ScanUpdater> updater(new ScanUpdater(database, table, rows_per_second));
  Random random(1);
  std::uint32_t seen = 0;
  Status found =
      for_each_row(database, table, [&](RowId id, std::int64_t, std::int64_t, std::int64_t d) {
        const Row row{id, Value::int32(static_cast<std::int32_t>(d))};
        if (updater->rows_.size() < kUpdaterRows) {
          updater->rows_.push_back(row);
        } else if (const std::uint32_t at = random.between(0, seen); at < kUpdaterRows) {
          updater->rows_[at] = row;
        }
        ++seen;
      });
  if (!found.ok()) return found;
  updater->thread_ = std::thread([raw = updater.get()] { raw->run(); });
  return updater;
}

ScanUpdater::~ScanUpdater() { static_cast<void>(stop()); }

Result<std::uint64_t> ScanUpdater::stop() {
  stops_.store(true);
  if (thread_.joinable()) thread_.join();
  if (!failure_.ok()) return failure_;
  return updated_;
}

Status ScanUpdater::update(Row& row) {
  Result<Transaction> writer = database_.begin();
  if (!writer.ok()) return std::move(writer).status();
  Result<RowId> updated = writer->update(table_, row.id, {{kD, row.d}});
  if (!updated.ok()) return std::move(updated).status();
  if (Status committed = writer->commit(); !committed.ok()) return committed;
  row.id = *updated;
  return {};
}

void ScanUpdater::run() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Random random(2);
  while (!stops_.load() && failure_.ok() && !rows_.empty()) {
    const std::chrono::duration<double> passed = Clock::now() - begin;
    const auto due = static_cast<std::uint64_t>(passed.count() * rows_per_second_);
    for (; updated_ < due && failure_.ok(); ++updated_)
      failure_ = update(rows_[random.between(0, static_cast<std::uint32_t>(rows_.size()) - 1)]);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace flugs::bench
