#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "engine/background/merger.h"
#include "engine/background/sweeper.h"
#include "engine/background/warmer.h"
#include "engine/database/hint_keeper.h"
#include "engine/database/transaction_manager.h"
#include "flugs/database.h"
#include "pmem/pool/pool.h"

namespace flugs::engine {

class Catalog;
class Table;

/// The threads of an open database: Merger, HintKeeper, Sweeper and Warmer.
///
/// Invariants:
/// * A thread that the system refuses costs only speed: its work is done when a call needs it. Only
///   the merger is started again.
/// * They end before any part of the database that they use goes (`stop`).
///
/// Thread-safety: any thread, except `start` and `stop`.
class BackgroundThreads final {
 public:
  /// Both are used until the object is gone.
  BackgroundThreads(pmem::Pool& pool, const OpenOptions& options) noexcept
      : pool_(pool), options_(options) {}

  /// At the end of opening, which may have left work in these tables. The hints of `catalog` are
  /// kept. Returns how many threads there are.
  std::uint64_t start(Catalog& catalog, TransactionManager& transactions, Mutex& ddl_mutex,
                      IndexPlace index_place, std::span<const std::unique_ptr<Table>> tables);
  void stop() noexcept;

  /// Takes in a table that was made or loaded: it is merged by the policy of new tables from now
  /// on.
  void take_in(Table& table);
  /// How far hints of a dictionary may fall behind before writers help: much, when there is a
  /// thread for them.
  std::uint32_t hint_tail_max() const noexcept;
  Merger& merger() const noexcept {
    FLUGS_CHECK(merger_ != nullptr);
    return *merger_;
  }
  /// Fills in the statistics of the threads.
  void report(Statistics& statistics) const;

 private:
  void start_keeping_hints(Catalog& catalog, Mutex& ddl_mutex,
                           std::span<const std::unique_ptr<Table>> tables);
  void start_sweeping(std::span<const std::unique_ptr<Table>> tables);
  void start_warming(std::span<const std::unique_ptr<Table>> tables);

  pmem::Pool& pool_;
  const OpenOptions& options_;
  std::unique_ptr<EventQueue> events_;  // before those that post
  std::unique_ptr<Merger> merger_;
  std::unique_ptr<HintKeeper> hint_keeper_;  // null: commits keep hints
  std::unique_ptr<Sweeper> sweeper_;         // null: nothing was left, or it is switched off
  std::unique_ptr<Warmer> warmer_;           // null: there is little to warm, or it is switched off
};

}  // namespace flugs::engine
