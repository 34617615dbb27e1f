#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "flugs/database.h"
#include "tools/restart/restart_run.h"
#include "tools/support/progress_bar.h"

namespace flugs::tools {

/// Whose restarts are measured: flugs in one of its index modes, or another engine.
struct RestartEngine {
  std::string key;      ///< "flugs-dram", "lmdb"
  std::string program;  ///< empty: flugs itself
  IndexPlace index_place = kDefaultIndexPlace;
  Ready ready = Ready::kFirstAnswer;
  bool keyed = true;          ///< the first query goes by the primary key, else by row id
  std::uint32_t writers = 2;  ///< of the load under which it is killed: those it lets in

  bool is_flugs() const noexcept { return program.empty(); }
  /// Whether the engine allows one writer at a time, though any number of readers.
  bool is_single_writer() const noexcept { return writers == 1; }
};

/// flugs: in both modes with a key, as the others have one, and as the paper's table without.
std::vector<RestartEngine> flugs_engines();
/// The peer of that name: lmdb, rocksdb, wiredtiger, sqlite, duckdb; its program is beside ours.
/// Fails with kNotFound: it was not built.
Result<RestartEngine> peer_engine(const std::string& name);

/// Restarts of one engine with a table of one size.
struct RestartPointRuns {
  std::string key;
  std::string name;  ///< with version
  std::string setup;
  std::string medium;
  std::string guarantee;
  std::string first_query;
  std::uint32_t writers = 0;
  double load_seconds = 0;
  std::vector<RestartRun> runs;
  Status status;  ///< why there are fewer runs than asked for; kCorrupt: an answer was wrong
};

/// One size of the table, and all engines with it, each on the same rows.
struct RestartPoint {
  std::uint64_t rows = 0;
  std::uint64_t distinct = 0;
  bool interleaved = false;  ///< restarts of the engines by turns; else one engine after another
  std::vector<RestartPointRuns> engines;
};

/// Fills in the point. `plan` says everything but its size and what belongs to an engine.
/// Databases lie on /dev/shm and are removed; they are there together if there is room, else one
/// after another. Fails with kOutOfSpace, kOutOfMemory: there is no room for one of them.
Status measure_restarts(bench::RestartPlan plan, const std::vector<RestartEngine>& engines,
                        std::uint32_t runs, ProgressBar& bar, RestartPoint& point);

}  // namespace flugs::tools
