#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/restart/restart_control.h"
#include "bench/support/json.h"
#include "bench/support/median.h"
#include "bench/support/random.h"
#include "tools/support/child_process.h"
#include "tools/support/cleanup.h"
#include "tools/support/progress_bar.h"

namespace flugs::tools {

/// One restart, in milliseconds since right before its process was started.
struct RestartRun {
  double exec_to_main = 0;
  double open = 0;   ///< from main to the return of Database::open
  double query = 0;  ///< from there to the answer, with what it waited for
  double all_indexes = 0;
  double first_answer = 0;
  double full_speed = 0;
  double index_rebuild = 0;
  double rest = 0;
  bench::RestartTimes times;
};

/// Median, 90th percentile and largest of a figure over all runs.
struct Spread {
  double median = 0;
  double p90 = 0;
  double max = 0;
};
bench::Json to_json(const Spread& spread);

template <typename Get>
Spread spread_of(std::span<const RestartRun> runs, const Get& get) {
  if (runs.empty()) return {};
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RestartRun& run : runs) values.push_back(get(run));
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const auto rank = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(count)));
  return {bench::median(values), values[rank - 1], values.back()};
}

/// A database with the restart benchmark's table, and the processes that open it one after the
/// other: `flugs`, or another engine's program that takes the same arguments (tools/peers). Each of
/// them ends before the next call: it closes the database, or is killed under load.
class RestartLives {
 public:
  /// `program` empty: this one. Fails as RestartControl::create.
  static Result<RestartLives> prepare(const std::string& program, const bench::RestartPlan& plan);

  /// The first life, which makes and loads the database. Fails when the process does; with
  /// kCorrupt when it says that an answer is wrong.
  Status load(ProgressBar& bar);
  /// One more. The last one is not killed. Fails as load.
  Result<RestartRun> restart(bool last, ProgressBar& bar);

  const bench::RestartPlan& plan() const noexcept { return control_.plan(); }
  bench::RestartStatus& status() const noexcept { return control_.status(); }

 private:
  Status live(bool load, bool under_load, ProgressBar& bar);
  Status end_life(bool kill, ProgressBar& bar);
  Status unexpected_end() const;

  std::string program_;
  TemporaryFile control_file_;
  bench::RestartControl control_;
  bench::Random random_{0};
  ChildProcess child_;
};

/// Bytes of /dev/shm that the processes share, at most; only a part is touched.
inline constexpr std::uint64_t kRestartControlBytes = std::uint64_t{256} << 20;

/// Bytes that a pool for this plan will take at most, roughly.
std::uint64_t restart_pool_bytes(const bench::RestartPlan& plan);

}  // namespace flugs::tools
