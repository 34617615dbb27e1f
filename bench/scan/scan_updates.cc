#include "bench/scan/scan_updates.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kD{3};
// Rows that a ScanUpdater takes in turn, at random.
constexpr std::size_t kUpdaterRows = 100'000;

}  // namespace

Result<std::unique_ptr<ScanUpdater>> ScanUpdater::start(Database& database, TableId table,
                                                        std::uint32_t rows_per_second) {
  std::unique_ptr<ScanUpdater> updater(new ScanUpdater(database, table, rows_per_second));
  Random random(1);
  std::uint32_t seen = 0;
  const Result<Transaction> reader = database.begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  Status found = reader->scan(table, {kD}, [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      const std::int64_t d = batch.column_unchecked<std::int64_t>(0)[i];
      const Row row{batch.row_ids()[i], Value::int32(static_cast<std::int32_t>(d))};
      if (updater->rows_.size() < kUpdaterRows) {
        updater->rows_.push_back(row);
      } else if (const std::uint32_t at = random.between(0, seen); at < kUpdaterRows) {
        updater->rows_[at] = row;
      }
      ++seen;
    }
    return true;
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
  return updated();
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
