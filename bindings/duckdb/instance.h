#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "bindings/duckdb/handles.h"
#include "bindings/duckdb/pools.h"

namespace flugs::duckdb {

/// What an instance of DuckDB has of flugs. Its functions share it; it ends with the instance, and
/// closes the pools that were opened for it alone.
///
/// Thread-safety: any thread.
class Instance {
 public:
  /// The pool in the file at `path`. One that is opened now stays open until the instance ends.
  /// `max_bytes` is for a pool that is opened or made.
  /// Fails with: as open_pool.
  Result<std::shared_ptr<Pool>> pool(const std::string& path, OpenMode mode,
                                     std::uint64_t max_bytes = 0);
  /// Forgets a pool, which is closed as soon as no statement uses it. False: it was not open.
  bool forget(const std::string& path);

 private:
  std::mutex mutex_;  // protects `pools_`
  std::map<std::string, std::shared_ptr<Pool>> pools_;
};

using SharedInstance = std::shared_ptr<Instance>;

/// The user data of a function: DuckDB owns a share.
inline duckdb_v2_opaque share_of(const SharedInstance& instance) {
  return opaque_of(new SharedInstance(instance));
}

/// Each registers the functions of one file with DuckDB.
Status register_scan(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                     const SharedInstance& instance);
Status register_tables(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                       const SharedInstance& instance);
Status register_copy(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                     const SharedInstance& instance);
Status register_replacement(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory);

}  // namespace flugs::duckdb
