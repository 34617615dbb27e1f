#pragma once

#include <cstdint>
#include <string>

#include "bench/tatp/tatp_invariants.h"
#include "bench/tatp/witness.h"
#include "tools/support/child_process.h"
#include "tools/support/cleanup.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"

namespace flugs::tools {

/// The work of a process of a crash run on the pool, in this order.
struct CrashTask {
  bool populate = false;  ///< creates the pool first
  bool check = false;     ///< audits it against the witness
  bool verify = false;    ///< Database::check
  bool report = false;    ///< prints what was found, as JSON
  bool run = false;       ///< TATP until killed
};

/// TATP in processes that are killed and started again on one pool, with a witness of what their
/// users were promised.
class CrashRun {
 public:
  /// `plan`'s pool path is filled in. `program` empty: this one; else that of another engine, which
  /// takes the same arguments (tools/peers) and has a directory in the pool's place.
  static Result<CrashRun> prepare(bench::CrashPlan plan, const std::string& pool_path, bool keep,
                                  const std::string& program = "");

  bench::Witness& witness() noexcept { return witness_; }
  const PoolFile& pool() const noexcept { return pool_; }

  Status start(const CrashTask& task);
  /// Kills the process, without warning.
  void kill() { child_.kill(); }
  /// Until the process runs TATP. Fails as expect_alive.
  Status wait_until_running(ProgressBar& bar);
  /// Until the process has ended by itself. `exit_status` is its own.
  Status wait_until_done(ProgressBar& bar, int& exit_status);
  /// Fails when the process has ended by itself: with kIoError when it could not run, kCorrupt
  /// when a check failed or it crashed.
  Status expect_alive();

  /// The result of the last check in a process; the problems themselves went to standard error.
  bench::InvariantReport invariants() const;

 private:
  void draw(ProgressBar& bar) const;

  std::string program_;
  PoolFile pool_;
  TemporaryFile witness_file_;
  bench::Witness witness_;
  ChildProcess child_;
};

}  // namespace flugs::tools
