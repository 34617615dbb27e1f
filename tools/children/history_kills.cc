#include "tools/children/history_kills.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "bench/support/clock.h"
#include "bench/support/random.h"
#include "bench/support/shared_file.h"
#include "tools/children/memory_child.h"
#include "tools/support/child_process.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"

namespace flugs::tools {

namespace {

constexpr std::uint32_t kHistoryKillEarlyEvery = 8;
constexpr std::uint32_t kHistoryEarlyUsMax = 20'000;
// Moments within an operation, not only between two looks at how far the users have come.
constexpr std::uint32_t kHistoryDelayUsMax = 300;

class HistoryKills {
 public:
  HistoryKills(const sessions::HistoryMemory& memory, std::string path, std::uint32_t kills)
      : memory_(memory),
        path_(std::move(path)),
        kills_(kills),
        random_(memory.plan().seed ^ 0x6b696c6c) {}

  Status run() {
    for (std::uint32_t kill = 0; kill < kills_; ++kill)
      if (Status s = kill_once(kill); !s.ok()) return s;
    Result<ChildProcess> last = start();
    if (!last.ok()) return std::move(last).status();
    last->wait();
    return last->exit_status() == kExitOk ? Status() : ended_early(*last);
  }

 private:
  Result<ChildProcess> start() {
    memory_.layout().is_running.store(0);
    return ChildProcess::start({"history-child", path_});
  }

  Status ended_early(const ChildProcess& child) const {
    return Status(StatusCode::kCorrupt,
                  fmt::format("after {} kills the process that worked with the database {}",
                              memory_.layout().life.load(), child.describe_end()));
  }

  // The work is divided evenly among the processes; one that has done all of it before its turn to
  // be killed has come is followed by others that only open the pool.
  Status kill_once(std::uint32_t kill) {
    Result<ChildProcess> child = start();
    if (!child.ok()) return std::move(child).status();
    const std::uint64_t until = memory_.plan().operations / (kills_ + 1) * (kill + 1);
    const auto pause = std::chrono::microseconds(random_.below(
        kill % kHistoryKillEarlyEvery == kHistoryKillEarlyEvery - 1 ? kHistoryEarlyUsMax
                                                                    : kHistoryDelayUsMax));
    if (kill % kHistoryKillEarlyEvery != kHistoryKillEarlyEvery - 1)
      while (!child->has_ended() &&
             (memory_.layout().is_running.load() == 0 || memory_.operations() < until))
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::this_thread::sleep_for(pause);
    if (child->has_ended() && child->exit_status() != kExitOk) return ended_early(*child);
    child->kill();
    memory_.layout().life.fetch_add(1);
    const std::uint64_t now_ns = bench::monotonic_ns();
    for (std::uint32_t user = 0; user <= memory_.plan().users; ++user)
      memory_.log(user).killed(now_ns);
    return {};
  }

  const sessions::HistoryMemory& memory_;
  const std::string path_;
  const std::uint32_t kills_;
  bench::Random random_;
};

int run_history_child(const std::string& path) {
  Result<bench::SharedFile> file =
      bench::SharedFile::open(path, sizeof(sessions::HistoryMemory::Layout));
  if (!file.ok()) return could_not_run(file.status());
  const sessions::HistoryMemory memory = sessions::HistoryMemory::attach(file->data());
  OpenOptions options = sessions::history_open_options(memory.plan());
  options.mode = OpenMode::kOpen;
  Result<Database> database = Database::open(options);
  if (!database.ok()) return could_not_run(database.status());
  memory.layout().is_running.store(1);
  if (Status s = sessions::run_history_users(*database, memory); !s.ok()) {
    fmt::print(stderr, "flugs: {}\n", s.to_string());
    return kExitCheckFailed;
  }
  return kExitOk;
}

}  // namespace

Result<sessions::HistoryRun> run_history_with_kills(const sessions::HistoryPlan& plan,
                                                    std::uint32_t kills) {
  if (Result<Database> made = sessions::create_history_pool(plan); !made.ok())
    return std::move(made).status();
  const std::uint64_t bytes = bench::whole_pages(sessions::HistoryMemory::bytes_for(plan));
  const TemporaryFile path(fresh_shared_path(".history", bytes / 4));
  Result<bench::SharedFile> file = bench::SharedFile::create(path.path(), bytes);
  if (!file.ok()) return std::move(file).status();
  const sessions::HistoryMemory memory =
      sessions::HistoryMemory::create({file->data(), bytes}, plan);
  if (Status s = HistoryKills(memory, path.path(), kills).run(); !s.ok()) return s;
  OpenOptions options = sessions::history_open_options(plan);
  options.mode = OpenMode::kOpen;
  Result<Database> database = Database::open(options);
  if (!database.ok()) return std::move(database).status();
  return sessions::finish_history(*database, memory);
}

void add_history_child(CLI::App& app, Action& action) {
  add_memory_child(app, action, "history-child", "A process of history", run_history_child);
}

}  // namespace flugs::tools
