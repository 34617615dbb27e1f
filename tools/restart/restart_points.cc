#include "tools/restart/restart_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/support/environment.h"
#include "tools/support/pool_file.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

/// Bytes of /dev/shm that a database of this engine takes at most, roughly.
std::uint64_t bytes_on_medium(const RestartEngine& engine, const bench::RestartPlan& plan) {
  constexpr std::uint64_t kLogBytes = std::uint64_t{256} << 20;
  // The others need 20 to 31 bytes a row.
  const std::uint64_t bytes =
      engine.is_flugs() ? restart_pool_bytes(plan) : 40 * plan.rows + kLogBytes;
  return bytes + kRestartControlBytes;
}

/// Bytes that a process of any engine has in memory for itself: indexes, caches, buffers.
std::uint64_t bytes_in_process(const bench::RestartPlan& plan) {
  return 24 * (plan.rows + bench::kRestartColumns * plan.distinct) + (std::uint64_t{1} << 30);
}

Status check_room(std::uint64_t on_medium, std::uint64_t in_process) {
  const std::uint64_t free = shared_memory_free_bytes();
  if (free < on_medium)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("about {} are needed on /dev/shm, {} are free there: ask for fewer "
                              "--rows",
                              format_bytes(on_medium), format_bytes(free)));
  const std::uint64_t available = bench::available_memory_bytes();
  if (available < on_medium + in_process)
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("about {} of memory are needed, /dev/shm included, {} are "
                              "available: ask for fewer --rows",
                              format_bytes(on_medium + in_process), format_bytes(available)));
  return {};
}

/// One engine's database, from its first life to its last.
struct Lane {
  RestartPointRuns& result;
  TemporaryFile database;
  RestartLives lives;
};

Result<Lane> prepare_lane(const RestartEngine& engine, bench::RestartPlan plan,
                          RestartPointRuns& result) {
  plan.index_place = engine.index_place;
  plan.ready = engine.ready;
  plan.keyed = engine.keyed;
  plan.writers = plan.killed ? engine.writers : 0;
  result.key = engine.key;
  result.writers = plan.writers;
  result.first_query = plan.keyed ? "point select by primary key" : "point select by row id";
  const std::string path = fresh_shared_path("." + engine.key, bytes_on_medium(engine, plan));
  if (path.size() >= sizeof plan.pool_path)
    return Status(StatusCode::kInvalidArgument, "the database's path is too long");
  path.copy(plan.pool_path, sizeof plan.pool_path - 1);
  TemporaryFile database(path);
  std::error_code error;
  if (!engine.is_flugs() && !std::filesystem::create_directory(path, error))
    return Status(StatusCode::kIoError, path + ": " + error.message());
  Result<RestartLives> lives = RestartLives::prepare(engine.program, plan);
  if (!lives.ok()) return std::move(lives).status();
  return Lane{result, std::move(database), *std::move(lives)};
}

void load(Lane& lane, ProgressBar& bar) {
  RestartPointRuns& result = lane.result;
  result.status = lane.lives.load(bar);
  const bench::RestartStatus& status = lane.lives.status();
  result.load_seconds = status.load_seconds;
  result.name = result.key;
  if (status.engine[0] != '\0') result.name = status.engine;
  result.setup = status.setup;
  result.guarantee = status.guarantee;
  result.medium = "tmpfs";
  if (result.key.starts_with("flugs")) {
    const std::string_view mode = to_string(lane.lives.plan().index_place);
    const bool keyed = lane.lives.plan().keyed;
    result.name =
        fmt::format("flugs {}, --index {}{}", FLUGS_VERSION, mode, keyed ? "" : ", no key");
    result.setup = fmt::format("rows in the delta, dictionary columns{}",
                               keyed ? ", a hashed primary key" : ", no key as in the paper");
    result.medium = fmt::format("{} (tmpfs)", status.medium);
  }
}

void restart(Lane& lane, bool last, ProgressBar& bar) {
  Result<RestartRun> run = lane.lives.restart(last, bar);
  if (run.ok()) {
    lane.result.runs.push_back(*std::move(run));
  } else {
    lane.result.status = std::move(run).status();
  }
}

/// Some engines together: all are loaded, then each restarts by turns.
Status measure_group(const bench::RestartPlan& plan, std::span<const RestartEngine> engines,
                     std::uint32_t runs, ProgressBar& bar, std::span<RestartPointRuns> results) {
  std::vector<Lane> lanes;
  lanes.reserve(engines.size());
  for (std::size_t i = 0; i < engines.size(); ++i) {
    Result<Lane> lane = prepare_lane(engines[i], plan, results[i]);
    if (!lane.ok()) return std::move(lane).status();
    lanes.push_back(*std::move(lane));
    load(lanes.back(), bar);
  }
  for (std::uint32_t run = 0; run < runs; ++run)
    for (Lane& lane : lanes) {
      bar.update("restarting " + lane.result.key, run, runs);
      if (lane.result.status.ok()) restart(lane, run + 1 == runs, bar);
    }
  return {};
}

}  // namespace

std::vector<RestartEngine> flugs_engines() {
  std::vector<RestartEngine> engines(3);
  engines[0].key = "flugs-dram-no-key";
  engines[0].keyed = false;
  engines[1].key = "flugs-dram";
  engines[0].index_place = engines[1].index_place = IndexPlace::kDram;
  // As SOFORT: then a restart is what Table 1 says.
  engines[0].ready = engines[1].ready = Ready::kIndexesBuilt;
  engines[2].key = "flugs-pool";
  engines[2].index_place = IndexPlace::kPool;
  return engines;
}

Result<RestartEngine> peer_engine(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  RestartEngine engine{.key = name, .program = self.parent_path() / ("flugs-peer-" + name)};
  // These two let one writer in at a time.
  if (name == "lmdb" || name == "sqlite") engine.writers = 1;
  if (!std::filesystem::exists(engine.program, error))
    return Status(StatusCode::kNotFound, engine.program + " was not built: its library was not " +
                                             "found (tools/setup --figures installs it)");
  return engine;
}

Status measure_restarts(bench::RestartPlan plan, const std::vector<RestartEngine>& engines,
                        std::uint32_t runs, ProgressBar& bar, RestartPoint& point) {
  plan.rows = point.rows;
  plan.distinct = point.distinct;
  const std::uint64_t in_process = bytes_in_process(plan);
  const std::uint64_t together = std::accumulate(
      engines.begin(), engines.end(), std::uint64_t{0},
      [&](std::uint64_t sum, const auto& engine) { return sum + bytes_on_medium(engine, plan); });
  point.interleaved = check_room(together, in_process).ok();
  point.engines.resize(engines.size());
  const std::size_t group = point.interleaved ? engines.size() : 1;
  for (std::size_t first = 0; first < engines.size(); first += group) {
    const std::span<const RestartEngine> some = std::span(engines).subspan(first, group);
    if (!point.interleaved) {
      Status room = check_room(bytes_on_medium(some.front(), plan), in_process);
      if (!room.ok()) return room;
    }
    Status status =
        measure_group(plan, some, runs, bar, std::span(point.engines).subspan(first, group));
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace flugs::tools
