#include "bench/support/bulk_load.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace flugs::bench {

namespace {

constexpr std::uint64_t kRowsPerTransaction = 10'000;

/// Shared by the loading threads.
struct Share {
  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> failed{false};
};

Status load_share(const BulkLoad& load, Share& share, std::uint32_t thread) {
  while (!share.failed.load(std::memory_order_relaxed)) {
    const std::uint64_t begin = share.next.fetch_add(kRowsPerTransaction);
    if (begin >= load.end) break;
    const std::uint64_t end = std::min(begin + kRowsPerTransaction, load.end);
    Status status = load.load_range(begin, end, thread);
    if (!status.ok()) {
      share.failed.store(true, std::memory_order_relaxed);
      return status;
    }
    const std::uint64_t done = share.done.fetch_add(end - begin) + end - begin;
    if (thread == 0 && load.progress) load.progress(done, load.end - load.begin);
  }
  return {};
}

}  // namespace

Status load_in_parallel(const BulkLoad& load) {
  Share share{load.begin};
  std::vector<Status> statuses(std::max(load.threads, 1u));
  std::vector<std::thread> threads;
  threads.reserve(statuses.size());
  for (std::uint32_t i = 1; i < statuses.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = load_share(load, share, i); });
  statuses[0] = load_share(load, share, 0);
  for (std::thread& thread : threads) thread.join();
  for (Status& status : statuses)
    if (!status.ok()) return std::move(status);
  return {};
}

}  // namespace flugs::bench
