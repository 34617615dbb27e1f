#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bench/restart/restart_data.h"
#include "bench/support/scm_model.h"
#include "bench/support/shared_file.h"
#include "flugs/database.h"

namespace flugs::bench {

inline constexpr std::uint32_t kRestartWritersMax = 16;
/// Rows whose RowIds are remembered for checking.
inline constexpr std::uint32_t kRestartSamplesMax = 10'000;

/// Where the rows of the bulk load are: in the delta, merged into main, or the first half merged.
enum class RestartSide : std::uint32_t { kDelta, kMain, kHalf };

/// The plan of a restart benchmark; constant while it runs.
struct RestartPlan {
  char pool_path[512] = {};
  std::uint64_t rows = 1'000'000;
  std::uint64_t distinct = 100'000;
  std::uint32_t tables = 1;  ///< with as many rows each; all queries are of the first
  std::uint64_t seed = 1;
  Type type = Type::kInt32;
  bool killed = false;  ///< every life but the last ends with SIGKILL under load
  std::uint32_t load_threads = 1;
  std::uint32_t recovery_threads = 0;
  IndexPlace index_place = kDefaultIndexPlace;
  Ready ready = Ready::kFirstAnswer;
  RestartSide side = RestartSide::kDelta;
  bool keyed = false;         ///< with a column id, the primary key, by which the first query goes
  bool sums_first = false;    ///< the first query is sum(c1)
  bool to_full_speed = true;  ///< a second of point selects follows the first answer
  std::uint32_t writers = 2;  ///< of the load under which it is killed
  ScmModel scm;

  RestartData data() const noexcept { return {distinct, seed, type}; }
  /// Columns of the table: c1 to c4, and id.
  std::size_t columns() const noexcept { return kRestartColumns + (keyed ? 1 : 0); }
  /// One row in this many is a sample.
  std::uint64_t sample_step() const noexcept { return rows / kRestartSamplesMax + 1; }
  std::uint64_t samples() const noexcept { return (rows + sample_step() - 1) / sample_step(); }
};

/// Totals over the rows of the table; sums wrap.
struct RestartTotals {
  std::uint64_t rows = 0;
  std::uint64_t matches = 0;  ///< rows in which c1 is the wanted value
  std::uint64_t sum = 0;      ///< of c1

  RestartTotals& operator+=(const RestartTotals& other) noexcept {
    rows += other.rows;
    matches += other.matches;
    sum += other.sum;
    return *this;
  }
  friend bool operator==(const RestartTotals&, const RestartTotals&) = default;
};

/// One transaction of the load under which the process is killed: it inserts eight rows and changes
/// c2 of the first row of the writer's transaction before.
struct RestartEntry {
  static constexpr std::size_t kRows = 8;
  enum State : std::uint32_t { kNothing = 0, kBegun = 1, kAcknowledged = 2 };

  std::uint32_t rows[kRows] = {};  ///< RowIds
  std::uint32_t updated = 0;       ///< RowId of the changed row's new version
  std::uint32_t life = 0;
  std::uint32_t state = kNothing;
};

/// Times of one opening and its first answer, in CLOCK_MONOTONIC nanoseconds.
struct RestartTimes {
  struct Phase {
    char name[32] = {};
    double us = 0;
    std::uint64_t items = 0;
  };
  static constexpr std::size_t kPhasesMax = 16;

  std::uint64_t spawned_ns = 0;     ///< right before the process was started
  std::uint64_t main_ns = 0;        ///< main was entered
  std::uint64_t opened_ns = 0;      ///< Database::open returned
  double later_ms = 0;              ///< then indexes were made that it had left for later, so long
  std::uint64_t later_entries = 0;  ///< of these, dictionary entries and rows with keys
  double warm_ms = 0;               ///< pages were entered into page tables meanwhile, so long
  std::uint64_t warmed_bytes = 0;
  std::uint64_t first_answer_ns = 0;
  std::uint64_t full_speed_ns = 0;  ///< from then on point selects were as fast as ever after
  double selects_per_s = 0;         ///< that speed, one thread
  std::uint64_t minor_faults = 0;   ///< until the first answer
  std::uint64_t major_faults = 0;
  std::uint64_t dram_bytes = 0;
  double select_scan_ms = 0;  ///< select c1, c2, c3, c4 where c1 = v
  double sum_ms = 0;          ///< select sum(c1): pages in all codes
  double sum_again_ms = 0;    ///< the same once more
  std::uint64_t phase_count = 0;
  Phase phases[kPhasesMax];
  std::uint64_t threads = 0;
  std::uint64_t acknowledged_checked = 0;  ///< transactions of the life before
};

enum class RestartStage : std::uint32_t { kStarting, kLoading, kProbing, kUnderLoad, kDone };

struct RestartStatus {
  std::atomic<RestartStage> stage{RestartStage::kStarting};
  std::atomic<std::uint64_t> rows_loaded{0};
  std::atomic<std::uint64_t> transactions_under_load{0};  ///< of this life
  std::uint32_t life = 0;        ///< processes so far that had the pool open
  double load_seconds = 0;       ///< merging included
  std::uint64_t pool_bytes = 0;  ///< after the bulk load
  std::uint64_t pool_used_bytes = 0;
  std::uint64_t load_dram_bytes = 0;
  RestartTotals totals;     ///< of what is certain to be there
  RestartTotals first_sum;  ///< rows and sum of c1 as the first query had them
  RestartTimes times;       ///< of the last probe
  char medium[32] = {};
  char guarantee[256] = {};
  char engine[64] = {};  ///< another engine's name and version, and how it was set up
  char setup[512] = {};
};

/// Memory that the processes of a restart benchmark share: plan, results, samples, and the writers'
/// log. The log survives when the processes are killed.
class RestartControl {
 public:
  /// Fails as SharedFile::create.
  static Result<RestartControl> create(const std::string& path, const RestartPlan& plan);
  /// Fails as SharedFile::open.
  static Result<RestartControl> open(const std::string& path);

  const RestartPlan& plan() const noexcept;
  RestartStatus& status() const noexcept;
  /// RowId of the row `index * plan().sample_step()`.
  std::span<std::uint32_t> samples() const noexcept;
  /// The log of one writer; the entries of a life begin at the front.
  std::span<RestartEntry> log(std::uint32_t writer) const noexcept;

 private:
  struct Header;
  Header& header() const noexcept { return *reinterpret_cast<Header*>(file_.data()); }

  SharedFile file_;
};

}  // namespace flugs::bench
