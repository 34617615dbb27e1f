#include "bench/scaling/line_costs.h"

#include <pthread.h>
#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/median.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kOperations = 2000;  // of a stretch: some ten to some hundred microseconds
constexpr std::size_t kStretchesMin = 15;

struct alignas(128) Line {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> time{0};  // on the same line
};

// As the clock of commits is read: nothing is moved across it.
std::uint64_t ordered_time() noexcept {
  unsigned processor = 0;
  const std::uint64_t time = __rdtscp(&processor);
  _mm_lfence();
  return time;
}

std::array<int, 2> two_processors() noexcept {
  std::array<int, 2> found = {-1, -1};
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return found;
  std::size_t count = 0;
  for (int i = 0; i < CPU_SETSIZE && count < found.size(); ++i)
    if (CPU_ISSET(i, &allowed)) found[count++] = i;
  return found;
}

void stay_on(int processor) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

/// Calls stretch() -> nanoseconds of one operation for so long; the median.
template <typename F>
double repeat(double seconds, F&& stretch) {
  std::vector<double> values;
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  while (values.size() < kStretchesMin || monotonic_ns() < end) values.push_back(stretch());
  return median(std::move(values));
}

double own_rmw(double seconds) {
  Line line;
  return repeat(seconds, [&] {
    const std::uint64_t start = monotonic_ns();
    for (std::uint32_t i = 0; i < kOperations; ++i)
      line.word.fetch_add(1, std::memory_order_seq_cst);
    return static_cast<double>(monotonic_ns() - start) / kOperations;
  });
}

double time_read(double seconds) {
  return repeat(seconds, [] {
    const std::uint64_t start = monotonic_ns();
    for (std::uint32_t i = 0; i < kOperations; ++i) ordered_time();
    return static_cast<double>(monotonic_ns() - start) / kOperations;
  });
}

double shared_rmw(double seconds, int other_processor) {
  Line line;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    stay_on(other_processor);
    while (!ends.load(std::memory_order_relaxed)) line.word.fetch_add(1, std::memory_order_seq_cst);
  });
  while (line.word.load() == 0) std::this_thread::yield();
  const double ns = repeat(seconds, [&] {
    const std::uint64_t before = line.word.load();
    const std::uint64_t start = monotonic_ns();
    for (std::uint32_t i = 0; i < kOperations; ++i)
      line.word.fetch_add(1, std::memory_order_seq_cst);
    return static_cast<double>(monotonic_ns() - start) /
           static_cast<double>(line.word.load() - before);
  });
  ends = true;
  other.join();
  return ns;
}

/// One throws, odd numbers, the other throws back; each tells its time with it.
void play(double seconds, int other_processor, LineCosts& costs) {
  Line line;
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> backwards{0};
  const auto look = [&] {
    const std::uint64_t told = line.time.load(std::memory_order_acquire);
    const std::uint64_t now = ordered_time();
    if (now < told) backwards.fetch_add(1, std::memory_order_relaxed);
    return now;
  };
  std::thread other([&] {
    stay_on(other_processor);
    for (std::uint64_t next = 1;; next += 2) {
      while (line.word.load(std::memory_order_acquire) != next)
        if (ends.load(std::memory_order_relaxed)) return;
      line.time.store(look(), std::memory_order_release);
      line.word.store(next + 1, std::memory_order_release);
    }
  });
  std::uint64_t next = 1;
  const double two_ways_ns = repeat(seconds, [&] {
    const std::uint64_t start = monotonic_ns();
    for (std::uint32_t i = 0; i < kOperations; ++i, next += 2) {
      line.time.store(ordered_time(), std::memory_order_release);
      line.word.store(next, std::memory_order_release);
      while (line.word.load(std::memory_order_acquire) != next + 1) {
      }
      look();
    }
    return static_cast<double>(monotonic_ns() - start) / kOperations;
  });
  ends = true;
  other.join();
  // Reading the time, three times a round, is no part of it.
  costs.transfer_ns = std::max(0.0, two_ways_ns - 3 * costs.read_time_ns) / 2;
  costs.times_told = next - 1;
  costs.backwards = backwards.load();
}

}  // namespace

Result<LineCosts> measure_line_costs(double seconds) {
  const std::array<int, 2> processors = two_processors();
  if (processors[1] < 0)
    return Status(StatusCode::kInvalidArgument,
                  "this machine has one processor: the cost of a line between two processors "
                  "cannot be measured");
  LineCosts costs;
  std::thread measuring([&] {
    stay_on(processors[0]);
    costs.rmw_own_ns = own_rmw(seconds / 4);
    costs.read_time_ns = time_read(seconds / 4);
    costs.rmw_shared_ns = shared_rmw(seconds / 4, processors[1]);
    play(seconds / 4, processors[1], costs);
  });
  measuring.join();
  return costs;
}

}  // namespace flugs::bench
