#include "bench/tpcc/tpcc_load.h"

#include <array>
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "bench/support/clock.h"

namespace flugs::bench {

namespace {

/// Collects a table's rows and inserts them a thousand at a time, a transaction each time.
class RowLoader {
 public:
  Status add(Database& database, TableId table, std::span<const Value> row) {
    for (const Value& value : row) values_.push_back(kept(value));
    return ++waiting_ < kRowsPerTransaction ? Status() : flush(database, table);
  }
  Status flush(Database& database, TableId table) {
    if (waiting_ == 0) return {};
    Result<Transaction> transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    Status status = transaction->insert_rows(table, values_);
    if (status.ok()) status = transaction->commit();
    values_.clear();
    texts_.release();
    waiting_ = 0;
    return status;
  }

 private:
  static constexpr std::uint32_t kRowsPerTransaction = 1000;

  /// The value with a copy of its text, which stays until the row is inserted.
  Value kept(const Value& value) {
    const std::string_view text = value.as_string();
    if (text.empty()) return value;
    char* const copy = static_cast<char*>(texts_.allocate(text.size(), 1));
    text.copy(copy, text.size());
    return Value::string({copy, text.size()});
  }

  std::pmr::monotonic_buffer_resource texts_{std::size_t{1} << 20};
  std::vector<Value> values_;
  std::uint32_t waiting_ = 0;
};

class DatabaseSink : public TpccSink {
 public:
  DatabaseSink(Database& database, const TpccTables& tables)
      : database_(database), tables_(tables) {}

  Status add(TpccTable table, std::span<const Value> row) override {
    return loaders_[static_cast<std::size_t>(table)].add(database_, tables_.of(table), row);
  }
  Status flush() {
    for (std::size_t i = 0; i < loaders_.size(); ++i)
      if (Status s = loaders_[i].flush(database_, tables_.of(static_cast<TpccTable>(i))); !s.ok())
        return s;
    return {};
  }

 private:
  Database& database_;
  const TpccTables& tables_;
  std::array<RowLoader, kTpccTables> loaders_;
};

}  // namespace

Result<TpccLoad> load_tpcc(Database& database, const TpccTables& tables, const TpccOptions& options,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t begin = monotonic_ns();
  TpccLoad load;
  DatabaseSink sink(database, tables);
  Status status = make_tpcc_rows(options, sink, load, progress);
  if (status.ok()) status = sink.flush();
  if (!status.ok()) return status;
  load.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return load;
}

}  // namespace flugs::bench
