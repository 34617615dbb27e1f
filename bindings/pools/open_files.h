#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace flugs {

/// A file, whatever its path: another file may take the path while this one is still in use.
using PoolFile = std::pair<dev_t, ino_t>;

/// The file at `path`, if there is one.
std::optional<PoolFile> file_at(const std::string& path);
/// The path without links and dots, if it leads anywhere.
std::string real_path(const std::string& path);

/// The files of the pools that a binding has open in this process: its users share a pool, which
/// the last of them closes. It must never be destroyed: users may end after the destructors of the
/// library.
///
/// Thread-safety: any thread.
template <typename Pool>
class OpenFiles {
 public:
  /// Must be held while a pool is looked for, opened and added. A thread that closes a pool takes
  /// it: so no share of a pool may end under it.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// The pool of the file at `path`; null: it is not open here. Waits until a pool that is being
  /// closed is closed, without `lock`.
  std::shared_ptr<Pool> find(std::unique_lock<std::mutex>& lock, const std::string& path) {
    for (std::optional<PoolFile> file = file_at(path); file; file = file_at(path)) {
      const auto found = pools_.find(*file);
      if (found == pools_.end()) break;
      if (std::shared_ptr<Pool> pool = found->second.lock(); pool != nullptr) return pool;
      is_closed_.wait(lock);
    }
    return nullptr;
  }
  /// With `lock`.
  void add(const PoolFile& file, const std::shared_ptr<Pool>& pool) { pools_[file] = pool; }
  /// The pool of the file was closed. Only now others may open it again.
  void remove(const PoolFile& file) noexcept {
    const std::lock_guard lock(mutex_);
    // The file may be gone, and a new pool have its number already.
    if (const auto found = pools_.find(file); found != pools_.end() && found->second.expired())
      pools_.erase(found);
    is_closed_.notify_all();
  }

 private:
  std::mutex mutex_;  // protects `pools_`
  std::condition_variable is_closed_;
  std::map<PoolFile, std::weak_ptr<Pool>> pools_;  // one that is expired is being closed
};

}  // namespace flugs
