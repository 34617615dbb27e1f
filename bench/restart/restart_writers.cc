#include "bench/restart/restart_writers.h"

#include <atomic>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "bench/support/shared_file.h"

namespace flugs::bench {

namespace {

Status transact_logged(std::uint32_t life, std::uint64_t number, RestartEntry& entry,
                       const RestartTransact& transact) {
  entry.state = RestartEntry::kNothing;
  keep_order();
  entry.life = life;
  entry.updated = 0;
  keep_order();
  entry.state = RestartEntry::kBegun;
  keep_order();
  Status status = transact(number, entry);
  if (!status.ok()) return status;
  keep_order();
  entry.state = RestartEntry::kAcknowledged;
  keep_order();
  return {};
}

Status run_writer(RestartControl& control, std::uint32_t writer, const RestartTransact& transact,
                  const std::atomic<bool>& failed) {
  const std::span<RestartEntry> log = control.log(writer);
  for (std::uint64_t number = 0; !failed.load(std::memory_order_relaxed); ++number) {
    if (number == log.size())
      return Status(StatusCode::kOutOfSpace, "the writers' log is full: nobody killed the load");
    Status status = transact_logged(control.status().life, number, log[number], transact);
    if (!status.ok()) return status;
    control.status().transactions_under_load.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

}  // namespace

Status write_until_killed(RestartControl& control,
                          const std::function<RestartTransact(std::uint32_t writer)>& writer_of) {
  std::atomic<bool> failed{false};
  std::mutex mutex;  // protects failure
  Status failure;
  std::vector<std::thread> threads;
  threads.reserve(control.plan().writers);
  for (std::uint32_t i = 0; i < control.plan().writers; ++i)
    threads.emplace_back([&, i] {
      Status status = run_writer(control, i, writer_of(i), failed);
      if (status.ok()) return;
      failed.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (failure.ok()) failure = status;
    });
  for (std::thread& thread : threads) thread.join();
  return failure;
}

}  // namespace flugs::bench
