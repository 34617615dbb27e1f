#include "bindings/sqlite/pools.h"

#include <mutex>
#include <optional>
#include <utility>

#include "bindings/pools/open_files.h"

namespace flugs::sqlite {

namespace {

/// Never destroyed: connections may be closed after the destructors of this library.
OpenFiles<Pool>& open_files() {
  static OpenFiles<Pool>& instance = *new OpenFiles<Pool>;
  return instance;
}

void close_pool(const Pool* pool) noexcept {
  const std::optional<PoolFile> file = pool->file;
  delete pool;
  if (file) open_files().remove(*file);
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
  std::string path = real_path(options.path);
  OpenFiles<Pool>& known = open_files();
  std::unique_lock lock = known.lock();
  if (std::shared_ptr<Pool> pool = known.find(lock, path); pool != nullptr) return pool;
  Result<std::shared_ptr<Pool>> pool = open_new(options, path);
  if (!pool.ok()) return pool;
  if (const std::optional<PoolFile> file = file_at(path)) {
    known.add(*file, *pool);
    (*pool)->file = file;
  }
  return pool;
}

}  // namespace flugs::sqlite
