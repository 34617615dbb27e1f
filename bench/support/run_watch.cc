#include "bench/support/run_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/support/clock.h"

namespace flugs::bench {

void RunWatch::wait(std::uint64_t begin_ns, double seconds, double seconds_before,
                    std::vector<double>* tps_by_second) const {
  std::uint64_t mark = executed();
  double mark_seconds = 0;
  for (double gone = 0; gone < seconds; gone = seconds_since(begin_ns)) {
    if (has_failed()) return;
    if (progress && !progress(seconds_before + gone, seconds_all)) return;
    const double next_point = std::floor(gone) + 1;
    const double slice = std::min({0.1, seconds - gone, next_point - gone});
    std::this_thread::sleep_for(std::chrono::duration<double>(slice));
    const double now = seconds_since(begin_ns);
    if (tps_by_second == nullptr || now < next_point) continue;
    const std::uint64_t done = executed();
    tps_by_second->push_back(static_cast<double>(done - mark) / (now - mark_seconds));
    mark = done;
    mark_seconds = now;
  }
}

}  // namespace flugs::bench
