#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/duckdb/domains.h"
#include "flugs/database.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "flugs/stream.h"

namespace flugs::duckdb {

class Pool;

/// A stream of a guest. The guest ends it when its pool is taken back.
struct GuestStream {
  std::optional<query::SharedStream> rows;
  /// In a transaction of the program, which may have written, and goes on: pulled within `use`.
  std::optional<query::ResultStream> rows_in_turn;

  void end() noexcept {
    rows.reset();
    rows_in_turn.reset();
  }
};

/// A transaction of the program in which DuckDB reads.
///
/// Thread-safety: any thread.
class HeldTransaction {
 public:
  HeldTransaction() = default;
  HeldTransaction(const HeldTransaction&) = delete;
  HeldTransaction& operator=(const HeldTransaction&) = delete;
  virtual ~HeldTransaction() = default;

  /// Calls `work` while no other thread uses the transaction. Fails with: as `work`;
  /// kInvalidArgument (it has ended).
  virtual Status use(FunctionRef<Status(Transaction&)> work) = 0;
  /// Within `use`: the stream must end before the transaction does.
  virtual void add(const std::shared_ptr<GuestStream>& stream) = 0;
  /// Ends a stream. Not within `use`.
  virtual void end(GuestStream& stream) noexcept = 0;
};

/// A transaction of DuckDB on a pool. The pool may end it between two calls.
///
/// Thread-safety: any thread; one call of `use` at a time, the others wait. Calls of `read` run at
/// the same time, also beside one of `use`.
class Guest {
 public:
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  /// Calls `work`, with the pool open. Fails with: as `work`; kCancelled (the pool was taken back).
  Status use(FunctionRef<Status(Database&, Transaction&)> work);
  /// Calls `work`, which may pull rows of the guest's streams. Fails with: as `work`; kCancelled.
  Status read(FunctionRef<Status()> work);
  /// Within `use`: the guest ends the stream if need be.
  void add(const std::shared_ptr<GuestStream>& stream);
  /// Ends the stream. Not within `use`.
  void finish(GuestStream& stream) noexcept;
  /// Whether the transaction is the program's: it may only be used within `use`.
  bool is_held() const noexcept { return held_ != nullptr; }
  const std::shared_ptr<Pool>& pool() const noexcept { return pool_; }

 private:
  friend class Pool;
  Guest(std::shared_ptr<Pool> pool, Transaction transaction);
  Guest(std::shared_ptr<Pool> pool, std::shared_ptr<HeldTransaction> held);
  void end() noexcept;
  void end(GuestStream& stream) noexcept;

  const std::shared_ptr<Pool> pool_;
  std::mutex mutex_;  // protects what follows; a call of `use` holds it
  Transaction transaction_;
  const std::shared_ptr<HeldTransaction> held_;  // not null: in the place of `transaction_`
  std::vector<std::weak_ptr<GuestStream>> streams_;
};

/// A pool that DuckDB uses: opened for it, or lent by the program that has it open.
///
/// Thread-safety: any thread.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(std::string path, std::shared_ptr<Database> database, bool is_lent) noexcept
      : path_(std::move(path)), database_(std::move(database)), is_lent_(is_lent) {}

  const std::string& path() const noexcept { return path_; }
  bool is_lent() const noexcept { return is_lent_; }
  /// Gives DuckDB the program's transaction in the place of new ones. Before others know the pool.
  void hold(std::shared_ptr<HeldTransaction> held) noexcept { held_ = std::move(held); }
  bool is_taken_back() const noexcept { return stop_.stop_requested(); }
  /// Asked to stop when the pool is taken back.
  std::stop_token stop() const noexcept { return stop_.get_token(); }

  /// Calls `work`, with the pool open. Fails with: as `work`; kCancelled (it was taken back).
  Status use(FunctionRef<Status(Database&)> work);
  /// Begins a transaction. Fails with: as Database::begin; kCancelled.
  Result<std::shared_ptr<Guest>> begin(AccessMode mode);
  /// What is known of its tables.
  KnownDomains& domains() noexcept { return domains_; }
  /// Ends all transactions of DuckDB on the pool, and lets none begin. Waits until no call is in
  /// the pool, which is a matter of milliseconds, as scans are asked to stop.
  void take_back() noexcept;

 private:
  friend class Guest;
  Status taken_back() const;

  const std::string path_;
  std::shared_ptr<Database> database_;  // null when taken back
  const bool is_lent_;
  std::shared_ptr<HeldTransaction> held_;
  std::stop_source stop_;    // asked to stop: the pool is taken back, or is being so
  std::shared_mutex gate_;   // shared by calls in the pool; alone, the pool is taken back
  std::mutex guests_mutex_;  // protects `guests_`; a leaf
  std::set<Guest*> guests_;
  KnownDomains domains_;
};

/// The pool in the file at `path`: lent, open already, or opened now. It stays open while the
/// result is kept. Fails with: as Database::open.
Result<std::shared_ptr<Pool>> open_pool(const std::string& path, OpenMode mode,
                                        std::uint64_t max_bytes);

/// A path in SQL that begins with it is the name of something lent, and no file's.
inline constexpr std::string_view kLentPrefix = "flugs:";

/// What a program lends: a database that it has open, or one transaction on it.
struct LentPool {
  std::string name;  ///< begins with kLentPrefix, unlike any other's; stands for a path in SQL
  std::string path;  ///< of its file, by which it is found as well; empty: by the name only
  std::shared_ptr<Database> database;
  std::shared_ptr<HeldTransaction> transaction;  ///< may be null
};

/// Lends it to all instances of DuckDB in the process, until Pool::take_back or until the result is
/// destroyed, which does the same. Must be taken back before the database is closed.
std::shared_ptr<Pool> lend_pool(LentPool lent);

}  // namespace flugs::duckdb
