#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "bindings/duckdb/pools.h"

namespace flugs::duckdb {

/// The state of a pool that the scans of a statement see: a transaction that they share.
///
/// DuckDB does not tell the extension when a statement ends, and runs the plan of a prepared
/// statement again. So a scan that comes back while no other one runs begins a new moment, and a
/// moment ends when all scans that are bound have run. If a scan of the plan never runs, the moment
/// ends when DuckDB destroys the plan.
///
/// Thread-safety: any thread.
class Moment {
 public:
  explicit Moment(std::shared_ptr<Pool> pool) noexcept : pool_(std::move(pool)) {}

  /// `scan` names a scan of a plan. It runs from `enter` until `leave`, also several times at once.
  void bind(const void* scan);
  void unbind(const void* scan) noexcept;
  /// Scans that are bound.
  std::size_t scan_count();
  Result<std::shared_ptr<Guest>> enter(const void* scan);
  void leave() noexcept;

 private:
  const std::shared_ptr<Pool> pool_;
  std::mutex mutex_;  // protects what follows
  std::set<const void*> bound_;
  std::set<const void*> seen_;  // by these scans
  std::shared_ptr<Guest> guest_;
  std::uint32_t running_ = 0;
};

/// The moment for a pool that the scans of a statement of an instance of DuckDB share. Another
/// statement gets another one.
std::shared_ptr<Moment> moment_of(const void* instance, std::uint64_t statement,
                                  const std::shared_ptr<Pool>& pool);

}  // namespace flugs::duckdb
