#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/database/database_core.h"
#include "flugs/database.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

/// With the environment variable FLUGS_TEST_INDEX=dram, all tests use indexes in DRAM.
inline IndexPlace test_index_place() {
  const char* wanted = std::getenv("FLUGS_TEST_INDEX");
  return wanted != nullptr && std::string_view(wanted) == "dram" ? IndexPlace::kDram
                                                                 : kDefaultIndexPlace;
}

/// Options for a small database that grows only in the thread that needs space, and is merged only
/// when a test says so.
inline OpenOptions small_options(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{256} << 20;
  options.segment_bytes = std::uint64_t{4} << 20;
  options.tuning.grow_ahead_bytes = 0;
  options.slots_max = 16;
  options.tuning.recovery_threads = 2;
  options.index_place = test_index_place();
  options.merge_policy.automatic = false;
  options.tuning.clock = CommitClock::kCounter;  // consecutive time-stamps on any machine
  return options;
}

/// The value of a result, which must be ok. Main thread only.
template <typename T>
T must(Result<T> result) {
  INFO(result.status().to_string());
  REQUIRE(result.ok());
  return std::move(result).value();
}
inline void must(const Status& status) {
  INFO(status.to_string());
  REQUIRE(status.ok());
}

/// A database in a file on /dev/shm that is removed at the end. Main thread only.
class TemporaryDatabase {
 public:
  TemporaryDatabase() : TemporaryDatabase([](OpenOptions&) {}) {}
  /// `change(options)` may change what small_options gives.
  template <typename Change>
  explicit TemporaryDatabase(Change&& change) : path_(), options(small_options(path_.string())) {
    change(options);
    database_.emplace(must(Database::open(options)));
  }

  Database& operator*() { return *database_; }
  Database* operator->() { return &*database_; }
  void close() { database_.reset(); }
  void reopen() {
    database_.reset();
    database_.emplace(must(Database::open(options)));
  }

 private:
  TemporaryPath path_;

 public:
  OpenOptions options;

 private:
  std::optional<Database> database_;
};

/// A database in a buffer, with its insides within reach. Main thread only.
class MemoryDatabase {
 public:
  explicit MemoryDatabase(std::size_t bytes = std::size_t{16} << 20,
                          IndexPlace index_place = test_index_place(),
                          std::chrono::milliseconds hint_interval = Tuning().hint_interval)
      : buffer_(bytes) {
    pmem::PoolOptions pool;
    pool.segment_bytes = std::uint64_t{1} << 20;
    options = small_options("(memory)");
    options.index_place = index_place;
    options.tuning.hint_interval = hint_interval;
    options.segment_bytes = pool.segment_bytes;
    core_ = must(engine::DatabaseCore::open(
        must(pmem::Pool::create_in_memory(buffer_.span(), pool)), true, options));
  }

  engine::DatabaseCore& operator*() { return *core_; }
  engine::DatabaseCore* operator->() { return core_.get(); }
  std::span<const std::byte> span() { return buffer_.span(); }
  void reopen() {
    core_.reset();
    core_ = must(engine::DatabaseCore::open(
        must(pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{})), false, options));
  }
  /// Only opens; what opening says is left to the caller.
  Status try_reopen() {
    core_.reset();
    auto pool = pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{});
    if (!pool.ok()) return std::move(pool).status();
    auto core = engine::DatabaseCore::open(std::move(*pool), false, options);
    if (!core.ok()) return std::move(core).status();
    core_ = std::move(*core);
    return {};
  }

 private:
  PoolBuffer buffer_;

 public:
  OpenOptions options;

 private:
  std::unique_ptr<engine::DatabaseCore> core_;
};

}  // namespace flugs::test
