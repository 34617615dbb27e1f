#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/background/event_queue.h"
#include "engine/background/processor_load.h"
#include "engine/merge/table_merge.h"
#include "flugs/merge.h"
#include "mvcc/transaction_slots.h"
#include "pmem/pool/pool.h"

namespace flugs::engine {

/// Merges tables by their policies (decision 0013) in one thread, which starts when a table has a
/// policy that asks for it. Writers pay nothing: the merger reads from the stamps of some rows
/// whether a chunk has been written to.
/// Thread-safety: any thread, except creating and destroying.
class Merger {
 public:
  /// All arguments must outlive the object; `ddl_mutex` is the database's. `reclaim_dead_rows`
  /// takes dead rows out of the key indexes before a merge.
  Merger(pmem::Pool& pool, mvcc::TransactionSlots& slots, Mutex& ddl_mutex, EventQueue& events,
         std::function<void()> reclaim_dead_rows, std::uint32_t niceness);
  /// Ends a running merge soon; what it has merged stays merged.
  ~Merger();

  /// Merges the table from now on. The table must stay until the object is gone. `policy` must be
  /// valid.
  void watch(Table& table, const MergePolicy& policy);
  /// Fails with kInvalidArgument.
  Status set_policy(Table& table, const MergePolicy& policy);
  /// If the thread could not be started: tries again, if enough time has passed.
  void retry_start() noexcept {
    if (__builtin_expect(wants_thread_.load(std::memory_order_relaxed), 0)) start();
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// What the thread notes of a table.
  struct Watched {
    Table* table;
    Clock::time_point next_look{};
    Clock::time_point next_merge{};
    Clock::time_point next_help{};  ///< for writers that find the delta full
    std::uint64_t looked_at = 0;  ///< time-stamp of the last look; 0: none since the policy was set
    std::optional<ProcessorTimes> times{};  ///< at the last look
    std::uint32_t failures = 0;             ///< in a row
    std::uint32_t helped_in_vain = 0;       ///< in a row, while space was short
    std::uint64_t refusals = 0;             ///< pmem::SpaceReport::refusals at the last help
    std::uint32_t searched_in_vain = 0;     ///< in a row, for space to give back
    Clock::time_point next_search{};
    Clock::time_point next_pressure{};  ///< until then no help for lack of space
    bool is_new = true;                 ///< under mutex_: the policy was changed
  };

  /// How much the pool lacks space.
  enum class Pressure : std::uint8_t {
    kNone,
    kShort,    ///< MergePolicy::short_percent
    kRefused,  ///< a write has found none since this table was last merged for that
  };
  Pressure pressure_on(const Watched& watched, const MergePolicy& policy) const;

  void start() noexcept;
  void run(const std::stop_token& stop) noexcept;
  Clock::time_point visit_all();
  void visit(Watched& watched, const MergePolicy& policy);
  void look(Watched& watched, const MergePolicy& policy, Pressure pressure);
  bool may_merge(const Watched& watched, const MergePolicy& policy, std::uint64_t looked_at,
                 std::uint32_t idle_percent, bool is_urgent) const;
  bool has_reason(const Watched& watched, const MergePolicy& policy, const TableMerge& merge) const;
  static bool is_read_often(const Table& table, const MergePolicy& policy, const TableMerge& merge);
  bool choose_and_merge(Watched& watched, const MergePolicy& policy, TableMerge& merge,
                        std::uint64_t looked_at, Pressure pressure);
  bool is_wanted(Table& table, const MergePolicy& policy, const TableMerge::Plan& plan,
                 bool is_any_enough) const;
  void note_help(Watched& watched, std::uint64_t used_before) const;
  void merge(Watched& watched, const MergePolicy& policy, TableMerge& merge);
  bool is_quiet(const RowStore& rows, std::size_t chunk, std::uint64_t since,
                std::uint32_t written_percent) const;

  pmem::Pool& pool_;
  mvcc::TransactionSlots& slots_;
  Mutex& ddl_mutex_;
  EventQueue& events_;
  const std::function<void()> reclaim_dead_rows_;
  const std::uint32_t niceness_;
  std::atomic<bool> stops_{false};
  std::atomic<bool> wants_thread_{false};  // there is work, but the thread could not be started
  std::mutex mutex_;  // protects the members below; rank: a leaf, but for the tables' records
                      // and the queue of events
  std::vector<std::unique_ptr<Watched>> watched_;
  bool is_changed_ = false;
  Clock::time_point next_start_{};
  std::chrono::milliseconds start_pause_{0};
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::engine
