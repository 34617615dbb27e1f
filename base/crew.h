#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "flugs/function_ref.h"

namespace flugs {

/// Threads that share the work of a call. Each is started when a call first needs it, and waits for
/// the next call until the crew is destroyed.
///
/// If a thread cannot be started, the call goes on with the existing ones, in the worst case with
/// the calling thread alone.
///
/// Thread-safety: any thread, also from within a call; except destroying.
class Crew {
 public:
  using Work = FunctionRef<void(std::uint32_t worker)>;
  /// Largest number of threads that an option may ask for.
  static constexpr std::uint32_t kWorkersMax = 1024;

  Crew() noexcept = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  /// Calls `work` in several threads at the same time: with 0 in the calling thread, and with other
  /// numbers below `workers` in threads of the crew. Each number is used at most once. The call
  /// with 0 must be able to finish the work alone, because there may be no other call. Returns when
  /// all calls have returned. If calls throw, rethrows one of the exceptions.
  void run(std::uint32_t workers, Work work);

  /// Calls `task` once for each number below `count`, in at most `workers` threads. Returns when
  /// all calls have returned. After a task has thrown, no other begins, and its exception is
  /// rethrown.
  void for_each(std::uint32_t workers, std::size_t count, FunctionRef<void(std::size_t)> task);

  /// Threads that calls have started so far.
  std::size_t thread_count() const;

 private:
  /// A call of run that wants more workers. It lives on the caller's stack.
  struct Job {
    Job(Work does, std::uint32_t wants) noexcept : work(does), workers(wants) {}

    Work work;
    std::uint32_t workers;
    std::uint32_t begun = 1;                 // workers that have been given a number
    std::atomic<std::uint32_t> running = 0;  // threads of the crew at work on it; mutex_ to write
    std::exception_ptr failure = nullptr;
    std::condition_variable ended = {};  // with mutex_: `running` has become 0
    Job* next = nullptr;
  };

  void offer(Job& job);
  void withdraw(Job& job);
  void take_back(Job& job);
  void call(Job& job, std::uint32_t worker) noexcept;
  bool start_thread() noexcept;
  void help() noexcept;

  mutable std::mutex mutex_;               // protects what follows, and jobs; a leaf
  Job* offered_ = nullptr;                 // jobs with numbers that no thread has taken yet
  std::uint64_t wanted_ = 0;               // count of these numbers
  std::uint64_t waiting_ = 0;              // idle threads
  std::atomic<std::uint64_t> offers_ = 0;  // jobs so far, and one for the end; mutex_ to write
  bool stops_ = false;
  std::condition_variable changed_;    // `offered_` or `stops_`
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace flugs
