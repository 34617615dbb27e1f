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
#include "proof/expectation.h"
#include "proof/explorer.h"
#include "proof/mutation.h"
#include "proof/pool_buffer.h"
#include "proof/schedule.h"

// A database under the crash-state explorer, with a model of what it must hold.
//
// Each image is judged thus: ordinary recovery (crashed again, `nested_depth` deep); the state is
// that before the steps in flight or that after some of them, and crashes inside recovery decide
// the same; the audit is clean; the space in use, the free space and the overhead are all there is;
// then what was in flight and is not there is run again, new transactions insert, update, delete
// and insert again in every table through every slot, with time-stamps above all that were
// acknowledged; then a second restart gives the same state and the same space in use.

namespace flugs::proof {

/// Lines that hold at an acknowledgement what nobody has flushed: what they are part of, the labels
/// of the flush before, which did not cover it, and of the next, which came later.
struct UnflushedSite {
  std::string holds;
  std::string before;  ///< "-": none
  std::string next;    ///< "-": none; "power cut": that came earlier

  friend auto operator<=>(const UnflushedSite&, const UnflushedSite&) = default;
};

struct RigOptions {
  std::size_t pool_bytes = std::size_t{128} << 10;
  std::uint32_t slots = 2;
  IndexMode index_mode = IndexMode::kRebuild;
  bool late_indexes = false;  ///< opening makes no index in DRAM, and dictionaries wait for theirs
  bool watches_creation = false;
  bool mutes_script = false;  ///< crash points begin at unmute(), not at watch()
  // Of run_threads().
  Schedule schedule = {};
  std::uint64_t turns_seed = 0;  ///< of what the threads do; 0: the script
  ExplorerOptions explorer;
  Mutation mutation;
};

/// "flush <label>" and "fence <label>" of all that a rig has watched in this process.
std::set<std::string>& watched_sites();

/// Reads `FLUGS_CRASH_STATES`, by which the number of states to explore is multiplied; 1 without.
std::uint64_t crash_states_factor();

class CrashRig {
 public:
  explicit CrashRig(RigOptions options);
  ~CrashRig();
  CrashRig(const CrashRig&) = delete;
  CrashRig& operator=(const CrashRig&) = delete;

  /// From here on every fence and every acknowledgement is a crash point.
  void watch();
  /// The same, where the options have muted watch().
  void unmute();

  void create_table(const TableSchema& schema);
  void alter_table(const std::string& name, const TableSchema& to);
  void drop_table(const std::string& name);
  /// Merges all of the table, or does nothing while a transaction is open.
  void merge(const std::string& table, bool renews = false);
  void commit(const Writes& writes);
  /// A transaction that writes `undone` in between, and takes it back.
  void commit_partly(const Writes& before, const Writes& undone, const Writes& after);
  void abort(const Writes& writes);
  /// Transactions that stay open while others run; ended by number.
  std::size_t begin(const Writes& writes);
  void commit(std::size_t transaction);
  void abort(std::size_t transaction);
  void abort_all();
  /// What the thread that keeps hints does now and then, twice.
  void keep_hints();

  /// Closes and opens, with that many slots from then on; 0: as many as before.
  void reopen(std::uint32_t slots = 0);
  /// Cuts the power (CrashExplorer::crash_image), and opens.
  void crash(std::uint64_t choice, std::uint32_t slots = 0);

  /// Kills the process, whose stores reach the medium or not until somebody flushes them, and
  /// opens.
  void kill();
  /// The same within the step, before the flush of that number, counted from 0, is executed; after
  /// the step, acknowledged, when it has fewer. After watch().
  void kill_within(Step step, std::uint64_t flush);

  /// Steps of several threads, of which one runs at a time (run_threads, which alone uses these).
  /// Not acknowledged before settle() and acknowledge(); from may_take_effect() to withdraw() it
  /// may be found in an image.
  std::uint64_t announce(Step step);
  void may_take_effect(std::uint64_t pending);
  /// It has taken effect for certain: its thread has been told, or another transaction sees it.
  void settle(std::uint64_t pending);
  void withdraw(std::uint64_t pending);
  /// Crash point: this thread has been told.
  void acknowledge();
  void fail(Status status);
  const Expectation& expectation() const noexcept { return now_; }
  void set_timestamp(std::uint64_t timestamp) noexcept { now_.timestamp = timestamp; }
  /// Null before watch().
  pmem::PersistObserver* observer() const noexcept;
  const RigOptions& options() const noexcept { return options_; }
  void set_turns(TurnOwners turns) { turns_ = std::move(turns); }
  const TurnOwners& turns() const noexcept { return turns_; }

  /// Called before each fence takes effect, and before it is explored. One at a time.
  std::function<void(pmem::Label)> before_fence;

  engine::DatabaseCore& core() { return *core_; }
  const DatabaseState& state() const noexcept { return now_.state(); }
  /// Whether a state like the present one can be judged, also with that table more in it and with
  /// long texts in every table, and `bytes` of the pool are free after that. Found out on a copy.
  bool has_room(std::uint64_t bytes, const std::optional<TableSchema>& another);
  /// Whether there is nothing left to explore: failed, or budget used up.
  bool is_done() const noexcept;
  /// What went wrong first, in the running database or in an image of it.
  Status outcome() const;
  ExplorerReport report() const;
  /// How many lines acknowledgements left unflushed.
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
  std::uint32_t steps_before_indexes_ = 0;  // until the live database makes those that are late
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
  std::map<std::size_t, UnflushedSite> waiting_;  // by offset: lines whose next flush is to come
  std::uint64_t next_pending_ = 0;
  TurnOwners turns_;  // of run_threads()
  // Of the image being judged: what the recoveries from crashes inside its own have decided.
  const Expectation::Outcome* nested_outcome_ = nullptr;
  bool nested_outcomes_differ_ = false;
};

/// Opens what a pool of a rig left behind.
Result<std::unique_ptr<engine::DatabaseCore>> open_image(std::span<std::byte> memory,
                                                         pmem::PersistObserver* observer,
                                                         std::uint32_t slots, bool late_indexes);

}  // namespace flugs::proof
