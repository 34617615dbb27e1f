#include "verify/isolation/sessions/history_run.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "verify/isolation/sessions/history_session.h"

namespace flugs::sessions {

namespace {

constexpr std::chrono::milliseconds kHistoryMergePause{5};
constexpr std::chrono::milliseconds kHistoryMergePatience{20};
constexpr std::uint32_t kSessionsOfBrokenRule = 12;

/// The first failure of any user.
class FirstFailure {
 public:
  void note(const Status& status) {
    const std::lock_guard guard(mutex_);
    if (status_.ok()) status_ = status;
    has_failed_.store(true, std::memory_order_relaxed);
  }
  bool has_failed() const noexcept { return has_failed_.load(std::memory_order_relaxed); }
  Status status() const {
    const std::lock_guard guard(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  Status status_;
  std::atomic<bool> has_failed_{false};
};

std::uint64_t seed_of(const HistoryPlan& plan, std::uint32_t life, std::uint32_t session) {
  std::seed_seq words{static_cast<std::uint32_t>(plan.seed),
                      static_cast<std::uint32_t>(plan.seed >> 32), life, session};
  std::uint32_t seed[2] = {};
  words.generate(seed, seed + 2);
  return std::uint64_t{seed[0]} << 32 | seed[1];
}

/// Runs a user: its sessions take turns, in a random order.
void run_user(const HistorySession::World& world, std::uint32_t user, FirstFailure& failure) {
  const HistoryPlan& plan = world.memory.plan();
  const std::uint32_t life = world.memory.layout().life.load();
  isolation::EventLog log = world.memory.log(user);
  std::mt19937_64 random(seed_of(plan, life, user + kHistoryUsersMax * plan.sessions));
  std::vector<std::unique_ptr<HistorySession>> sessions;
  for (std::uint32_t i = 0; i < plan.sessions; ++i) {
    const std::uint32_t number = user * plan.sessions + i;
    sessions.push_back(
        std::make_unique<HistorySession>(world, log, number, i, seed_of(plan, life, number)));
  }
  while (log.operations() < world.memory.operations_of_user() && !failure.has_failed()) {
    if (Status s = sessions[random() % sessions.size()]->step(); !s.ok()) failure.note(s);
    if (log.is_full())
      failure.note(Status(StatusCode::kOutOfSpace, "the log of the history is full"));
  }
  for (const auto& session : sessions) session->stop();
}

/// Merges one table after the other, everything of it, while users write. A transaction in the way
/// is no failure.
void merge_tables(Database& database, const HistoryTables& tables, const HistoryMemory& memory,
                  const std::atomic<bool>& is_over, FirstFailure& failure) {
  const std::vector<TableId> all = tables.tables();
  for (std::size_t i = 0; !is_over.load(); ++i) {
    MergeOptions options;
    options.waste_bytes = std::uint64_t{64} << 10;
    options.scope = i / all.size() % 2 == 0 ? MergeScope::kEverything : MergeScope::kFullChunks;
    options.threads = 1;
    options.patience = kHistoryMergePatience;
    options.dead_percent = 10;
    options.ends_old_transactions = i % 3 == 0;
    const Result<MergeReport> merged = database.merge(all[i % all.size()], options);
    if (merged.ok()) {
      if (merged->chunks_merged + merged->groups_merged > 0) memory.layout().merges.fetch_add(1);
    } else if (merged.code() != StatusCode::kBusy) {
      failure.note(merged.status());
      return;
    }
    std::this_thread::sleep_for(kHistoryMergePause);
  }
}

}  // namespace

OpenOptions history_open_options(const HistoryPlan& plan) {
  OpenOptions options;
  options.path = plan.pool_path;
  options.max_bytes = std::uint64_t{16} << 30;
  options.segment_bytes = std::uint64_t{4} << 20;
  options.tuning.grow_ahead_bytes = std::uint64_t{4} << 20;
  // A session with stale snapshots needs two slots; the breaker of rules needs one per user.
  options.slots_max = plan.users * (plan.sessions * 2 + 1) + 4;
  options.index_place = plan.index_place;
  options.tuning.clock = plan.clock;
  return options;
}

Status run_history_users(Database& database, const HistoryMemory& memory) {
  const HistoryPlan& plan = memory.plan();
  Result<HistoryTables> tables = HistoryTables::find(database, plan);
  if (!tables.ok()) return std::move(tables).status();
  RuleBreaker breaker(database, plan.broken, plan.users * plan.sessions);
  const HistorySession::World world = {database, *tables, memory, breaker};
  FirstFailure failure;
  std::atomic<bool> is_over{false};
  std::thread merger;
  if (plan.merges)
    merger = std::thread([&] { merge_tables(database, *tables, memory, is_over, failure); });
  std::vector<std::thread> users;
  users.reserve(plan.users);
  for (std::uint32_t user = 0; user < plan.users; ++user)
    users.emplace_back([&, user] { run_user(world, user, failure); });
  for (std::thread& user : users) user.join();
  is_over.store(true);
  if (merger.joinable()) merger.join();
  return failure.status();
}

Result<Database> create_history_pool(const HistoryPlan& plan) {
  OpenOptions options = history_open_options(plan);
  options.mode = OpenMode::kCreate;
  Result<Database> database = Database::open(options);
  if (!database.ok()) return database;
  if (Status s = HistoryTables::create(*database, plan); !s.ok()) return s;
  return database;
}

Result<HistoryRun> finish_history(Database& database, const HistoryMemory& memory) {
  if (Status s = read_everything(database, memory); !s.ok()) return s;
  Result<isolation::History> history = memory.collect();
  if (!history.ok()) return std::move(history).status();
  const Statistics statistics = database.statistics();
  return HistoryRun{std::move(*history), statistics.medium, statistics.guarantee,
                    memory.layout().merges.load(), memory.layout().life.load()};
}

Result<HistoryRun> run_history(const HistoryPlan& plan) {
  Result<Database> database = create_history_pool(plan);
  if (!database.ok()) return std::move(database).status();
  // Zeros that take space only where they are touched.
  constexpr std::size_t kLine = alignof(HistoryMemory::Layout);
  const std::uint64_t bytes = HistoryMemory::bytes_for(plan);
  const std::unique_ptr<void, decltype(&std::free)> zeros(std::calloc(bytes + kLine, 1),
                                                          &std::free);
  if (zeros == nullptr) return Status(StatusCode::kOutOfMemory);
  void* aligned = zeros.get();
  std::size_t space = bytes + kLine;
  aligned = std::align(kLine, bytes, aligned, space);
  const HistoryMemory memory =
      HistoryMemory::create({static_cast<std::byte*>(aligned), bytes}, plan);
  if (Status s = run_history_users(*database, memory); !s.ok()) return s;
  return finish_history(*database, memory);
}

void break_rule(HistoryPlan& plan, BrokenRule rule) noexcept {
  plan.broken = rule;
  plan.users = 1;
  plan.sessions = kSessionsOfBrokenRule;
  plan.merges = false;
}

Result<isolation::Report> check_broken_rule(HistoryPlan plan, BrokenRule rule) {
  break_rule(plan, rule);
  const Result<HistoryRun> run = run_history(plan);
  if (!run.ok()) return run.status();
  return isolation::check(run->history, {.level = plan.level});
}

}  // namespace flugs::sessions
