#include "tools/children/random_kill_loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "bench/random/random_user.h"
#include "bench/support/environment.h"
#include "bench/support/random.h"
#include "tools/children/medium_filler.h"
#include "tools/support/child_process.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

constexpr std::uint32_t kRandomVerifyEvery = 10;
constexpr std::uint32_t kRandomKillEarlyEvery = 8;
constexpr std::uint32_t kRandomEarlyUsMax = 20'000;
constexpr std::chrono::milliseconds kRefusalWait{500};
constexpr std::chrono::seconds kProgressWait{30};
constexpr std::uint64_t kPoolBytesMax = std::uint64_t{4} << 30;
constexpr std::uint64_t kPoolBytesWanted = std::uint64_t{512} << 20;

struct Figures {
  std::uint32_t rounds = 0;
  std::uint64_t steps = 0;      ///< acknowledged and found again
  std::uint64_t in_flight = 0;  ///< begun, not acknowledged, and found to have happened
  std::uint64_t lost_acknowledged = 0;
  std::uint64_t failures = 0;
  std::uint64_t fills = 0;    ///< of the medium, by another program
  std::uint64_t refused = 0;  ///< steps that found no space, and were tried again
  std::string medium;
  std::string guarantee;
  std::uint64_t pool_bytes = 0;
};

class RandomKillLoop {
 public:
  RandomKillLoop(const RandomKillOptions& options, std::string pool, std::string witness_path,
                 RandomWitness& witness, std::optional<MediumFiller>& filler, Figures& figures)
      : options_(options),
        pool_(std::move(pool)),
        witness_path_(std::move(witness_path)),
        witness_(witness),
        filler_(filler),
        figures_(figures),
        random_(options.seed) {
    for (std::uint32_t i = 0; i < options.users; ++i) models_.emplace_back(options.seed, i);
  }

