#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/ids.h"
#include "flugs/recovery_report.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs {

/// How far something long has come. `total` is 0 when it is not known.
struct Progress {
  std::string_view phase;  ///< as in RecoveryReport::Phase::name
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

enum class OpenMode : std::uint8_t {
  kOpen,          ///< the pool must exist
  kCreate,        ///< the pool must not exist
  kOpenOrCreate,
};

struct OpenOptions {
  std::string path;
  OpenMode mode = OpenMode::kOpenOrCreate;
  /// Largest size the pool can grow to; fixed at creation. Space is taken as it is needed.
  std::uint64_t max_bytes = std::uint64_t{64} << 30;
  /// Step in which the pool grows; fixed at creation.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// Free space kept allocated ahead of the writers by a background thread; 0: none.
  std::uint64_t grow_ahead_bytes = std::uint64_t{64} << 20;
  /// Transactions that can be open at one time, 1 to 4000.
  std::uint32_t slots_max = 128;
  /// Threads that rebuild indexes; 0: one per processor.
  std::uint32_t recovery_threads = 0;
  /// Latency of emulated SCM for reads and writes, nanoseconds; 0: the machine's own.
  std::uint32_t scm_read_ns = 0;
  std::uint32_t scm_write_ns = 0;
  /// Called now and then while opening, from any thread, one call at a time.
  std::function<void(const Progress&)> progress;
};

/// Counters and sizes of an open database.
struct Statistics {
  std::string medium;     ///< "dax", "emulated", "file" or "memory"
  std::string guarantee;  ///< what a commit that returned survives, one sentence
  std::uint64_t pool_reserved_bytes = 0;   ///< the largest size it can grow to
  std::uint64_t pool_allocated_bytes = 0;  ///< taken from the medium
  std::uint64_t pool_used_bytes = 0;       ///< owned by tables and slots
  std::uint64_t dram_index_bytes = 0;      ///< dictionary and key indexes
  std::uint64_t lines_flushed = 0;         ///< cache lines written back since open
  std::uint64_t fences = 0;
  std::uint64_t bytes_written = 0;         ///< bytes handed to flush, before rounding to lines
  std::uint64_t transactions_committed = 0;  ///< that wrote something
  std::uint64_t transactions_aborted = 0;
  std::uint64_t conflicts = 0;             ///< calls that returned kConflict
  std::uint64_t transactions_open = 0;
};

struct ColumnStatistics {
  std::string name;
  Type type = Type::kInt64;
  bool dictionary_encoded = true;
  std::uint64_t dictionary_entries = 0;
  std::uint64_t dictionary_bytes = 0;  ///< in the pool, strings included
  std::uint32_t cell_bits = 0;         ///< width in the newest chunk's rows
};

struct TableStatistics {
  std::string name;
  std::uint64_t rows_reserved = 0;   ///< row positions handed out: live, dead and never committed
  std::uint64_t rows_free = 0;       ///< of these, ready to be reused
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;     ///< of all chunks
  std::uint32_t row_bytes = 0;       ///< stride of a row in the newest chunk, MVCC stamps included
  std::uint64_t key_index_bytes = 0; ///< DRAM
  std::vector<ColumnStatistics> columns;
};

/// An open database. Opening is recovering: the database that comes back already answers queries.
///
/// Thread-safety: every function may be called from any thread, unless it says otherwise. A
/// process opens a pool once; a second opener gets kBusy.
class Database {
 public:
  /// Durable when: it returns ok (a created pool).
  /// Fails with: kNotFound, kAlreadyExists, kBusy (open elsewhere), kIncompatible (foreign file,
  /// newer version), kCorrupt, kReadOnly, kOutOfSpace, kInvalidArgument, kIoError.
  static Result<Database> open(const OpenOptions& options);

  Database() noexcept;
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  /// Closes. Every transaction must have ended (checked).
  ~Database();

  /// Durable when: it returns ok.
  /// Fails with: kAlreadyExists, kInvalidArgument (the schema, with the reason), kOutOfSpace.
  Result<TableId> create_table(const TableSchema& schema);
  /// Drops the table and gives its space back. Waits for transactions that are open, up to one
  /// second; then kBusy. Durable when: it returns ok. Fails with: kNotFound, kBusy.
  Status drop_table(TableId table);
  /// Fails with: kNotFound.
  Result<TableId> find_table(std::string_view name) const;
  Result<TableSchema> schema(TableId table) const;
  Result<ColumnId> find_column(TableId table, std::string_view name) const;
  /// `name` is the key's name; "primary" is the primary key.
  Result<KeyId> find_key(TableId table, std::string_view name) const;
  /// Every table, in the order of creation.
  std::vector<TableId> tables() const;

  /// Fails with: kTooManyTransactions (OpenOptions::slots_max are open already).
  Result<Transaction> begin(AccessMode mode = AccessMode::kReadWrite);

  /// What opening found and did. Valid while the database is open.
  const RecoveryReport& recovery_report() const noexcept;
  Statistics statistics() const;
  Result<TableStatistics> table_statistics(TableId table) const;

  /// Goes through everything: every extent reachable once, every visible row's codes inside their
  /// dictionaries, every key index against the rows. Takes long; call it on a quiet database.
  /// Fails with: kCorrupt, saying what and where; kBusy when transactions are open.
  Status verify(const std::function<void(const Progress&)>& progress = {});

  bool is_open() const noexcept { return core_ != nullptr; }
  const std::string& path() const noexcept;

 private:
  std::unique_ptr<engine::DatabaseCore> core_;
};

}  // namespace flugs
