#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/random/random_user.h"
#include "tools/children/memory_child.h"
#include "tools/children/random_kill_loop.h"
#include "tools/support/child_process.h"

namespace flugs::tools {

namespace {

/// One user until the process is killed, or until a step fails. No step may fail, but on a medium
/// that another program fills it may find no space: then it leaves nothing behind, and is tried
/// again.
void run_user(Database& database, RandomWitness& witness, std::uint32_t index) {
  bench::RandomUser user(database, witness.seed, index);
  RandomWitness::User& progress = witness.user[index];
  for (std::uint64_t step = progress.acknowledged.load();; ++step) {
    progress.begun.store(step + 1, std::memory_order_release);
    Status s = user.execute(step);
    for (; s.code() == StatusCode::kOutOfSpace && witness.may_be_full != 0;
         s = user.execute(step)) {
      witness.refused.fetch_add(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!s.ok()) {
      fmt::print(stderr, "flugs: user {}, step {}: {}\n", index, step, s.to_string());
      std::_Exit(kExitCheckFailed);
    }
    progress.acknowledged.store(step + 1, std::memory_order_release);
  }
}

int run_child(const std::string& witness_path) {
  Result<bench::SharedFile> file = bench::SharedFile::open(witness_path, sizeof(RandomWitness));
  if (!file.ok()) return could_not_run(file.status());
  auto& witness = *reinterpret_cast<RandomWitness*>(file->data());
  Result<Database> database =
      Database::open(random_open_options(witness.pool_path, witness.users, witness.index_place));
  if (!database.ok()) return could_not_run(database.status());
  witness.is_running.store(1);
  std::vector<std::thread> users;
  users.reserve(witness.users);
  for (std::uint32_t i = 0; i < witness.users; ++i)
    users.emplace_back([&, i] { run_user(*database, witness, i); });
  for (std::thread& user : users) user.join();
  return kExitCheckFailed;
}

}  // namespace

void add_random_child(CLI::App& app, Action& action) {
  add_memory_child(app, action, "random-child", "A process of kill-loop", run_child);
}

}  // namespace flugs::tools
