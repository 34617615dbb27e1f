#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "flugs/database.h"

namespace flugs::bench {

/// A thread that updates a given number of rows a second, one in each transaction, and leaves all
/// values as they are. It ends with the object.
class ScanUpdater {
 public:
  /// Fails as Transaction::scan.
  static Result<std::unique_ptr<ScanUpdater>> start(Database& database, TableId table,
                                                    std::uint32_t rows_per_second);
  ~ScanUpdater();
  ScanUpdater(const ScanUpdater&) = delete;
  ScanUpdater& operator=(const ScanUpdater&) = delete;

  /// Rows that it has updated until now.
  std::uint64_t updated() const noexcept { return updated_.load(); }
  /// Ends the thread. How many rows it updated, or what an update failed with.
  Result<std::uint64_t> stop();

 private:
  struct Row {
    RowId id;
    Value d;
  };
  ScanUpdater(Database& database, TableId table, std::uint32_t rows_per_second)
      : database_(database), table_(table), rows_per_second_(rows_per_second) {}
  void run();
  Status update(Row& row);

  Database& database_;
  const TableId table_;
  const std::uint32_t rows_per_second_;
  std::vector<Row> rows_;
  std::atomic<std::uint64_t> updated_{0};
  Status failure_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace flugs::bench
