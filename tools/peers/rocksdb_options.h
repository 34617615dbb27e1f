#pragma once

#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>

#include "flugs/status.h"

namespace flugs::tools {

inline Status rocksdb_status(const rocksdb::Status& status) {
  if (status.ok()) return {};
  if (status.IsNotFound()) return Status(StatusCode::kNotFound);
  // Another transaction has the lock, or had it.
  if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain())
    return Status(StatusCode::kConflict);
  return Status(StatusCode::kIoError, "RocksDB: " + status.ToString());
}

inline rocksdb::Options rocksdb_options(bool create) {
  rocksdb::Options options;
  options.create_if_missing = create;
  options.compression = rocksdb::kNoCompression;
  options.allow_mmap_reads = true;
  options.skip_stats_update_on_db_open = true;
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace flugs::tools
