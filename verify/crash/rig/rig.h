#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/database/database_core.h"
#include "verify/crash/rig/expectation.h"
#include "verify/crash/rig/explorer.h"
#include "verify/crash/rig/mutation.h"
#include "verify/crash/rig/pool_buffer.h"
#include "verify/crash/rig/schedule.h"

// A database under the crash-state explorer, with a model of what it must hold.
//
// Each image is judged so: ordinary recovery runs (crashed again, `nested_depth` deep). The state
// must be the one before the steps in flight, or the one after some of them, and crashes inside
// recovery must decide the same. The audit must be clean, and used space, free space and overhead
// must add up to all space. Then the steps that were in flight and are not there are run again. New
// transactions insert, update, delete and insert again in every table through every slot, with
// time-stamps above all that were acknowledged. A second restart must give the same state and the
// same used space.

namespace flugs::crash {

/// Lines with content that was not flushed at an acknowledgement. It has the structure that they
/// belong to, the label of the last flush before, which did not cover the content, and that of the
/// next flush, which came later.
struct UnflushedSite {
  std::string holds;
  std::string before;  ///< "-": none
  std::string next;    ///< "-": none; "power cut": it came earlier

  friend auto operator<=>(const UnflushedSite&, const UnflushedSite&) = default;
};

struct RigOptions {
  std::size_t pool_bytes = std::size_t{128} << 10;
  std::uint32_t slots = 2;
  IndexPlace index_place = IndexPlace::kDram;
  bool late_indexes = false;  ///< opening makes no index in DRAM, and the indexes of dictionaries
                              ///< wait
  bool watches_creation = false;
  bool gives_back = false;    ///< free space becomes holes, which read zero
  bool mutes_script = false;  ///< crash points begin at unmute(), not at watch()
  // For run_threads().
  Schedule schedule = {};
  std::uint64_t turns_seed = 0;  ///< of the threads' steps; 0: the script
  ExplorerOptions explorer;
  Mutation mutation;
};

/// "flush <label>" and "fence <label>" of all flushes and fences that rigs have watched in this
/// process.
std::set<std::string>& watched_sites();

/// Reads `FLUGS_CRASH_STATES`, a factor for the number of states to explore; 1 if it is not set.
std::uint64_t crash_states_factor();

class CrashRig {
 public:
  explicit CrashRig(RigOptions options);
  ~CrashRig();
  CrashRig(const CrashRig&) = delete;
  CrashRig& operator=(const CrashRig&) = delete;

  /// From here on every fence and every acknowledgement is a crash point.
  void watch();
  /// The same, where the options muted watch().
  void unmute();

  void create_table(const TableSchema& schema) { create_tables({schema}); }
  /// By one call.
  void create_tables(const std::vector<TableSchema>& schemas);
  void alter_table(const std::string& name, const TableSchema& to);
  void drop_table(const std::string& name);
  /// Merges all of the table; does nothing while a transaction is open.
  void merge(const std::string& table, bool renews = false);
  /// Commits the writes when the first of several chunks has been merged.
  void merge_beside(const std::string& table, const Writes& writes);
  void commit(const Writes& writes);
  /// A transaction that writes `undone` in between, and undoes it.
  void commit_partly(const Writes& before, const Writes& undone, const Writes& after);
  void abort(const Writes& writes);
  /// Transactions that stay open while others run; ended by number.
  std::size_t begin(const Writes& writes);
  void commit(std::size_t transaction);
  void abort(std::size_t transaction);
  void abort_all();
  /// Does twice what the thread that keeps hints does now and then.
  void keep_hints();

  /// Closes and opens, with that many slots from then on; 0: as many as before.
  void reopen(std::uint32_t slots = 0);
  /// Cuts the power (CrashExplorer::crash_image), and opens.
  void crash(std::uint64_t choice, std::uint32_t slots = 0);

  /// Kills the process, and opens. Its stores may reach the medium, or not, until they are flushed.
  void kill();
  /// The same within the step: before the flush with that number, counted from 0, is executed. If
  /// the step has fewer flushes: after the step, acknowledged. Call it after watch().
  void kill_within(Step step, std::uint64_t flush);

