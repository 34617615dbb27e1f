#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/tatp/tatp_invariants.h"
#include "flugs/database.h"
#include "tools/children/crash_run.h"
#include "tools/report/curve.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

/// TATP in a process that is killed, and in the next one on the same pool.
struct DemoOptions {
  std::string pool;
  std::uint32_t subscribers = 200'000;
  std::uint32_t users = 4;
  double seconds_before = 5;
  double seconds_after = 5;
  std::uint64_t seed = 1;
  /// Full speed is this share of the mean throughput before the crash.
  double full_speed_share = 0.95;
  bench::ScmModel scm;
  IndexPlace index_place = kDefaultIndexPlace;
  std::string program;  ///< of another engine (tools/peers); empty: flugs
  bool keep = false;
};

/// Moments are CLOCK_MONOTONIC nanoseconds.
struct DemoFigures {
  std::vector<ThroughputSample> samples;
  std::uint64_t begin_ns = 0;  ///< TATP runs
  std::uint64_t kill_ns = 0;   ///< SIGKILL is sent
  std::uint64_t gone_ns = 0;   ///< the killed process is gone
  std::uint64_t main_ns = 0;   ///< the next one has entered main
  std::uint64_t opened_ns = 0;
  std::uint64_t answer_ns = 0;
  std::uint64_t full_speed_ns = 0;  ///< 0: never
  std::uint64_t full_speed_window_ns = 0;
  std::uint64_t completed = 0;  ///< transactions in flight, by the restart after the kill
  std::uint64_t undone = 0;
  double before_tps = 0;
  double after_tps = 0;
  std::uint64_t audited = 0;
  std::uint64_t lost_acknowledged = 0;
  bool audit_ok = false;
  bench::InvariantReport invariants;

  double ms_after_kill(std::uint64_t time_ns) const {
    return time_ns < kill_ns ? 0 : static_cast<double>(time_ns - kill_ns) * 1e-6;
  }
  bool good() const { return audit_ok && lost_acknowledged == 0 && full_speed_ns != 0; }
};

/// The pool, and the witness of what the users are promised. Fails as CrashRun::prepare.
Result<CrashRun> prepare_demo(const DemoOptions& options);
/// Populates, runs, kills, runs again, kills, audits; says on standard output what it runs.
/// Fails when a process fails.
Status run_demo(const DemoOptions& options, CrashRun& crash, DemoFigures& figures);
bench::Json demo_json(const DemoOptions& options, CrashRun& crash, const DemoFigures& figures);

}  // namespace flugs::tools
