#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bench/support/scm_model.h"
#include "bench/support/shared_file.h"
#include "bench/support/table_layout.h"
#include "bench/tatp/tatp_state.h"
#include "flugs/status.h"

namespace flugs::bench {

/// The promises to users of TATP, in a place that no crash of the database's process reaches: a
/// shared mapping of a file outside the pool. Each user logs every write transaction before it
/// begins, and again when commit has returned. A later audit compares the database with these logs.
///
/// A killed process leaves in the mapping exactly the stores that it had executed, in program
/// order, so only the compiler must be kept from reordering them.
///
/// A *life* is one process's use of the pool, 1 first. The *base* is the state of every subscriber
/// that the audit of an earlier life found; logs of lives up to the base's are history.

/// One write transaction of one user.
struct WitnessEntry {
  enum State : std::uint8_t {
    kNothing = 0,       ///< ends the log: no effect, or not used yet
    kBegun = 1,         ///< may have been in flight at the crash
    kAcknowledged = 2,  ///< commit has returned ok
  };
  std::uint64_t commit_timestamp = 0;
  std::uint32_t s_id = 0;
  std::uint32_t value = 0;  ///< vlr_location; slot value; bit_1 << 8 | data_a
  std::uint32_t life = 0;
  TatpType type = TatpType::kGetSubscriberData;
  std::uint8_t sf_type = 0;
  std::uint8_t start_time = 0;
  std::uint8_t state = kNothing;
};
static_assert(sizeof(WitnessEntry) == 24);

/// The stage of a process of a crash run.
enum class Stage : std::uint32_t { kStarting, kPopulating, kOpening, kChecking, kRunning, kDone };

inline constexpr std::uint32_t kUsersMax = 64;

/// The plan of a crash run; constant while it runs.
struct CrashPlan {
  char pool_path[512] = {};
  PopulationOptions population;
  std::uint32_t users = 1;
  std::uint32_t load_threads = 1;
  TatpMix mix = TatpMix::kFull;
  TatpDistribution distribution = TatpDistribution::kNuRand;
  ScmModel scm;
  std::uint64_t log_entries = 0;  ///< for each user
  // For the pool that is made; 0: as in OpenOptions.
  std::uint64_t pool_bytes_max = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t journal_bytes = 0;
  std::uint64_t direct_write_bytes = 0;  ///< 0: as in OpenOptions
  IndexPlace index_place = kDefaultIndexPlace;
  TableLayout layout = TableLayout::kRows;
  bool process_crash_only = false;      ///< commits with Durability::kProcessCrash
  std::uint32_t merge_interval_ms = 0;  ///< how often tables are merged by themselves; 0: never
  bool is_merged = false;  ///< all rows are merged into main behind the load; pool_bytes: used ones
  char memory_group[128] = {};  ///< folder of a control group for the processes; or none

  /// Seed of all draws of users in that life, for any engine.
  std::uint64_t run_seed(std::uint32_t life) const noexcept {
    return mix64(population.seed) + life;
  }
};

/// What the running process reports to the process that watches it. Times are CLOCK_MONOTONIC
/// nanoseconds.
struct CrashStatus {
  std::atomic<Stage> stage{Stage::kStarting};
  std::atomic<std::uint64_t> progress_done{0};
  std::atomic<std::uint64_t> progress_total{0};
  std::atomic<std::uint64_t> main_ns{0};    ///< main was entered
  std::atomic<std::uint64_t> opened_ns{0};  ///< Database::open returned
  std::atomic<std::uint64_t> rows_loaded{0};
  std::atomic<double> load_seconds{0};
  std::atomic<std::uint64_t> lost_acknowledged{0};   ///< by the last audit
  std::atomic<std::uint64_t> audited_entries{0};     ///< by the last audit
  std::atomic<std::uint64_t> recovery_completed{0};  ///< transactions, as the report says
  std::atomic<std::uint64_t> recovery_undone{0};
  std::atomic<std::uint32_t> invariants[8] = {};  ///< bench::Check, by the last audit
  std::atomic<std::uint64_t> pool_bytes{0};
  char medium[32] = {};  ///< written before `opened_ns`
  char guarantee[256] = {};
  char engine[64] = {};  ///< another engine's name and version, and how it is set up
  char setup[512] = {};
};

struct alignas(64) UserStatus {
  std::atomic<std::uint64_t> executed{0};         ///< transactions since the run began, all lives
  std::atomic<std::uint64_t> first_answer_ns{0};  ///< of this life
};

class Witness {
 public:
  /// Makes the file. Fails with kIoError, kAlreadyExists, kInvalidArgument.
  static Result<Witness> create(const std::string& path, const CrashPlan& plan);
  /// Maps an existing one. Fails with kIoError, kIncompatible.
  static Result<Witness> open(const std::string& path);

  Witness() noexcept = default;

  const CrashPlan& plan() const noexcept;
  CrashStatus& status() const noexcept;
  UserStatus& user(std::uint32_t index) const noexcept;
  std::uint64_t executed() const noexcept;  ///< of all users
  /// When the first user of this life had its first answer; 0: none yet.
  std::uint64_t first_answer_ns() const noexcept;

  /// Begins the next life and returns its number; no user has been answered in it yet.
  std::uint32_t begin_life() noexcept;
  std::uint32_t life() const noexcept;
  /// 0: the base is the population.
  std::uint32_t base_life() const noexcept;
  const TatpState& base(std::uint32_t s_id) const noexcept;

  /// For each subscriber, publish_next_base makes the state stored by `store_next_base` the base of
  /// all lives before this one, in one step: a process that is killed before leaves the old base
  /// with its logs.
  void store_next_base(std::uint32_t s_id, const TatpState& state) noexcept;
  void publish_next_base() noexcept;

  /// The log of one user since the base.
  std::span<const WitnessEntry> log(std::uint32_t user) const noexcept;
  std::span<WitnessEntry> log_space(std::uint32_t user) noexcept;

 private:
  struct Header;
  Header& header() const noexcept { return *reinterpret_cast<Header*>(file_.data()); }
  TatpState* base_buffer(std::uint32_t index) const noexcept;
  WitnessEntry* log_begin(std::uint32_t user) const noexcept;

  SharedFile file_;
};

/// Writes one user's log. Thread-safety: one thread.
class WitnessLog {
 public:
  WitnessLog(Witness& witness, std::uint32_t user) noexcept;

  bool full() const noexcept { return next_ == space_.size(); }
  /// Before a write transaction begins. Must not be full.
  void begin(const TatpRequest& request) noexcept;
  /// commit has returned ok.
  void acknowledge(std::uint64_t commit_timestamp) noexcept;
  /// It ended without effect.
  void forget() noexcept;

 private:
  std::span<WitnessEntry> space_;
  std::size_t next_ = 0;
  std::uint32_t life_ = 0;
};

}  // namespace flugs::bench