  /// Fails with the first thing that went wrong.
  Status run() {
    {
      Result<Database> database =
          Database::open(random_open_options(pool_, options_.users, options_.index_place));
      if (!database.ok()) return std::move(database).status();
      if (Status s = bench::create_random_tables(*database, options_.seed); !s.ok()) return s;
      figures_.medium = database->statistics().medium;
      figures_.guarantee = database->statistics().guarantee;
    }
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      if (Status s = kill_once(round); !s.ok()) return s;
      if (Status s = audit(round); !s.ok()) return s;
      free_medium();
      bar_.update("killing", round + 1, options_.rounds, "kills");
    }
    return {};
  }

 private:
  Status kill_once(std::uint32_t round) {
    witness_.is_running.store(0);
    const Fill fill = fill_of(round);
    if (fill == Fill::kBefore)
      if (Status s = fill_medium(); !s.ok()) return s;
    Result<ChildProcess> child = ChildProcess::start({"random-child", witness_path_});
    if (!child.ok()) return std::move(child).status();
    if (round % kRandomKillEarlyEvery == kRandomKillEarlyEvery - 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(kRandomEarlyUsMax)));
    } else {
      while (witness_.is_running.load() == 0 && !child->has_ended())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      std::this_thread::sleep_for(
          std::chrono::milliseconds(random_.between(1, options_.run_ms_max)));
      if (fill != Fill::kNone && !child->has_ended())
        if (Status s = fill_beside(fill); !s.ok()) return s;
    }
    if (child->has_ended())
      return Status(StatusCode::kCorrupt,
                    "the process that worked with the database " + child->describe_end());
    child->kill();
    ++figures_.rounds;
    return {};
  }

  /// When another program fills the medium. The process may be killed, and the audit run, while it
  /// is full.
  enum class Fill : std::uint8_t { kNone, kFreed, kKilled, kBefore };
  Fill fill_of(std::uint32_t round) const noexcept {
    return filler_ ? static_cast<Fill>(round % 4) : Fill::kNone;
  }

  Status fill_medium() {
    ++figures_.fills;
    return filler_->fill();
  }
  void free_medium() {
    if (filler_) filler_->free();
    figures_.refused += witness_.refused.exchange(0);
  }

  /// While the child works.
  Status fill_beside(Fill fill) {
    if (fill != Fill::kBefore)
      if (Status s = fill_medium(); !s.ok()) return s;
    const auto end = std::chrono::steady_clock::now() + kRefusalWait;
    while (witness_.refused.load() == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (fill == Fill::kKilled) return {};
    free_medium();
    return expect_progress();
  }

  /// The work must go on when there is room, without reopening.
  Status expect_progress() {
    const auto end = std::chrono::steady_clock::now() + kProgressWait;
    for (std::uint32_t i = 0; i < options_.users; ++i) {
      const std::uint64_t before = witness_.user[i].acknowledged.load();
      while (witness_.user[i].acknowledged.load() == before) {
        if (std::chrono::steady_clock::now() >= end)
          return Status(StatusCode::kCorrupt,
                        fmt::format("user {} made no step for {} seconds after the medium, which "
                                    "was full, had room again",
                                    i, kProgressWait.count()));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return {};
  }

  Status audit(std::uint32_t round) {
    Result<Database> database =
        Database::open(random_open_options(pool_, options_.users, options_.index_place));
    if (!database.ok()) return std::move(database).status();
    for (std::uint32_t i = 0; i < options_.users; ++i)
      if (Status s = audit_user(*database, i); !s.ok()) return s;
    figures_.pool_bytes = database->statistics().pool_allocated_bytes;
    return round % kRandomVerifyEvery == 0 ? database->check() : Status();
  }

  /// Checks that all acknowledged steps are there, and a step in flight completely or not at all.
  Status audit_user(Database& database, std::uint32_t user) {
    RandomWitness::User& progress = witness_.user[user];
    bench::RandomModel& model = models_[user];
    const std::uint64_t known = known_steps_.at(user);
    const std::uint64_t acknowledged = progress.acknowledged.load();
    for (std::uint64_t step = known; step < acknowledged; ++step) model.apply(step);
    std::uint64_t next = acknowledged;
    Status difference = model.compare(database);
    if (!difference.ok() && progress.begun.load() > acknowledged) {
      model.apply(acknowledged);
      if (model.compare(database).ok()) {
        difference = {};
        ++figures_.in_flight;
        ++next;
      }
    }
    if (!difference.ok()) {
      ++figures_.lost_acknowledged;
      return difference;
    }
    figures_.steps += acknowledged - known;
    known_steps_[user] = next;
    progress.acknowledged.store(next);
    progress.begun.store(next);
    return {};
  }

  const RandomKillOptions& options_;
  std::string pool_;
  std::string witness_path_;
  RandomWitness& witness_;
  std::optional<MediumFiller>& filler_;
  Figures& figures_;
  bench::Random random_;
  std::vector<bench::RandomModel> models_;
  std::array<std::uint64_t, kRandomUsersMax> known_steps_{};  // that the models have been through
  ProgressBar bar_;
};

bench::Json figures_json(const RandomKillOptions& options, const Figures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.medium;
  json["guarantee"] = figures.guarantee;
  json["workload"] = "random";
  json["users"] = options.users;
  json["seed"] = options.seed;
  json["rounds"] = figures.rounds;
  json["acknowledged_steps"] = figures.steps;
  json["completed_in_flight"] = figures.in_flight;
  json["lost_acknowledged"] = figures.lost_acknowledged;
  json["fills_of_medium"] = figures.fills;
  json["refused_steps"] = figures.refused;
  json["index"] = to_string(options.index_place);
  json["failures"] = figures.failures;
  json["pool_bytes"] = figures.pool_bytes;
  json["machine"] = bench::to_json(environment);
  return json;
}

}  // namespace

OpenOptions random_open_options(const std::string& pool, std::uint32_t users, IndexPlace mode) {
  OpenOptions options;
  options.path = pool;
  options.max_bytes = kPoolBytesMax;
  options.segment_bytes = std::uint64_t{4} << 20;
  options.tuning.grow_ahead_bytes = std::uint64_t{4} << 20;
  options.slots_max = users + 2;
  options.index_place = mode;
  return options;
}

int run_random_kill_loop(const RandomKillOptions& options) {
  Result<PoolFile> pool = PoolFile::choose(options.pool, options.keep, kPoolBytesWanted);
  if (!pool.ok()) return could_not_run(pool.status());
  if (pool->existed())
    return could_not_run(Status(StatusCode::kAlreadyExists,
                                pool->path() + " exists: name a path that does not exist, because "
                                               "the run makes a new pool and crashes it"));
  if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
  const TemporaryFile witness_file(fresh_shared_path(".witness", sizeof(RandomWitness)));
  Result<bench::SharedFile> shared =
      bench::SharedFile::create(witness_file.path(), bench::whole_pages(sizeof(RandomWitness)));
  if (!shared.ok()) return could_not_run(shared.status());
  auto& witness = *reinterpret_cast<RandomWitness*>(shared->data());
  if (pool->path().size() >= sizeof witness.pool_path)
    return could_not_run(Status(StatusCode::kInvalidArgument, "the pool's path is too long"));
  pool->path().copy(witness.pool_path, sizeof witness.pool_path - 1);
  witness.seed = options.seed;
  witness.users = options.users;
  witness.index_place = options.index_place;
  witness.may_be_full = options.fills_medium ? 1 : 0;
  std::optional<MediumFiller> filler;
  if (options.fills_medium) {
    Result<MediumFiller> beside = MediumFiller::beside(pool->path());
    if (!beside.ok()) return could_not_run(beside.status());
    filler.emplace(*std::move(beside));
  }

  Figures figures;
  const Status status =
      RandomKillLoop(options, pool->path(), witness_file.path(), witness, filler, figures).run();
  if (!status.ok()) {
    ++figures.failures;
    fmt::print(stderr, "flugs: round {}, seed {}: {}\n", figures.rounds, options.seed,
               status.to_string());
  }
  fmt::print(
      "{} processes killed; {} acknowledged steps on random tables found again, {} lost; {} in "
      "flight were completed\n",
      figures.rounds, figures.steps, figures.lost_acknowledged, figures.in_flight);
  if (filler)
    fmt::print("the medium was full {} times; {} steps found no space, and were tried again\n",
               figures.fills, figures.refused);
  return finish_with_json(options.json, figures_json(options, figures),
                          status.ok() ? kExitOk : kExitCheckFailed);
}

}  // namespace flugs::tools
