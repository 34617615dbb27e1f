#include "bindings/duckdb/instance.h"

#include <utility>

#include "bindings/pools/open_files.h"

namespace flugs::duckdb {

Result<std::shared_ptr<Pool>> Instance::pool(const std::string& path, OpenMode mode,
                                             std::uint64_t max_bytes) {
  FLUGS_ASSIGN(std::shared_ptr<Pool> pool, open_pool(path, mode, max_bytes));
  if (pool->is_lent()) return pool;
  std::shared_ptr<Pool> former = pool;  // of a file that was replaced: closed without the lock
  const std::lock_guard lock(mutex_);
  pools_[pool->path()].swap(former);
  return pool;
}

bool Instance::forget(const std::string& path) {
  std::shared_ptr<Pool> forgotten;  // closed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(real_path(path));
  if (found == pools_.end()) return false;
  forgotten = std::move(found->second);
  pools_.erase(found);
  return true;
}

}  // namespace flugs::duckdb
