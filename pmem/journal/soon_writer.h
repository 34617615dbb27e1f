#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "flugs/status.h"
#include "pmem/medium/line_journal.h"

namespace flugs::pmem {

/// Makes records durable that no thread waits for, some time after they were appended, in a thread
/// of its own that starts when it is first needed. Calls back those that asked for it.
/// Thread-safety: any thread, except creating and destroying.
class SoonWriter {
 public:
  /// `journal` must outlive the object.
  explicit SoonWriter(LineJournal& journal) noexcept : journal_(journal) {}
  /// Everything that was asked for is durable, or has failed, and was called back.
  ~SoonWriter();
  SoonWriter(const SoonWriter&) = delete;
  SoonWriter& operator=(const SoonWriter&) = delete;

  /// What lies before `place` should be durable `within` this time; `is_much`: begin at once. If
  /// the thread cannot be started, waits until it is. Fails as LineJournal::wait_durable.
  Status want(JournalPlace place, std::chrono::microseconds within, bool is_much);
  /// Writes what lies before `place` at once, if there is a thread for it. Waits for nothing.
  void begin(JournalPlace place);
  /// Calls `callback` when what lies before `place` is durable, or has failed: from the thread, or
  /// from this call if that is so already.
  void when_durable(JournalPlace place, std::function<void(const Status&)> callback);

  struct Counts {
    std::uint64_t wanted = 0;
    std::uint64_t late = 0;
  };
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// Wants whose deadlines are nearly the same.
  struct Wanted {
    JournalPlace place;
    Clock::time_point start;
    Clock::time_point deadline;
    std::uint64_t count;
  };
  struct Callback {
    JournalPlace place;
    std::function<void(const Status&)> function;
  };
  bool start() noexcept;
  void run(const std::stop_token& stop);
  void note(JournalPlace place, Clock::time_point start, Clock::time_point deadline);
  bool has_work() const noexcept { return !wanted_.empty() || !callbacks_.empty(); }
  void write(std::unique_lock<std::mutex>& lock);
  std::vector<Callback> take_due(const Status& status);

  LineJournal& journal_;
  mutable std::mutex mutex_;  // protects what follows; a leaf, free while something is written
  std::condition_variable_any changed_;  // next_start_ is earlier
  std::deque<Wanted> wanted_;            // as they came
  std::vector<Callback> callbacks_;
  Clock::time_point next_start_ = Clock::time_point::max();
  JournalPlace needed_ = 0;  // the greatest place of all
  JournalPlace begun_ = 0;   // the greatest place of begin
  Counts counts_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::pmem
