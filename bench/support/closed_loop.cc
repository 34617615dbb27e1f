#include "bench/support/closed_loop.h"

#include <thread>
#include <utility>

#include "bench/support/run_watch.h"

namespace flugs::bench {

/// The threads of the users, and what they are told.
class ClosedLoop {
 public:
  /// Starts the threads, and waits until all users are prepared.
  explicit ClosedLoop(std::span<const std::unique_ptr<ClosedLoopUser>> users)
      : users_(users), failures_(users.size()) {
    for (std::size_t i = 0; i < users.size(); ++i)
      threads_.emplace_back([this, i] { work(*users_[i], failures_[i]); });
    while (ready_.load() < users.size()) std::this_thread::yield();
  }
  ClosedLoop(const ClosedLoop&) = delete;
  ClosedLoop& operator=(const ClosedLoop&) = delete;
  ~ClosedLoop() { stop(); }

  void ramp_up() noexcept { tell(Phase::kRampUp); }
  void sample() noexcept { tell(Phase::kSampling); }
  void end_sampling() noexcept { tell(Phase::kStopped); }
  /// Ends the threads. A step that has begun comes to its end.
  void stop() {
    end_sampling();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  bool has_failed() const noexcept { return failed_.load(); }
  std::uint64_t executed() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& user : users_) sum += user->executed();
    return sum;
  }
  /// After stop(): the first failure.
  Status failure() const {
    for (const Status& failure : failures_)
      if (!failure.ok()) return failure;
    return {};
  }

 private:
  enum class Phase : std::uint32_t { kWaiting, kRampUp, kSampling, kStopped };

  void tell(Phase phase) noexcept { phase_.store(phase, std::memory_order_release); }

  void work(ClosedLoopUser& user, Status& failure) {
    Status status = user.prepare();
    ready_.fetch_add(1);
    while (phase_.load(std::memory_order_acquire) == Phase::kWaiting) std::this_thread::yield();
    Phase phase = Phase::kWaiting;
    while (status.ok() && (phase = phase_.load(std::memory_order_relaxed)) != Phase::kStopped) {
      status = user.step(phase == Phase::kSampling);
      if (status.ok()) user.executed_.store(user.executed() + 1, std::memory_order_relaxed);
    }
    if (status.ok()) return;
    failure = std::move(status);
    failed_.store(true);
  }

  std::span<const std::unique_ptr<ClosedLoopUser>> users_;
  std::atomic<Phase> phase_{Phase::kWaiting};
  std::atomic<std::size_t> ready_{0};  ///< users that are prepared
  std::atomic<bool> failed_{false};
  std::vector<Status> failures_;  ///< of each user; each thread writes its own
  std::vector<std::thread> threads_;
};

Result<ClosedLoopResult> run_closed_loop(std::span<const std::unique_ptr<ClosedLoopUser>> users,
                                         const ClosedLoopOptions& options) {
  ClosedLoopResult result;
  ClosedLoop loop(users);
  const RunWatch watch{.seconds_all = options.ramp_up_seconds + options.seconds,
                       .has_failed = [&loop] { return loop.has_failed(); },
                       .executed = [&loop] { return loop.executed(); },
                       .progress = options.progress};
  if (options.ramp_up_seconds > 0) {
    loop.ramp_up();
    watch.wait(monotonic_ns(), options.ramp_up_seconds, 0, nullptr);
  }
  if (options.sampling_begins) options.sampling_begins();
  const ProcessorTime before = process_processor_time();
  const std::uint64_t begin_ns = monotonic_ns();
  loop.sample();
  watch.wait(begin_ns, options.seconds, options.ramp_up_seconds, &result.steps_by_second);
  loop.end_sampling();
  const ProcessorTime after = process_processor_time();
  result.seconds = seconds_since(begin_ns);
  result.processor = {after.user_ns - before.user_ns, after.system_ns - before.system_ns};
  if (options.sampling_ends) options.sampling_ends();
  loop.stop();
  if (Status s = loop.failure(); !s.ok()) return s;
  return result;
}

}  // namespace flugs::bench
