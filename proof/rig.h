#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database_core.h"
#include "proof/explorer.h"
#include "proof/mutation.h"
#include "proof/pool_buffer.h"

// A database under the crash-state explorer, with a model of what it must hold.
//
// Each image is judged thus: ordinary recovery (crashed again, `nested_depth` deep); the state is
// that before or that after the transaction in flight, and crashes inside recovery decide the same;
// the audit is clean; the space in use, the free space and the overhead are all there is; then the
// transaction in flight is run again, new ones insert, update, delete and insert again in every
// table through every slot, with time-stamps above all that were acknowledged; then a second
// restart gives the same state and the same space in use.

namespace flugs::proof {

/// A string or bytes that a Value can name for ever.
std::string_view keep(std::string text);

/// Rows by the integer in their first column, which is unique in each table of these tests.
using TableRows = std::map<std::int32_t, std::vector<Value>>;
using DatabaseState = std::map<std::string, TableRows>;

struct RowWrite {
  enum class Kind : std::uint8_t { kInsert, kUpdate, kRemove };
  Kind kind;
  std::string table;
  std::int32_t id;
  std::vector<Value> row = {};            // kInsert
  std::vector<ColumnValue> changes = {};  // kUpdate
};
using Writes = std::vector<RowWrite>;

RowWrite insert(std::string table, std::vector<Value> row);
RowWrite update(std::string table, std::int32_t id, std::vector<ColumnValue> changes);
RowWrite remove(std::string table, std::int32_t id);

/// One durable change of a database: a transaction, a table created or dropped, or merged.
struct Step {
  Writes writes = {};
  std::optional<TableSchema> created = {};
  std::string dropped = {};
  std::string merged = {};  ///< of a table: changes nothing that a transaction sees
};

/// What a database that is recovered at some moment must hold.
struct Expectation {
  DatabaseState state;                 ///< acknowledged
  std::optional<DatabaseState> after;  ///< when what is in flight has taken effect
  Step in_flight;
  std::uint64_t timestamp = 0;  ///< the latest that was acknowledged
};

struct RigOptions {
  std::size_t pool_bytes = std::size_t{128} << 10;
  std::uint32_t slots = 2;
  bool watches_creation = false;
  bool mutes_script = false;  ///< crash points begin at unmute(), not at watch()
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
  void drop_table(const std::string& name);
  /// Merges all of the table, or does nothing while a transaction is open.
  void merge(const std::string& table);
  void commit(const Writes& writes);
  void abort(const Writes& writes);
  /// Transactions that stay open while others run; ended by number.
  std::size_t begin(const Writes& writes);
  void commit(std::size_t transaction);
  void abort(std::size_t transaction);
  void abort_all();

  /// Closes and opens, with that many slots from then on; 0: as many as before.
  void reopen(std::uint32_t slots = 0);
  /// Cuts the power (CrashExplorer::crash_image), and opens.
  void crash(std::uint64_t choice, std::uint32_t slots = 0);

  /// Called before each fence takes effect, and before it is explored. One at a time.
  std::function<void(pmem::Label)> before_fence;

  engine::DatabaseCore& core() { return *core_; }
  const DatabaseState& state() const noexcept { return now_.state; }
  /// Whether there is nothing left to explore: failed, or budget used up.
  bool is_done() const noexcept;
  /// What went wrong first, in the running database or in an image of it.
  Status outcome() const;
  ExplorerReport report() const;
  /// Lines left unflushed at acknowledgements, by what they hold.
  const std::map<std::string, std::uint64_t>& unflushed_at_acknowledgement() const noexcept {
    return unflushed_;
  }

 private:
  class Filter;
  struct Open {
    Transaction transaction;
    Writes writes;
  };

  template <typename Work>
  void explored(Step step, Work&& work);
  void make_explorer();
  void acknowledge();
  Status create(pmem::PersistObserver* observer);
  void fail(Status status);
  Status open_live();
  void close_live();
  Status check_as_another(std::span<std::byte> image, ExplorerContext& context);
  Status check(std::span<std::byte> image, ExplorerContext& context);
  Status check_recovered(engine::DatabaseCore& core, std::uint32_t depth, bool& is_after);
  Status run_new_transactions(engine::DatabaseCore& core, bool is_after, DatabaseState& state);

  RigOptions options_;
  PoolBuffer buffer_;
  std::unique_ptr<CrashExplorer> explorer_;
  std::unique_ptr<Filter> filter_;
  std::unique_ptr<engine::DatabaseCore> core_;
  Expectation now_;
  std::map<std::size_t, Open> open_;
  std::size_t next_open_ = 0;
  Status status_;
  bool is_creating_ = true;
  std::map<std::string, std::uint64_t> unflushed_;
  std::uint32_t nested_outcomes_ = 0;  // bit 0: before, bit 1: after; of the image being judged
};

/// The same in the model; false when the model does not admit it.
bool model_step(const Step& step, DatabaseState& state);
/// Runs the step on a database; a transaction checks before its commit that it sees `expected`.
/// Takes the commit time-stamp over into `timestamp`, above which it must be.
Status run_step(const Step& step, engine::DatabaseCore& core, const DatabaseState* expected,
                std::uint64_t& timestamp);
/// All that a transaction sees.
Result<DatabaseState> read_state(engine::DatabaseCore& core, const Transaction& transaction);
/// The first difference, in words; empty when there is none.
std::string difference(const DatabaseState& expected, const DatabaseState& found);
/// used + free + overhead = allocated.
Status check_space(engine::DatabaseCore& core);

}  // namespace flugs::proof
