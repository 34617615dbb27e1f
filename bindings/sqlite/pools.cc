#include "bindings/sqlite/pools.h"

#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace flugs::sqlite {

namespace {

/// A file, whatever its path: another one may take the path while this one is still in use.
using FileName = std::pair<dev_t, ino_t>;

struct Registry {
  std::mutex mutex;  // protects `pools`, and is held while a pool is opened
  std::condition_variable is_closed;
  /// A pool that is expired is being closed; then it leaves.
  std::map<FileName, std::weak_ptr<Pool>> pools;
};

/// Never destroyed: connections may be closed after the destructors of this library.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

std::optional<FileName> file_at(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileName(found.st_dev, found.st_ino);
}

/// Closes a pool, and only then lets others open it again.
void close_pool(const Pool* pool) noexcept {
  const std::optional<FileName> file = pool->file;
  delete pool;
  if (!file) return;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  // The file may be gone, and a new pool have its number already.
  if (const auto found = known.pools.find(*file);
      found != known.pools.end() && found->second.expired())
    known.pools.erase(found);
  known.is_closed.notify_all();
}

Result<std::shared_ptr<Pool>> open_new(const OpenOptions& options, std::string path) {
  Result<Database> database = Database::open(options);
  if (!database.ok()) return std::move(database).status();
  return std::shared_ptr<Pool>(new Pool{std::move(path), std::nullopt,
                                        options.mode == OpenMode::kReadOnly, *std::move(database)},
                               close_pool);
}

}  // namespace

Result<std::shared_ptr<Pool>> open_pool(const OpenOptions& options) {
  if (options.in_memory) return open_new(options, options.path);
  std::error_code none;
  std::string path = options.path;
  const std::filesystem::path real = std::filesystem::weakly_canonical(options.path, none);
  if (!none) path = real.string();
  Registry& known = registry();
  std::unique_lock lock(known.mutex);
  for (std::optional<FileName> file = file_at(path); file; file = file_at(path)) {
    const auto found = known.pools.find(*file);
    if (found == known.pools.end()) break;
    if (std::shared_ptr<Pool> pool = found->second.lock(); pool != nullptr) return pool;
    known.is_closed.wait(lock);
  }
  Result<std::shared_ptr<Pool>> pool = open_new(options, path);
  if (!pool.ok()) return pool;
  if (const std::optional<FileName> file = file_at(path)) {
    known.pools[*file] = *pool;
    (*pool)->file = file;
  }
  return pool;
}

}  // namespace flugs::sqlite