  /// Steps of several threads, which run one at a time (only run_threads uses these). A step is
  /// acknowledged only by settle() and acknowledge(). From may_take_effect() to withdraw() an image
  /// may have it or not.
  std::uint64_t announce(Step step);
  void may_take_effect(std::uint64_t pending);
  /// The step has certainly taken effect: its thread has been told, or another transaction sees it.
  void settle(std::uint64_t pending);
  void withdraw(std::uint64_t pending);
  /// A crash point: this thread has been told.
  void acknowledge();
  void fail(Status status);
  const Expectation& expectation() const noexcept { return now_; }
  void set_timestamp(std::uint64_t timestamp) noexcept { now_.timestamp = timestamp; }
  /// Null before watch().
  pmem::PersistObserver* observer() const noexcept;
  const RigOptions& options() const noexcept { return options_; }
  void set_turns(TurnOwners turns) { turns_ = std::move(turns); }
  const TurnOwners& turns() const noexcept { return turns_; }

  /// Called before each fence takes effect and before it is explored; by one thread at a time.
  std::function<void(pmem::Label)> before_fence;

  engine::DatabaseCore& core() { return *core_; }
  const DatabaseState& state() const noexcept { return now_.state(); }
  /// Whether there is space to judge a state like the present one, also with that table added and
  /// with long texts in every table, so that `bytes` of the pool are free after that. Tried on a
  /// copy.
  bool has_room(std::uint64_t bytes, const std::optional<TableSchema>& another);
  /// Whether nothing is left to explore: failed, or the budget is used up.
  bool is_done() const noexcept;
  /// The first mistake, in the running database or in an image of it.
  Status outcome() const;
  ExplorerReport report() const;
  /// The number of lines that acknowledgements left unflushed, by site.
  std::map<UnflushedSite, std::uint64_t> unflushed_at_acknowledgement() const;

 private:
  class Filter;
  struct Open {
    Transaction transaction;
    Writes writes;
  };

  template <typename Work>
  void explored(Step step, Work&& work);
  void make_explorer();
  void note_flush(std::size_t offset, std::size_t bytes, pmem::Label label);
  void note_power_cut();
  Status create(pmem::PersistObserver* observer);
  Status open_live();
  void make_late_indexes();
  Status open_live(Expectation::Outcome*& outcome);
  void end_process(std::span<const std::byte> left);
  Status check_as_another(std::span<std::byte> image, ExplorerContext& context);
  Status check(std::span<std::byte> image, ExplorerContext& context);
  Status check_recovered(engine::DatabaseCore& core, std::uint32_t depth,
                         Expectation::Outcome*& outcome);
  Status check_second_restart(std::span<std::byte> image, const DatabaseState& expected,
                              std::uint64_t used);
  bool has_room_after_opening(std::uint64_t bytes, const std::optional<TableSchema>& another);
  Status run_new_transactions(engine::DatabaseCore& core, std::uint32_t taken, DatabaseState& state,
                              ModelSteps& model);

  RigOptions options_;
  std::uint32_t openings_ = 0;
  std::uint32_t steps_before_indexes_ = 0;  // until the live database makes its late indexes
  PoolBuffer buffer_;
  PoolBuffer trial_;  // of has_room
  std::unique_ptr<CrashExplorer> explorer_;
  std::unique_ptr<Filter> filter_;
  std::unique_ptr<engine::DatabaseCore> core_;
  Expectation now_;
  std::map<std::size_t, Open> open_;
  std::size_t next_open_ = 0;
  Status status_;
  bool is_creating_ = true;
  std::map<UnflushedSite, std::uint64_t> unflushed_;
  std::map<std::size_t, UnflushedSite> waiting_;  // by offset: lines whose next flush has not come
  std::uint64_t next_pending_ = 0;
  TurnOwners turns_;  // of run_threads()
  // For the image being judged: the outcome that recoveries from crashes inside its own recovery
  // chose.
  const Expectation::Outcome* nested_outcome_ = nullptr;
  bool nested_outcomes_differ_ = false;
};

/// Opens the pool that a rig left behind.
Result<std::unique_ptr<engine::DatabaseCore>> open_image(std::span<std::byte> memory,
                                                         pmem::PersistObserver* observer,
                                                         const RigOptions& rig, bool late_indexes);

}  // namespace flugs::crash
