#include "bindings/sqlite/pools.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace flugs::sqlite {

namespace {

struct Registry {
  std::mutex mutex;  // protects `pools`, and is held while a pool is opened
  std::map<std::string, std::weak_ptr<Pool>> pools;
};

/// Never destroyed: connections may be closed after the destructors of this library.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

Result<std::shared_ptr<Pool>> open_pool(const OpenOptions& options) {
  std::error_code none;
  std::string path = options.path;
  if (!options.in_memory) {
    const std::filesystem::path real = std::filesystem::weakly_canonical(options.path, none);
    if (!none) path = real.string();
  }
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (!options.in_memory)
    if (std::shared_ptr<Pool> pool = known.pools[path].lock(); pool != nullptr) return pool;
  Result<Database> database = Database::open(options);
  if (!database.ok()) return std::move(database).status();
  auto pool = std::make_shared<Pool>(Pool{path, *std::move(database)});
  if (!options.in_memory) known.pools[path] = pool;
  return pool;
}

}  // namespace flugs::sqlite
